"""The command line of `python -m accel.run`: its options, and what they and the environment ask for.

Everything is checked here, before the program starts: an error must not come after hours of computing.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from accel import catalogue, config
from accel.catalogue import Catalogue
from accel.cli.options import Parser
from accel.cli.program import TARGETS, Command
from accel.config import SettingError, Settings

_SUFFIXES = {".json": "json", ".md": "markdown", ".markdown": "markdown", ".txt": "text", "": "text"}


class Option(NamedTuple):
    """One row: an option's name, and its arguments for argparse."""

    name: str
    argparse: dict[str, Any]


PLACES = (
    Option("--pygcm", {"metavar": "DIR", "help": "run from this checkout of PyGCM instead of the current folder"}),
    Option("--demo", {"action": "store_true", "help": "run the bundled miniature, and print the full report"}),
)
OPTIONS = (
    Option("--platform", {"choices": config.PLATFORMS, "help": "where to run; default: the best there is"}),
    Option(
        "--mode",
        {
            "choices": config.MODES,
            "help": "auto (default); verify: compare every call with NumPy; strict: a refusal is an error; "
            "off: a run on NumPy alone",
        },
    ),
    Option("--catalogue", {"metavar": "FILE", "help": "a file to use in place of the installed catalogues"}),
    Option(
        "--only",
        {
            "metavar": "PATTERN",
            "action": "append",
            "default": [],
            "help": "accelerate only these functions: pygcm.ocean, step, '*Ocean*'; repeatable",
        },
    ),
    Option(
        "--exclude",
        {"metavar": "PATTERN", "action": "append", "default": [], "help": "leave these functions out; repeatable"},
    ),
    Option(
        "--report",
        {
            "metavar": "FILE",
            "help": "write the report here: JSON, Markdown or text by suffix; - is text on standard error",
        },
    ),
    Option("--profile", {"metavar": "FILE.html", "help": "write a page that shows where the time went, step by step"}),
    Option(
        "--compare",
        {
            "action": "store_true",
            "help": "run the program three times (on NumPy, accelerated, and on NumPy perturbed in the last place) "
            "and report times, memory and differences",
        },
    ),
    Option("--out", {"metavar": "DIR", "help": "the folder that --compare writes to; default: accel-comparison"}),
    Option(
        "--auto",
        {
            "action": "store_true",
            "default": None,
            "help": "without a catalogue: accelerate the loops of the program itself, and what holds the time",
        },
    ),
    Option("--chosen", {"metavar": "FILE.py", "help": "with --auto: write a catalogue of what was chosen here"}),
    Option("--quiet", {"action": "store_true", "help": "print no summary at the end"}),
)


class _Parser(Parser):
    """Lists the options if one is unknown."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments: "):
            message += f"; expected: {', '.join(option.name for option in PLACES + OPTIONS)}"
        super().error(message)


def _parser() -> _Parser:
    parser = _Parser(
        prog="python -m accel.run",
        description="Run a program with the functions that accel's catalogues name accelerated.",
        epilog=f"Environment: {', '.join(config.VARIABLES.values())}: see docs/settings.md.",
        usage="python -m accel.run [OPTION]... TARGET [ARGS...]",
        allow_abbrev=False,
    )
    group = parser.add_mutually_exclusive_group()
    for option in PLACES:
        group.add_argument(option.name, **option.argparse)
    for option in OPTIONS:
        parser.add_argument(option.name, **option.argparse)
    what = "a dotted module, run as python -m would, or a script file; then its own arguments"
    parser.add_argument("command", metavar="TARGET [ARGS...]", nargs=argparse.REMAINDER, help=what)
    return parser


class Report(NamedTuple):
    """Where the report goes at the end: `path` None is standard error; `format` None is the one-line summary."""

    format: str | None
    path: Path | None


class CommandLine(NamedTuple):
    """A checked command line: what to run, where, and how.

    catalogue: None for the installed ones. profile: the file for the page. compare: the folder for a comparison run's
    results. Both are None if not asked for. auto: whether what holds the time is chosen, without a catalogue. chosen:
    the file for a catalogue of that, or None.
    """

    command: Command
    settings: Settings
    catalogue: Catalogue | None
    only: list[str]
    exclude: list[str]
    reports: tuple[Report, ...]
    profile: Path | None
    compare: Path | None
    auto: bool
    chosen: Path | None


def parse(argv: Sequence[str] | None) -> CommandLine:
    """Parse the command line and the environment. Raises `SettingError` for invalid input."""
    options = _parser().parse_args(argv)
    folder, default = folder_of(options)
    target, *args = options.command or [default]
    if not target:
        raise SettingError("TARGET", "", TARGETS, "is missing")
    command, settings = Command(target, args, folder), settings_of(options)
    profile = None if options.profile is None else _writable("--profile", options.profile, (".html", ".htm"))
    reports = _reports(options, settings)
    rows = None if options.catalogue is None else catalogue.load(options.catalogue)
    compare = _comparison(options)
    auto = bool(options.auto)
    if options.chosen is not None and not auto:
        raise SettingError("--chosen", options.chosen, "--auto as well", "has no effect on its own")
    chosen = None if options.chosen is None else _writable("--chosen", options.chosen, (".py",))
    return CommandLine(command, settings, rows, options.only, options.exclude, reports, profile, compare, auto, chosen)


_NOT_WITH_COMPARE = {
    "report": "describes a single run, but --compare makes three",
    "profile": "describes a single run, but --compare makes three",
    "catalogue": "is not passed on to the runs of --compare",
    "auto": "is not passed on to the runs of --compare",
    "chosen": "describes a single run, but --compare makes three",
}
"""Options that cannot be combined with --compare, and why."""


def _comparison(options: argparse.Namespace) -> Path | None:
    """Return the folder for a comparison run's results, made if needed; None without --compare."""
    if not options.compare:
        if options.out is not None:
            raise SettingError("--out", options.out, "--compare as well", "has no effect on its own")
        return None
    for name, problem in _NOT_WITH_COMPARE.items():
        if getattr(options, name) is not None:
            raise SettingError(f"--{name}", getattr(options, name), "a run without --compare", problem)
    folder = Path(options.out or "accel-comparison").absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"cannot be created ({error.strerror})"
        raise SettingError("--out", str(folder), "a folder that can be created", problem) from None
    return folder


