"""The commands: `accel COMMAND ...`, or `python -m accel COMMAND ...`, which is the same."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from accel import __version__, project, variables
from accel.cli.options import BAD_INPUT, did_you_mean, started_as
from accel.versions import shortfall

Main = Callable[[Sequence[str]], int]


def _run(args: Sequence[str]) -> int:
    from accel.cli.run import main

    return main(args)


def _compare(args: Sequence[str]) -> int:
    from accel.cli.run import compare

    return compare(args)


def _compile(args: Sequence[str]) -> int:
    from accel.precompile.command import main

    return main(args)


def _reasons(args: Sequence[str]) -> int:
    from accel.reports.markdown import reasons_table

    sys.stdout.write(reasons_table())
    return 0


def _coverage(args: Sequence[str]) -> int:
    from accel.inspect.coverage import table

    sys.stdout.write(table())
    return 0


def _cache(args: Sequence[str]) -> int:
    from accel.backend.cache import main

    return main(args)


def _explain(args: Sequence[str]) -> int:
    from accel.inspect.explain.command import main

    return main(args)


def _doctor(args: Sequence[str]) -> int:
    from accel.inspect.doctor.command import main

    return main(args)


def _report(args: Sequence[str]) -> int:
    from accel.cli.report import main

    return main(args)


def _info(args: Sequence[str]) -> int:
    from accel.cli.info import text

    sys.stdout.write(text())
    return 0


def _docs(args: Sequence[str]) -> int:
    from accel.cli.docs import main

    return main(args)


class Command(NamedTuple):
    """One row. about: one line for the list of commands. plain: takes no arguments. records: needs all packages."""

    main: Main
    about: str
    plain: bool = False
    records: bool = False


COMMANDS: dict[str, Command] = {
    "run": Command(_run, "run a program accelerated"),
    "doctor": Command(_doctor, "find the functions that are worth accelerating, and write a catalogue", records=True),
    "explain": Command(_explain, "show what recording one call gives, and the line that stops it", records=True),
    "compile": Command(_compile, "compile before the first real run"),
    "compare": Command(_compare, "run a program on NumPy and accelerated: times, memory, differences"),
    "report": Command(_report, "show the report of the last run"),
    "cache": Command(_cache, "show, or empty, the folder of compiled programs"),
    "coverage": Command(_coverage, "print which functions of NumPy and SciPy are compiled", plain=True, records=True),
    "reasons": Command(_reasons, "print every reason for which code stays on NumPy", plain=True),
    "info": Command(_info, "print versions, settings and the machine, for a bug report", plain=True),
    "docs": Command(_docs, "list the pages of the documentation, or print one"),
}


def usage() -> str:
    """The help of accel itself."""
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:<{width}}{command.about}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: accel COMMAND ...",
            "",
            "Run existing NumPy and SciPy programs as compiled JAX programs, with NumPy's results.",
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
    project.set_home(os.getcwd())  # until the program is known
    if name != "run":  # which installs accel, and warns itself
        variables.warn()
    try:
        return command.main(args)
    except BrokenPipeError:  # as with `accel reasons | head`
        if name == "run":
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it at its end
        return 1


def console() -> int:
    """The console script `accel`: the same as `python -m accel`, where modules of the current folder are found."""
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd()  # it is the script's folder
    started_as("accel")
    return main()


def _say(text: str) -> int:
    sys.stdout.write(text)
    return 0


def _fail(message: str) -> int:
    sys.stderr.write(f"accel: {message}\n")
    return BAD_INPUT


def _unknown(name: str, args: list[str]) -> str:
    """The message for a first word that is no command."""
    if name.endswith(".py") or os.path.exists(name):
        return f"unknown command {name!r}; to run a program, write: {' '.join([started_as(), 'run', name, *args])}"
    if name in ("-c", "-m", "-"):
        return f"unknown command {name!r}; to run a program, write: {started_as()} run ..."
    return f"unknown command {name!r}{did_you_mean(name, COMMANDS)}; expected: {', '.join(COMMANDS)}"
