"""scripts/closure-manifest: what it names, copies, and leaves behind."""

import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from far import ROOT, eventually

SCRIPT = ROOT / "scripts/closure-manifest"


def manifest(*words, stdout=subprocess.PIPE, cwd=None):
    return subprocess.run([SCRIPT, *map(str, words)], stdin=subprocess.DEVNULL, stdout=stdout, cwd=cwd,
                          stderr=subprocess.PIPE, text=True, timeout=120, check=False)


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

    def test_every_executable_that_is_no_root_is_told(self):
        programs = self.scratch / "programs"
        programs.mkdir()
        shutil.copy("/bin/ls", programs / "program")
        shutil.copy("/bin/ls", programs / "tab\tbed")
        shutil.copy("/bin/ls", os.fsencode(programs) + b"/\xff")
        (programs / "data").write_text("not executable\n")
        (programs / "gone").symlink_to("nowhere")
        script = programs / "script"
        script.write_text("#!/bin/sh\n")
        script.chmod(0o755)
        done = manifest(programs)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({line.split("\t")[0] for line in done.stdout.splitlines()}, {str(programs / "program")})
        told = done.stderr.replace(f"closure-manifest: skipped {programs}/", "").splitlines()
        self.assertEqual(told, [
            "gone: a link to nothing", "script: no ELF program", r"tab\tbed: no line can have its name",
            r"\udcff: no line can have its name", "closure-manifest: 1 roots"])

    @unittest.skipIf(os.geteuid() == 0, "skipped:root reads everything")
    def test_what_cannot_be_read_is_told(self):
        program = self.scratch / "program"
        shutil.copy("/bin/ls", program)
        program.chmod(0o111)
        done = manifest(self.scratch)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"skipped {program}: cannot be read: Permission denied\n", done.stderr)

    @unittest.skipUnless(shutil.which("gcc"), "skipped:no gcc")
    def test_a_library_with_a_hostile_name_makes_no_line(self):
        directory = self.scratch / "tab\tbed"
        directory.mkdir()
        library, program = directory / "libf.so", self.scratch / "program"
        for text, words in (("int f(void) { return 0; }", ["-shared", "-fPIC", "-o", library]),
                            ("int f(void); int main(void) { return f(); }", [library, "-o", program])):
            subprocess.run(["gcc", "-xc", "-", "-xnone", *words], input=text, text=True, check=True)
        done = manifest(program)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("which no line can name\n", done.stderr)

    @unittest.skipUnless(shutil.which("gcc"), "skipped:no gcc")
    def test_a_warning_of_the_loader_is_no_path(self):
        library, program = self.scratch / "libv.so", self.scratch / "program"
        versions = self.scratch / "versions"
        versions.write_text("V1 { f; };")
        source = "int f(void) { return 0; }"
        for text, words in (
                (source, ["-shared", "-fPIC", f"-Wl,--version-script={versions}", "-o", library]),
                ("int f(void); int main(void) { return f(); }", [library, "-o", program]),
                (source, ["-shared", "-fPIC", "-o", library])):
            subprocess.run(["gcc", "-xc", "-", "-xnone", *words], input=text, text=True, check=True)
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
        self.assertIn("no version information available", said.stdout + said.stderr)
        done = manifest(program)
        self.assertEqual(done.returncode, 0, done.stderr)
        objects = [line.split("\t")[1] for line in done.stdout.splitlines()]
        self.assertIn(str(library), objects)
        self.assertTrue(all(os.path.isfile(path) for path in objects), objects)

    @unittest.skipUnless(shutil.which("gcc"), "skipped:no gcc")
    def test_a_library_with_any_path_is_in_the_closure(self):
        """By its path as it was linked, by a relative search path, below a name with an arrow."""
        arrow = self.scratch / "a => b"
        arrow.mkdir()
        (self.scratch / "lib").mkdir()
        (self.scratch / "f.c").write_text("int f(void) { return 0; }\n")
        (self.scratch / "main.c").write_text("int f(void);\nint main(void) { return f(); }\n")

        def gcc(*words):
            subprocess.run(["gcc", *map(str, words)], cwd=self.scratch, check=True)

        for library, link in (("./libx.so", ["./libx.so"]),
                              ("lib/liby.so", ["-Llib", "-ly", "-Wl,-rpath,lib"]),
                              (arrow / "libz.so", [f"-L{arrow}", "-lz", f"-Wl,-rpath,{arrow}"])):
            with self.subTest(library=library):
                gcc("-shared", "-fPIC", "f.c", "-o", library)
                gcc("main.c", *link, "-o", "program")
                done = manifest("program", cwd=self.scratch)
                self.assertEqual(done.returncode, 0, done.stderr)
                objects = [line.split("\t")[1] for line in done.stdout.splitlines()]
                self.assertIn(str((self.scratch / library).resolve()), objects)

    def test_what_cannot_be_stripped_is_told_and_stops_nothing(self):
        program = self.scratch / "headless"
        shutil.copy("/bin/ls", program)
        with program.open("r+b") as file:
            # e_shoff; e_shnum and e_shstrndx (elf(5)).
            for at, length in ((0x28, 8), (0x3c, 4)):
                file.seek(at)
                file.write(bytes(length))
        copies = self.scratch / "copies"
        done = manifest("--scratch", copies, program, "/bin/cat")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({line.split("\t")[0] for line in done.stdout.splitlines()}, {str(Path("/bin/cat").resolve())})
        self.assertIn(f"closure-manifest: skipped {program}: ", done.stderr)
        objects = {line.split("\t")[1] for line in done.stdout.splitlines()}
        self.assertEqual({str(path) for path in copies.rglob("*") if path.is_file()}, objects)

    def test_copies_are_for_their_owner_alone(self):
        copies = self.scratch / "copies"
        self.assertEqual(manifest("--scratch", copies, "/bin/ls").returncode, 0)
        self.assertEqual(copies.stat().st_mode & 0o777, 0o700)

    def test_an_output_that_cannot_be_written_to_is_an_error(self):
        for how in ('"$@" >&-', '"$@" 1</etc/passwd'):
            done = subprocess.run(["sh", "-c", how, "sh", SCRIPT, "/bin/ls"], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(done.returncode, 1, how)
            self.assertRegex(done.stderr, r"\Aclosure-manifest: error: cannot write to standard output: .*\n\Z")

    def test_a_signal_that_is_ignored_ends_nothing(self):
        copies = self.scratch / "copies"
        child = subprocess.Popen(["env", "--ignore-signal=HUP", SCRIPT, "--scratch", copies, "--count", "5", "/usr/bin"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(child.kill)
        eventually("copies", lambda: any(copies.glob("usr/bin/*")))
        child.send_signal(signal.SIGHUP)
        out, said = child.communicate(timeout=120)
        self.assertEqual(child.returncode, 0, said)
        self.assertEqual(len({line.split(b"\t")[0] for line in out.splitlines()}), 5)

    def test_numbers_that_are_none_are_refused(self):
        for words in (["--count", "0"], ["--count", "-1"], ["--count", "x"], ["--seed", "-1"], ["--seed", "1.5"]):
            done = manifest(*words, "/bin/ls")
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertRegex(done.stderr, r"error: argument --\w+: '.*' is no number from [01] on\n\Z")

    def test_a_full_output_removes_the_copies_and_what_was_made_above(self):
        mine = self.scratch / "mine"
        mine.mkdir()
        with open("/dev/full", "wb") as full:
            done = manifest("--scratch", mine / "a/b/copies", "/bin/ls", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: cannot write to standard output: No space left on device\n", done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(list(mine.iterdir()), [])

    def test_two_signals_remove_the_copies(self):
        copies = self.scratch / "copies"
        child = subprocess.Popen(["env", "--default-signal", SCRIPT, "--scratch", copies, "/usr/bin"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        eventually("copies", lambda: len(list(copies.glob("usr/bin/*"))) > 2)
        child.send_signal(signal.SIGINT)
        while child.poll() is None:
            child.send_signal(signal.SIGTERM)
        self.assertIn(child.wait(60), [128 + signal.SIGINT, 128 + signal.SIGTERM])
        self.assertFalse(copies.exists())


if __name__ == "__main__":
    unittest.main()
