//! Kernel modules that lie in the initramfs, loaded in the order of their names: whoever put
//! them there has seen to it that it is one that works. Nothing is looked up here, no
//! dependencies, no aliases, no parameters.

use super::{name, say};
use crate::sys::Errno;
use crate::sys::file::{create_program, each_name, open, write_all};
use crate::sys::system::load_module;
use crate::text::{Full, Text};
use core::ffi::CStr;
use rustix::fd::AsFd;

/// Where they lie, as `NN-name.ko`.
const FOLDER: &CStr = c"/modules";
/// What became of each; the environment record (`modules`) has it from here.
const TOLD: &CStr = c"/modules/loaded";

/// Loads all of them. One that cannot be loaded is told on the console and to the commands; the
/// verdict is theirs, who miss it or do not.
pub(super) fn load_all() {
    // This process has been /init before (`--on-done=shell /init`).
    if open(TOLD).is_ok() {
        return;
    }
    let (mut told, mut comma) = (Text::new(), "");
    let read = in_order(FOLDER, &mut |file| {
        let module = module(file);
        told.add(comma).add(module);
        comma = ",";
        if let Err(errno) = load(file) {
            told.add(":").add(name(errno));
            say(&["cannot load module ", module, ": ", name(errno)]);
        }
    });
    if let Err(errno) = read {
        told.add(comma).add(":").add(name(errno));
    }
    let told = told.read().unwrap_or("too-many").as_bytes();
    // There is no such folder, as a rule; and the console has said what went wrong.
    let _ = create_program(TOLD).and_then(|file| write_all(file.as_fd(), told));
}

fn load(file: &str) -> Result<(), Errno> {
    let mut path = Text::new();
    path.add("/modules/").add(file).add("\0");
    let path = path.read().map_err(|Full| Errno::NAMETOOLONG)?;
    load_module(CStr::from_bytes_with_nul(path.as_bytes()).map_err(|_| Errno::INVAL)?)
}

/// The module in `NN-name.ko`.
fn module(file: &str) -> &str {
    let name = file.strip_suffix(".ko").unwrap_or(file);
    name.get(3..).unwrap_or(name)
}

/// Gives `take` the name of each file in a folder, the smallest first. There is no room to sort
/// them in, so the folder is read once for each.
fn in_order(folder: &CStr, take: &mut dyn FnMut(&str)) -> Result<(), Errno> {
    let mut last = Text::new();
    loop {
        let mut next = Text::new();
        each_name(open(folder)?, &mut |name| {
            let name = str::from_utf8(name).unwrap_or("?");
            let (last, best) = (shown(&last), shown(&next));
            // A digit comes first; `.` and `..` are smaller.
            if name > last && (best.is_empty() || name < best) && name > "/" {
                next = Text::new();
                next.add(name);
            }
        })?;
        match shown(&next) {
            "" => return Ok(()),
            name => take(name),
        }
        last = next;
    }
}

/// No name is longer than a text (NAME_MAX of linux/limits.h).
fn shown(name: &Text) -> &str {
    name.read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::string::String;
    use std::{env, format, fs, process};

    #[test]
    fn files_come_in_the_order_of_their_names() {
        let folder = env::temp_dir().join(format!("cowitness-modules-{}", process::id()));
        fs::create_dir(&folder).unwrap();
        for name in ["02-zram.ko", "00-zsmalloc.ko", "10-a.ko", "01-lzo_rle.ko"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let path = CString::new(folder.to_str().unwrap()).unwrap();
        let mut seen = std::vec::Vec::new();
        let read = in_order(&path, &mut |name| seen.push(String::from(name)));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(read, Ok(()));
        let wanted = ["00-zsmalloc.ko", "01-lzo_rle.ko", "02-zram.ko", "10-a.ko"];
        assert_eq!(seen, wanted);
        let gone = in_order(&path, &mut |name| panic!("{name}"));
        assert_eq!(gone, Err(Errno::NOENT));
    }

    #[test]
    fn a_module_is_named_without_its_number_and_end() {
        assert_eq!(module("00-zsmalloc.ko"), "zsmalloc");
        assert_eq!(module("03-842_compress.ko"), "842_compress");
        assert_eq!(module("é"), "é");
    }
}
