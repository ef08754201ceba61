//! The kernel modules that questions need: out of a kernel's own packages, in an order in which
//! they load, packed as an initramfs has them.
//!
//! A package has no modules.dep (depmod writes it when the package is installed), so the order
//! comes from what each module says of itself: `depends=` in its section .modinfo, as
//! scripts/mod/modpost.c writes it. What is built into the kernel is in modules.builtin. Modules
//! are left as they are but for their compression: the signature is at their end.

use super::image::unpack;
use crate::guest::initramfs;
use crate::host::HostError;
use lzma_rust2::XzReader;
use object::{Object, ObjectSection};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A module that is needed, and the kind of `probe` that stays skipped without it.
struct Wanted {
    module: &'static str,
    kind: &'static str,
}

const WANTED: [Wanted; 3] = [
    // What zram compresses with unless it is told otherwise: 5.10 and 6.1 look it up by name
    // (drivers/block/zram/zcomp.c), so that zram does not say that it depends on it.
    Wanted {
        module: "lzo_rle",
        kind: "swapped",
    },
    Wanted {
        module: "zram",
        kind: "swapped",
    },
    Wanted {
        module: "fuse",
        kind: "fuse-silent",
    },
];

/// The modules that are looked for in each kernel's packages.
pub fn wanted<'w>() -> impl Iterator<Item = &'w str> {
    WANTED.iter().map(|wanted| wanted.module)
}

/// The kinds of `probe` that are not to be had without these modules.
pub(super) fn kinds_without(lacking: &[String]) -> Vec<&'static str> {
    let lacks = |wanted: &&Wanted| lacking.iter().any(|name| name == wanted.module);
    let mut kinds: Vec<&str> = WANTED.iter().filter(lacks).map(|of| of.kind).collect();
    kinds.dedup();
    kinds
}

/// What a kernel's packages gave.
pub(super) struct Taken {
    /// An archive for the kernel to unpack: `/modules/NN-name.ko`, in the order of loading.
    pub(super) archive: Vec<u8>,
    /// Of those wanted, what is neither built in nor to be had with all that it depends on.
    pub(super) lacking: Vec<String>,
}

/// Takes what is wanted, and all that it depends on, out of a kernel's packages.
///
/// # Errors
/// [`HostError`]: a package cannot be unpacked, or a module not be read.
pub(super) fn take(packages: &[PathBuf]) -> Result<Taken, HostError> {
    let mut shelf = Shelf::default();
    let mut asked = BTreeSet::new();
    loop {
        // What modules depend on is known once they are there: some three rounds.
        let mut unknown = shelf.unknown();
        unknown.retain(|name| asked.insert(name.clone()));
        if unknown.is_empty() {
            break;
        }
        for package in packages {
            unpack(package, |tar| shelf.fill(tar, &unknown).map(Some))?;
        }
    }
    let (order, lacking) = shelf.order();
    let files = order.iter().enumerate().map(|(number, name)| {
        let file = format!("{number:02}-{name}.ko");
        (file, &*shelf.modules[*name].bytes)
    });
    let mut archive = Vec::new();
    let packed = initramfs::write_modules(files, &mut archive);
    packed.map_err(HostError::file("pack", Path::new("modules")))?;
    Ok(Taken { archive, lacking })
}

/// A module.
#[derive(Default)]
struct Module {
    bytes: Vec<u8>,
    depends: Vec<String>,
}

/// What has been found in packages.
#[derive(Default)]
struct Shelf {
    modules: BTreeMap<String, Module>,
    built_in: BTreeSet<String>,
}

