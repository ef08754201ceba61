//! `--stop`: the process holds still while it is read.

use crate::error::Error;
use crate::proc::number::decimal;
use crate::proc::status::field;
use crate::reader::Method;
use crate::sys::clock::cpu_time_ns;
use crate::sys::file::{Process, each_thread, read_proc};
use crate::sys::halt::{Halted, no_thread_runs};
use crate::sys::identity::mix;
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
             or a debugger or the cgroup freezer keeps the signal from it; it was let go again; try again, or \
             without --stop",
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

/// A process that does not run, by what running changes: the threads that it has and how often each was
/// taken off a CPU (proc_pid_status(5)), and for how long all that it ever had have run. One that ran
/// between two looks is another by the second, or runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rest {
    /// One number for all.
    threads: u64,
    /// `None`: this kernel does not tell.
    cpu_ns: Option<u64>,
}

impl Rest {
    /// `None`: one of its threads runs, or that cannot be told.
    pub(super) fn of(pid: i32) -> Option<Self> {
        let mut threads = Some(0);
        let listed = each_thread(pid, &mut |thread| {
            let switches = switches(thread);
            threads = threads.zip(switches).map(|(sum, switches)| {
                let id = u64::from(thread.unsigned_abs());
                mix(mix(sum, id), switches)
            });
        });
        // Without any it is gone.
        let threads = threads.filter(|&sum| listed.is_ok() && sum != 0)?;
        let cpu_ns = cpu_time_ns(group(pid));
        Some(Self { threads, cpu_ns })
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

    /// A thread that waits once, makes the next and ends leaves as many threads, and mostly as many
    /// switches, as there were.
    #[test]
    fn who_hands_over_to_another_thread_has_run() {
        const CHAIN: &str = "import _thread, os, signal\n\
            def wait():\n\
            \x20   if not os.read(0, 1): os._exit(0)\n\
            \x20   _thread.start_new_thread(wait, ())\n\
            _thread.start_new_thread(wait, ())\n\
            signal.pause()";
        let mut chain = Command::new("/usr/bin/python3")
            .args(["-c", CHAIN])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = chain.id().cast_signed();
        let threads = || {
            let folder = std::fs::read_dir(std::format!("/proc/{pid}/task")).unwrap();
            let ids = folder.map(|entry| entry.unwrap().file_name());
            ids.collect::<std::vec::Vec<_>>()
        };
        let mut input = chain.stdin.take().unwrap();
        let start = Instant::now();
        // The same twice in a row, with two threads, of which one is another than before.
        let settled = |other: &[std::ffi::OsString]| loop {
            let (ids, rest) = (threads(), Rest::of(pid));
            std::thread::sleep(Duration::from_millis(5));
            let steady = rest.is_some() && ids == threads() && rest == Rest::of(pid);
            if steady && ids.len() == 2 && ids != other {
                return (ids, rest);
            }
            assert!(start.elapsed() < Duration::from_secs(60));
        };
        let (mut ids, mut rest) = settled(&[]);
        for _ in 0..20 {
            input.write_all(b"\n").unwrap();
            let (ids_then, rest_then) = settled(&ids);
            assert_ne!(rest_then, rest);
            (ids, rest) = (ids_then, rest_then);
        }
        drop(input);
        chain.wait().unwrap();
    }

    /// What has not run has used no CPU time.
    #[test]
    fn cpu_time_goes_on_while_a_process_runs() {
        let own = process::own_id();
        let before = cpu_time_ns(own).expect("this kernel has such clocks");
        let start = Instant::now();
        while cpu_time_ns(own).unwrap() <= before {
            assert!(start.elapsed() < Duration::from_secs(60));
        }
        let mut sleeping = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = sleeping.id().cast_signed();
        // Until it has come to its sleep.
        loop {
            let before = cpu_time_ns(pid).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            if before > 0 && cpu_time_ns(pid) == Some(before) {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(60));
        }
        sleeping.kill().unwrap();
        sleeping.wait().unwrap();
        assert_eq!(cpu_time_ns(pid), None);
    }
}
