"""scripts/remote-run against a real sshd: what it brings back, and that nothing is left there."""

import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest
import zlib
from pathlib import Path

from far import ENDLESS_BENCH, ROOT, SMALL_BENCH, Case, FarMachine, eventually

BODY = "record,n\npair,1\npair,2\n"
CRC = f"{zlib.crc32(BODY.encode()):08x}"
WHOLE = f"#cowitness 1\n#rows=2\n{BODY}#end rows=2 crc32={CRC}\n"
ENVIRONMENT = "#cowitness 1\n#key=value\n"
TESTED = "ok clocks\nfail fork: it is not here\n1 passed, 1 failed, 0 skipped\n"


class OnFarMachine(Case):
    environment = {}

    def setUp(self):
        self.far = self.enter(FarMachine(environment=self.environment))
        self.here = Path(self.enter(tempfile.TemporaryDirectory()))

    def executable(self, text):
        """A program to send in the appliance's place."""
        path = self.here / "executable"
        path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit\n{text}\n')
        path.chmod(0o755)
        return ["--appliance", path]

    def assert_one_line(self, done, status, pattern):
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertRegex(done.stderr, rf"\Ascripts/remote-run: error: {pattern}\n\Z")
        self.assertEqual(self.far.files(), [])
        eventually("no process is left", lambda: not self.far.processes(), 5)


class GoodRuns(OnFarMachine):
    def test_a_stream_arrives_whole_and_nothing_stays(self):
        done = self.far.run(*SMALL_BENCH)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "#cowitness 1")
        self.assertRegex(lines[-1], r"^#end rows=4 crc32=[0-9a-f]{8}$")
        self.assertEqual(sum(line.startswith("bench,") for line in lines), 4)
        self.assertIn("cowitness bench: Linux", done.stderr)
        self.assertTrue(self.far.is_clean(), self.far.files())

    def test_the_lab_accepts_what_was_kept(self):
        kept = self.here / "far.csv"
        done = self.far.run(*SMALL_BENCH, options=["-o", kept])
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertEqual(list(self.here.iterdir()), [kept])
        lab = ["cargo", "run", "--quiet", "--release", "--locked", "--package", "cowitness-lab", "--"]
        subprocess.run([*lab, "summary", kept], cwd=ROOT, check=True, capture_output=True)

    def test_words_arrive_as_they_are(self):
        label = "it's a \"test\" $HOME `id` \\ *"
        done = self.far.run("env", "--label", label)
        self.assertIn(f"#label={label}\n", done.stdout, done.stderr)

    def test_the_exit_status_is_the_appliances(self):
        done = self.far.run("bench", "--nope")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("unknown option '--nope'", done.stderr)
        for end, status in [("exit 3", 3), ("kill -9 $$", 137)]:
            self.assertEqual(self.far.run(options=self.executable(end)).returncode, status)
        self.assertTrue(self.far.is_clean())


