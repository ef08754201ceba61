"""scripts/startup-terms: its sum closes, its files are whole, nothing stays behind."""

import csv
import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

import binfmt
from far import ROOT

SCRIPT = ROOT / "scripts/startup-terms"
SHORT = ("--rounds", "6", "--repetitions", "1", "--images", "16,32,64", "--schemas", "0,2,4", "--image-kib", "64")


def run(*words, **more):
    return subprocess.run([SCRIPT, *words], cwd=ROOT, capture_output=True, text=True, check=False, **more)


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
        self.assertRegex(terms["dispatch"]["status"], r"\Askipped:")
        parts = ("link", "open", "schema", "copy", "program", "residual")
        self.assertTrue(all(terms[part]["status"] == "ok" and terms[part]["us"] for part in parts))

    def test_a_tool_that_is_missing_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            for tool in ("python3", "mount", "umount", "env", "gcc"):
                os.symlink(shutil.which(tool), Path(folder, tool))
            done = run(*SHORT, env={"PATH": folder})
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("no sqlite3 here: apt-get install sqlite3", done.stderr)

    def test_after_a_signal(self):
        self.assertEqual(binfmt.interrupted(SCRIPT, signal.SIGINT), 128 + signal.SIGINT)


if __name__ == "__main__":
    unittest.main()
