"""scripts/binfmt-experiment: whatever happens, nothing stays registered, mounted or written."""

import os
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from far import ROOT

SCRIPT = ROOT / "scripts/binfmt-experiment"
BINFMT = Path("/proc/sys/fs/binfmt_misc")
APPLIANCE = ROOT / "target/release/cowitness"
SHORT = ("--rounds", "6", "--repetitions", "1", "--null", "1", "--magic", "4,16", "--entries", "0,2")


def left_behind():
    """What the kernel and the folder for temporary files hold now, as far as it may be the script's."""
    mounted = [line for line in Path("/proc/mounts").read_text().splitlines() if "binfmt_misc" in line]
    entries = sorted(entry.name for entry in BINFMT.iterdir())
    return mounted, entries, sorted(Path(tempfile.gettempdir()).glob("cowitness-binfmt-*"))


@unittest.skipUnless(os.geteuid() == 0, "registering takes root")
@unittest.skipUnless("binfmt_misc" in Path("/proc/filesystems").read_text(), "this kernel has no binfmt_misc")
@unittest.skipUnless(APPLIANCE.exists(), "cargo build --release comes first")
class NothingIsLeft(unittest.TestCase):
    def setUp(self):
        self.before = left_behind()
        self.addCleanup(lambda: self.assertEqual(left_behind(), self.before))

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
            # In a session of its own: the signal is for the script alone.
            run = subprocess.Popen([SCRIPT, "--rounds", "100000"], cwd=ROOT, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
            try:
                while not list(BINFMT.glob("cowitness-*")) and run.poll() is None:
                    time.sleep(0.01)
                run.send_signal(number)
                self.assertEqual(run.wait(timeout=60), 128 + number)
            finally:
                run.kill()
                run.wait()
            self.assertEqual(left_behind(), self.before)


class Words(unittest.TestCase):
    def test_a_magic_that_does_not_fit_is_refused(self):
        done = subprocess.run([SCRIPT, "--magic", "257"], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("a magic has 2 to 256 bytes", done.stderr)


if __name__ == "__main__":
    unittest.main()
