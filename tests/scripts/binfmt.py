"""What the scripts that register with binfmt_misc must not leave behind, and how they are
interrupted while they have something to undo."""

import os
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from far import ROOT

BINFMT = Path("/proc/sys/fs/binfmt_misc")


def left_behind(folders):
    """What is mounted and registered now, and the folders for temporary files of that name."""
    mounted = [line for line in Path("/proc/mounts").read_text().splitlines() if "binfmt_misc" in line]
    entries = sorted(entry.name for entry in BINFMT.iterdir())
    return mounted, entries, sorted(Path(tempfile.gettempdir()).glob(f"{folders}*"))


def interrupted(script, number):
    """The exit status of a script that got a signal while something of its was registered."""
    # In a session of its own: the signal is for the script alone. What it writes is gone with the folder.
    place = tempfile.TemporaryDirectory()
    run = subprocess.Popen([script, "--rounds", "100000"], cwd=place.name, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        while not list(BINFMT.glob("cowitness-*")) and run.poll() is None:
            time.sleep(0.01)
        run.send_signal(signal.Signals(number))
        return run.wait(timeout=60)
    finally:
        run.kill()
        run.wait()
        place.cleanup()


@unittest.skipUnless(os.geteuid() == 0, "registering takes root")
@unittest.skipUnless("binfmt_misc" in Path("/proc/filesystems").read_text(), "this kernel has no binfmt_misc")
@unittest.skipUnless((ROOT / "target/release/cowitness").exists(), "cargo build --release comes first")
class NothingIsLeft(unittest.TestCase):
    """Afterwards everything is as before, whatever the test did."""

    FOLDERS = ""

    def setUp(self):
        before = left_behind(self.FOLDERS)
        self.addCleanup(lambda: self.assertEqual(left_behind(self.FOLDERS), before))
