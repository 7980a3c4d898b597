"""The command line of `accel run`: its options, merged with the settings of the environment.

Everything is checked here, before the program starts: an error must not come after hours of computing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from accel import catalogue
from accel.catalogue import Catalogue
from accel.platform import config, project
from accel.platform.config import SettingError, Settings
from accel.platform.options import Parser, split_at_target
from accel.reports.advice import compile_command
from accel.tools.cli.starts import TARGETS, StartCommand, home_of
from accel.transform.ensembles import saving

_SUFFIXES = {".json": "json", ".md": "markdown", ".markdown": "markdown", ".txt": "text", "": "text"}


class Option(NamedTuple):
    """One row: an option's name, and its arguments for argparse."""

    name: str
    argparse: dict[str, Any]


PLACES = (
    Option("--pygcm", {"metavar": "DIR", "help": "run from this checkout of PyGCM"}),
    Option("--demo", {"action": "store_true", "help": "run the bundled miniature planet"}),
)
OPTIONS = (
    Option(
        "--platform",
        {
            "choices": config.PLATFORMS,
            "type": config.platform_named,
            "metavar": "P",
            "help": "cpu, gpu (or cuda) or tpu; default: the best",
        },
    ),
    Option("--mode", {"choices": config.MODES, "metavar": "M", "help": "auto (default), verify, strict or off"}),
    Option("--catalogue", {"metavar": "FILE", "help": "accelerate what this file's CATALOGUE names"}),
    Option(
        "--only",
        {
            "metavar": "NAME",
            "action": "append",
            "default": [],
            "help": "only this function, class or module; repeatable",
        },
    ),
    Option(
        "--exclude",
        {"metavar": "NAME", "action": "append", "default": [], "help": "leave this one out; repeatable"},
    ),
    Option(
        "--auto",
        {
            "action": "store_true",
            "default": None,
            "help": "choose hot loops and functions; default where no catalogue names any",
        },
    ),
    Option("--chosen", {"metavar": "FILE.py", "help": "as --auto, and write a catalogue of what was chosen here"}),
    Option("--ensemble", {"metavar": "N", "type": int, "help": "step N members beside the program's own loop"}),
    Option("--perturb", {"metavar": "FILE.py", "help": "with --ensemble: how the members differ"}),
    Option("--members", {"metavar": "FILE", "help": "with --ensemble: save them here (.nc or .npz)"}),
    Option("--report", {"metavar": "FILE", "help": "write the report (.json, .md, .txt); - is standard error"}),
    Option("--profile", {"metavar": "FILE.html", "help": "write a page that shows where the time went"}),
    Option("--lines", {"action": "store_true", "help": "show where the time went line by line, and what to change"}),
    Option("--compare", {"action": "store_true", "help": "the same as `accel compare`"}),
    Option("--out", {"metavar": "DIR", "help": "the folder for the comparison; default: accel-comparison"}),
    Option("--quiet", {"action": "store_true", "help": "print no summary at the end"}),
)
OF_COMPARE = ("--platform", "--mode", "--catalogue", "--only", "--exclude", "--auto", "--out")
"""Options of `accel run` that `accel compare` has too."""

TARGET_HELP = "a module (a.b), a script, a folder or zip file with __main__.py, -m MODULE, -c CODE, or -"


def _parser() -> Parser:
    parser = Parser(
        prog="accel run",
        description="Run a program accelerated: functions that a catalogue names, or its own hot loops and functions.",
        epilog="Everything after TARGET belongs to the program. `accel docs settings` lists environment variables.",
        usage="accel run [OPTION]... TARGET [ARGS...]",
    )
    _add(parser, OPTIONS)
    return parser


