//! `--stop`: the process holds still while it is read.

use crate::error::Error;
use crate::proc::number::decimal;
use crate::proc::status::field;
use crate::reader::Method;
use crate::sys::file::{Process, each_thread, read_proc};
use crate::sys::halt::{Halted, no_thread_runs};
use crate::sys::{Errno, process};

/// Stops it if that was asked for and it runs; whether it stands still now.
///
/// # Errors
/// `EPERM`; a thread that does not stop.
pub(super) fn still(pid: i32, asked: bool) -> Result<(Option<Halted>, bool), Error> {
    if stands(pid) {
        // Stopped by somebody else, who also lets it go.
        return Ok((None, true));
    }
    if !asked {
        return Ok((None, false));
    }
    if process::own_id() == pid {
        return Err(Error::Invalid(
            "--stop of this very process would never end",
        ));
    }
    // Of a thread, its whole process.
    let process = group(pid);
    if process == FIRST {
        return Err(Error::Invalid(
            "process 1 ignores SIGSTOP from within its PID namespace (kill(2)): read it from the \
             namespace outside, or without --stop",
        ));
    }
    match Halted::stop(process) {
        Ok(held) => Ok((Some(held), true)),
        Err(Errno::TIMEDOUT) => Err(Error::Invalid(
            "the process was sent SIGSTOP and does not stop: a thread is in an uninterruptible \
             sleep (state D in /proc/PID/task/*/stat), or waits for a child that vfork(2) has made, \
             or a debugger keeps the signal from it; it was let go again; try again, or without --stop",
        )),
        Err(Errno::AGAIN) => Err(Error::Invalid(
            "no process can be made for --stop, which would let this one go again (fork: EAGAIN): \
             raise ulimit -u or pids.max",
        )),
        Err(errno) => Err(Error::Kernel(
            match errno {
                Errno::PERM => "stop the process (SIGSTOP; another user's takes root or CAP_KILL)",
                _ => "stop the process (SIGSTOP)",
            },
            errno,
        )),
    }
}

/// The first process of a PID namespace, by the numbers in it.
const FIRST: i32 = 1;

/// The process that a thread is of. /proc shows threads under their numbers, too.
fn group(pid: i32) -> i32 {
    let mut buffer = [0; 4096];
    let status = read_proc(Process::Id(pid), "status", &mut buffer).ok();
    let id = status.and_then(|text| decimal(field(text, b"Tgid")?));
    id.and_then(|id| id.try_into().ok()).unwrap_or(pid)
}

/// Looks at a process that ptrace has let go, and that is on its way to its stop again: the
/// kernel wakes it for that (kernel/ptrace.c, `__ptrace_unlink`).
const LOOKS_MAX: u32 = 10_000;

/// Whether it stands still after this reader has read it.
pub(super) fn stands_after(pid: i32, method: Method) -> bool {
    let looks = match method {
        Method::Ptrace => LOOKS_MAX,
        _ => 1,
    };
    (0..looks).any(|look| {
        if look > 0 {
            rustix::thread::sched_yield();
        }
        stands(pid)
    })
}

/// Whether none of its threads runs; unknown is no.
pub(super) fn stands(pid: i32) -> bool {
    no_thread_runs(pid) == Ok(true)
}

/// How often the threads of a process that does not run have been taken off a CPU. One that ran between
/// two looks has been once more by the second, or runs (proc_pid_status(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rest {
    threads: u64,
    switches: u64,
}

impl Rest {
    /// `None`: one of its threads runs, or that cannot be told.
    pub(super) fn of(pid: i32) -> Option<Self> {
        let mut rest = Some(Self::default());
        let listed = each_thread(pid, &mut |thread| {
            let switches = switches(thread);
            rest = rest.zip(switches).map(|(rest, switches)| Self {
                threads: rest.threads + 1,
                switches: rest.switches.wrapping_add(switches),
            });
        });
        rest.filter(|rest| listed.is_ok() && rest.threads > 0)
    }
}

/// Of a thread that does not run.
fn switches(thread: i32) -> Option<u64> {
    let mut buffer = [0; 4096];
    let text = read_proc(Process::Id(thread), "status", &mut buffer).ok()?;
    let number = |name| decimal(field(text, name)?);
    let runs = field(text, b"State")?.starts_with(b"R");
    let sum =
        number(b"voluntary_ctxt_switches")?.wrapping_add(number(b"nonvoluntary_ctxt_switches")?);
    Some(sum).filter(|_| !runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    /// One that waits for input, and has had some.
    #[test]
    fn who_has_run_between_two_looks_is_known() {
        let mut cat = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pid = cat.id().cast_signed();
        let rests = |before: Option<Rest>| {
            let start = Instant::now();
            loop {
                let rest = Rest::of(pid);
                if rest.is_some() && rest != before {
                    return rest;
                }
                assert!(start.elapsed() < Duration::from_secs(60));
                std::thread::sleep(Duration::from_millis(2));
            }
        };
        // Until it has come to its read.
        let mut before = rests(None);
        while Rest::of(pid) != before {
            before = rests(None);
        }
        assert_eq!(Rest::of(pid), before);
        let mut input = cat.stdin.take().unwrap();
        input.write_all(b"x").unwrap();
        assert_ne!(rests(before), before);
        drop(input);
        cat.wait().unwrap();
        assert_eq!(Rest::of(pid), None);
        // The one that asks runs.
        assert_eq!(Rest::of(process::own_id()), None);
    }
}
