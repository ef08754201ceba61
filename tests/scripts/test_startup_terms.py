"""scripts/startup-terms: its sum closes, its files are whole, nothing stays behind."""

import csv
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from far import ROOT

SCRIPT = ROOT / "scripts/startup-terms"
BINFMT = Path("/proc/sys/fs/binfmt_misc")
SHORT = ("--rounds", "6", "--repetitions", "1", "--images", "16,32,64", "--schemas", "0,2,4", "--image-kib", "64")


def run(*words, **more):
    return subprocess.run([SCRIPT, *words], cwd=ROOT, capture_output=True, text=True, check=False, **more)


def left_behind():
    mounted = [line for line in Path("/proc/mounts").read_text().splitlines() if "binfmt_misc" in line]
    entries = sorted(entry.name for entry in BINFMT.iterdir())
    return mounted, entries, sorted(Path(tempfile.gettempdir()).glob("cowitness-terms-*"))


@unittest.skipUnless(os.geteuid() == 0, "registering takes root")
@unittest.skipUnless("binfmt_misc" in Path("/proc/filesystems").read_text(), "this kernel has no binfmt_misc")
@unittest.skipUnless(all(map(shutil.which, ("gcc", "sqlite3"))) and Path("/usr/include/sqlite3.h").exists(),
                     "gcc, sqlite3 or libsqlite3-dev is missing")
@unittest.skipUnless((ROOT / "target/release/cowitness").exists(), "cargo build --release comes first")
class Terms(unittest.TestCase):
    def setUp(self):
        before = left_behind()
        self.addCleanup(lambda: self.assertEqual(left_behind(), before))

    def test_the_sum_closes(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(*SHORT, "-o", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(Path(folder, "terms.csv"), newline="") as file:
                terms = {row["term"]: float(row["us"]) for row in csv.DictReader(file)}
            runs = [path for path in Path(folder).iterdir() if path.name != "terms.csv"]
            # The terms and their controls, then three terms of three images and of three schemas.
            self.assertEqual(len(runs), 5 + 6 + 9 + 9)
            # The term is that of the file it came from, here looked up by hand.
            line = next(line for line in (Path(folder, "copy-0.csv").read_text()).splitlines()
                        if line.startswith("startup-ab") and ",total," in line)
        self.assertAlmostEqual(int(line.split(",")[11]) / 1000, terms["copy"], places=3)
        parts = ("dispatch", "link", "open", "schema", "copy", "program", "residual")
        self.assertAlmostEqual(sum(terms[part] for part in parts), terms["total"], places=2)
        self.assertIn("| residual |", done.stdout)
        self.assertIn("R2", done.stdout)

    def test_a_tool_that_is_missing_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            for tool in ("python3", "mount", "umount", "env", "gcc"):
                os.symlink(shutil.which(tool), Path(folder, tool))
            done = run(*SHORT, env={"PATH": folder})
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("no sqlite3 here: apt-get install sqlite3", done.stderr)

    def test_after_a_signal(self):
        script = subprocess.Popen([SCRIPT, "--rounds", "100000"], cwd=ROOT, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            while not list(BINFMT.glob("cowitness-*")) and script.poll() is None:
                time.sleep(0.01)
            script.send_signal(signal.SIGINT)
            self.assertEqual(script.wait(timeout=60), 128 + signal.SIGINT)
        finally:
            script.kill()
            script.wait()


if __name__ == "__main__":
    unittest.main()