def folder_of(options: argparse.Namespace) -> tuple[str | None, str]:
    """Return the folder that the program is in (None: it is found on `sys.path`), and the default target there."""
    if options.pygcm is not None:
        if not os.path.isdir(os.path.join(options.pygcm, "pygcm")):
            raise SettingError("--pygcm", options.pygcm, "a checkout with the folder pygcm in it", "has no pygcm/")
        return os.path.abspath(options.pygcm), ""
    if options.demo:
        for each in catalogue.discover():
            if each.demo_root is not None and each.demo_root.is_dir():
                return str(each.demo_root), each.demo_target
        raise SettingError("--demo", True, "install the distribution pygcm-accel", "finds no bundled miniature")
    return None, ""


def settings_of(options: argparse.Namespace) -> Settings:
    """Return the environment's settings, overridden by the options. Raises `SettingError` for a missing platform."""
    settings = config.from_environment()
    chosen = {name: getattr(options, name) for name in ("platform", "mode") if getattr(options, name) is not None}
    settings = replace(settings, **chosen)
    if settings.platform is not None and settings.enabled and settings.mode != "off":
        try:
            _check_platform(settings.platform)
        except SettingError as error:
            raise error.renamed("--platform" if options.platform else config.VARIABLES["platform"]) from None
    return settings


def _check_platform(name: str) -> None:
    from accel.backend.devices import check_platform  # imports JAX: only where the user names a platform

    check_platform(name)


def _reports(options: argparse.Namespace, settings: Settings) -> tuple[Report, ...]:
    """Return the reports to write. Files are checked now, so that an error does not come after hours of computing."""
    reports = []
    quiet = options.quiet or settings.quiet
    if options.report not in (None, "-"):
        reports.append(report_file(options.report))
    if options.report == "-" or (options.demo and not quiet):
        reports.append(Report("text", None))
    elif not quiet:
        reports.append(Report(None, None))
    return tuple(reports)


def report_file(name: str) -> Report:
    """Return the report that goes to the file `name`. Raises `SettingError` if it cannot be written."""
    path = _writable("--report", name, (".json", ".md", ".txt"), tuple(_SUFFIXES))
    return Report(_SUFFIXES[path.suffix.lower()], path)


def _writable(option: str, name: str, named: tuple[str, ...], suffixes: tuple[str, ...] = ()) -> Path:
    """Return the path of `name`. Raises `SettingError` unless it has one of `suffixes` and can be written.

    named: the suffixes that the message lists; also the default of `suffixes`.
    """
    path = Path(name).absolute()
    if path.suffix.lower() not in (suffixes or named):
        possible = f"names that end in {', '.join(named[:-1])} or {named[-1]}"
        raise SettingError(option, name, possible, "has an unknown suffix")
    fresh = not path.exists()
    try:
        # for appending, which does not empty a file that is there
        with path.open("a"):
            pass
        if fresh:
            path.unlink()
    except OSError as error:
        problem = f"cannot be written ({error.strerror})"
        raise SettingError(option, name, "a file in a folder that exists and is writable", problem) from None
    return path
