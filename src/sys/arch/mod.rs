//! One file per CPU, each with the same names:
//!
//! - `syscall6(number, a, b, c, d, e, f) -> isize`: one system call, result as in
//!   `rax`/`x0`. Calls with fewer arguments pass zeros, which the kernel ignores.
//! - `discard_below_stack(bytes, page_bytes) -> isize`: gives back what lies below the page of
//!   the stack pointer, as one system call.
//! - `clone_and_call(flags, pidfd, calls, failed) -> isize`: one clone, whose child does the
//!   system calls of a table, number and five arguments each, one after the other until one
//!   fails; it leaves the negative errno in `failed` and exits with status 127. It uses no
//!   stack and writes nothing else, so it can share its parent's memory (CLONE_VM), which
//!   stands still meanwhile (CLONE_VFORK).
//! - `nr`: the numbers of the calls rustix lacks.
//! - `VDSO_CLOCK_GETTIME`: the symbol to look for in the vDSO.
//! - `cowitness_last_steps`, `cowitness_builtin`: code that other modules copy elsewhere,
//!   up to the symbol `…_end`; `leave` jumps into the first.
//! - `hypervisor_signature()`: what the CPU itself says about being virtualised.

#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod cpu;

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod cpu;

pub(super) use cpu::*;