def compare_parser() -> Parser:
    """Return the parser of `accel compare`, whose options are a subset of those of `accel run`."""
    parser = Parser(
        prog="accel compare",
        description="Run a program three times: on NumPy, accelerated, and on NumPy perturbed in the last place. "
        "Write times, memory and differences to DIR.",
        usage="accel compare [OPTION]... TARGET [ARGS...]",
    )
    _add(parser, [option for option in OPTIONS if option.name in OF_COMPARE])
    parser.set_defaults(compare=True, report=None, profile=None, chosen=None, quiet=False, lines=False)
    parser.set_defaults(ensemble=None, perturb=None, members=None)
    return parser


def _add(parser: Parser, options: Iterable[Option]) -> None:
    group = parser.add_mutually_exclusive_group()
    for option in PLACES:
        group.add_argument(option.name, **option.argparse)
    for option in options:
        parser.add_argument(option.name, **option.argparse)
    parser.add_argument("command", metavar="TARGET", nargs=argparse.REMAINDER, help=TARGET_HELP)


class Report(NamedTuple):
    """Destination and format of the report. `path` None: standard error. `format` None: the one-line summary.

    full: True for the whole text report, False for the brief one.
    """

    format: str | None
    path: Path | None
    full: bool = True


class EnsembleOptions(NamedTuple):
    """Options for an ensemble: number of members, the file that perturbs them, and the file to save them in."""

    members: int
    perturb: str
    path: Path


class CommandLine(NamedTuple):
    """A checked command line: what to run, where, and how.

    catalogue: None for the installed catalogues. catalogue_file: its absolute name, or None. profile: the file for the
    profile page, or None. compare: the folder for the results of a comparison run, or None. auto: True if the targets
    with the most time are chosen at run time; None if that depends on whether a catalogue names functions of the
    program. chosen: the file to write that choice to as a catalogue, or None. quiet: True if only errors are shown.
    compile_first: the `accel compile` command to advise for this program, or None. ensemble: None without one. lines:
    True if lines are profiled. unasked: True if QD_USE_JAX started accel, and no command of accel's.
    """

    command: StartCommand
    settings: Settings
    catalogue: Catalogue | None
    catalogue_file: str | None
    only: list[str]
    exclude: list[str]
    reports: tuple[Report, ...]
    profile: Path | None
    compare: Path | None
    auto: bool | None
    chosen: Path | None
    quiet: bool
    compile_first: str | None
    ensemble: EnsembleOptions | None
    lines: bool
    unasked: bool = False


def parse(argv: Sequence[str] | None, parser: Parser | None = None) -> CommandLine:
    """Parse the command line and the environment. Raises `SettingError` for invalid input.

    parser: None for that of `accel run`.
    """
    parser = parser or _parser()
    own, words = split_at_target(parser, sys.argv[1:] if argv is None else argv)
    options = parser.parse_args(own)
    command, settings = command_of(options, words), settings_of(options)
    profile = None if options.profile is None else _writable("--profile", options.profile, (".html", ".htm"))
    reports = _reports(options, settings)
    rows = None if options.catalogue is None else catalogue.load(options.catalogue)
    compare = _comparison(options, command)
    return CommandLine(
        command,
        settings,
        rows,
        None if rows is None else os.path.abspath(options.catalogue),
        options.only,
        options.exclude,
        reports,
        profile,
        compare,
        options.auto or (True if options.chosen else None),
        _chosen(options),
        options.quiet,
        _compile_first(options, words, settings),
        _ensemble(options, settings),
        options.lines,
    )


def _compile_first(options: argparse.Namespace, words: Sequence[str], settings: Settings) -> str | None:
    """Return the `accel compile` command for the same program; None if that keeps nothing or cannot read it twice."""
    if words[:1] == ["-"] or settings.divides:
        return None
    given = ["--demo"] if options.demo else ["--pygcm", options.pygcm] if options.pygcm else []
    given += ["--auto"] if options.auto or options.chosen else []
    for name in ("platform", "catalogue"):
        value = getattr(options, name)
        given += [] if value is None else [f"--{name}", value]
    for name in ("only", "exclude"):
        given += [word for value in getattr(options, name) for word in (f"--{name}", value)]
    return compile_command([*given, *words])


