"""scripts/startup-terms: its sum closes, its files are whole, nothing stays behind."""

import csv
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

import binfmt
from far import ROOT

SCRIPT = ROOT / "scripts/startup-terms"
SHORT = ("--rounds", "6", "--repetitions", "1", "--images", "16,32,64", "--schemas", "0,2,4", "--image-kib", "64")


def run(*words, **more):
    with tempfile.TemporaryDirectory() as place:
        return subprocess.run([SCRIPT, *words], cwd=place, capture_output=True, text=True, check=False, **more)


def stored(path):
    """The rows of a terms.csv by term."""
    with path.open(newline="") as file:
        return {row["term"]: row for row in csv.DictReader(file)}


def result(path):
    """The time to the end in the result of a run."""
    lines = path.read_text().splitlines()
    header = next(line for line in lines if line.startswith("record,") and ",metric," in line)
    rows = csv.DictReader([header, *(line for line in lines if line.startswith("startup-ab,"))])
    return next(row for row in rows if row["metric"] == "total")


@unittest.skipUnless(all(map(shutil.which, ("gcc", "sqlite3"))) and Path("/usr/include/sqlite3.h").exists(),
                     "gcc, sqlite3 or libsqlite3-dev is missing")
class Terms(binfmt.NothingIsLeft):
    FOLDERS = "cowitness-terms-"

    def test_the_sum_is_that_of_the_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(*SHORT, "-o", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            terms = stored(Path(folder, "terms.csv"))
            runs = [path for path in Path(folder).iterdir() if path.name != "terms.csv"]
            # The terms and their controls, then three terms of three images and of three schemas.
            self.assertEqual(len(runs), 5 + 6 + 9 + 9)
            # All looked up by hand in the runs' own results.
            results = {name: result(Path(folder, f"{name}-0.csv"))
                       for name in ("dispatch", "link", "open", "schema", "copy")}
        for name, row in results.items():
            for column, of_run in (("us", "difference_ns"), ("low_us", "low_ns"), ("high_us", "high_ns")):
                self.assertEqual(round(1000 * float(terms[name][column])), int(row[of_run]), name)
        whole = int(results["dispatch"]["a_median_ns"])
        parts = [int(row["difference_ns"]) for row in results.values()] + [int(results["link"]["b_median_ns"])]
        self.assertEqual(round(1000 * float(terms["residual"]["us"])), whole - sum(parts))
        self.assertEqual(terms["residual"]["low_us"], "")
        self.assertIn("| residual |", done.stdout)
        self.assertIn("R2", done.stdout)

    def test_without_root_the_dispatch_is_skipped_and_the_rest_is_not(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            tree = Path(folder, "tree")
            for name in ("scripts", "tests/startup"):
                shutil.copytree(ROOT / name, tree / name)
            shutil.copy(ROOT / "target/release/cowitness", tree)
            done = subprocess.run([tree / "scripts/startup-terms", *SHORT, "--appliance", tree / "cowitness"],
                                  cwd=folder, capture_output=True, text=True, check=False, user=65534, group=65534,
                                  env={"PATH": "/usr/bin:/bin"}, extra_groups=[])
            self.assertEqual(done.returncode, 0, done.stderr)
            terms = stored(Path(folder, "terms.csv"))
        self.assertIn("the dispatch is skipped: registering with binfmt_misc takes root", done.stderr)
        self.assertEqual(terms["dispatch"]["us"], "")
        self.assertEqual(terms["dispatch"]["status"], "skipped:registering with binfmt_misc takes root")
        parts = ("link", "open", "schema", "copy", "program", "residual")
        self.assertTrue(all(terms[part]["status"] == "ok" and terms[part]["us"] for part in parts))

    @unittest.skipUnless(os.geteuid() == 0, "registering takes root")
    def test_that_another_run_is_under_way_is_the_reason(self):
        with socket.socket(socket.AF_UNIX) as lock, tempfile.TemporaryDirectory() as folder:
            lock.bind("\0cowitness-binfmt-misc")
            # The same image in both lists.
            done = run("--rounds", "6", "--repetitions", "1", "--images", "64,16", "--schemas", "8,2", "-o", folder)
            terms = stored(Path(folder, "terms.csv"))
            runs = [path for path in Path(folder).iterdir() if path.name != "terms.csv"]
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(terms["dispatch"]["status"], r"\Askipped:another run .* is under way: wait for its end\Z")
        self.assertEqual(len(runs), 5 + 6 + 6 + 6)
        slope = terms["open slope over bytes of DDL"]
        self.assertEqual((slope["us"], slope["unit"]), ("", "us for each of bytes of DDL"))
        self.assertTrue(slope["value"])

    def test_what_cannot_be_written_is_said_before_anything_is_run(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "terms.csv").mkdir()
            done = run(*SHORT, "-o", folder)
            self.assertEqual([path.name for path in Path(folder).iterdir()], ["terms.csv"])
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"\Astartup-terms: error: .*/terms.csv: Is a directory; ")

    def test_a_tool_that_is_missing_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            for tool in ("python3", "mount", "umount", "env", "gcc"):
                os.symlink(shutil.which(tool), Path(folder, tool))
            done = run(*SHORT, env={"PATH": folder})
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("no sqlite3 here: apt-get install sqlite3", done.stderr)

    def test_after_a_signal(self):
        self.assertEqual(binfmt.interrupted(SCRIPT, signal.SIGINT), 128 + signal.SIGINT)


class Words(unittest.TestCase):
    def test_numbers_that_make_no_line_are_refused(self):
        for words, want in (("--images 64", "'64' must be at least 2 different numbers"),
                            ("--schemas 0,-3", "'-3' must be a whole number from 0 to 10000"),
                            ("--repetitions 0", "'0' must be a whole number from 1 to 1000"),
                            ("--rounds 5", "'5' must be a whole number from 6 to 100000")):
            done = run(*words.split())
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"argument {words.split()[0]}: {want}", done.stderr)


if __name__ == "__main__":
    unittest.main()