impl Shelf {
    /// Takes the modules `names` out of a package, and the list of what is built in.
    fn fill(&mut self, tar: impl Read, names: &BTreeSet<String>) -> io::Result<()> {
        for entry in tar::Archive::new(tar).entries()? {
            let mut entry = entry?;
            let path = entry.path()?.into_owned();
            if path
                .file_name()
                .is_some_and(|name| name == "modules.builtin")
            {
                let mut list = String::new();
                entry.read_to_string(&mut list)?;
                let paths = list.lines().map(Path::new);
                self.built_in
                    .extend(paths.filter_map(|path| Some(name(path)?.0)));
            } else if let Some((name, packing)) = name(&path)
                && names.contains(&name)
                && entry.header().entry_type().is_file()
            {
                let bytes = packing.unpack(entry)?;
                let depends = depends(&bytes)?;
                self.modules.insert(name, Module { bytes, depends });
            }
        }
        Ok(())
    }

    /// What is wanted or depended on and neither built in nor here.
    fn unknown(&self) -> BTreeSet<String> {
        let depends = self.modules.values().flat_map(|module| &module.depends);
        let names = wanted().chain(depends.map(String::as_str));
        let has = |name: &str| self.built_in.contains(name) || self.modules.contains_key(name);
        names.filter(|name| !has(name)).map(str::to_owned).collect()
    }

    /// The modules to load, each behind all that it depends on; and those wanted that cannot be
    /// loaded, as something is not there.
    fn order(&self) -> (Vec<&str>, Vec<String>) {
        let (mut order, mut lacking) = (Vec::new(), Vec::new());
        for name in wanted() {
            let known = order.len();
            if self.add(name, &mut order).is_none() {
                order.truncate(known);
                lacking.push(name.to_owned());
            }
        }
        (order, lacking)
    }

    /// Adds `name` to `order`, behind what it depends on; `None`: something is not there. No
    /// module depends on itself, by whatever way: depmod(8) refuses such.
    fn add<'s>(&'s self, name: &str, order: &mut Vec<&'s str>) -> Option<()> {
        if self.built_in.contains(name) || order.contains(&name) {
            return Some(());
        }
        let (name, module) = self.modules.get_key_value(name)?;
        for depended in &module.depends {
            self.add(depended, order)?;
        }
        order.push(name);
        Some(())
    }
}

/// How a module is compressed in its package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Not,
    Xz,
}

/// By the end of a file's name. A module packed in another way is none that is found.
const PACKINGS: [(&str, Packing); 2] = [(".ko", Packing::Not), (".ko.xz", Packing::Xz)];

impl Packing {
    fn unpack(self, mut from: impl Read) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match self {
            Self::Not => from.read_to_end(&mut bytes)?,
            Self::Xz => XzReader::new(from, true).read_to_end(&mut bytes)?,
        };
        Ok(bytes)
    }
}

/// The module in a file, and how it is packed. The kernel takes `-` and `_` for the same.
fn name(path: &Path) -> Option<(String, Packing)> {
    let file = path.file_name()?.to_str()?;
    let mut packings = PACKINGS.iter();
    packings.find_map(|(end, packing)| {
        let name = file.strip_suffix(end)?;
        Some((name.replace('-', "_"), *packing))
    })
}

