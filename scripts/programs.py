"""The programs that the scripts run, as options that every such script has alike."""

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


def add_appliance(parser):
    parser.add_argument("--appliance", metavar="FILE", default=str(TARGET / "cowitness"),
                        type=that_runs("cargo build --release"), help="the appliance (default: the release build)")


def add_lab(parser):
    parser.add_argument("--lab", metavar="FILE", default=str(TARGET / "cowitness-lab"),
                        type=that_runs("cargo build --release -p cowitness-lab"), help="the lab (default: the release build)")