class StartFiles(OnFarMachine):
    """What a login shell there does before our command: bash reads BASH_ENV, and sh does not."""

    def start_file(self, text):
        if not pwd.getpwuid(os.geteuid()).pw_shell.endswith("bash"):
            self.skipTest("the login shell here is not bash")
        file = Path(self.enter(tempfile.TemporaryDirectory())) / "start"
        file.write_text(text)
        self.far = self.enter(FarMachine(environment={"BASH_ENV": file}))

    def test_what_they_print_is_no_part_of_the_output(self):
        # The last has neither a line feed nor an end to its line.
        for noise in ("echo Welcome; echo", "printf 'no line feed'", "seq 20000", "printf 'cowitness-remote'"):
            with self.subTest(noise):
                self.start_file(noise)
                done = self.far.run("--version", options=["--timeout", 30])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout.split()[0], "cowitness")
                self.assertEqual(done.stdout.count("\n"), 1)

    def test_one_that_does_not_end_meets_the_timeout(self):
        # Waits; takes a line, a part, or all of what is sent; talks for ever.
        for text in ("sleep 1000", "read -r x", "head -c 1000", "cat", "yes"):
            with self.subTest(text):
                self.start_file(text)
                start = time.monotonic()
                done = self.far.run(options=["--timeout", 2])
                self.assertLess(time.monotonic() - start, 10)
                self.assertEqual((done.returncode, done.stdout), (124, ""), done.stderr)
                self.assertRegex(done.stderr, "error: far: not done after 2 s; nothing was run\n$")
                self.assertEqual(self.far.files(), [])

    def test_one_that_waits_does_not_keep_a_signal_away(self):
        self.start_file("sleep 1000")
        near = subprocess.Popen(self.far.command(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(near.communicate)
        self.addCleanup(near.kill)
        eventually("the start file runs", lambda: len(self.far.processes()) > 1)
        near.terminate()
        self.assertEqual(near.wait(5), 143)


class Whole(Case):
    """scripts/is-whole, which decides what is kept."""

    def check(self, output, *words):
        here = Path(self.enter(tempfile.TemporaryDirectory()))
        file = here / "output"
        file.write_bytes(output.encode())
        done = subprocess.run(
            [ROOT / "scripts/is-whole", file, *map(str, words)], cwd=here, capture_output=True, text=True, check=False
        )
        self.assertEqual(list(here.iterdir()), [file])
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_whole(self):
        for output, *words in [
            (WHOLE,), (WHOLE, 3), (WHOLE, 1), (ENVIRONMENT,), (TESTED, 4), ("any text\n",),
            (WHOLE + WHOLE, 0, 2), (WHOLE + WHOLE + TESTED, 4, 3), (ENVIRONMENT + WHOLE, 0, 2),
            (WHOLE + ENVIRONMENT + TESTED, 3, 3), (TESTED + WHOLE, 0, 2), (WHOLE + ENVIRONMENT, 0, 2),
        ]:
            self.assertEqual(self.check(output, *words), (0, ""), output)

    def test_not_whole(self):
        other_crc = WHOLE.replace(CRC, f"{int(CRC, 16) ^ 1:08x}")
        no_end = WHOLE[: WHOLE.index("#end")]
        for output, words, why in [
            ("", (), "0 of 1 results"),
            (WHOLE.replace("pair,1", "pair,7"), (), "the checksum of a stream is wrong"),
            (other_crc + WHOLE, (0, 2), "the checksum of a stream is wrong"),
            (WHOLE[:-2], (), "the checksum of a stream is wrong"),
            (WHOLE.replace("\n", "\r\n"), (), "line 1 has a carriage return"),
            (WHOLE.replace("pair,1\n", ""), (), "line 5 does not end a stream of 2 rows"),
            (WHOLE.replace("rows=2", "rows=3", 1), (), "line 6 does not end a stream of 3 rows"),
            (no_end, (), "the last stream has no end"),
            (no_end + WHOLE, (0, 2), "a stream before line 6 has no end"),
            (WHOLE + "more\n", (), "line 7 belongs to no result"),
            (WHOLE, (137, 2), "1 of 2 results"),
            (WHOLE + WHOLE, (0, 3), "2 of 3 results"),
            (TESTED.replace("ok clocks\n", ""), (), "line 2 counts other checks than there are"),
            (TESTED[: TESTED.index("1 passed")], (), "the last line of selftest is missing"),
            (ENVIRONMENT, (1,), "the run failed"),
            ("any text\n", (1,), "0 of 1 results"),
        ]:
            self.assertEqual(self.check(output, *words), (1, why + "\n"), output)


class Keeping(OnFarMachine):
    def keep(self, output, end="", words=()):
        kept = self.here / "far.csv"
        kept.write_text("older\n")
        script = f"cat <<'END'\n{output}END\n{end}"
        done = self.far.run(*words, options=["-o", kept, *self.executable(script)])
        partial = self.here / "far.csv.partial"
        return done, kept.read_text(), partial.read_text() if partial.exists() else None

    def test_whole_output_replaces_an_older_file(self):
        for output, end, status, words in [
            (WHOLE, "", 0, []),
            (WHOLE, "exit 3", 3, ["bench"]),
            (TESTED, "exit 4", 4, ["selftest"]),
            (WHOLE + WHOLE, "", 0, ["bench", "then", "probe"]),
        ]:
            done, kept, partial = self.keep(output, end, words)
            self.assertEqual((done.returncode, kept, partial), (status, output, None), done.stderr)

    def test_what_is_not_whole_stays_partial(self):
        cut = WHOLE[: WHOLE.index("#end")]
        for output, end, status, words in [
            (cut, "", 125, []),
            (cut, "exit 1", 1, []),
            (WHOLE.replace("pair,1", "pair,7"), "", 125, []),
            (WHOLE, "", 125, ["bench", "then", "probe"]),
        ]:
            done, kept, partial = self.keep(output, end, words)
            self.assertEqual((done.returncode, kept, partial), (status, "older\n", output))
            self.assertRegex(done.stderr, r"error: far: the output is not whole \(.+\); what came is in .*partial\n$")

    def test_no_output_is_an_error(self):
        done, kept, partial = self.keep("")
        self.assertEqual((done.returncode, kept, partial), (125, "older\n", None))
        self.assertRegex(done.stderr, "error: far: no output\n$")

    def test_a_link_stays_one(self):
        (self.here / "link").symlink_to("real")
        done = self.far.run("--version", options=["-o", self.here / "link"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.here / "link").is_symlink())
        self.assertTrue((self.here / "real").read_text().startswith("cowitness "))

    def test_what_is_no_file_is_written_through(self):
        if os.geteuid() == 0:
            device = self.here / "null"
            os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        else:
            device = Path("/dev/null")
        done = self.far.run("--version", options=["-o", device])
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertTrue(device.is_char_device())
        self.assertFalse(Path(f"{device}.partial").exists())
        done = self.far.run("--version", options=["-o", "/dev/stdout"])
        self.assertEqual((done.returncode, done.stdout.split()[0]), (0, "cowitness"), done.stderr)
        self.assertTrue(Path("/dev/stdout").is_symlink())

    def test_a_directory_is_refused(self):
        done = self.far.run(options=["-o", self.here])
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"\A[^\n]*error: --output .* is a directory; usage: [^\n]*\n\Z")
        self.assertEqual(list(self.here.iterdir()), [])

    def test_a_place_that_cannot_be_written(self):
        done = self.far.run(options=["-o", "/no/such/file"])
        self.assert_one_line(done, 125, "cannot write /no/such/file.partial: No such file or directory")

    def test_a_connection_that_fails_leaves_no_file(self):
        done = self.far.run(options=["--ssh", "-p1", "-o", self.here / "far.csv"])
        self.assertEqual(done.returncode, 125)
        self.assertEqual(list(self.here.iterdir()), [])


class Executable(OnFarMachine):
    def elf(self, machine):
        file = self.here / "elf"
        file.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\0" + machine.to_bytes(2, "little") + bytes(44))
        return ["--appliance", file]

    def test_one_of_the_other_cpu_is_not_sent(self):
        here = os.uname().machine
        other, number = ("aarch64", 183) if here == "x86_64" else ("x86_64", 62)
        done = self.far.run(options=self.elf(number))
        self.assert_one_line(
            done, 125, f"far is {here}, and .*/elf is for {other}; leave --appliance away, or name one for {here}"
        )

    def test_one_that_cannot_run_there_names_what_must(self):
        done = self.far.run(options=self.elf(243))
        self.assert_one_line(
            done, 125, f"far: cannot run a program from .*; it must be a program for Linux on {os.uname().machine}"
        )

    def stale(self, checkout):
        """An executable in the checkout's place for built ones that is not what would be built."""
        file = checkout / f"appliance/{os.uname().machine}/cowitness"
        if file.exists():
            self.addCleanup(file.write_bytes, file.read_bytes())
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\necho stale\n")
        file.chmod(0o755)

    def test_what_was_built_before_is_brought_up_to_date(self):
        self.stale(Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")))
        done = self.far.run("--version")
        self.assertEqual((done.returncode, done.stdout.split()[0], done.stderr), (0, "cowitness", ""))

    def test_what_was_built_before_is_named_if_it_cannot_be_brought_up_to_date(self):
        """A copy that asks for a Rust that nobody has."""
        checkout = self.here / "checkout"
        shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns("target", ".git", "out", "__pycache__"))
        manifest = checkout / "Cargo.toml"
        manifest.write_text(manifest.read_text().replace('rust-version = "1.95"', 'rust-version = "1.999"'))
        environment = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
        command = [checkout / "scripts/remote-run", *self.far.command("--version")[1:]]
        for has_one, status, output, pattern in [
            (False, 125, "", "error: no executable for .*: .* is not there\n$"),
            (True, 0, "stale\n", "cannot build it for .* now; sending what was built before, of 20[-0-9]+ [:0-9]+\n$"),
        ]:
            if has_one:
                self.stale(checkout / "target")
            done = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            self.assertEqual((done.returncode, done.stdout), (status, output), done.stderr)
            self.assertRegex(done.stderr, "no Rust 1.999 or newer")
            self.assertRegex(done.stderr, pattern)


class Refused(OnFarMachine):
    def test_nobody_listens(self):
        done = self.far.run(options=["--ssh", "-p1"])
        self.assert_one_line(done, 125, "ssh to far failed: .*port 1: Connection refused")

    def test_no_such_host(self):
        done = self.far.run(host="no-such-host.invalid")
        self.assert_one_line(done, 125, "ssh to no-such-host.invalid failed: .*ould not resolve.*")

    def test_a_key_that_it_does_not_know(self):
        strange = f"-oIdentityFile={self.far.directory}/strange_key"
        config = self.far.config.read_text().replace(f"IdentityFile {self.far.key}\n", "")
        self.far.config.write_text(config)
        done = self.far.run(options=["--ssh", strange])
        self.assert_one_line(done, 125, r"ssh to far failed: .*Permission denied \(publickey\)\.")

    def test_a_host_that_nobody_vouches_for(self):
        self.far.known_hosts.write_text("")
        self.assert_one_line(self.far.run(), 125, "ssh to far failed: Host key verification failed.")

    def test_no_such_directory_there(self):
        done = self.far.run(options=["--tmpdir", "/no/such"])
        self.assert_one_line(done, 125, r"far: cannot make a directory in /no/such \(.*No such file.*\)")

    def test_usage(self):
        for words in ([], ["--nope", "far"], ["--timeout", "soon", "far"], ["-o"]):
            done = subprocess.run(
                [ROOT / "scripts/remote-run", *words], capture_output=True, text=True, check=False
            )
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"\A.*error: .*usage: .*\n\Z")


