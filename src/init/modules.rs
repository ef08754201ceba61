//! Kernel modules that lie in the initramfs, loaded in the order of their names: whoever put
//! them there has seen to it that it is one that works. Nothing is looked up here, no
//! dependencies, no aliases, no parameters.

use super::{complain, name as name_of, say};
use crate::proc::number::decimal;
use crate::sys::file::{create_program, each_name, open, write_all};
use crate::sys::system::load_module;
use crate::sys::{Errno, errno};
use crate::text::{Full, Text};
use core::ffi::CStr;
use heapless::Vec;
use rustix::fd::AsFd;

/// Where they lie, as `NN-name.ko`.
const FOLDER: &CStr = c"/modules";
/// What became of each; the environment record (`modules`) has it from here.
const TOLD: &CStr = c"/modules/loaded";

/// A file's name (NAME_MAX of linux/limits.h).
type Name = Vec<u8, 255>;

/// Loads all of them. One that cannot be loaded is told on the console and to the commands; the
/// verdict is theirs, who miss it or do not.
pub(super) fn load_all() {
    // This process has been /init before (`--on-done=shell /init`).
    if open(TOLD).is_ok() {
        return;
    }
    let mut told = Text::new();
    let read = in_order(FOLDER, &mut |file| {
        let name = module(file);
        let comma = if told.read() == Ok("") { "" } else { "," };
        told.add(comma).add_printable(name);
        if let Err(errno) = load(file) {
            told.add(":").add(errno::name_or_unknown(errno));
            say(&["cannot load module ", name, ": ", name_of(errno)]);
        }
    });
    match read {
        // There is no such folder: nothing is to be loaded.
        Err(Errno::NOENT) => return,
        Err(errno) => {
            complain(&["cannot read /modules: ", name_of(errno)]);
        }
        Ok(()) => {}
    }
    let told = told.read().unwrap_or("too-many").as_bytes();
    // Without the note the record says that there is none; the console has said the rest.
    let _ = create_program(TOLD).and_then(|file| write_all(file.as_fd(), told));
}

fn load(file: &str) -> Result<(), Errno> {
    let mut path = Text::new();
    path.add("/modules/").add(file).add("\0");
    let path = path.read().map_err(|Full| Errno::NAMETOOLONG)?;
    load_module(CStr::from_bytes_with_nul(path.as_bytes()).map_err(|_| Errno::INVAL)?)
}

/// The module in a file: without the number in front, and the end.
fn module(file: &str) -> &str {
    let name = file.strip_suffix(".ko").unwrap_or(file);
    let numbered = name.split_once('-');
    let numbered = numbered.filter(|(number, _)| decimal(number.as_bytes()).is_some());
    numbered.map_or(name, |(_, name)| name)
}

/// Gives `take` the name of each file in a folder, the smallest first. There is no room to sort
/// them in, so the folder is read once for each.
fn in_order(folder: &CStr, take: &mut dyn FnMut(&str)) -> Result<(), Errno> {
    let mut last = Name::new();
    loop {
        let mut next = Name::new();
        each_name(open(folder)?, &mut |name| {
            let is_next = name > &*last && (next.is_empty() || name < &*next);
            if is_next && name != b"." && name != b".." {
                // No name is longer.
                next = Name::from_slice(name).unwrap_or_default();
            }
        })?;
        if next.is_empty() {
            return Ok(());
        }
        take(str::from_utf8(&next).unwrap_or("?"));
        last = next;
    }
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
    fn a_module_is_named_without_number_and_end() {
        assert_eq!(module("00-zsmalloc.ko"), "zsmalloc");
        assert_eq!(module("03-842_compress.ko"), "842_compress");
        assert_eq!(module("lzo-rle.ko"), "lzo-rle");
        assert_eq!(module("loaded"), "loaded");
    }
}
