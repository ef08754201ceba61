//! Kernels that were fetched: an image and an archive of modules a package version, and a record
//! a metapackage that says which of them are current. All appear whole or not at all.

use super::apt::{Packages, Suite};
use super::table::{Kernel, Table};
use super::{image, modules};
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
    /// What goes with it.
    pub modules: Modules,
}

/// The modules that questions need.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Modules {
    /// What was looked for.
    pub wanted: Vec<String>,
    /// Of these, what the packages do not have, or not with all that it depends on.
    pub lacking: Vec<String>,
    /// Of the archive.
    pub sha256: String,
    /// The archive in the cache, to be put in front of an initramfs.
    pub file: String,
}

/// A kernel, ready to be booted.
#[derive(Debug)]
pub struct Fetched {
    /// Its image.
    pub image: PathBuf,
    /// Its modules.
    pub modules: PathBuf,
    /// What is known of both.
    pub record: Record,
}

impl Record {
    /// The kinds of `probe` that are not to be had for want of a module.
    #[must_use]
    pub fn kinds_lost(&self) -> Vec<&'static str> {
        modules::kinds_without(&self.modules.lacking)
    }

    /// That in words.
    #[must_use]
    pub fn lack(&self) -> Option<String> {
        let (modules, kinds) = (&self.modules.lacking, self.kinds_lost());
        (!modules.is_empty()).then(|| {
            format!(
                "{} {} lacks the module {}, or what that depends on: {} will be skipped",
                self.package,
                self.version,
                modules.join(", "),
                kinds.join(", ")
            )
        })
    }
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

    /// What is there for `kernel`; nothing is fetched. What was fetched by a lab that wanted other
    /// modules, or none, is not.
    #[must_use]
    pub fn record(&self, kernel: &Kernel) -> Option<Record> {
        let text = fs::read_to_string(self.record_path(kernel)).ok()?;
        let record: Record = toml::from_str(&text).ok()?;
        let files = [&record.file, &record.modules.file];
        let there = files.iter().all(|file| self.images().join(file).is_file());
        let as_wanted = modules::wanted().eq(record.modules.wanted.iter().map(String::as_str));
        (there && as_wanted).then_some(record)
    }

    /// The files of `kernel` and its record, fetched if they are not there, their checksums
    /// verified. `say` is told what is waited for.
    ///
    /// # Errors
    /// [`HostError`].
    pub fn kernel(
        &self,
        table: &Table,
        kernel: &Kernel,
        say: &dyn Fn(&str),
    ) -> Result<Fetched, HostError> {
        let record = match self.record(kernel) {
            Some(record) => record,
            None => self.fetch(table, kernel, say)?,
        };
        self.verify(record)
    }

    fn verify(&self, record: Record) -> Result<Fetched, HostError> {
        let image = self.images().join(&record.file);
        verify(&image, &record.sha256)?;
        let modules = self.images().join(&record.modules.file);
        verify(&modules, &record.modules.sha256)?;
        Ok(Fetched {
            image,
            modules,
            record,
        })
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
        let packages = suite.resolve(&kernel.package, debian)?;
        let is_current = |record: &Record| record.version == packages.image.version;
        let record = self.record(kernel).filter(is_current);
        match record.and_then(|record| self.verify(record).ok()) {
            Some(fetched) => Ok(fetched.record),
            None => self.take(suite, kernel, packages, debian),
        }
    }

    /// Downloads `packages` and keeps the image and the modules.
    fn take(
        &self,
        suite: &Suite,
        kernel: &Kernel,
        packages: Packages,
        debian: &str,
    ) -> Result<Record, HostError> {
        let scratch = Scratch::within(&self.root)?;
        let Packages { image, modules } = packages;
        let deb = suite.download(&image, debian, scratch.path())?;
        let extracted = image::extract(&deb, &scratch.path().join("image"))?;
        let mut debs = Vec::new();
        for package in &modules {
            // Each into a folder of its own: what is there is what was downloaded.
            let folder = scratch.path().join(&package.name);
            fs::create_dir(&folder).map_err(HostError::file("create", &folder))?;
            debs.push(suite.download(package, debian, &folder)?);
        }
        if debs.is_empty() {
            debs.push(deb);
        }
        let taken = modules::take(&debs)?;
        let archive = scratch.path().join("modules");
        fs::write(&archive, &taken.archive).map_err(HostError::file("write", &archive))?;
        let file = format!("{}_{}_{debian}", image.name, image.version);
        let record = Record {
            package: image.name,
            version: image.version,
            release: extracted.release,
            sha256: extracted.sha256,
            file: format!("{file}.vmlinuz"),
            modules: Modules {
                wanted: modules::wanted().map(str::to_owned).collect(),
                lacking: taken.lacking,
                sha256: image::sha256(&archive)?,
                file: format!("{file}.modules"),
            },
        };
        scratch.keep("image", &self.images().join(&record.file))?;
        scratch.keep("modules", &self.images().join(&record.modules.file))?;
        self.write(&scratch, kernel, &record)?;
        Ok(record)
    }

    /// Last of all: a record stands for an image that is there.
    fn write(&self, scratch: &Scratch, kernel: &Kernel, record: &Record) -> Result<(), HostError> {
        let path = scratch.path().join("record");
        // Strings and lists of them: there is nothing that TOML could not say.
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

    /// Of "abc", FIPS 180-2.
    const SHA256: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

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
            sha256: SHA256.to_owned(),
            file: "image".to_owned(),
            modules: Modules {
                wanted: modules::wanted().map(str::to_owned).collect(),
                lacking: vec!["zram".to_owned()],
                sha256: SHA256.to_owned(),
                file: "modules".to_owned(),
            },
        };
        let lack = "linux-image-6 6-1 lacks the module zram, or what that depends on: \
                    swapped will be skipped";
        assert_eq!(record.lack().as_deref(), Some(lack));
        cache.write(&directory, kernel, &record).unwrap();
        for file in ["image", "modules"] {
            assert_eq!(cache.record(kernel), None);
            fs::write(cache.images().join(file), "abc").unwrap();
        }
        assert_eq!(cache.record(kernel).as_ref(), Some(&record));
        assert!(cache.kernel(&table, kernel, &|_| ()).is_ok());
        for file in ["image", "modules"] {
            fs::write(cache.images().join(file), "abd").unwrap();
            let refused = cache.kernel(&table, kernel, &|_| ());
            assert!(matches!(refused, Err(HostError::Altered { .. })));
            fs::write(cache.images().join(file), "abc").unwrap();
        }
        // As a lab leaves it that wants less.
        let mut other = record;
        other.modules.wanted.pop();
        cache.write(&directory, kernel, &other).unwrap();
        assert_eq!(cache.record(kernel), None);
    }
}
