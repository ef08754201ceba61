"""scripts/binfmt-experiment: whatever happens, nothing stays registered, mounted or written."""

import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

import binfmt
from far import ROOT

SCRIPT = ROOT / "scripts/binfmt-experiment"
SHORT = ("--rounds", "6", "--repetitions", "1", "--null", "1", "--magic", "4,16", "--entries", "0,2")


class Experiment(binfmt.NothingIsLeft):
    FOLDERS = "cowitness-binfmt-"

    def test_after_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([SCRIPT, *SHORT, "-o", folder], cwd=ROOT, capture_output=True, text=True, check=False)
            kept = [path.read_text() for path in Path(folder).iterdir()]
        # So few rounds need not resolve anything.
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 2 + 1 + 4 + 1)
        # One base, three of each of the four cases, one null.
        self.assertEqual(len(kept), 1 + 3 * 4 + 1)
        self.assertTrue(all(",registered," in text for text in kept if "#label=null" not in text))
        self.assertTrue(any("#binfmt_misc_entries=3\n" in text for text in kept))

    def test_after_a_failure_midway(self):
        for appliance in ("/bin/false", "/bin/true"):
            done = subprocess.run([SCRIPT, *SHORT, "--appliance", appliance], cwd=ROOT, capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, r"\Abinfmt-experiment: ")

    def test_after_a_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.assertEqual(binfmt.interrupted(SCRIPT, number), 128 + number)


class Words(unittest.TestCase):
    def test_a_magic_that_does_not_fit_is_refused(self):
        done = subprocess.run([SCRIPT, "--magic", "257"], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("a magic has 2 to 256 bytes", done.stderr)


if __name__ == "__main__":
    unittest.main()
