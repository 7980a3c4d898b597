"""`accel enable`, `accel disable`: whether QD_USE_JAX=1 starts accel in every Python of this environment."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from accel.platform import config
from accel.platform.options import Parser

NAME = "pygcm_accel_enable.pth"
"""It comes behind the files by which an editable install makes accel importable: Python reads them in this order."""

LINE = (
    'import os; exec("try:\\n from accel.tools.cli.starting import begin\\n begin()\\nexcept Exception: pass") '
    f'if os.environ.get("{config.VARIABLES["enabled"]}", "").strip().lower() in {config.TRUE} else None\n'
)
"""Content of the file. It imports nothing of accel's without the variable, and an accel that is gone or broken does not
keep Python from starting."""


def place() -> Path:
    """The file, in the folder of installed packages."""
    return Path(sysconfig.get_path("purelib")) / NAME


def state() -> str:
    """Whether it is there, for `accel info`."""
    if not place().exists():
        return "no: QD_USE_JAX=1 alone starts nothing (see accel enable)"
    return f"QD_USE_JAX=1 starts accel in every Python here ({place()})"


def enable(args: Sequence[str]) -> int:
    """`accel enable`. Returns the exit code: 1 if the file cannot be written."""
    _parse("enable", "Have QD_USE_JAX=1 start accel in every Python of this environment, as accel run does.", args)
    try:
        place().write_text(LINE, encoding="utf-8")
    except OSError as error:
        return _fail("written", error)
    sys.stdout.write(
        f"QD_USE_JAX=1 now starts accel in every Python of {sys.prefix}; without it, nothing changes.\n"
        "accel disable takes that back.\n"
    )
    return 0


def disable(args: Sequence[str]) -> int:
    """`accel disable`. Returns the exit code: 1 if the file cannot be removed."""
    _parse("disable", "Take back what accel enable did.", args)
    try:
        place().unlink(missing_ok=True)
    except OSError as error:
        return _fail("removed", error)
    sys.stdout.write(f"QD_USE_JAX=1 starts nothing in {sys.prefix}; accel run does.\n")
    return 0


def _parse(name: str, about: str, args: Sequence[str]) -> None:
    Parser(prog=f"accel {name}", description=about, usage=f"accel {name}").parse_args(args)


def _fail(what: str, error: OSError) -> int:
    sys.stderr.write(
        f"accel: {place()} cannot be {what} ({error.strerror}); "
        "a virtual environment of your own can be changed: python -m venv FOLDER\n"
    )
    return 1
