"""scripts/n-family: the family it builds, and that it refuses what is none."""

import platform
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from far import ROOT, eventually

SCRIPT = ROOT / "scripts/n-family"


def n_family(*words, stdout=subprocess.PIPE):
    return subprocess.run([SCRIPT, *map(str, words)], stdin=subprocess.DEVNULL, stdout=stdout,
                          stderr=subprocess.PIPE, text=True, timeout=300, check=False)


@unittest.skipUnless(shutil.which("gcc") and shutil.which("readelf"), "skipped:no gcc or readelf")
class Families(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)

    def test_one_is_sound_and_its_probes_grow_with_n_alone(self):
        done = n_family("--self-check", "--symbols", 4)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        text = lines[0].split(" ", 2)[1]
        # 128 functions: the program is asked for each, then half of the objects and one more.
        self.assertEqual(lines[:6], [
            f"n={n}: {text} bytes of text, 128 functions, each bound once, {128 + 64 * (n + 1)} probes"
            for n in (1, 2, 4, 8, 16, 32)])
        if platform.machine() == "x86_64":
            found = [re.fullmatch(r"n=(\d+): the loader's cycles in 25 starts: (\d+) to (\d+), median (\d+), of (\d+) "
                                  r"around the start; (\d+) below a fifth of the median", line) for line in lines[6:]]
            self.assertEqual([one[1] for one in found], ["1", "32"])
            for one in found:
                least, most, middle, around = (int(one[index]) for index in range(2, 6))
                self.assertTrue(0 < least <= middle <= most and middle < around, one[0])

    def test_a_place_without_room_and_a_closed_output_are_said_in_a_line(self):
        family = self.scratch / "family"
        for words, want in (("ulimit -f 8; exec", "cannot go on: File too large; look after room, limits"),
                            ('"$0" --symbols 1 "$1" >&- #', "cannot write to standard output: it is closed")):
            done = subprocess.run(["sh", "-c", f'{words} "$0" "$1"', SCRIPT, family], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"n-family: error: {want}", done.stderr)
            self.assertNotIn("Traceback", done.stderr)
            self.assertFalse(family.exists())

    def test_the_words_for_startup_slope_are_programs_that_run(self):
        done = n_family(self.scratch / "family", "--symbols", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        words = dict(word.split("=", 1) for word in done.stdout.split())
        self.assertEqual(list(words), ["1", "2", "4", "8", "16", "32", "static"])
        for program in words.values():
            self.assertEqual(subprocess.run([program], check=False).returncode, 0)
            self.assertEqual(subprocess.run([program, "check"], check=False).returncode, 0)

    def test_a_compiler_that_adds_something_is_found_out(self):
        extra = self.scratch / "extra.c"
        extra.write_text("int extra(void) { return 1; }\n")
        compiler = self.scratch / "cc"
        compiler.write_text(f'#!/bin/sh\ncase " $* " in *" -shared "*) exec gcc "$@" {extra} ;; esac\nexec gcc "$@"\n')
        compiler.chmod(0o755)
        done = n_family(self.scratch / "family", "--symbols", 1, "--cc", compiler)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"\An-family: error: n=1: bytes of \.text: \d+ instead of \d+; --cc names another compiler\n\Z")
        self.assertFalse((self.scratch / "family").exists())

    def test_what_it_did_not_make_stays(self):
        mine = self.scratch / "mine"
        mine.mkdir()
        (mine / "file").write_text("kept\n")
        done = n_family(mine)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, f"n-family: error: {mine} exists already; name a directory that does not\n")
        with open("/dev/full", "wb") as full:
            done = n_family(mine / "a/family", "--symbols", 1, stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: cannot write to standard output: No space left on device\n", done.stderr)
        self.assertEqual([path.name for path in mine.iterdir()], ["file"])

    def test_two_signals_remove_the_family(self):
        family = self.scratch / "family"
        child = subprocess.Popen(["env", "--default-signal", SCRIPT, family], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        eventually("a unit", lambda: any(family.glob("units/*.o")))
        child.send_signal(signal.SIGINT)
        while child.poll() is None:
            child.send_signal(signal.SIGTERM)
        self.assertIn(child.wait(60), [128 + signal.SIGINT, 128 + signal.SIGTERM])
        self.assertFalse(family.exists())


class Hosts(unittest.TestCase):
    @unittest.skipUnless(shutil.which("gcc") and shutil.which("readelf"), "skipped:no gcc or readelf")
    def test_a_name_that_a_shell_would_split_is_refused(self):
        for name in ("a b", "a*", "a$b"):
            with tempfile.TemporaryDirectory() as scratch:
                done = n_family(Path(scratch, name))
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("would need quotes in a shell", done.stderr)
                self.assertEqual(list(Path(scratch).iterdir()), [])

    def test_a_missing_compiler_is_said_with_what_to_install(self):
        done = n_family("--self-check", "--cc", "no-such-compiler")
        self.assertEqual((done.returncode, done.stdout), (77, ""))
        self.assertRegex(done.stderr, r"\Askipped:no-such-compiler.* missing; apt-get install gcc binutils\n\Z")


if __name__ == "__main__":
    unittest.main()
