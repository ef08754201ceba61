"""A far machine for the tests: a real sshd on a loopback address, with keys, configuration
and a directory for temporary files of its own. Nothing of the user's ssh is read or written.
"""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REMOTE_RUN = ROOT / "scripts" / "remote-run"
# How long whatever must happen soon may take on a busy machine.
PATIENCE_S = 20
# A run that is whole within a second.
SMALL_BENCH = "bench --mb 1 --repeats 2 --block 64K --layout contiguous".split()
# A run that nobody waits for.
ENDLESS_BENCH = "bench --mb 32 --repeats 10000 -q".split()


class Case(unittest.TestCase):
    def enter(self, context):
        """Enters a context until the test ends (Python 3.10 has no enterContext)."""
        entered = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return entered


def eventually(what, condition, patience_s=PATIENCE_S):
    """Waits until `condition()` is true; fails naming `what` otherwise."""
    end = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {patience_s} s: {what}")
        time.sleep(0.05)


def sshd_program():
    found = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not found:
        raise AssertionError("no sshd here: install openssh-server")
    return found


def free_port(address):
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


class FarMachine:
    """A context: sshd runs within it. `environment` is what every session there gets."""

    def __init__(self, address="127.0.0.1", environment=None):
        self.address = address
        self.environment = dict(environment or {})
        self.directory = Path(tempfile.mkdtemp(prefix="cowitness-far."))
        self.tmp = self.directory / "tmp"
        self.tmp.mkdir()
        # In the environment of every process of a session: how strays are found.
        self.mark = f"COWITNESS_FAR={self.directory}"
        self.port = free_port(address)
        self.config = self.directory / "ssh_config"
        self.key = self.directory / "key"
        self.known_hosts = self.directory / "known_hosts"
        self.daemon = None

    def __enter__(self):
        try:
            self._make_keys()
            self._write_configurations()
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        if self.daemon:
            self.daemon.terminate()
            self.daemon.wait()
        shutil.rmtree(self.directory)

    def _make_keys(self):
        for key in (self.key, self.directory / "host_key", self.directory / "strange_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        host_key = (self.directory / "host_key.pub").read_text()
        self.known_hosts.write_text(f"[{self.address}]:{self.port} {host_key}")

    def _write_configurations(self):
        # Without PAM and without a look at the shadow file every account passes for locked.
        pam = "no" if os.geteuid() == 0 else "yes"
        environment = {"TMPDIR": self.tmp, **self.environment}
        words = [self.mark] + [f"{name}={value}" for name, value in environment.items()]
        (self.directory / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress {self.address}\n"
            f"HostKey {self.directory}/host_key\nAuthorizedKeysFile {self.key}.pub\n"
            f"PidFile none\nStrictModes no\nUsePAM {pam}\nPermitRootLogin yes\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "SetEnv " + " ".join(f'"{word}"' for word in words) + "\n"
        )
        self.config.write_text(
            f"Host far\nHostName {self.address}\nPort {self.port}\nUser {getpass.getuser()}\n"
            f"IdentityFile {self.key}\n"
            f"Host *\nIdentityAgent none\nIdentitiesOnly yes\nUserKnownHostsFile {self.known_hosts}\n"
            "GlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes\nBatchMode yes\n"
        )

    def _start(self):
        if os.geteuid() == 0:
            # The directory for privilege separation; its absence is a machine without sshd.
            Path("/run/sshd").mkdir(exist_ok=True)
        log = self.directory / "sshd.log"
        with log.open("w") as said:
            self.daemon = subprocess.Popen(
                [sshd_program(), "-D", "-e", "-f", self.directory / "sshd_config"],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            )

        def listens():
            if self.daemon.poll() is not None:
                raise AssertionError(f"sshd ended: {log.read_text()}")
            with socket.socket() as probe:
                return probe.connect_ex((self.address, self.port)) == 0

        eventually("sshd listens", listens)

    def processes(self):
        """Process ids of all sessions' processes that are alive (a zombie has no environment)."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if self.mark.encode() in environment:
                found.append(int(entry.name))
        return found

    def sessions(self):
        """Process ids of the sshd processes that serve connections."""
        found, parents = [], [self.daemon.pid]
        while parents:
            listed = subprocess.run(
                ["ps", "-o", "pid=,comm=", "--ppid", ",".join(map(str, parents))],
                capture_output=True, text=True, check=False,
            ).stdout.split("\n")
            parents = [int(line.split()[0]) for line in listed if "sshd" in line]
            found += parents
        return found

    def files(self):
        """What is in the far machine's directory for temporary files."""
        return sorted(self.tmp.iterdir())

    def is_clean(self):
        return not self.processes() and not self.files()

    def ssh_words(self):
        return ["--ssh", "-F", "--ssh", str(self.config)]

    def command(self, *words, host="far", options=()):
        return [str(REMOTE_RUN), *self.ssh_words(), *map(str, options), host, *map(str, words)]

    def run(self, *words, host="far", options=(), **more):
        """One run of remote-run: its exit status, standard output and standard error."""
        return subprocess.run(
            self.command(*words, host=host, options=options),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
            **more,
        )