/// What a module depends on.
fn depends(module: &[u8]) -> io::Result<Vec<String>> {
    let file = object::File::parse(module).map_err(io::Error::other)?;
    let section = file.section_by_name(".modinfo");
    let section = section.ok_or_else(|| io::Error::other("a module without .modinfo"))?;
    let fields = section.data().map_err(io::Error::other)?;
    let mut fields = fields.split(|&byte| byte == 0);
    let depends = fields.find_map(|field| field.strip_prefix(b"depends="));
    let names = String::from_utf8_lossy(depends.unwrap_or_default()).replace('-', "_");
    let names = names.split(',').filter(|name| !name.is_empty());
    Ok(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf(modules: &[(&str, &[&str])], built_in: &[&str]) -> Shelf {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Shelf {
            modules: modules
                .iter()
                .map(|(name, depends)| {
                    let depends = owned(depends);
                    let module = Module {
                        depends,
                        ..Module::default()
                    };
                    ((*name).to_owned(), module)
                })
                .collect(),
            built_in: built_in.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn what_is_depended_on_comes_first_and_once() {
        let shelf = shelf(
            &[
                ("zram", &["zsmalloc", "lz4hc_compress", "lz4_compress"]),
                ("lz4hc_compress", &["lz4_compress"]),
                ("lz4_compress", &[]),
                ("zsmalloc", &[]),
                ("fuse", &["zsmalloc"]),
                ("unwanted", &[]),
            ],
            &["lzo_rle"],
        );
        assert_eq!(shelf.unknown(), BTreeSet::new());
        let (order, lacking) = shelf.order();
        let wanted = ["zsmalloc", "lz4_compress", "lz4hc_compress", "zram", "fuse"];
        assert_eq!(order, wanted);
        assert_eq!(lacking, Vec::<String>::new());
    }

    #[test]
    fn what_lacks_something_is_left_out_with_all_that_only_it_needs() {
        let shelf = shelf(
            &[
                ("zram", &["lz4_compress", "zsmalloc"]),
                ("lz4_compress", &[]),
            ],
            &["lzo_rle"],
        );
        assert!(shelf.unknown().iter().eq(["fuse", "zsmalloc"]));
        let (order, lacking) = shelf.order();
        assert_eq!(order, Vec::<&str>::new());
        assert_eq!(lacking, ["zram", "fuse"]);
        assert_eq!(kinds_without(&lacking), ["swapped", "fuse-silent"]);
        assert_eq!(kinds_without(&[]), Vec::<&str>::new());
    }

    #[test]
    fn a_module_is_known_by_its_files_name() {
        let kernel = "./usr/lib/modules/6.12.1/kernel";
        for (file, wanted) in [
            ("crypto/lzo-rle.ko", Some(("lzo_rle", Packing::Not))),
            ("drivers/block/zram/zram.ko.xz", Some(("zram", Packing::Xz))),
            ("drivers/block/zram/zram.ko.zst", None),
            ("drivers/block/zram", None),
        ] {
            let wanted = wanted.map(|(name, packing)| (name.to_owned(), packing));
            let path = Path::new(kernel).join(file);
            assert_eq!(name(&path), wanted, "{file}");
        }
    }

    #[test]
    fn what_is_packed_is_unpacked_and_what_is_torn_is_refused() {
        // printf abc | xz --check=crc32 --lzma2=dict=1MiB, as scripts/Makefile.modinst packs.
        let packed = b"\xfd7zXZ\0\0\x01\x69\x22\xde\x36\x02\0\x21\x01\x10\0\0\0\xa8\x70\x8e\x86\
            \x01\0\x02abc\0\0\xc2\x41\x24\x35\0\x01\x17\x03\x07\x60\x0c\xbc\x90\x42\x99\x0d\
            \x01\0\0\0\0\x01YZ";
        assert_eq!(Packing::Xz.unpack(&packed[..]).unwrap(), b"abc");
        assert!(Packing::Xz.unpack(&packed[..packed.len() - 1]).is_err());
        assert_eq!(Packing::Not.unpack(&b"abc"[..]).unwrap(), b"abc");
    }

    #[test]
    fn what_is_no_module_is_refused() {
        assert!(depends(b"no ELF").is_err());
        let tar = {
            let mut tar = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            header.set_size(4);
            header.set_entry_type(tar::EntryType::Regular);
            let path = "lib/modules/6/kernel/zram.ko";
            tar.append_data(&mut header, path, &b"torn"[..]).unwrap();
            tar.into_inner().unwrap()
        };
        let mut shelf = Shelf::default();
        let names = |name: &str| BTreeSet::from([name.to_owned()]);
        assert!(shelf.fill(&*tar, &names("zram")).is_err());
        // What nobody asks for is not looked at.
        assert!(shelf.fill(&*tar, &names("fuse")).is_ok());
        assert!(shelf.modules.is_empty());
    }
}
