//! One file per CPU, each with the same names:
//!
//! - `syscall6(number, a, b, c, d, e, f) -> isize`: one system call, result as in
//!   `rax`/`x0`. Calls with fewer arguments pass zeros, which the kernel ignores.
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
