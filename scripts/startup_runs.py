"""What scripts/binfmt-experiment and scripts/startup-terms share: runs of `cowitness startup
ab`, registrations with binfmt_misc that are always undone, and what signals do to both."""

import csv
import io
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

BINFMT = Path("/proc/sys/fs/binfmt_misc")
# Every registration of ours begins with it.
PREFIX = "cowitness-"
NAME = Path(sys.argv[0]).name


class Stopped(Exception):
    """A signal came."""


class Refused(Exception):
    """It is not possible here; says what would make it so."""


class Failed(Exception):
    """A program did something else than it should."""


def script(main):
    """Runs main and gives the exit status; signals unwind it, once."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop(number, _frame):
        # A second one must not cut the tidying short.
        for other in signals:
            signal.signal(other, signal.SIG_IGN)
        raise Stopped(number)

    for number in signals:
        signal.signal(number, stop)
    try:
        return main()
    except Stopped as stopped:
        return 128 + stopped.args[0]
    except (Refused, Failed) as error:
        print(f"{NAME}: error: {error}", file=sys.stderr)
        return 3 if isinstance(error, Refused) else 1


@contextmanager
def binfmt_misc():
    """binfmt_misc mounted for as long as this lasts, and nothing of ours left in it."""
    if os.geteuid() != 0:
        raise Refused("registering with binfmt_misc takes root")
    was_there = (BINFMT / "register").exists()
    try:
        if not was_there:
            mount()
        yield
    finally:
        # Also what a signal kept from being noted.
        for entry in BINFMT.glob(f"{PREFIX}*"):
            entry.write_text("-1")
        if not was_there and (BINFMT / "register").exists():
            subprocess.run(["umount", BINFMT], check=True)


def mount():
    if "binfmt_misc" not in Path("/proc/filesystems").read_text():
        subprocess.run(["modprobe", "binfmt_misc"], check=False, capture_output=True)
    done = subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", BINFMT], check=False,
                          capture_output=True, text=True)
    if done.returncode:
        raise Refused("this kernel has no binfmt_misc (CONFIG_BINFMT_MISC, or its module: "
                      f"modprobe binfmt_misc), or may not mount it: {done.stderr.strip()}")


@contextmanager
def registered(name, magic, interpreter, flags="", offset=""):
    """The file formats that begin with `magic` (at `offset`) are run by `interpreter`.
    Documentation/admin-guide/binfmt-misc.rst."""
    text = "".join(f"\\x{byte:02x}" for byte in magic)
    try:
        (BINFMT / "register").write_text(f":{PREFIX}{name}:M:{offset}:{text}::{interpreter}:{flags}")
    except OSError as error:
        raise Refused(f"cannot register with binfmt_misc: {error.strerror}") from error
    try:
        yield
    finally:
        (BINFMT / f"{PREFIX}{name}").write_text("-1")


def streams(text):
    """The rows of each stream of a file that must be whole."""
    parts = text.split("#cowitness 1\n")[1:]
    if len(parts) != 2 or not all("\n#end rows=" in part for part in parts):
        raise Failed("the appliance's output is not whole")
    bodies = ("".join(line for line in part.splitlines(True) if line[0] != "#") for part in parts)
    return [list(csv.DictReader(io.StringIO(body))) for body in bodies]


class Runner:
    """Runs `startup ab`; keeps each CSV in `folder`, if there is one."""

    def __init__(self, appliance, rounds, folder):
        self.appliance, self.rounds, self.folder = appliance, rounds, folder
        if folder:
            folder.mkdir(parents=True, exist_ok=True)

    def ab(self, label, seed, a, b, dispatch="direct"):
        """The rows of the result by metric. `dispatch` is how arm a must be reached."""
        words = [self.appliance, "startup", "ab", "-q", f"--rounds={self.rounds}", f"--seed={seed}",
                 f"--label={label}", "--a", *a, "--", "--b", *b]
        # A signal at the terminal is this script's to deal with.
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False, process_group=0)
        if done.returncode:
            raise Failed(f"{label}: exit status {done.returncode}")
        if self.folder:
            (self.folder / f"{label.replace(' ', '-').replace(',', '')}-{seed}.csv").write_text(done.stdout)
        execs, results = streams(done.stdout)
        ways = {row["dispatch"] for row in execs if row["arm"] == "a"}
        if ways != {dispatch}:
            raise Failed(f"{label}: arm a was reached by {ways}")
        return {row["metric"]: row for row in results}
