//! Debian's archive through apt, with a state of its own: lists, status and sources live in
//! the cache, nothing of the host's is read but its proxies and nothing of it is changed.
//!
//! apt verifies what it downloads, from the suite's signature down to the package.

use crate::host::{self, HostError};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the packages of Debian are signed with; Debian and Ubuntu have it in
/// `debian-archive-keyring`.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The archive if the host's own sources name none.
const FALLBACK: &str = "http://deb.debian.org/debian";

/// One suite.
pub(super) struct Suite {
    root: PathBuf,
    suite: String,
}

/// What the archive knows of a package.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    depends: String,
}

/// The packages of one kernel.
pub(super) struct Packages {
    pub(super) image: Package,
    /// Empty: that of the image has the modules, too.
    pub(super) modules: Vec<Package>,
}

/// Who has the modules from 7.x on, and who the list of those that are built in.
const MODULES: [&str; 2] = ["linux-modules-", "linux-base-"];

impl Suite {
    /// Sets up the state of `suite` under `root` and fetches its lists.
    pub(super) fn update(root: &Path, suite: &str) -> Result<Self, HostError> {
        let suite = Self {
            root: root.join(suite),
            suite: suite.to_owned(),
        };
        suite.lay_out()?;
        host::output(suite.apt("apt-get").arg("update"), &suite.suite)?;
        Ok(suite)
    }

    fn lay_out(&self) -> Result<(), HostError> {
        for directory in [
            "etc/preferences.d",
            "lists/partial",
            "cache/archives/partial",
        ] {
            let path = self.root.join(directory);
            fs::create_dir_all(&path).map_err(HostError::file("create", &path))?;
        }
        let source = format!(
            "deb [signed-by={KEYRING}] {} {} main\n",
            mirror(),
            self.suite
        );
        for (name, text) in [("status", ""), ("etc/sources.list", &source)] {
            let path = self.root.join(name);
            fs::write(&path, text).map_err(HostError::file("write", &path))?;
        }
        Ok(())
    }

    /// A program of apt's that sees this suite alone, for both CPUs.
    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (option, path) in [
            ("Dir::Etc", "etc"),
            ("Dir::State::Lists", "lists"),
            ("Dir::State::status", "status"),
            ("Dir::Cache", "cache"),
        ] {
            let mut setting = OsString::from(format!("{option}="));
            setting.push(self.root.join(path));
            command.arg("-o").arg(setting);
        }
        for setting in [
            "APT::Architecture=amd64",
            "APT::Architectures=amd64,arm64",
            "APT::Update::Error-Mode=any",
            "Acquire::Languages=none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
        ] {
            command.args(["-o", setting]);
        }
        command.env("LC_ALL", "C");
        command
    }

    /// What the suite has by the name `package`, for Debian's CPU `debian`.
    pub(super) fn show(&self, package: &str, debian: &str) -> Result<Package, HostError> {
        let mut command = self.apt("apt-cache");
        command.args(["show", "--no-all-versions", &format!("{package}:{debian}")]);
        let what = format!("{package} of {}", self.suite);
        let stanza = host::output(&mut command, &what)?;
        parse(&String::from_utf8_lossy(&stanza)).ok_or(HostError::Package {
            package: what,
            wanted: "version in the archive",
        })
    }

    /// From a metapackage to the packages that have the image and the modules:
    /// `linux-image-VERSION` has both, or, from 7.x on, depends on those that do.
    pub(super) fn resolve(&self, package: &str, debian: &str) -> Result<Packages, HostError> {
        let meta = self.show(package, debian)?;
        let image = meta
            .dependency("linux-image-")
            .ok_or_else(|| HostError::Package {
                package: package.to_owned(),
                wanted: "kernel that it depends on",
            })?;
        let image = self.show(&image, debian)?;
        let parts = |prefixes: &[&str]| -> Result<Vec<Package>, HostError> {
            let names = prefixes
                .iter()
                .filter_map(|prefix| image.dependency(prefix));
            names.map(|name| self.show(&name, debian)).collect()
        };
        let modules = parts(&MODULES)?;
        Ok(Packages {
            image: parts(&["linux-binary-"])?.pop().unwrap_or(image),
            modules,
        })
    }

    /// Downloads a package into `directory` and gives its path there.
    pub(super) fn download(
        &self,
        package: &Package,
        debian: &str,
        directory: &Path,
    ) -> Result<PathBuf, HostError> {
        let Package { name, version, .. } = package;
        let mut command = self.apt("apt-get");
        command.args(["download", &format!("{name}:{debian}={version}")]);
        host::output(command.current_dir(directory), name)?;
        let entries = fs::read_dir(directory).map_err(HostError::file("read", directory))?;
        let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let file = paths.find(|path| path.extension().is_some_and(|end| end == "deb"));
        file.ok_or_else(|| HostError::Package {
            package: name.clone(),
            wanted: "file that apt-get download has left",
        })
    }
}

