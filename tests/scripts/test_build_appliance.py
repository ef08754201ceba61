"""scripts/build-appliance: the same bytes from two checkouts of one commit, and its refusals."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from far import ROOT, Case

CPUS = {"x86_64": 62, "aarch64": 183}  # e_machine, elf.h


def build(checkout, *words, **environment):
    clean = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    return subprocess.run(
        [checkout / "scripts/build-appliance", *words], env=clean | environment,
        capture_output=True, text=True, check=False,
    )


def copy_of_checkout(directory):
    """The checkout without what was built, uncommitted changes included."""
    shutil.copytree(ROOT, directory, ignore=shutil.ignore_patterns("target", ".git", "out", "__pycache__"))
    return directory


class TwoDirectories(Case):
    def test_the_bytes_depend_on_neither_directory_nor_cargo_home(self):
        scratch = Path(self.enter(tempfile.TemporaryDirectory()))
        short = copy_of_checkout(scratch / "a")
        long = copy_of_checkout(scratch / "a directory with a much longer name than the other")
        home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
        subprocess.run(["cargo", "fetch", "--locked"], cwd=ROOT, check=True)
        shutil.copytree(home / "registry", scratch / "another cargo home/registry")
        other = {
            "CARGO_HOME": str(scratch / "another cargo home"),
            "RUSTFLAGS": "-Cdebuginfo=2 -Copt-level=3",
            "CARGO_PROFILE_RELEASE_OPT_LEVEL": "3",
        }
        for cpu, machine in CPUS.items():
            with self.subTest(cpu=cpu):
                said = [build(short, cpu), build(long, cpu, **other)]
                for done in said:
                    self.assertEqual(done.returncode, 0, done.stderr)
                files = [where / f"target/appliance/{cpu}/cowitness" for where in (short, long)]
                first, second = (file.read_bytes() for file in files)
                self.assertEqual(first, second)
                self.assertEqual(int.from_bytes(first[18:20], "little"), machine)
                digest = hashlib.sha256(first).hexdigest()
                for done, file in zip(said, files):
                    self.assertEqual(done.stdout, f"{file}  {len(first)} bytes  sha256 {digest}\n")


class Refusals(Case):
    def test_usage(self):
        for words in (["riscv64"], ["all", "more"], ["--can", "sparc"]):
            done = build(ROOT, *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr, "usage: scripts/build-appliance [--can] [x86_64|aarch64|all]\n")

    def test_no_rust_for_a_cpu_says_what_to_run(self):
        """A copy that asks for a Rust that nobody has: neither PATH's nor Debian's will do."""
        scratch = Path(self.enter(tempfile.TemporaryDirectory()))
        checkout = copy_of_checkout(scratch / "checkout")
        manifest = checkout / "Cargo.toml"
        manifest.write_text(manifest.read_text().replace('rust-version = "1.95"', 'rust-version = "1.999"'))
        done = build(checkout, "aarch64")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        first, *remedies = done.stderr.splitlines()
        self.assertIn("no Rust 1.999 or newer here that can build and link for aarch64", first)
        self.assertEqual(remedies[0].strip(), "rustup update stable && rustup target add aarch64-unknown-linux-musl")
        self.assertIn("apt-get install rustc-web cargo-web lld libstd-rust-web-dev:arm64", remedies[1])


if __name__ == "__main__":
    unittest.main()