class SmallDirectory(OnFarMachine):
    """A directory there that is full or noexec: a tmpfs, which only root can mount."""

    def mount(self, options):
        if os.geteuid() != 0:
            self.skipTest("only root can mount")
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", self.far.tmp], check=True)
        self.addCleanup(subprocess.run, ["umount", self.far.tmp], check=True)

    def test_no_space(self):
        self.mount("size=32k")
        done = self.far.run()
        self.assert_one_line(
            done, 125, r"far: cannot copy the appliance: 32768 of \d+ bytes written \(.*No space left on device\)"
        )

    def test_noexec(self):
        self.mount("noexec")
        done = self.far.run()
        self.assert_one_line(done, 125, "far: cannot run a program from .*Permission denied.*--tmpdir DIR")


class OtherMachine(OnFarMachine):
    """A `uname` of another CPU in front of the real one."""

    def setUp(self):
        shims = Path(self.enter(tempfile.TemporaryDirectory()))
        uname = shims / "uname"
        uname.write_text('#!/bin/sh\n[ "$1" = -m ] && echo riscv64 || echo Linux\n')
        uname.chmod(0o755)
        self.environment = {"PATH": f"{shims}:/usr/bin:/bin"}
        super().setUp()

    def test_a_cpu_without_an_appliance(self):
        self.assert_one_line(
            self.far.run(), 125, r"far: there is no appliance for Linux riscv64 \(Linux on x86_64 or aarch64\)"
        )


