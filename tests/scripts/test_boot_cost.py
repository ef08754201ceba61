"""scripts/boot-cost: its deadline, and what it says if something is missing."""

import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from far import ROOT

ARCH = "aarch64"


def boot_cost(*words, checkout=ROOT):
    return subprocess.run(
        [checkout / "scripts/boot-cost", *map(str, words)], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False,
    )


@unittest.skipIf(sys.version_info < (3, 11), "Python here has no tomllib")
class Guests(unittest.TestCase):
    def test_one_is_ended_at_the_deadline(self):
        with tempfile.NamedTemporaryFile() as kernel:
            # aarch64's branch to itself.
            kernel.write((0x14000000).to_bytes(4, "little") * 16)
            kernel.flush()
            start = time.monotonic()
            done = boot_cost("--arch", ARCH, "--vmlinuz", kernel.name, "--appliance", kernel.name, "--deadline", 2)
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\Aboot-cost: a guest was ended after 2 s; its console ends with\n")

    def test_an_appliance_without_a_verdict_is_an_error(self):
        found = boot_cost("--arch", ARCH, "--find")
        if found.returncode:
            self.skipTest(found.stderr.strip())
        # It is no program: the kernel finds no /init that works.
        done = boot_cost("--arch", ARCH, "--appliance", ROOT / "Cargo.toml", "--rounds", 1, "--limit", "inf")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\Aboot-cost: a guest did not end as it should .*\n")
        self.assertIn("Kernel panic", done.stderr)


class Words(unittest.TestCase):
    @unittest.skipIf(sys.version_info < (3, 11), "Python here has no tomllib")
    def test_a_missing_file_is_one_line(self):
        for option in ("--vmlinuz", "--appliance"):
            words = {"--vmlinuz": ROOT / "Cargo.toml", "--appliance": ROOT / "Cargo.toml"} | {option: "/no/such"}
            done = boot_cost("--arch", ARCH, *(word for pair in words.items() for word in pair))
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertEqual(done.stderr, "boot-cost: cannot read /no/such: No such file or directory\n")

    def test_help_explains_every_option(self):
        said = boot_cost("--help").stdout
        options = re.findall(r'add_argument\("(--[a-z]+)"', (ROOT / "scripts/boot-cost").read_text())
        self.assertGreater(len(options), 5)
        for option in options:
            self.assertRegex(said, rf"(?m)^  {option}( \S+)?\s+[a-z]")

    @unittest.skipIf(sys.version_info < (3, 11), "Python here has no tomllib")
    def test_the_machine_is_that_of_the_table(self):
        with tempfile.TemporaryDirectory() as scratch:
            for file in ("scripts/boot-cost", "qemu/kernels.toml"):
                (Path(scratch) / file).parent.mkdir()
                shutil.copy(ROOT / file, Path(scratch) / file)
            table = Path(scratch) / "qemu/kernels.toml"
            table.write_text(table.read_text().replace('"qemu-system-aarch64"', '"qemu-system-of-the-table"'))
            done = boot_cost("--arch", ARCH, "--vmlinuz", table, checkout=Path(scratch))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"\Aboot-cost: no qemu-system-of-the-table here; install [^\n]*\n\Z")


if __name__ == "__main__":
    unittest.main()
