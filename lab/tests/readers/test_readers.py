"""The CSV opens as it is in other people's programs, by the one-liners that README gives.

    pip install -r lab/tests/readers/requirements.txt
    python3 -m unittest discover lab/tests/readers

COWITNESS is the appliance (target/release/cowitness). Its own rows are read, and those of a
label with everything in it that CSV can get wrong.
"""

import csv
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import duckdb
import pandas
import polars

ROOT = Path(__file__).resolve().parents[3]
APPLIANCE = os.environ.get("COWITNESS", ROOT / "target/release/cowitness")
LABEL = 'a, "b" # c; ü'
BENCH = ["bench", "-q", "--mb=1", "--block=4K", "--repeats=2", "--warm=1", "--label", LABEL]
COLUMNS = 40
# How README takes one record out of a file of several streams.
TAKE = ["awk", "-F,", "-v"]
PICK = "/^record,/ { h = $0 } $1 == r { if (!n++) print h; print }"
# Commands that write two streams, with the records of both.
TWO = {
    ("startup", "ab", "-q", "--rounds=2", "--label", LABEL, "--a", "/bin/true", "--", "--b", "/bin/true"):
        ("startup", "startup-ab"),
    ("sharing", "-q", "--n=1,2", "--reps=1", "--arm=elf", "--label", LABEL):
        ("sharing", "sharing-fit"),
}


class Readers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.file = Path(cls.directory.name, "bench.csv")
        with cls.file.open("wb") as out:
            # 3 may be said where evidence or privileges are missing; the rows are there.
            done = subprocess.run([APPLIANCE, *BENCH], stdout=out, check=False)
        assert done.returncode in (0, 3), done
        lines = cls.file.read_text().splitlines(keepends=True)
        # Python's own reader, told by hand what a comment is.
        cls.rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
        assert len(cls.rows) == 12, len(cls.rows)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def check(self, names, labels, cold_ns):
        self.assertEqual(len(names), COLUMNS)
        self.assertEqual(list(names), list(self.rows[0]))
        self.assertEqual(list(labels), [LABEL] * len(self.rows))
        self.assertEqual(list(cold_ns), [int(row["cold_ns"]) for row in self.rows])

    def test_pandas(self):
        read = pandas.read_csv(self.file, comment="#")
        # pandas cuts at every comment character that is not quoted; ours is.
        self.check(read.columns, read["label"], read["cold_ns"])
        self.assertTrue(read["first_write_ns"].isna().all(), "what is unknown is not 0")

    def test_duckdb(self):
        read = duckdb.sql(f"select * from read_csv('{self.file}', comment='#')")
        rows = read.fetchall()
        column = read.columns.index
        self.check(read.columns, [row[column("label")] for row in rows],
                   [row[column("cold_ns")] for row in rows])
        self.assertEqual({row[column("first_write_ns")] for row in rows}, {None})

    def test_polars(self):
        read = polars.read_csv(self.file, comment_prefix="#")
        self.check(read.columns, read["label"], read["cold_ns"])
        self.assertEqual(read["first_write_ns"].null_count(), len(self.rows))

    def test_one_record_of_a_file_of_two_streams(self):
        readme = (ROOT / "README.md").read_text()
        self.assertIn(f"awk -F, -v r=sharing-fit '{PICK}' f.csv > fit.csv", readme)
        for words, records in TWO.items():
            both = Path(self.directory.name, "both.csv")
            with both.open("wb") as out:
                # 3: what others do on this machine leaves room for doubt; the rows are there.
                done = subprocess.run([APPLIANCE, *words], stdout=out, check=False)
            self.assertIn(done.returncode, (0, 3), words)
            lines = both.read_text().splitlines(keepends=True)
            for record in records:
                with self.subTest(record=record):
                    one = Path(self.directory.name, "one.csv")
                    with one.open("wb") as out:
                        subprocess.run([*TAKE, f"r={record}", PICK, both], stdout=out, check=True)
                    wanted = [line for line in lines if line.startswith(record + ",")]
                    self.check_record(one, wanted, lines)

    def check_record(self, one, wanted, lines):
        self.assertTrue(wanted)
        at = lines.index(wanted[0])
        header = [line for line in lines[:at] if line.startswith("record,")][-1]
        rows = list(csv.DictReader([header, *wanted]))
        read = pandas.read_csv(one, comment="#")
        duck = duckdb.sql(f"select * from read_csv('{one}', comment='#')")
        polar = polars.read_csv(one, comment_prefix="#")
        place = duck.columns.index("label")
        for names, labels in (
            (read.columns, read["label"]),
            (duck.columns, [row[place] for row in duck.fetchall()]),
            (polar.columns, polar["label"]),
        ):
            self.assertEqual(list(names), list(rows[0]))
            self.assertEqual(list(labels), [LABEL] * len(rows))

    @unittest.skipUnless(shutil.which("Rscript"), "there is no R: Debian's r-base-core has it")
    def test_r(self):
        # Each line of the answer is a question's: names, then the values of a column.
        asked = (
            'x <- read.csv(commandArgs(TRUE), comment.char="#", check.names=FALSE); write(names(x), "", 999, sep=","); '
            'for (name in c("label", "cold_ns", "first_write_ns")) write(x[[name]], "", 999, sep="\\t")'
        )
        done = subprocess.run(["Rscript", "--vanilla", "-e", asked, self.file], check=True,
                              capture_output=True, text=True, encoding="utf-8",
                              env=os.environ | {"LC_ALL": "C.UTF-8"})
        names, labels, cold, first = done.stdout.splitlines()
        self.check(names.split(","), labels.split("\t"), map(int, cold.split("\t")))
        self.assertEqual(set(first.split("\t")), {"NA"})


if __name__ == "__main__":
    unittest.main()
