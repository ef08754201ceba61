//! The appliance's readers, as far as the lab knows them by name: the one list behind the
//! default question, the expectations and the columns of the matrix.

/// What a reader does in the kernel; what holds for a class holds for each of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// /proc/PID/mem.
    Proc,
    /// process_vm_readv.
    Vmread,
    /// PTRACE_PEEKDATA.
    Ptrace,
    /// /proc/PID/mem or process_vm_readv, as pagemap says: splits nothing on any kernel.
    Hybrid,
}

/// A reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Its name in the rows.
    pub name: &'static str,
    /// What it does.
    pub class: Class,
    /// Whether `bench` is asked for it: ptrace moves 8 bytes a call, so that its split pages
    /// are left to `probe`.
    pub in_bench: bool,
}

/// All of them, in the order of the columns.
pub const READERS: [Reader; 6] = [
    reader("proc", Class::Proc, true),
    reader("proc-seek", Class::Proc, true),
    reader("vmread", Class::Vmread, true),
    reader("vmread-batch", Class::Vmread, true),
    reader("ptrace", Class::Ptrace, false),
    reader("hybrid", Class::Hybrid, true),
];

const fn reader(name: &'static str, class: Class, in_bench: bool) -> Reader {
    Reader {
        name,
        class,
        in_bench,
    }
}

/// The first of each class, whose answers stand for it on the terminal.
pub fn of_classes() -> impl Iterator<Item = &'static Reader> {
    let first = |at: usize| {
        READERS[..at]
            .iter()
            .all(|other| other.class != READERS[at].class)
    };
    (0..READERS.len())
        .filter(move |&at| first(at))
        .map(|at| &READERS[at])
}

/// The names of `readers` with `between` between them.
pub fn names<'r>(readers: impl Iterator<Item = &'r Reader>, between: &str) -> String {
    readers
        .map(|reader| reader.name)
        .collect::<Vec<_>>()
        .join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_one_that_stands_for_it() {
        assert_eq!(
            names(of_classes(), " / "),
            "proc / vmread / ptrace / hybrid"
        );
    }
}
