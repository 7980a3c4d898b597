"""What accel's commands have in common: input that cannot be used is answered with one line and exit code 2."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from accel.config import SettingError

BAD_INPUT = 2


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"accel: {message} (--help says more)\n")


def refuse(error: SettingError) -> int:
    """Say what cannot be used; returns the exit code."""
    sys.stderr.write(f"accel: {error}\n")
    return BAD_INPUT
