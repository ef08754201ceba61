//! Kernels that were fetched: an image a package version, and a record a metapackage that
//! says which of them is current. Both appear whole or not at all.

use super::apt::{Package, Suite};
use super::image;
use super::table::{Kernel, Table};
use crate::host::{self, HostError, Interrupt};
use crate::scratch::Scratch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What was fetched for a metapackage, and from which package.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Record {
    /// The package that had the image.
    pub package: String,
    /// Its version.
    pub version: String,
    /// As `uname -r` says it.
    pub release: String,
    /// Of the image.
    pub sha256: String,
    /// The image's file in the cache.
    pub file: String,
}

/// The cache, and the suites whose lists this run has fetched.
pub struct Cache {
    root: PathBuf,
    suites: Mutex<BTreeMap<String, Suite>>,
    interrupt: Interrupt,
}

impl Cache {
    /// The cache under `root`; `interrupt` ends the wait for another run that is fetching.
    ///
    /// # Errors
    /// [`HostError::File`]: it cannot be created.
    pub fn open(root: PathBuf, interrupt: Interrupt) -> Result<Self, HostError> {
        let images = root.join("kernels");
        fs::create_dir_all(&images).map_err(HostError::file("create", &images))?;
        Ok(Self {
            root,
            suites: Mutex::new(BTreeMap::new()),
            interrupt,
        })
    }

    fn images(&self) -> PathBuf {
        self.root.join("kernels")
    }

    fn record_path(&self, kernel: &Kernel) -> PathBuf {
        let name = format!("{}-{}.toml", kernel.suite, kernel.package);
        self.images().join(name)
    }

    /// What is there for `kernel`; nothing is fetched.
    #[must_use]
    pub fn record(&self, kernel: &Kernel) -> Option<Record> {
        let text = fs::read_to_string(self.record_path(kernel)).ok()?;
        let record: Record = toml::from_str(&text).ok()?;
        let there = self.images().join(&record.file).is_file();
        there.then_some(record)
    }

    /// The image of `kernel` and its record, fetched if it is not there, its checksum
    /// verified. `say` is told what is waited for.
    ///
    /// # Errors
    /// [`HostError`].
    pub fn image(
        &self,
        table: &Table,
        kernel: &Kernel,
        say: &dyn Fn(&str),
    ) -> Result<(PathBuf, Record), HostError> {
        let record = match self.record(kernel) {
            Some(record) => record,
            None => self.fetch(table, kernel, say)?,
        };
        let path = self.images().join(&record.file);
        verify(&path, &record.sha256)?;
        Ok((path, record))
    }

    /// Fetches what the metapackage of `kernel` depends on today, unless it is there.
    ///
    /// # Errors
    /// [`HostError`].
    pub fn fetch(
        &self,
        table: &Table,
        kernel: &Kernel,
        say: &dyn Fn(&str),
    ) -> Result<Record, HostError> {
        host::require(&["apt-get", "apt-cache", "dpkg-deb"])?;
        let lock = self.root.join("lock");
        let held = File::create(&lock).map_err(HostError::file("create", &lock))?;
        // Another run may be fetching; its kernels are ours, too.
        host::lock(&held, &lock, &self.interrupt, say)?;
        let mut suites = self.suites.lock().unwrap_or_else(PoisonError::into_inner);
        if !suites.contains_key(&kernel.suite) {
            let suite = Suite::update(&self.root.join("apt"), &kernel.suite)?;
            suites.insert(kernel.suite.clone(), suite);
        }
        let suite = &suites[&kernel.suite];
        let debian = &table.board(kernel.arch).debian;
        let package = suite.resolve(&kernel.package, debian)?;
        let is_current = |record: &Record| {
            let path = self.images().join(&record.file);
            record.version == package.version && verify(&path, &record.sha256).is_ok()
        };
        match self.record(kernel).filter(is_current) {
            Some(record) => Ok(record),
            None => self.take(suite, kernel, package, debian),
        }
    }

    /// Downloads `package` and keeps its image.
    fn take(
        &self,
        suite: &Suite,
        kernel: &Kernel,
        package: Package,
        debian: &str,
    ) -> Result<Record, HostError> {
        let scratch = Scratch::within(&self.root)?;
        let deb = suite.download(&package, debian, scratch.path())?;
        let extracted = image::extract(&deb, &scratch.path().join("image"))?;
        let file = format!("{}_{}_{debian}.vmlinuz", package.name, package.version);
        let record = Record {
            package: package.name,
            version: package.version,
            release: extracted.release,
            sha256: extracted.sha256,
            file,
        };
        scratch.keep("image", &self.images().join(&record.file))?;
        self.write(&scratch, kernel, &record)?;
        Ok(record)
    }

    /// Last of all: a record stands for an image that is there.
    fn write(&self, scratch: &Scratch, kernel: &Kernel, record: &Record) -> Result<(), HostError> {
        let path = scratch.path().join("record");
        // Five strings: there is nothing that TOML could not say.
        let text = toml::to_string(record).unwrap_or_default();
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.map_err(HostError::file("write", &path))?;
        scratch.keep("record", &self.record_path(kernel))
    }
}

fn verify(path: &Path, recorded: &str) -> Result<(), HostError> {
    let found = image::sha256(path)?;
    if found == recorded {
        return Ok(());
    }
    Err(HostError::Altered {
        path: path.to_owned(),
        found,
        recorded: recorded.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_altered_image_is_refused_and_a_record_without_one_is_none() {
        let directory = Scratch::new().unwrap();
        let cache = Cache::open(directory.path().to_owned(), Interrupt::default()).unwrap();
        let table = Table::built_in();
        let kernel = &table.kernels[0];
        assert_eq!(cache.record(kernel), None);
        let record = Record {
            package: "linux-image-6".to_owned(),
            version: "6-1".to_owned(),
            release: "6".to_owned(),
            // Of "abc", FIPS 180-2.
            sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".to_owned(),
            file: "image".to_owned(),
        };
        cache.write(&directory, kernel, &record).unwrap();
        assert_eq!(cache.record(kernel), None);
        fs::write(cache.images().join("image"), "abc").unwrap();
        assert_eq!(cache.record(kernel), Some(record));
        assert!(cache.image(&table, kernel, &|_| ()).is_ok());
        fs::write(cache.images().join("image"), "abd").unwrap();
        let refused = cache.image(&table, kernel, &|_| ());
        assert!(matches!(refused, Err(HostError::Altered { .. })));
    }
}
