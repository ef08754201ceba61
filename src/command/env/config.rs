//! The kernel's configuration, as far as a result depends on it.
//!
//! `y`, `m` or a number as configured; `n` where the configuration says "is not set";
//! `absent` where a whole configuration does not mention the option: this kernel does not
//! know it, or it depends on something that is off. A configuration that was cut never
//! makes an option absent.

use super::files::Files;
use super::gzip;
use super::parse::{add, words};
use super::record::{Finding, Missing, Record, Why};
use crate::proc::kconfig;
use crate::proc::lines::complete;
use crate::sys::{Region, file};
use crate::text::Text;
use rustix::fd::AsFd;

/// In the order of the record, where each is a key in small letters.
const OPTIONS: &[u8] = b"\
    CONFIG_PROC_MEM_ALWAYS_FORCE CONFIG_PROC_MEM_FORCE_PTRACE CONFIG_PROC_MEM_NO_FORCE \
    CONFIG_PAGE_MAPCOUNT CONFIG_CROSS_MEMORY_ATTACH CONFIG_BINFMT_MISC \
    CONFIG_PROC_PAGE_MONITOR CONFIG_PROC_KCORE CONFIG_MEM_SOFT_DIRTY CONFIG_USERFAULTFD \
    CONFIG_SECRETMEM CONFIG_TRANSPARENT_HUGEPAGE CONFIG_HARDENED_USERCOPY CONFIG_PREEMPT \
    CONFIG_HZ";

/// Room for what is said of each.
const OPTIONS_MAX: usize = 16;

/// Where a configuration may be, the compressed one first; the first that is there and
/// whole counts.
const SOURCES: &[u8] = b"/proc/config.gz /boot/config-@ /lib/modules/@/config";

/// Longer files are no configuration. The largest there are have a third of this, and
/// pages that stay untouched cost nothing.
const FILE_MAX: usize = 1 << 20;

/// A configuration that was read.
#[derive(Clone, Copy)]
struct Config<'t> {
    text: &'t [u8],
    /// The end was seen, so that an option not mentioned is not there.
    whole: bool,
}

/// Writes `config_source` and a line for each option.
pub fn note_all(record: &mut Record) {
    let mut memory = Region::new(2 * FILE_MAX);
    let config = match &mut memory {
        Ok(memory) => find(record, memory.bytes_mut()),
        Err(errno) => Err((*errno).into()),
    };
    record.note("config_source", config.map(|_| ()));
    let mut said = [None; OPTIONS_MAX];
    if let Ok(config) = config {
        config.look_up(&mut said);
    }
    for (option, said) in words(OPTIONS, b' ').zip(said) {
        let found = config.and_then(|config| config.show(&mut record.value, said));
        record.note_as("", option, found);
    }
}

/// Reads the configuration into `memory`; its source is the value.
fn find<'m>(record: &mut Record, memory: &'m mut [u8]) -> Result<Config<'m>, Missing> {
    let mut problem = Why::NoConfig.into();
    for source in words(SOURCES, b' ') {
        match read(&record.files, source, memory) {
            Ok((len, whole)) => {
                record.files.expand(&mut record.value, source);
                let text = memory.get(..len).unwrap_or_default();
                return Ok(Config { text, whole });
            }
            Err(Missing::ABSENT) => {}
            Err(missing) => problem = missing,
        }
    }
    Err(problem)
}

/// How long the text is, and whether its end is known to be there.
fn read(files: &Files, source: &[u8], memory: &mut [u8]) -> Result<(usize, bool), Missing> {
    let file = files.open(source)?;
    let (text, packed) = memory.split_at_mut_checked(FILE_MAX).ok_or(Why::TooLong)?;
    if source.ends_with(b"z") {
        let len = file::read_at(file.as_fd(), packed, 0)?;
        // Its checksum is checked: nothing is missing from it.
        let len = gzip::unpack(packed.get(..len).unwrap_or_default(), text)?;
        return Ok((len, true));
    }
    let len = file::read_at(file.as_fd(), text, 0)?;
    Ok((len, is_whole(text.get(..len).unwrap_or_default())))
}

/// Whether the last menu (lib/Kconfig.debug) ends; kernels before 5.4 do not mark its end.
fn is_whole(text: &[u8]) -> bool {
    complete(text).any(|line| line == b"# end of Kernel hacking")
}

