"""The commands: `accel COMMAND ...`. `python -m accel COMMAND ...` is equivalent."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from accel import __version__
from accel.platform import files, project, variables
from accel.platform.options import BAD_INPUT
from accel.platform.spelling import did_you_mean
from accel.platform.versions import shortfall


class Command(NamedTuple):
    """One command. home: module and name of the function that runs it. about: one line for the list of commands.

    plain: the command takes no arguments, and `home` names a function that returns its text. records: the command needs
    all of accel's dependencies.
    """

    home: str
    about: str
    plain: bool = False
    records: bool = False

    def run(self, args: Sequence[str]) -> int:
        """Run it. Returns the exit code."""
        module, name = self.home.split(":")
        function = getattr(import_module(module), name)
        code: int = _say(function()) if self.plain else function(args)
        return code


COMMANDS: dict[str, Command] = {
    "run": Command("accel.tools.cli.run:main", "run a program accelerated"),
    "doctor": Command(
        "accel.tools.inspect.doctor.command:main",
        "find the functions that are worth accelerating, and write a catalogue",
        records=True,
    ),
    "explain": Command(
        "accel.tools.inspect.explain.command:main",
        "show what recording one call gives, and the line that stops it",
        records=True,
    ),
    "compile": Command("accel.tools.precompile.command:main", "compile before the first real run"),
    "compare": Command(
        "accel.tools.comparison.command:main", "run a program on NumPy and accelerated: times, memory, differences"
    ),
    "report": Command("accel.tools.cli.report:main", "show the report of the last run"),
    "enable": Command(
        "accel.tools.cli.enable:enable", "have QD_USE_JAX=1 start accel in every Python of this environment"
    ),
    "disable": Command("accel.tools.cli.enable:disable", "take that back"),
    "bundle": Command(
        "accel.tools.cli.bundle:main", "write compiled programs to a file, or read them, for other machines"
    ),
    "cache": Command("accel.tools.cli.cache:main", "show, or empty, the folder of compiled programs"),
    "reasons": Command(
        "accel.reports.markdown:reasons_table", "print every reason for which code stays on NumPy", plain=True
    ),
    "info": Command(
        "accel.tools.cli.info:text", "print versions, settings and the machine, for a bug report", plain=True
    ),
    "docs": Command("accel.tools.cli.docs:main", "list the pages of the documentation, or print one"),
}


def usage() -> str:
    """Return the help text of the `accel` command."""
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:<{width}}{command.about}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: accel COMMAND ...",
            "",
            "Run existing NumPy and SciPy programs compiled, with NumPy's results.",
            "",
            *lines,
            "",
            "accel COMMAND --help tells of a command's options, accel --version the version.",
            "`python -m accel` is the same as `accel`.",
            "",
        ]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names. Returns its exit code; 2 for an unknown command."""
    name, *args = (sys.argv[1:] if argv is None else list(argv)) or ["--help"]
    if name in ("-h", "--help", "help"):
        known = [each for each in args[:1] if each in COMMANDS]
        return main([*known, "--help"]) if known else _say(usage())
    if name in ("-V", "--version"):
        return _say(f"accel {__version__}\n")
    if name not in COMMANDS:
        return _fail(_unknown(name, args))
    command = COMMANDS[name]
    if command.plain and args:
        return (
            _say(f"usage: accel {name}\n\n{command.about}\n")
            if args[0] in ("-h", "--help")
            else _fail(f"accel {name} takes no arguments, but got {args[0]!r} (see --help)")
        )
    short = shortfall() if command.records else None
    if short is not None:
        return _fail(short)
    project.set_home(files.current_folder())  # until the program is known
    if name != "run":  # which installs accel, and warns itself
        variables.warn()
    try:
        return command.run(args)
    except BrokenPipeError:  # as with `accel reasons | head`
        if name == "run":
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it at its end
        return 1


def console() -> int:
    """Run the console script `accel`. It finds modules in the current folder, as `python -m accel` does."""
    if not sys.flags.safe_path:
        sys.path[0] = files.current_folder()  # it is the script's folder
    return main()


def _say(text: str) -> int:
    sys.stdout.write(text)
    return 0


def _fail(message: str) -> int:
    sys.stderr.write(f"accel: {message}\n")
    return BAD_INPUT


def _unknown(name: str, args: list[str]) -> str:
    """Return the message for a first word that is no command."""
    if name.endswith(".py") or os.path.exists(name):
        return f"unknown command {name!r}; to run a program, write: {' '.join(['accel run', name, *args])}"
    if name in ("-c", "-m", "-"):
        return f"unknown command {name!r}; to run a program, write: accel run ..."
    return f"unknown command {name!r}{did_you_mean(name, COMMANDS)}; expected: {', '.join(COMMANDS)}"
