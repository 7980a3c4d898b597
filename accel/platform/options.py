"""Argument parsing that all commands share: the layout of help, and one-line errors with exit code 2."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

from accel.platform.config import SettingError
from accel.platform.spelling import did_you_mean

BAD_INPUT = 2

WIDEST = 100
"""Maximum width of a help text, in columns."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """A help formatter that puts each option on one line where it fits."""

    def __init__(self, prog: str, **kwargs: Any) -> None:
        width = min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns) - 2
        super().__init__(prog, **{"max_help_position": 26, "width": width, **kwargs})


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line, without usage, and lists the options if one is unknown."""

    def __init__(self, *, description: str, **kwargs: Any) -> None:
        wrapped = textwrap.fill(description, WIDEST - 2)
        super().__init__(description=wrapped, **{"formatter_class": HelpFormatter, "allow_abbrev": False, **kwargs})

    def error(self, message: str) -> NoReturn:
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message:
            names = [action.option_strings[-1] for action in self._actions if action.option_strings]
            names = [name for name in names if name != "--help"]
            message += f"{did_you_mean(unknown.split()[0].partition('=')[0], names)}; expected: {', '.join(names)}"
        self.exit(BAD_INPUT, f"accel: {message} (see --help)\n")


def count(text: str) -> int:
    """Parse a whole number from 1, as the `type` of an argument."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


count.__name__ = "whole number from 1"  # argparse uses it in its error message


def split_at_target(parser: argparse.ArgumentParser, argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a command line into accel's own options, and the program with its arguments.

    argparse must not see the second part. It begins with the first word that is no option, or with one of Python's own
    options: -c, -m, -.
    """
    valued = {name for action in parser._actions if action.nargs is None for name in action.option_strings}
    place = 0
    while place < len(argv) and argv[place].startswith("-") and argv[place] not in ("-", "-c", "-m", "--"):
        place += 2 if argv[place] in valued else 1
    own, rest = list(argv[:place]), list(argv[place:])
    return own, rest[1:] if rest[:1] == ["--"] else rest


def refuse(error: SettingError) -> int:
    """Write the error to standard error. Returns the exit code."""
    if error.name in ("only", "exclude"):  # as the Python interface calls them
        error = error.renamed(f"--{error.name}")
    sys.stderr.write(f"accel: {error}\n")
    return BAD_INPUT
