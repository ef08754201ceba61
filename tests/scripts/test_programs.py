"""Every script that runs the appliance or the lab says in a line when it is not there."""

import subprocess
import unittest

from far import ROOT

SCRIPTS = [path for path in (ROOT / "scripts").iterdir() if path.is_file() and path.read_text().startswith("#!/usr/bin/env python3")]


class NotThere(unittest.TestCase):
    def refuses(self, option, build, count):
        taking = [path for path in SCRIPTS if f"add_{option}(" in path.read_text()]
        self.assertGreaterEqual(len(taking), count)
        for script in taking:
            for program in "/no/such", "/etc/passwd":
                with self.subTest(script=script.name, program=program):
                    done = subprocess.run([script, f"--{option}", program], cwd="/", capture_output=True, text=True, timeout=20)
                    self.assertEqual((done.returncode, done.stdout), (2, ""))
                    error = f"{script.name}: error: argument --{option}: {program} is not there, or not to be executed; `{build}` makes it"
                    self.assertEqual(done.stderr.splitlines()[-1], error)

    def test_the_appliance(self):
        self.refuses("appliance", "cargo build --release", 8)

    def test_the_lab(self):
        self.refuses("lab", "cargo build --release -p cowitness-lab", 2)


if __name__ == "__main__":
    unittest.main()
