"""scripts/binfmt-experiment: whatever happens, nothing stays registered, mounted or written."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
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

    def test_a_second_run_and_what_a_killed_one_leaves(self):
        first = subprocess.Popen([SCRIPT, "--rounds", "100000"], cwd=ROOT, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, start_new_session=True)
        was_mounted = (binfmt.BINFMT / "register").exists()
        try:
            while not list(binfmt.BINFMT.glob("cowitness-*")) and first.poll() is None:
                time.sleep(0.01)
            second = subprocess.run([SCRIPT, *SHORT], cwd=ROOT, capture_output=True, text=True, check=False)
            # The second did not touch what is the first's.
            entries = list(binfmt.BINFMT.glob("cowitness-*"))
        finally:
            os.killpg(first.pid, signal.SIGKILL)
            first.wait()
        self.assertEqual(second.returncode, 3)
        self.assertIn("another run that registers with binfmt_misc is under way", second.stderr)
        self.assertEqual([entry.name for entry in entries], [f"cowitness-{first.pid}-subject"])
        third = subprocess.run([SCRIPT, *SHORT], cwd=ROOT, capture_output=True, text=True, check=False)
        for entry in entries:
            entry.write_text("-1")
        if not was_mounted:
            subprocess.run(["umount", binfmt.BINFMT], check=True)
        for folder in Path(tempfile.gettempdir()).glob(f"{self.FOLDERS}*"):
            shutil.rmtree(folder)
        self.assertEqual(third.returncode, 3)
        self.assertIn("a run that was killed has left entries: cowitness-", third.stderr)
        self.assertIn("echo -1 >", third.stderr)

    def test_entries_of_others_are_counted(self):
        script = 'mount -t binfmt_misc none "$1" 2> /dev/null; echo ":foreign$2:E::foreign$2::/bin/true:" > "$1/register" ' \
                 '&& "$0" --rounds 6 --repetitions 1 --null 0 --magic 4 --entries 0 --flags ""; echo -1 > "$1/foreign$2"'
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script, SCRIPT, binfmt.BINFMT, str(os.getpid())],
                              cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertRegex(done.stderr, rf"entries of others in binfmt_misc: \d+: .*foreign{os.getpid()}")
        self.assertRegex(done.stdout, r"4 bytes, [1-9]\d* entries of others")

    def test_a_place_with_a_colon_is_no_end_of_a_field(self):
        with tempfile.TemporaryDirectory(prefix="a:b") as folder:
            done = subprocess.run([SCRIPT, "--rounds", "6", "--repetitions", "1", "--null", "0", "--magic", "4",
                                   "--entries", "0", "--flags", ""], cwd=ROOT, env=os.environ | {"TMPDIR": folder},
                                  capture_output=True, text=True, check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertIn("| 4 bytes, ", done.stdout)

    def test_an_output_that_takes_nothing_is_an_error_in_a_line(self):
        words = [SCRIPT, *SHORT]
        with open("/dev/full", "wb") as full:
            done = subprocess.run(words, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left on device; look after room", done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *words], cwd=ROOT, stderr=subprocess.PIPE, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (1, "binfmt-experiment: error: standard output is closed: give it a file or a terminal\n"))

    def test_after_a_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            self.assertEqual(binfmt.interrupted(SCRIPT, number), 128 + number)


class Words(unittest.TestCase):
    def test_a_magic_that_does_not_fit_is_refused(self):
        for words, want in (("--magic 257", "'257' must be a whole number from 2 to 256"),
                            ("--magic 4,4", "'4,4' must be at least 1 different numbers"),
                            ("--rounds 5", "'5' must be a whole number from 6 to 100000"),
                            ("--repetitions 0", "'0' must be a whole number from 1 to 1000"),
                            ("--null -1", "'-1' must be a whole number from 0 to 1000"),
                            ("--entries -3", "'-3' must be a whole number from 0 to 1000"),
                            ("--flags Z", "'Z' must be lists of the letters P, O, C and F")):
            done = subprocess.run([SCRIPT, *words.split()], cwd=ROOT, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"argument {words.split()[0]}: {want}", done.stderr)


if __name__ == "__main__":
    unittest.main()
