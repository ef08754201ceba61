//! What tests change of the machine, and put back.

use std::fs;
use std::process::Command;

/// Files with what stood in them, which is put back.
pub struct Settings(Vec<(String, String)>);

impl Settings {
    /// `None`, and a word, if there is no such file or it may not be written.
    pub fn new(settings: &[(&str, &str)]) -> Option<Self> {
        let mut before = Self(Vec::new());
        for &(path, value) in settings {
            let Ok(old) = fs::read_to_string(path) else {
                eprintln!("skipped: there is no {path}");
                return None;
            };
            if let Err(error) = fs::write(path, value) {
                eprintln!("skipped: {path}: {error}");
                return None;
            }
            before.0.push((path.into(), old));
        }
        Some(before)
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        for (path, old) in self.0.iter().rev() {
            let _ = fs::write(path, old.trim());
        }
    }
}

/// Swap space of compressed memory, taken away with the value.
pub struct Zram(String);

impl Zram {
    /// `None`, with a word about it, where it cannot be had.
    pub fn new() -> Option<Self> {
        let Ok(number) = fs::read_to_string("/sys/class/zram-control/hot_add") else {
            eprintln!("skipped: there is no zram here");
            return None;
        };
        let zram = Self(number.trim().into());
        let node = zram.node();
        fs::write(format!("/sys/block/zram{}/disksize", zram.0), "64M").unwrap();
        for command in ["mkswap", "swapon"] {
            let done = Command::new(command).arg(&node).output();
            if !done.is_ok_and(|output| output.status.success()) {
                eprintln!("skipped: {command} {node} does not work here");
                return None;
            }
        }
        Some(zram)
    }

    fn node(&self) -> String {
        format!("/dev/zram{}", self.0)
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let _ = Command::new("swapoff").arg(self.node()).output();
        let _ = fs::write(format!("/sys/block/zram{}/reset", self.0), "1");
        let _ = fs::write("/sys/class/zram-control/hot_remove", &self.0);
    }
}

/// Forgets at the end what KSM had joined, if no process has any of it: it would count as joined until
/// KSM runs again.
struct Forgotten;

impl Drop for Forgotten {
    fn drop(&mut self) {
        let mut processes = fs::read_dir("/proc").unwrap().flatten();
        let has_some = processes.any(|process| {
            let pages = fs::read_to_string(process.path().join("ksm_merging_pages"));
            // Of a kernel thread it is empty.
            pages.is_ok_and(|pages| !matches!(pages.trim(), "" | "0"))
        });
        if !has_some {
            let _ = fs::write(KSM, "2");
        }
    }
}

/// Whether KSM runs; 2: it takes apart what it has joined.
pub const KSM: &str = "/sys/kernel/mm/ksm/run";

/// KSM, which is fast. Put back with the value, once the processes that it joined pages of have gone.
pub struct Ksm {
    _first: Forgotten,
    _then: Settings,
}

impl Ksm {
    /// `None`, and a word, if there is no KSM, or it may not be set. `run`: as in the file.
    pub fn new(run: &str) -> Option<Self> {
        let ksm = |file| format!("/sys/kernel/mm/ksm/{file}");
        let settings = Settings::new(&[
            (&*ksm("pages_to_scan"), "20000"),
            (&*ksm("sleep_millisecs"), "1"),
            (KSM, run),
        ]);
        settings.map(|settings| Self {
            _first: Forgotten,
            _then: settings,
        })
    }
}
