"""The command line of `accel run`: its options, merged with the settings of the environment.

Everything is checked here, before the program starts: an error must not come after hours of computing.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from accel import catalogue
from accel.catalogue import Catalogue
from accel.platform import config, project
from accel.platform.config import SettingError, Settings
from accel.platform.options import Parser, count, split_at_target
from accel.reports.advice import IN_SHELL
from accel.tools.cli.starts import TARGETS, StartCommand, home_of
from accel.transform.ensembles import saving

_SUFFIXES = {".json": "json", ".md": "markdown", ".txt": "text"}


class Option:
    """One row: an option's name, and its arguments for argparse."""

    def __init__(self, name: str, **argparse: Any) -> None:
        self.name, self.argparse = name, argparse


PLACES = (
    Option("--pygcm", metavar="DIR", help="run from this checkout of PyGCM"),
    Option("--demo", action="store_true", help="run the bundled miniature planet"),
)
OPTIONS = (
    Option(
        "--platform",
        choices=config.PLATFORMS,
        type=config.platform_named,
        metavar="P",
        help="cpu, gpu (or cuda) or tpu; default: the best",
    ),
    Option("--mode", choices=config.MODES, metavar="M", help="auto (default), verify, strict or off"),
    Option("--catalogue", metavar="FILE", help="accelerate what this file's CATALOGUE names"),
    Option(
        "--only", metavar="NAME", action="append", default=[], help="only this function, class or module; repeatable"
    ),
    Option("--exclude", metavar="NAME", action="append", default=[], help="leave this one out; repeatable"),
    Option(
        "--auto",
        action="store_true",
        default=None,
        help="choose hot loops and functions; default where no catalogue names any",
    ),
    Option("--ensemble", metavar="N", type=count, help="step N members beside the program's own loop"),
    Option("--perturb", metavar="FILE.py", help="with --ensemble: how the members differ"),
    Option("--members", metavar="FILE", help="with --ensemble: save them here (.nc or .npz)"),
    Option("--report", metavar="FILE", help="write the report (.json, .md, .txt); - is standard error"),
    Option("--profile", metavar="FILE.html", help="write a page that shows where the time went"),
    Option("--lines", action="store_true", help="show where the time went line by line, and what to change"),
    Option("--quiet", action="store_true", help="print no summary at the end"),
)
LONGEST = 200
"""Maximum characters of a command to print: one with -c may hold a whole program. A guess."""

TARGET_HELP = "a module (a.b), a script, a folder or zip file with __main__.py, -m MODULE, -c CODE, or -"


def _run_parser() -> Parser:
    return parser_with(
        [option.name for option in OPTIONS],
        prog="accel run",
        description="Run a program accelerated: functions that a catalogue names, or its own hot loops and functions.",
        epilog="Everything after TARGET belongs to the program. `accel docs settings` lists environment variables.",
        usage="accel run [OPTION]... TARGET [ARGS...]",
    )


