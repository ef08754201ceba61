"""scripts/closure-manifest: what it names, copies, and leaves behind."""

import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from far import ROOT, eventually

SCRIPT = ROOT / "scripts/closure-manifest"


def manifest(*words):
    return subprocess.run([SCRIPT, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120, check=False)


@unittest.skipUnless(shutil.which("ldd") and shutil.which("strip"), "skipped:no ldd or strip")
class Manifests(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)

    def test_a_closure_is_the_program_its_libraries_and_the_loader(self):
        program = Path("/bin/ls").resolve()
        done = manifest("/bin/ls")
        self.assertEqual((done.returncode, done.stderr), (0, "closure-manifest: 1 roots\n"))
        lines = [line.split("\t") for line in done.stdout.splitlines()]
        self.assertEqual({root for root, _ in lines}, {str(program)})
        objects = [Path(path) for _, path in lines]
        self.assertEqual(objects[0], program)
        self.assertEqual(len(objects), len(set(objects)))
        names = " ".join(path.name for path in objects)
        self.assertRegex(names, r"libc\.so\.6")
        self.assertRegex(names, r"ld-linux-")
        self.assertTrue(all(path.is_file() and not path.is_symlink() for path in objects))

    def test_copies_are_stripped_and_once_each(self):
        copies = self.scratch / "copies"
        done = manifest("--scratch", copies, "/bin/ls", "/bin/cat")
        self.assertEqual(done.returncode, 0, done.stderr)
        objects = [line.split("\t")[1] for line in done.stdout.splitlines()]
        found = {str(path) for path in copies.rglob("*") if path.is_file()}
        self.assertEqual(set(objects), found)
        self.assertGreater(len(objects), len(found))
        for path in found:
            sections = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
            self.assertNotIn(".symtab", sections)
        again = manifest("--scratch", copies, "/bin/ls")
        self.assertEqual(again.returncode, 2)
        self.assertTrue(copies.is_dir())

    def test_what_has_no_closure_is_told(self):
        done = manifest(__file__)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"is no ELF program that can be run\n\Z")
        few = manifest("--scratch", self.scratch / "copies", "--count", 3, "/bin/ls")
        self.assertEqual((few.returncode, few.stdout), (1, ""))
        self.assertIn("only 1 of 3 programs are there", few.stderr)
        self.assertFalse((self.scratch / "copies").exists())

    def test_a_signal_removes_the_copies(self):
        copies = self.scratch / "copies"
        child = subprocess.Popen([SCRIPT, "--scratch", copies, "/usr/bin"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        eventually("a copy", lambda: any(copies.glob("usr/bin/*")))
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(60), 128 + signal.SIGINT)
        self.assertFalse(copies.exists())


if __name__ == "__main__":
    unittest.main()
