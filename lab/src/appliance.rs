//! The appliance for a CPU: as given, or as the checkout builds it now.

use crate::host::{self, HostError};
use crate::kernels::table::Arch;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the appliance for `arch` is. `say` is told when it is built.
///
/// # Errors
/// [`HostError`].
pub fn find(
    given: Option<&Path>,
    arch: Arch,
    say: &(dyn Fn(&str) + Sync),
) -> Result<PathBuf, HostError> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let checkout = checkout();
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(
        || checkout.join("target"),
        |target| checkout.join(PathBuf::from(target)),
    );
    let path = target.join("appliance").join(arch.name()).join("cowitness");
    let script = checkout.join("scripts/build-appliance");
    // Built anew each time, for nothing if nothing has changed: a binary that is left over
    // from other sources would be tested in place of these.
    if script.is_file() {
        say(&format!(
            "appliance: building, by {} {arch}",
            script.display()
        ));
        let mut build = Command::new(&script);
        host::output(build.arg(arch.name()).current_dir(&checkout), arch.name())?;
    }
    if path.is_file() {
        return Ok(path);
    }
    Err(HostError::NoAppliance {
        arch: arch.name(),
        path,
    })
}

/// The checkout this program was built from, if it is still there; else where we are.
fn checkout() -> PathBuf {
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let there = built_from.filter(|path| path.join("Cargo.toml").is_file());
    there.map_or_else(|| PathBuf::from("."), Path::to_owned)
}