/// A bit that few names share: most lines are about none of [`OPTIONS`].
fn mark(name: &[u8]) -> u64 {
    let last = name.last().copied().unwrap_or(0);
    1 << ((name.len() * 11 + usize::from(last)) % 64)
}

impl<'t> Config<'t> {
    /// What the first line about each of [`OPTIONS`] says. Only lines with a line feed count: the
    /// last may be cut.
    fn look_up(self, said: &mut [Option<&'t [u8]>; OPTIONS_MAX]) {
        let mut options = [&b""[..]; OPTIONS_MAX];
        let mut marks = 0;
        for (option, place) in words(OPTIONS, b' ').zip(&mut options) {
            *place = option;
            marks |= mark(option);
        }
        for (name, value) in complete(self.text).filter_map(kconfig::setting) {
            if marks & mark(name) == 0 {
                continue;
            }
            for (option, said) in options.iter().zip(&mut *said) {
                if *option == name {
                    said.get_or_insert(value);
                }
            }
        }
    }

    /// Adds what is said of an option.
    fn show(self, value: &mut Text, said: Option<&[u8]>) -> Finding {
        match (said, self.whole) {
            (Some(said), _) => {
                add(value, said);
                Ok(())
            }
            (None, true) => Err(Missing::ABSENT),
            (None, false) => Err(Why::ConfigCut.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    const TEXT: &[u8] = b"#\n# Linux/x86 6.18.44 Kernel Configuration\n#\n\
        CONFIG_PROC_MEM_ALWAYS_FORCE=y\n# CONFIG_PROC_MEM_NO_FORCE is not set\n\
        CONFIG_BINFMT_MISC=m\nCONFIG_HZ=250\n# end of Kernel hacking\n";

    fn value(text: &[u8], option: &str) -> Result<String, Missing> {
        let mut value = Text::new();
        let whole = is_whole(text);
        let config = Config { text, whole };
        let mut said = [None; OPTIONS_MAX];
        config.look_up(&mut said);
        let mut options = words(OPTIONS, b' ').zip(said);
        let (_, said) = options
            .find(|(name, _)| *name == option.as_bytes())
            .unwrap();
        config.show(&mut value, said)?;
        Ok(value.read().unwrap().into())
    }

    #[test]
    fn not_set_is_not_absent() {
        let value = |option| value(TEXT, option);
        assert_eq!(value("CONFIG_PROC_MEM_ALWAYS_FORCE").unwrap(), "y");
        assert_eq!(value("CONFIG_PROC_MEM_NO_FORCE").unwrap(), "n");
        assert_eq!(value("CONFIG_BINFMT_MISC").unwrap(), "m");
        assert_eq!(value("CONFIG_HZ").unwrap(), "250");
        assert_eq!(value("CONFIG_PAGE_MAPCOUNT"), Err(Missing::ABSENT));
    }

    #[test]
    fn there_is_room_for_every_option() {
        assert!(words(OPTIONS, b' ').count() <= OPTIONS_MAX);
    }

    /// A kernel's configuration names an option once; of two the first counts.
    #[test]
    fn the_first_line_counts() {
        let twice = [b"CONFIG_HZ=100\n", TEXT].concat();
        assert_eq!(value(&twice, "CONFIG_HZ").unwrap(), "100");
    }

    #[test]
    fn what_was_cut_is_neither_n_nor_absent() {
        for end in 0..TEXT.len() {
            for option in words(OPTIONS, b' ') {
                let option = str::from_utf8(option).unwrap();
                let cut = value(&TEXT[..end], option);
                let whole = value(TEXT, option);
                let known = whole.is_ok() && cut == whole;
                let unknown = cut == Err(Why::ConfigCut.into());
                assert!(known || unknown, "{option} at {end}: {cut:?}");
            }
        }
    }

    #[test]
    fn a_file_is_read_or_it_is_said_why_not() {
        let mut memory = std::vec![0; 2 * FILE_MAX];
        let mut read = |path: &[u8]| read(&Files::new(0), path, &mut memory);
        assert_eq!(read(b"/proc/self/nonexistent"), Err(Missing::ABSENT));
        assert_eq!(
            read(b"/proc/self"),
            Err(Missing::Refused(crate::sys::Errno::ISDIR))
        );
        assert!(read(b"/proc/self/status").is_ok_and(|(len, whole)| len > 500 && !whole));
        assert_eq!(
            super::read(&Files::new(0), b"/proc/self/status", &mut []),
            Err(Why::TooLong.into())
        );
    }
}
