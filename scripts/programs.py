"""Options that scripts have alike: the programs that they run, numbers in their ranges, and a help
that says all that the script says of itself."""

import argparse
import os
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "target" / "release"


def that_runs(how_to_build):
    """The type of an option: the path of a program, which is refused before anything else is done."""
    def path(text):
        if os.path.isfile(text) and os.access(text, os.X_OK):
            return text
        raise argparse.ArgumentTypeError(f"{text} is not there, or not to be executed; `{how_to_build}` makes it")
    return path


def options_of(doc):
    """A parser with the docstring of a script as its help; its first line is what the script does."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


def number(least, most):
    """The type of an option: a whole number."""
    def one(text):
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{text}' must be a whole number from {least} to {most}")
        return int(text)
    return one


def numbers(least, most, fewest=1):
    """The type of an option: different whole numbers with commas between."""
    def several(text):
        found = [number(least, most)(part) for part in text.split(",")]
        if len(set(found)) < max(fewest, len(found)):
            raise argparse.ArgumentTypeError(f"'{text}' must be at least {fewest} different numbers, each once")
        return found
    return several


def add_appliance(parser):
    parser.add_argument("--appliance", metavar="FILE", default=str(TARGET / "cowitness"),
                        type=that_runs("cargo build --release"), help="the appliance (default: the release build)")


def add_lab(parser):
    parser.add_argument("--lab", metavar="FILE", default=str(TARGET / "cowitness-lab"),
                        type=that_runs("cargo build --release -p cowitness-lab"), help="the lab (default: the release build)")
