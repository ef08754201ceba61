//! The reader against real memory: of this process, and of children of its own.
