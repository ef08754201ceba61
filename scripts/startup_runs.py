"""What scripts/binfmt-experiment and scripts/startup-terms share: runs of `cowitness startup
ab`, registrations with binfmt_misc that are always undone, and what signals do to both."""

import csv
import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

BINFMT = Path("/proc/sys/fs/binfmt_misc")
# Every registration of these scripts begins with it, and of this run with the second.
OURS = "cowitness-"
PREFIX = f"{OURS}{os.getpid()}-"
NAME = Path(sys.argv[0]).name


class Stopped(Exception):
    """A signal came."""


class Refused(Exception):
    """It is not possible here; says what would make it so."""


class Failed(Exception):
    """A program did something else than it should."""


def script(main):
    """Runs main and gives the exit status; signals unwind it, once."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

    def stop(number, _frame):
        # A second one must not cut the tidying short.
        for other in signals:
            signal.signal(other, signal.SIG_IGN)
        raise Stopped(number)

    for number in signals:
        # What is ignored stays so (nohup(1)).
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)
    if sys.stdout is None:
        say("error", "standard output is closed: give it a file or a terminal")
        return 1
    try:
        status = main()
        sys.stdout.flush()
        return status
    except Stopped as stopped:
        return 128 + stopped.args[0]
    except (Refused, Failed) as error:
        say("error", error)
        return 3 if isinstance(error, Refused) else 1
    except OSError as error:
        # Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        what = error.filename or "cannot write (standard output, or a file that has no room)"
        say("error", f"{what}: {error.strerror}; look after room, limits (ulimit -f), permissions and "
                     "whoever reads the output")
        return 1


def say(kind, what):
    print(f"{NAME}: {kind}: {what}", file=sys.stderr, flush=True)


@contextmanager
def binfmt_misc():
    """binfmt_misc mounted for as long as this lasts, and nothing of ours left in it. Gives
    how many entries others have, which the kernel walks as well."""
    if os.geteuid() != 0:
        raise Refused("registering with binfmt_misc takes root")
    with the_only_run():
        was_there = (BINFMT / "register").exists()
        was_known = is_known()
        try:
            if not was_there:
                mount()
            yield len(entries_of_others())
        finally:
            # Also what a signal kept from being noted.
            for entry in BINFMT.glob(f"{PREFIX}*"):
                unregister(entry)
            if not was_there and (BINFMT / "register").exists():
                unmount()
            if not was_known and is_known():
                unload()


def is_known():
    """Whether the kernel has binfmt_misc, or its module loaded."""
    return "binfmt_misc" in Path("/proc/filesystems").read_text()


def unload():
    """Takes the module away that mounting loaded (modprobe, or the kernel by itself)."""
    done = subprocess.run(["rmmod", "binfmt_misc"], check=False, capture_output=True, text=True)
    if done.returncode:
        say("note", f"the module binfmt_misc stays loaded: {done.stderr.strip()}: rmmod binfmt_misc")


@contextmanager
def the_only_run():
    """Two runs would measure each other's entries. The name is the kernel's, and goes with
    this process however that ends (unix(7), abstract sockets)."""
    with socket.socket(socket.AF_UNIX) as lock:
        try:
            lock.bind("\0cowitness-binfmt-misc")
        except OSError as error:
            raise Refused("another run that registers with binfmt_misc is under way: wait for its end") from error
        yield


def entries_of_others():
    names = sorted(entry.name for entry in BINFMT.iterdir() if entry.name not in ("register", "status"))
    # No other run is under way.
    left = [name for name in names if name.startswith(OURS)]
    if left:
        raise Refused(f"a run that was killed has left entries: {', '.join(left)}; remove them: "
                      f"for name in {' '.join(left)}; do echo -1 > {BINFMT}/$name; done")
    say("note", f"entries of others in binfmt_misc: {len(names)}{': ' if names else ''}{', '.join(names)}")
    return names


def unregister(entry):
    try:
        entry.write_text("-1")
    except OSError as error:
        raise Failed(f"cannot unregister {entry.name}: {error.strerror}: if it is there still: "
                     f"echo -1 > {entry}") from error


def mount():
    if not is_known():
        # A kernel in which it is a module; without modprobe mount says what is missing.
        if shutil.which("modprobe"):
            subprocess.run(["modprobe", "binfmt_misc"], check=False, capture_output=True)
    done = subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", BINFMT], check=False,
                          capture_output=True, text=True)
    if done.returncode:
        raise Refused("this kernel has no binfmt_misc (CONFIG_BINFMT_MISC, or its module: "
                      f"modprobe binfmt_misc), or may not mount it: {done.stderr.strip()}")


def unmount():
    done = subprocess.run(["umount", BINFMT], check=False, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{BINFMT} stays mounted: {done.stderr.strip()}: umount {BINFMT}")


@contextmanager
def registered(name, magic, interpreter, flags="", offset=""):
    """The file formats that begin with `magic` (at `offset`) are run by `interpreter`.
    Documentation/admin-guide/binfmt-misc.rst."""
    text = "".join(f"\\x{byte:02x}" for byte in magic)
    # The first character is what stands between the fields, so none of them may have it.
    between = next((one for one in ":|,;%+~" if one not in str(interpreter)), None)
    if not between:
        raise Refused(f"binfmt_misc takes no interpreter with such a name: {interpreter}; TMPDIR names another place")
    fields = ["", f"{PREFIX}{name}", "M", offset, text, "", interpreter, flags]
    try:
        (BINFMT / "register").write_text(between.join(map(str, fields)))
    except OSError as error:
        raise Refused(f"cannot register {interpreter} with binfmt_misc: {error.strerror}: it takes at most 127 "
                      "characters of a path; TMPDIR names another place") from error
    try:
        yield
    finally:
        unregister(BINFMT / f"{PREFIX}{name}")


def streams(text):
    """The rows of each stream of a file that must be whole."""
    parts = text.split("#cowitness 1\n")[1:]
    if len(parts) != 2 or not all("\n#end rows=" in part for part in parts):
        raise Failed("the appliance's output is not whole")
    bodies = ("".join(line for line in part.splitlines(True) if line[0] != "#") for part in parts)
    return [list(csv.DictReader(io.StringIO(body))) for body in bodies]


def run_to_end(words):
    """Exit status and output of a program, which is killed if this script is to stop."""
    # A signal at the terminal is this script's to deal with.
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, process_group=0) as run:
        try:
            while True:
                try:
                    output, _ = run.communicate(timeout=1)
                    return run.returncode, output
                except subprocess.TimeoutExpired:
                    # Now and then, because Python misses a signal that comes just before it
                    # waits until the wait ends.
                    pass
        except BaseException:
            run.kill()
            raise


class Runner:
    """Runs `startup ab`; keeps each CSV in `folder`, if there is one."""

    def __init__(self, appliance, rounds, folder):
        self.appliance, self.rounds, self.folder = appliance, rounds, folder
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            # Found out now, and not after the first run.
            with tempfile.TemporaryFile(dir=folder):
                pass

    def ab(self, label, seed, a, b, dispatch="direct"):
        """The rows of the result by metric. `dispatch` is how arm a must be reached."""
        words = [self.appliance, "startup", "ab", "-q", f"--rounds={self.rounds}", f"--seed={seed}",
                 f"--label={label}", "--a", *a, "--", "--b", *b]
        status, text = run_to_end(words)
        if status:
            raise Failed(f"{label}: exit status {status}")
        if self.folder:
            (self.folder / f"{label.replace(' ', '-').replace(',', '')}-{seed}.csv").write_text(text)
        execs, results = streams(text)
        # Without binfmt_misc mounted nobody can tell that no entry of it takes a file.
        ways = {row["dispatch"] for row in execs if row["arm"] == "a"}
        if dispatch == "direct" and not (BINFMT / "status").exists():
            ways.discard("unknown")
            ways.add("direct")
        if ways != {dispatch}:
            raise Failed(f"{label}: arm a was reached by {ways}")
        return {row["metric"]: row for row in results}
