"""scripts/remote-run against a real sshd: what it brings back, and that nothing is left there."""

import os
import re
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from far import ENDLESS_BENCH, ROOT, SMALL_BENCH, Case, FarMachine, eventually

WHOLE = "#cowitness 1\n#rows=2\nrecord,n\npair,1\npair,2\n#end rows=2 crc32=00000000\n"


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


class NoisyStartFiles(OnFarMachine):
    def setUp(self):
        noise = Path(self.enter(tempfile.TemporaryDirectory())) / "noise"
        noise.write_text("echo Welcome to this machine; echo\n")
        # What a non-interactive bash reads first, and sh from it nothing.
        self.environment = {"BASH_ENV": noise}
        super().setUp()

    def test_noise_is_no_part_of_the_output(self):
        if not os.environ.get("SHELL", "").endswith("bash"):
            self.skipTest("the login shell here is not bash")
        self.assertEqual(self.far.run("--version").stdout.split()[0], "cowitness")


class Keeping(OnFarMachine):
    def keep(self, output, end=""):
        kept = self.here / "far.csv"
        kept.write_text("older\n")
        script = f"cat <<'END'\n{output}END\n{end}"
        done = self.far.run(options=["-o", kept, *self.executable(script)])
        partial = self.here / "far.csv.partial"
        return done, kept.read_text(), partial.read_text() if partial.exists() else None

    def test_whole_output_replaces_an_older_file(self):
        for output, end, status in [
            (WHOLE, "", 0),
            (WHOLE, "exit 3", 3),
            ("#cowitness 1\n#key=value\n", "", 0),
            ("ok clocks\n1 passed, 1 failed, 0 skipped\n", "exit 4", 4),
        ]:
            done, kept, partial = self.keep(output, end)
            self.assertEqual((done.returncode, kept, partial), (status, output, None), done.stderr)

    def test_what_is_not_whole_stays_partial(self):
        cut = WHOLE.splitlines(keepends=True)
        for output, end, status in [
            ("".join(cut[:-1]), "", 125),
            ("".join(cut[:-2] + cut[-1:]), "", 125),
            ("".join(cut[:-1]), "exit 1", 1),
            (WHOLE + "more\n", "", 125),
            (WHOLE.rstrip("\n").removesuffix("2 crc32=00000000") + "\n", "", 125),
            ("#cowitness 1\n", "exit 1", 1),
        ]:
            done, kept, partial = self.keep(output, end)
            self.assertEqual((done.returncode, kept, partial), (status, "older\n", output))
            self.assertRegex(done.stderr, r"error: far: the output is not whole; what came is in .*partial\n$")

    def test_no_output_is_an_error(self):
        done, kept, partial = self.keep("")
        self.assertEqual((done.returncode, kept, partial), (125, "older\n", None))
        self.assertRegex(done.stderr, "error: far: no output\n$")


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
        self.assert_ends(near, 125, "error: the connection to far broke: .*\n$")

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
        eventually("far machine is clean", self.far.is_clean, 10)

    def test_an_appliance_that_ignores_sigterm(self):
        done = self.far.run(options=["--timeout", "2", *self.executable("trap '' TERM; while :; do sleep 1; done")])
        self.assertEqual(done.returncode, 124, done.stderr)
        eventually("far machine is clean", self.far.is_clean, 15)


if __name__ == "__main__":
    unittest.main()
