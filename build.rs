//! Hands the appliance its link arguments from `targets/<cpu>.args` and tells the
//! code which target it was built for.
//!
//! The arguments go to the `cowitness` binary alone (`rustc-link-arg-bins`), so that
//! the host tests link against the ordinary C runtime.

use std::{env, fs, path::Path};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=targets");
    let target = env::var("TARGET").expect("cargo sets TARGET");
    println!("cargo::rustc-env=COWITNESS_TARGET={target}");

    let cpu = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    let list = Path::new("targets").join(format!("{cpu}.args"));
    // The library's pure parts build for any CPU; only the appliance needs a list.
    let Ok(text) = fs::read_to_string(&list) else {
        return;
    };
    let through_driver = links_through_a_c_compiler();
    if through_driver {
        for argument in ["-nostartfiles", "-nostdlib"] {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
    let options = text.lines().map(str::trim);
    for option in options.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match option {
            // The driver must know these itself: they choose what it adds.
            "-static" | "-no-pie" => println!("cargo::rustc-link-arg-bins={option}"),
            _ if through_driver => {
                println!(
                    "cargo::rustc-link-arg-bins=-Wl,{}",
                    option.replace(' ', ",")
                );
            }
            _ => {
                for argument in option.split(' ') {
                    println!("cargo::rustc-link-arg-bins={argument}");
                }
            }
        }
    }
}

/// Whether rustc calls the linker through `cc`, as it does unless told otherwise.
fn links_through_a_c_compiler() -> bool {
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    let linker = env::var("RUSTC_LINKER").unwrap_or_default();
    if linker.ends_with("ld") || linker.contains("lld") {
        return false;
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let flavor = flags
        .split("linker-flavor=")
        .last()
        .filter(|rest| *rest != flags);
    !flavor.is_some_and(|flavor| flavor.starts_with("ld"))
}