impl Package {
    /// The first package it depends on whose name is `prefix` and a version.
    fn dependency(&self, prefix: &str) -> Option<String> {
        let names = self.depends.split([',', '|']);
        let mut names = names.filter_map(|clause| clause.split_whitespace().next());
        let versioned = |name: &&str| {
            let rest = name.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        };
        names.find(versioned).map(str::to_owned)
    }
}

fn parse(stanza: &str) -> Option<Package> {
    let first = stanza.split("\n\n").next()?;
    let field = |name: &str| {
        let mut values = first.lines().filter_map(|line| line.strip_prefix(name));
        values.next().map(|value| value.trim().to_owned())
    };
    Some(Package {
        name: field("Package:")?,
        version: field("Version:")?,
        depends: field("Depends:").unwrap_or_default(),
    })
}

/// The archive of Debian that the host's own apt uses.
fn mirror() -> String {
    let mut command = Command::new("apt-get");
    let format = "$(REPO_URI)";
    command.args(["indextargets", "--format", format, "Created-By: Packages"]);
    // A host without sources, or with an apt that has no index yet, has no answer: no error.
    let uris = host::output(&mut command, "its sources").unwrap_or_default();
    let uris = String::from_utf8_lossy(&uris);
    let debian = uris.lines().map(|uri| uri.trim_end_matches('/'));
    let mut debian = debian.filter(|uri| uri.ends_with("/debian"));
    debian.next().unwrap_or(FALLBACK).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    // As apt-cache shows them, shortened to the fields that matter.
    const META: &str = "Package: linux-image-cloud-amd64\nVersion: 7.3.4-1~bpo13+1\n\
        Depends: linux-base-cloud-amd64 (= 7.3.4-1~bpo13+1), linux-image-7.3.4+deb13-cloud-amd64 \
        (= 7.3.4-1~bpo13+1), linux-modules-cloud-amd64 (= 7.3.4-1~bpo13+1)\n\n\
        Package: linux-image-cloud-amd64\nVersion: 6\n";
    const IMAGE: &str = "Package: linux-image-7.2.12+deb14-cloud-amd64\nVersion: 7.2.12-1\n\
        Depends: dracut | initramfs-tools (>= 0.120+deb8u2) | linux-initramfs-tool, \
        linux-base-7.2.12+deb14-cloud-amd64 (= 7.2.12-1), \
        linux-binary-7.2.12+deb14-cloud-amd64 (= 7.2.12-1)\n";

    #[test]
    fn dependencies_lead_to_the_image() {
        let meta = parse(META).unwrap();
        assert_eq!(meta.version, "7.3.4-1~bpo13+1");
        assert_eq!(
            meta.dependency("linux-image-").as_deref(),
            Some("linux-image-7.3.4+deb13-cloud-amd64")
        );
        assert_eq!(meta.dependency("linux-binary-"), None);
        let image = parse(IMAGE).unwrap().dependency("linux-binary-");
        assert_eq!(
            image.as_deref(),
            Some("linux-binary-7.2.12+deb14-cloud-amd64")
        );
    }
}