class Stopped(OnFarMachine):
    """Whatever ends a run midway, the far machine ends its part within seconds."""

    def start(self, *options):
        near = subprocess.Popen(
            self.far.command(*ENDLESS_BENCH, options=options), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )
        self.addCleanup(near.communicate)
        self.addCleanup(near.kill)
        # Rows are coming: the appliance has children by now.
        while not near.stdout.readline().startswith("bench,"):
            self.assertIsNone(near.poll(), "ended early")
        self.assertEqual(len(self.far.files()), 1)
        return near

    def child_of(self, near, name):
        found = subprocess.run(
            ["ps", "-o", "pid=,comm=", "--ppid", str(near.pid)], capture_output=True, text=True, check=True
        ).stdout
        return int(re.search(rf"(\d+) {name}$", found, re.MULTILINE)[1])

    def assert_ends(self, near, status, pattern):
        try:
            _, said = near.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            tree = ["ps", "-eo", "pid,ppid,stat,wchan:20,args", "--forest"]
            self.fail("still there:\n" + subprocess.run(tree, capture_output=True, text=True, check=True).stdout)
        self.assertEqual(near.returncode, status, said)
        self.assertRegex(said, pattern)
        eventually("far machine is clean", self.far.is_clean, 10)

    def test_ssh_is_killed(self):
        near = self.start()
        os.kill(self.child_of(near, "ssh"), signal.SIGKILL)
        self.assert_ends(near, 137, "far: ended by signal 9: the appliance there, or ssh here\n$")

    def test_the_far_end_of_the_connection_is_killed(self):
        near = self.start()
        sessions = self.far.sessions()
        self.assertTrue(sessions)
        for session in sessions:
            os.kill(session, signal.SIGKILL)
        self.assert_ends(near, 125, "error: the connection to far broke: Connection to .* closed by remote host.\n$")

    def test_ctrl_c(self):
        near = self.start()
        os.killpg(near.pid, signal.SIGINT)
        self.assert_ends(near, 130, r"\A\Z")

    def test_terminated(self):
        near = self.start()
        near.terminate()
        self.assert_ends(near, 143, r"\A\Z")

    def test_the_near_script_is_killed(self):
        near = self.start()
        near.kill()
        self.assert_ends(near, -signal.SIGKILL, "stopped by signal 15|^$")

    def test_timeout(self):
        kept = self.here / "far.csv"
        done = self.far.run(*ENDLESS_BENCH, options=["--timeout", "2", "-o", kept])
        self.assertEqual(done.returncode, 124, done.stderr)
        self.assertRegex(done.stderr, r"error: far: not done after 2 s; ended, what came is in .*partial\n$")
        self.assertFalse(kept.exists())
        # It returns when the far side has cleaned up, but for the `sleep 1` of its last wait.
        self.assertEqual(self.far.files(), [])
        eventually("no process is left", lambda: not self.far.processes(), 3)

    def test_an_appliance_that_ignores_sigterm(self):
        done = self.far.run(options=["--timeout", "2", *self.executable("trap '' TERM; while :; do sleep 1; done")])
        self.assertEqual(done.returncode, 124, done.stderr)
        self.assertEqual(self.far.files(), [])
        # The shell in the appliance's place leaves its `sleep 1`.
        eventually("far machine is clean", self.far.is_clean, 5)


if __name__ == "__main__":
    unittest.main()
