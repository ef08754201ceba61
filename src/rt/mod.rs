//! What a C runtime would bring: the first instruction, the panic handler, and the few
//! memory functions that compiled code calls. Only the binary has this.
//!
//! # Safety
//!
//! - **STACK**: at `_start` the stack pointer points at argc, followed by argv, a null,
//!   envp, a null and the auxiliary vector (System V ABI, "Initial Process Stack").
#![allow(unsafe_code, reason = "entry point and memory functions; see # Safety")]

#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod cpu;

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod cpu;

mod memory;

use core::ffi::{CStr, c_char};
use core::panic::PanicInfo;
use core::slice;
use cowitness::app::{self, Start};
use cowitness::fixture::copied;
use cowitness::sys::auxv::Auxv;
use cowitness::sys::image::InitialStack;
use cowitness::sys::process::exit;

/// Called by `_start` with the initial stack pointer.
///
/// # Safety
/// STACK.
#[unsafe(no_mangle)]
unsafe extern "C" fn cowitness_entry(stack: *const usize) -> ! {
    // SAFETY: STACK.
    let argc = unsafe { *stack };
    // SAFETY: STACK; argv follows argc and holds argc pointers to C strings that live
    // as long as the process. `&CStr` is not what lies there, so they stay pointers.
    let argv = unsafe { slice::from_raw_parts(stack.add(1).cast::<*const c_char>(), argc) };
    // SAFETY: STACK; past argv and its null.
    let environment = unsafe { stack.add(argc + 2) };
    // SAFETY: STACK.
    let Some((variables, auxv)) = (unsafe { environment_and_auxv(environment) }) else {
        exit(1);
    };
    // SAFETY: STACK; as argv.
    let environment =
        unsafe { slice::from_raw_parts(environment.cast::<*const c_char>(), variables) };
    // SAFETY: STACK; `argv` and `auxv` are done with if the loader takes over.
    let initial = unsafe { InitialStack::new(stack.cast_mut()) };
    if copied::is_asked(&initial) {
        exit(copied::run(initial, &auxv));
    }
    // SAFETY: STACK; each of argv's pointers is a C string.
    let argument = |index: usize| Some(unsafe { CStr::from_ptr(*argv.get(index)?) });
    // SAFETY: STACK; as argv's.
    let variable = |index: usize| Some(unsafe { CStr::from_ptr(*environment.get(index)?) });
    exit(app::main(&Start {
        argument: &argument,
        variable: &variable,
        auxv,
    }))
}

/// How many variables there are, and the vector behind them.
///
/// # Safety
/// STACK, with `at` pointing at envp.
unsafe fn environment_and_auxv(mut at: *const usize) -> Option<(usize, Auxv)> {
    let mut variables = 0;
    // SAFETY: STACK; envp ends with a null, which the vector follows.
    while unsafe { *at } != 0 {
        // SAFETY: not at the null yet.
        at = unsafe { at.add(1) };
        variables += 1;
    }
    let pairs = (0..).map(|index| {
        // SAFETY: STACK; `from_pairs` stops at AT_NULL, the vector's last entry.
        let pair = unsafe { at.add(1 + 2 * index) };
        // SAFETY: as above.
        unsafe { (*pair, *pair.add(1)) }
    });
    // SAFETY: STACK.
    Some((variables, unsafe { Auxv::from_pairs(pairs) }?))
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    app::report_panic(info.location());
    exit(PANIC_STATUS)
}

/// What the shell shows for a process killed by SIGABRT: a panic is never "an error".
const PANIC_STATUS: i32 = 134;

/// Debug builds refer to it; nothing unwinds (`panic = "abort"`).
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
