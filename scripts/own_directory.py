"""What scripts that make files share: a directory that is made, and removed again unless all went
well (closure-manifest, n-family); signals that let them tidy up, and errors that are said in a
line (these, and sizes-large)."""

import os
import shutil
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

NAME = Path(sys.argv[0]).name
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def fail(problem, status=1):
    print(f"{NAME}: error: {problem}", file=sys.stderr)
    sys.exit(status)


def heed_signals():
    """A signal unwinds the script, once: a second one must not cut the tidying short. What was
    ignored when the script began, as nohup(1) has it, stays ignored."""
    def stop(number, _frame):
        ignore_signals()
        sys.exit(128 + number)

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)


def ignore_signals():
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def made(place, mode=0o777):
    """Makes `place`, which must not exist, and the directories above it that do not; if the
    caller fails, what was made, and nothing else, is removed. `mode` is the last one's, less the
    umask."""
    parents = []
    try:
        make(place, parents, mode)
        yield
    except BaseException:
        try:
            ignore_signals()
        finally:
            remove(place, parents)
        raise


def make(place, made_here, mode):
    """Whoever makes a directory first has it: mkdir(2) fails with EEXIST."""
    missing = [parent for parent in place.parents if not os.path.lexists(parent)]
    # A signal comes before it is made, or after it is known to be ours.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        for parent in reversed(missing):
            parent.mkdir()
            made_here.append(parent)
        place.mkdir(mode)
        made_here.append(place)
    except FileExistsError as error:
        fail(f"{shown(error.filename)} exists already; name a directory that does not", 2)
    except OSError as error:
        fail(f"cannot make {shown(error.filename)}: {error.strerror}", 2)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def remove(place, made_here):
    if place in made_here:
        shutil.rmtree(place, ignore_errors=True)
        made_here.remove(place)
    for parent in reversed(made_here):
        try:
            parent.rmdir()
        except OSError:
            # Somebody else uses it by now.
            break


def printed(text):
    """Writes to standard output; that it cannot is an error like others."""
    if sys.stdout is None:
        fail("cannot write to standard output: it is closed; give it a file or a terminal")
    try:
        print(text, flush=True)
    except OSError as error:
        # The interpreter would try again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        fail(f"cannot write to standard output: {error.strerror}")


def shown(path):
    """A path in one line, whatever it is made of."""
    return ascii(str(path))[1:-1] if is_hostile(path) else str(path)


def is_hostile(path):
    """Whether a path would break a line, or is not UTF-8."""
    text = str(path)
    return not text.isprintable()


def scripted(main):
    """Runs main; what the system refuses is told in a line."""
    try:
        main()
    except OSError as error:
        where = f"{shown(error.filename)}: " if error.filename else ""
        fail(f"cannot go on: {where}{error.strerror}; look after room, limits (ulimit -f) and permissions")
