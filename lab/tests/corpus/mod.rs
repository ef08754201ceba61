//! Objects that `sizes` is run on.

use super::common::{Ran, lab};
use cowitness::emit::sizes_row::SizesRow;
use cowitness_lab::scratch::Scratch;
use cowitness_lab::stream::{StreamReader, Tolerance};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Objects and a place for the stores, which has to be empty when a run has ended.
pub struct Corpus {
    scratch: Scratch,
    pub manifest: String,
}

impl Corpus {
    pub fn new() -> Self {
        let scratch = Scratch::new().unwrap();
        fs::create_dir(scratch.path().join("stores")).unwrap();
        Self {
            scratch,
            manifest: String::new(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub fn object(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub fn line(&mut self, root: &str, name: &str) {
        let path = self.path(name);
        writeln!(self.manifest, "{root}\t{}", path.display()).unwrap();
    }

    pub fn stores(&self) -> PathBuf {
        self.path("stores")
    }

    pub fn run(&self, options: &[&str]) -> Ran {
        let stores = self.stores();
        let mut words = vec![
            "sizes",
            "--manifest=-",
            "--scratch",
            stores.to_str().unwrap(),
        ];
        words.extend(options);
        let ran = lab(&words, self.manifest.as_bytes());
        assert!(is_empty(&stores), "left behind: {words:?}");
        ran
    }
}

pub fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

/// Bytes without a pattern: a linear congruence, its upper bits.
pub fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Calls `look` with every row of a whole stream.
pub fn rows(stdout: &str, mut look: impl FnMut(&SizesRow<'_>)) -> u64 {
    let mut input = stdout.as_bytes();
    let mut reader = StreamReader::new("rows", &mut input, Tolerance::Whole);
    let mut count = 0;
    while let Some(mut stream) = reader.next_stream().unwrap() {
        while let Some(row) = stream.next_row().unwrap() {
            look(&row.parse::<SizesRow<'_>>().unwrap());
            count += 1;
        }
    }
    count
}

/// Objects, distinct ones, private bytes and distinct ones of a row that knows them.
pub fn counts(row: &SizesRow<'_>) -> Option<(u64, u64, u64, u64)> {
    let objects = (row.objects?, row.distinct_objects?);
    Some((
        objects.0,
        objects.1,
        row.bytes_private?,
        row.distinct_bytes?,
    ))
}
