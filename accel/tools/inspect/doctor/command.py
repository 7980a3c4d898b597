"""`accel doctor PACKAGE_OR_FILE --run PROGRAM`: which functions are worth accelerating, and what stops the others."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from accel.entry.hook.imports import find_module
from accel.platform import config
from accel.platform.config import SettingError
from accel.platform.options import Parser, refuse
from accel.tools.cli import starts
from accel.tools.inspect import programs
from accel.tools.inspect.doctor import advise, write
from accel.tools.inspect.doctor.measure import Answer, measured

PACKAGES = "a package or module that python -m would find, a folder, or a .py file"

_EPILOG = """examples:
  accel doctor pygcm --run scripts.run_simulation
  accel doctor pygcm --catalogue pygcm_rows.py --run scripts.run_simulation
  accel doctor heat.py --run heat.py
"""


def _parser() -> Parser:
    parser = Parser(
        prog="accel doctor",
        usage="accel doctor PACKAGE_OR_FILE [OPTION]... --run PROGRAM [ARGS...]",
        description="Find the functions of a program that are worth accelerating, and what stops the others.",
        epilog=_EPILOG,
    )
    parser.add_argument("target", metavar="PACKAGE_OR_FILE", help=PACKAGES)
    what = f"{', '.join(write.VIEWS)}; default text"
    parser.add_argument("--format", metavar="F", choices=write.VIEWS, default="text", help=what)
    parser.add_argument("--catalogue", metavar="FILE.py", help="write a catalogue to start from to this new file")
    what = "run this program (module, script, or module:callable), time the functions, and try to record them; last"
    parser.add_argument("--run", metavar="PROGRAM [ARGS...]", nargs=argparse.REMAINDER, default=[], help=what)
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command. Returns the exit code: 1 if the program itself failed, 2 for invalid input."""
    options = _parser().parse_args(argv)
    try:
        file = _new_file(options.catalogue) if options.catalogue is not None else None
        config.current()  # report invalid settings now
        places = _places(options.target)
        programs.found(options.run, starts.find)
        measurements = measured(options.run, places)
    except SettingError as error:
        return refuse(error)
    account = advise.account(options.target, measurements, shlex.join(options.run))
    written = _write_catalogue(account, file) if file is not None else None
    sys.stdout.write(write.VIEWS[options.format](account, written))
    return 0 if account["ending"] in ("", programs.INTERRUPTED) else 1


def _places(target: str) -> list[str]:
    """Return the real paths of a package's folders, or of a file. Raises SettingError if there is no Python there."""
    spec = find_module(target)
    if spec is None and not os.path.exists(target):
        raise SettingError("PACKAGE_OR_FILE", target, PACKAGES, "does not exist")
    found = [target] if spec is None else [*(spec.submodule_search_locations or [str(spec.origin)])]
    if not all(os.path.isdir(each) or each.endswith(".py") for each in found):
        raise SettingError("PACKAGE_OR_FILE", target, PACKAGES, "is not written in Python")
    return [os.path.realpath(each) for each in found]


def _new_file(name: str) -> Path:
    """Return the catalogue's path. Raises SettingError unless it is a new module in a writable folder."""
    path = Path(name)
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise SettingError("--catalogue", name, "a name such as heat_rows.py", "cannot be imported as a module")
    if path.exists():
        raise SettingError("--catalogue", name, "the name of a new file", "exists already")
    if not os.access(path.parent, os.W_OK):
        raise SettingError("--catalogue", name, "a file in a folder that exists and is writable", "cannot be written")
    return path


def _write_catalogue(account: Answer, path: Path) -> str | None:
    """Write the catalogue. Returns the file's name, or None if there are no rows."""
    if not write.rows_of(account):
        sys.stderr.write(f"accel: {path} was not written: no function is worth a row\n")
        return None
    path.write_text(write.as_catalogue(account, path.stem), encoding="utf-8")
    return str(path)