def _ensemble(options: argparse.Namespace, settings: Settings) -> EnsembleOptions | None:
    """Return the ensemble options, or None without --ensemble. Raises SettingError."""
    given = {"--perturb": options.perturb, "--members": options.members}
    if options.ensemble is None:
        for name, value in given.items():
            if value is not None:
                raise SettingError(name, value, "--ensemble as well", "has no effect on its own")
        return None
    if options.ensemble < 1:
        raise SettingError("--ensemble", options.ensemble, "a number of members from 1 on")
    if options.perturb is None:
        raise SettingError("--ensemble", options.ensemble, "--perturb FILE.py as well", "has equal members on its own")
    if not settings.enabled or settings.mode == "off":
        raise SettingError("--ensemble", options.ensemble, "QD_USE_JAX=1, and another mode than off", "needs JAX")
    if options.members is None:
        return EnsembleOptions(options.ensemble, options.perturb, saving.default_path())
    path = _writable("--members", options.members, saving.SUFFIXES)
    if path.suffix == ".nc" and not saving.has_xarray():
        raise SettingError("--members", options.members, "a name that ends in .npz, or xarray", "needs xarray")
    return EnsembleOptions(options.ensemble, options.perturb, path)


def _chosen(options: argparse.Namespace) -> Path | None:
    """Return the file to write the chosen targets to as a catalogue, or None."""
    if options.chosen is None:
        return None
    return _writable("--chosen", options.chosen, (".py",))


_NOT_WITH_COMPARE = {
    "report": "describes a single run, but --compare makes three",
    "profile": "describes a single run, but --compare makes three",
    "chosen": "describes a single run, but --compare makes three",
    "ensemble": "is not passed on to the runs of --compare",
}
"""Options that cannot be combined with --compare, and why."""


def _comparison(options: argparse.Namespace, command: StartCommand) -> Path | None:
    """Return the folder for a comparison run's results, made if needed; None without --compare."""
    if not options.compare:
        if options.out is not None:
            raise SettingError("--out", options.out, "--compare as well", "has no effect on its own")
        return None
    for name, problem in _NOT_WITH_COMPARE.items():
        if getattr(options, name) is not None:
            raise SettingError(f"--{name}", getattr(options, name), "a run without --compare", problem)
    if command.target == "-":
        raise SettingError(
            "TARGET", "-", "a program in a file, or -c CODE", "can be read once, but --compare runs thrice"
        )
    catalogue.default()  # an error comes now, and not in the three runs
    folder = Path(options.out or "accel-comparison").absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"cannot be created ({error.strerror})"
        raise SettingError("--out", str(folder), "a folder that can be created", problem) from None
    return folder


def command_of(options: argparse.Namespace, words: Sequence[str]) -> StartCommand:
    """Return the program to start. Its folder may contain a settings file of its own.

    The words after the options name the program, or the options imply it. Raises `SettingError` if there is no program.
    """
    folder, default = folder_of(options)
    target, *args = words or [default]
    if not target:
        raise SettingError("TARGET", "", TARGETS, "is missing")
    command = StartCommand(target, args, folder)
    project.set_home(home_of(command))
    return command


def folder_of(options: argparse.Namespace) -> tuple[str | None, str]:
    """Return the program's folder (None: found on `sys.path`) and the default target in it."""
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
    """Return the settings of the project and the environment, overridden by the options.

    Raises `SettingError` for a missing platform.
    """
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
    """Return the reports to write. Files are checked now, so that no error comes after hours of computing."""
    reports = []
    quiet = options.quiet or settings.quiet
    if options.report not in (None, "-"):
        reports.append(report_file(options.report))
    if options.report == "-" or (options.demo and not quiet):
        reports.append(Report("text", None, full=options.report == "-"))
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
