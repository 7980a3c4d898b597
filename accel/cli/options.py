"""Shared by accel's commands: invalid input gives a message of one line, and exit code 2."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from accel.config import SettingError

BAD_INPUT = 2


class Parser(argparse.ArgumentParser):
    """Reports an error in one line, without the usage text."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"accel: {message} (see --help)\n")


def refuse(error: SettingError) -> int:
    """Write the error to standard error. Returns the exit code."""
    if error.name in ("only", "exclude"):  # as the Python interface calls them
        error = error.renamed(f"--{error.name}")
    sys.stderr.write(f"accel: {error}\n")
    return BAD_INPUT
