"""scripts/*: --help says what a script does and with what it ends, and each option of argparse what
it means."""

import re
import subprocess
import unittest

from far import ROOT

# It is handed to a shell of another machine, and has no options.
OTHERS = {"remote-agent"}


def scripts():
    for path in sorted((ROOT / "scripts").iterdir()):
        if path.is_file() and path.read_bytes().startswith(b"#!") and path.name not in OTHERS:
            yield path


class Help(unittest.TestCase):
    def test_every_script_says_what_it_does(self):
        for path in scripts():
            with self.subTest(path.name):
                done = subprocess.run([path, "--help"], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True,
                                      text=True, timeout=60, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn(path.name, done.stdout)

    def test_options_of_these_have_words_and_defaults(self):
        for name in ("binfmt-experiment", "startup-terms", "n-family", "cost-by-size", "real-servers", "compare-null",
                     "hybrid-speed", "survey-speed"):
            said = subprocess.run([ROOT / "scripts" / name, "--help"], capture_output=True, text=True, check=True).stdout
            options = re.split(r"\n  (?=-)", said.split("\noptions:")[1])[1:]
            for option in options:
                with self.subTest(f"{name} {option}"):
                    words, *meaning = re.split(r"\s{2,}", option, maxsplit=1)
                    self.assertTrue(meaning and len(meaning[0]) > 10)
                    if words.split()[0] not in ("-h,", "--self-check", "--cpu-time"):
                        self.assertIn("(default:", " ".join(option.split()))
            self.assertRegex(said, r"[Ee]xit status")


if __name__ == "__main__":
    unittest.main()
