//! The path of the file that is mapped.

use super::problem::Problem;
use crate::cli::memmap::{Mode, Options};
use crate::sys::doomed::PATH_MAX;
use crate::sys::process::own_id;
use crate::text::Text;
use core::ffi::CStr;
use heapless::Vec;

/// A path, as it is opened and as it is shown; empty if no file is mapped.
pub(super) struct Path(Vec<u8, PATH_MAX>);

const TMPDIR: &[u8] = b"TMPDIR=";

impl Path {
    /// FILE, or where the walk file will be: in `$TMPDIR` if that is set, else in /tmp.
    #[inline(never)]
    pub(super) fn of(
        mode: Mode,
        options: &Options,
        variable: &dyn Fn(usize) -> Option<&'static CStr>,
    ) -> Result<Self, Problem<'static>> {
        let mut path = Self(Vec::new());
        match mode {
            Mode::MmapFile => path.add(options.file.map_or(&b""[..], CStr::to_bytes))?,
            Mode::FaultWalk => {
                let mut set = (0..).map_while(variable);
                let set = set.find_map(|one| one.to_bytes().strip_prefix(TMPDIR));
                let folder = set.filter(|folder| !folder.is_empty());
                path.add(folder.unwrap_or(b"/tmp"))?;
                path.add(if path.0.ends_with(b"/") { b"" } else { b"/" })?;
                let mut name = Text::new();
                name.add("memmap-walk-");
                name.signed(own_id().into());
                path.add(name.add(".bin").read().unwrap_or_default().as_bytes())?;
            }
            Mode::Stack | Mode::Heap | Mode::MmapAnon => {}
        }
        path.add(b"\0")?;
        Ok(path)
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), Problem<'static>> {
        let added = self.0.extend_from_slice(bytes);
        added.map_err(|_| Problem::File(b"FILE or TMPDIR", "the path has more than 4,095 bytes"))
    }

    /// For the kernel.
    pub(super) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_with_nul(&self.0).unwrap_or_default()
    }

    /// For people.
    pub(super) fn bytes(&self) -> &[u8] {
        self.as_c_str().to_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(environment: &[&'static CStr]) -> std::string::String {
        let variable = |index: usize| environment.get(index).copied();
        let path = Path::of(Mode::FaultWalk, &Options::default(), &variable);
        let path = std::string::String::from_utf8_lossy(path.ok().unwrap().bytes()).into_owned();
        path.replace(&std::format!("{}", std::process::id()), "PID")
    }

    #[test]
    fn the_walk_file_is_where_temporary_files_go() {
        let cases: [(&[&CStr], &str); 5] = [
            (&[], "/tmp/memmap-walk-PID.bin"),
            (
                &[c"HOME=/", c"TMPDIR=/var/tmp"],
                "/var/tmp/memmap-walk-PID.bin",
            ),
            (&[c"TMPDIR=/x/"], "/x/memmap-walk-PID.bin"),
            (&[c"TMPDIR="], "/tmp/memmap-walk-PID.bin"),
            (&[c"XTMPDIR=/y", c"TMPDIR2=/z"], "/tmp/memmap-walk-PID.bin"),
        ];
        for (environment, want) in cases {
            assert_eq!(walk(environment), want);
        }
    }
}