def parser_with(names: Collection[str], **about: Any) -> Parser:
    """Return a parser that takes these options of `accel run`, and leaves the others at their defaults."""
    parser = Parser(**about)
    group = parser.add_mutually_exclusive_group()
    for option in PLACES:
        group.add_argument(option.name, **option.argparse)
    for option in OPTIONS:
        if option.name in names:
            parser.add_argument(option.name, **option.argparse)
        else:
            default = option.argparse.get("default", False if "action" in option.argparse else None)
            parser.set_defaults(**{option.name.removeprefix("--"): default})
    parser.add_argument("command", metavar="TARGET", nargs=argparse.REMAINDER, help=TARGET_HELP)
    return parser


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

    options: as they were given; the other fields are made of them. catalogue: None for the installed catalogues.
    catalogue_file: its absolute name, or None. profile: the file for the profile page, or None. auto: True if the
    targets with the most time are chosen at run time; None if that depends on whether a catalogue names functions of
    the program. quiet: True if only errors are shown. ensemble: None without one. unasked: True if QD_USE_JAX started
    accel, and no command of accel's.
    """

    options: argparse.Namespace
    command: StartCommand
    settings: Settings
    catalogue: Catalogue | None
    catalogue_file: str | None
    reports: tuple[Report, ...]
    profile: Path | None
    auto: bool | None
    quiet: bool
    ensemble: EnsembleOptions | None
    unasked: bool = False

    @property
    def names_functions(self) -> bool:
        """Whether a catalogue, or rows of one, are named."""
        return bool(self.catalogue or self.options.only or self.options.exclude)

    @property
    def program(self) -> str:
        """The program and its arguments, as the user wrote them."""
        return shlex.join([self.command.target, *self.command.args])

    @property
    def compile_first(self) -> str | None:
        """The `accel compile` command for the same program, for advice; None for one that can be read once."""
        given = ["--auto"] if self.auto else []
        for name in ("demo", "pygcm", "platform", "catalogue", "only", "exclude"):
            value = getattr(self.options, name)
            for each in value if isinstance(value, list) else [value] if value else []:
                given += [f"--{name}"] if each is True else [f"--{name}", each]
        command = shlex.join(["accel", "compile", *given, self.command.target, *self.command.args])
        shown = f"`{command}`" if len(command) <= LONGEST and "\n" not in command else IN_SHELL.compile_first
        return None if self.command.target == "-" else shown


def parse(argv: Sequence[str] | None, parser: Parser | None = None) -> CommandLine:
    """Parse the command line and the environment. Raises `SettingError` for invalid input.

    parser: None for that of `accel run`.
    """
    parser = parser or _run_parser()
    own, words = split_at_target(parser, sys.argv[1:] if argv is None else argv)
    options = parser.parse_args(own)
    command, settings = command_of(options, words), settings_of(options)
    return CommandLine(
        options,
        command,
        settings,
        None if options.catalogue is None else catalogue.load(options.catalogue),
        None if options.catalogue is None else os.path.abspath(options.catalogue),
        _reports(options, settings),
        None if options.profile is None else _writable("--profile", options.profile, (".html", ".htm")),
        options.auto,
        options.quiet or settings.quiet,
        _ensemble(options, settings),
    )


def _ensemble(options: argparse.Namespace, settings: Settings) -> EnsembleOptions | None:
    """Return the ensemble options, or None without --ensemble. Raises SettingError."""
    given = {"--perturb": options.perturb, "--members": options.members}
    if options.ensemble is None:
        for name, value in given.items():
            if value is not None:
                raise SettingError(name, value, "--ensemble as well", "has no effect on its own")
        return None
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
        from accel.backend.devices import check_platform  # imports JAX: only where the user names a platform

        try:
            check_platform(settings.platform)
        except SettingError as error:
            raise error.renamed("--platform" if options.platform else config.VARIABLES["platform"]) from None
    return settings


def _reports(options: argparse.Namespace, settings: Settings) -> tuple[Report, ...]:
    """Return the reports to write. Files are checked now, so that no error comes after hours of computing."""
    reports = []
    quiet = options.quiet or settings.quiet
    if options.report not in (None, "-"):
        path = _writable("--report", options.report, tuple(_SUFFIXES))
        reports.append(Report(_SUFFIXES[path.suffix.lower()], path))
    if options.report == "-" or (options.demo and not quiet):
        reports.append(Report("text", None, full=options.report == "-"))
    elif not quiet:
        reports.append(Report(None, None))
    return tuple(reports)


def _writable(option: str, name: str, suffixes: tuple[str, ...]) -> Path:
    """Return the path of `name`. Raises `SettingError` unless it has one of `suffixes` and can be written."""
    path = Path(name).absolute()
    if path.suffix.lower() not in suffixes:
        possible = f"names that end in {', '.join(suffixes[:-1])} or {suffixes[-1]}"
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
