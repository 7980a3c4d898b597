"""Run a program with accel installed: `python -m accel.run scripts.run_simulation`.

The program runs as Python itself would run it: the same `__main__`, `sys.argv`, `sys.path[0]`, exit code and traceback.
accel's summary goes to standard error, after everything that the program does at exit. Invalid input gives a message of
one line and exit code 2, before the program starts.
"""

from __future__ import annotations

import argparse
import atexit
import functools
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any, NamedTuple, NoReturn

from accel import catalogue, config, logs
from accel.catalogue import Catalogue
from accel.cli.options import Parser, refuse
from accel.comparison import runs
from accel.config import SettingError, Settings
from accel.hook import patching
from accel.hook.imports import find_module
from accel.reports import profiling, reporting, summary, timeline

_HERE = str(Path(__file__).parents[1]) + os.sep
_LAUNCHERS = ("<frozen runpy>", "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")
_SUFFIXES = {".json": "json", ".md": "markdown", ".markdown": "markdown", ".txt": "text", "": "text"}
TARGETS = "a dotted module such as scripts.run_simulation, or a script file"


# -- the command line ------------------------------------------------------------------------------------------------


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
    place = parser.add_mutually_exclusive_group()
    for option in PLACES:
        place.add_argument(option.name, **option.argparse)
    for option in OPTIONS:
        parser.add_argument(option.name, **option.argparse)
    what = "a dotted module, run as python -m would, or a script file; then its own arguments"
    parser.add_argument("command", metavar="TARGET [ARGS...]", nargs=argparse.REMAINDER, help=what)
    return parser


class Report(NamedTuple):
    """Where the report goes at the end: `path` None is standard error; `format` None is the one-line summary."""

    format: str | None
    path: Path | None


class Command(NamedTuple):
    """A program, its arguments, and the folder that it is in (None: it is found on `sys.path`)."""

    target: str
    args: list[str]
    folder: str | None


class _CommandLine(NamedTuple):
    """A checked command line: what to run, where, and how.

    catalogue: None for the installed ones. profile: the file for the page. compare: the folder for a comparison run's
    results. Both are None if not asked for.
    """

    command: Command
    settings: Settings
    catalogue: Catalogue | None
    only: list[str]
    exclude: list[str]
    reports: tuple[Report, ...]
    profile: Path | None
    compare: Path | None


def _parse(argv: Sequence[str] | None) -> _CommandLine:
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
    return _CommandLine(command, settings, rows, options.only, options.exclude, reports, profile, _comparison(options))


_NOT_WITH_COMPARE = {
    "report": "describes a single run, but --compare makes three",
    "profile": "describes a single run, but --compare makes three",
    "catalogue": "is not passed on to the runs of --compare",
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
        with path.open("a"):
            pass
        if fresh:
            path.unlink()
    except OSError as error:
        problem = f"cannot be written ({error.strerror})"
        raise SettingError(option, name, "a file in a folder that exists and is writable", problem) from None
    return path


# -- the program -----------------------------------------------------------------------------------------------------


class _Program(NamedTuple):
    """The code of a program, its `sys.argv[0]`, and the names that `__main__` starts with."""

    code: CodeType
    argv0: str
    names: dict[str, Any]


class _NoProgram(SettingError):
    """The target holds no code to run. A type of its own, because the user's program could raise SettingError."""


def enter(command: Command) -> str | None:
    """Set `sys.path[0]` as Python itself would. Return the script's path, or None if the target is a module.

    Raises `SettingError` if there is no such program.
    """
    if command.folder is not None:
        _set_first_path(command.folder)
    if _is_module(command.target):
        return None
    script = next((path for path in _script_paths(command) if os.path.isfile(path)), None)
    if script is None:
        raise SettingError("TARGET", command.target, TARGETS, "does not exist")
    _set_first_path(os.path.dirname(os.path.realpath(script)), *([command.folder] if command.folder else []))
    return script


def _is_module(target: str) -> bool:
    return find_module(target) is not None


def _script_paths(command: Command) -> list[str]:
    """Return the possible paths of a script: as the user wrote it, or in the folder that the user named."""
    target, folder = command.target, command.folder
    return [target] + ([os.path.join(folder, target)] if folder is not None else [])


def _set_first_path(*folders: str) -> None:
    """Put `folders` where Python puts the program's own folder. Under -P there is none to replace."""
    sys.path[: 0 if sys.flags.safe_path else 1] = folders


def _load_module(name: str) -> _Program:
    """Return the module as `python -m` would run it. Imports the packages around it: the user's code."""
    spec: Any = find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        return _load_module(f"{name}.__main__")
    code = spec.loader.get_code(spec.name) if hasattr(getattr(spec, "loader", None), "get_code") else None
    if code is None:
        raise _NoProgram("TARGET", name, TARGETS, "holds no Python code to run")
    names = {"__loader__": spec.loader, "__package__": spec.parent, "__spec__": spec, "__cached__": spec.cached}
    return _Program(code, str(spec.origin), {"__file__": spec.origin, **names})


def _load_script(path: str) -> _Program:
    """Return the script as `python path` would run it."""
    full = os.path.join(os.getcwd(), path)  # not abspath: Python does not normalise the name either
    loader = SourceFileLoader("__main__", full)
    code = loader.source_to_code(loader.get_data(full), full)
    names = {"__loader__": loader, "__package__": None, "__spec__": None, "__cached__": None}
    return _Program(code, path, {"__file__": full, **names})


def _execute(load: Callable[[], _Program], args: list[str]) -> None:
    """Run the program as `__main__`. What it raises is shown without accel's frames."""
    try:
        program = load()
        main = ModuleType("__main__")
        vars(main).update(program.names)
        sys.argv = [program.argv0, *args]
        sys.modules["__main__"] = main
        exec(program.code, vars(main))
    except _NoProgram:
        raise
    except BaseException:
        sys.excepthook = functools.partial(_show_users_traceback, sys.excepthook)
        raise


def _show_users_traceback(hook_in_force: Callable[..., Any], kind: Any, error: BaseException, _: Any) -> None:
    """Pass the error to the program's excepthook, or Python's, without the frames that started the program."""
    _strip(error, set())
    hook_in_force(kind, error, error.__traceback__)


def _strip(error: BaseException | None, seen: set[int]) -> None:
    """Remove accel's frames from the tracebacks of `error` and of its causes and contexts."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    error.__traceback__ = _without_ours(error.__traceback__)
    _strip(error.__cause__, seen)
    _strip(error.__context__, seen)


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """Return `traceback` without accel's frames and those of the program's start.

    If the error was raised inside accel, all frames are kept, because they are needed to report it.
    """
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    started = [not _is_ours(frame) and frame.tb_frame.f_code.co_filename not in _LAUNCHERS for frame in frames]
    first = started.index(True) if True in started else len(frames)
    kept = [frame for frame in frames[first:] if not _is_ours(frame)]
    if frames and _is_ours(frames[-1]) and _raised_by_accel(frames[-1]):
        kept = frames
    following: TracebackType | None = None
    for frame in reversed(kept):
        following = TracebackType(following, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return following


def _is_ours(traceback: TracebackType) -> bool:
    return traceback.tb_frame.f_code.co_filename.startswith(_HERE)


def _raised_by_accel(traceback: TracebackType) -> bool:
    """Whether the innermost frame is in accel proper, and not in this file, which compiles the user's source."""
    return traceback.tb_frame.f_code.co_filename != __file__


# -- the end ---------------------------------------------------------------------------------------------------------


def _finish(plan: _CommandLine, process: int) -> None:
    """Write the reports. A forked child does not: its parent does."""
    if os.getpid() != process:
        return
    for report in plan.reports:
        text = summary.summary_line() + "\n" if report.format is None else reporting.report(report.format)
        _try_to_write(text, report.path, "report")
    if plan.profile is not None:
        _try_to_write(profiling.page(" ".join([plan.command.target, *plan.command.args])), plan.profile, "profile")


def _try_to_write(text: str, path: Path | None, what: str) -> None:
    try:
        _write(text, path)
    except (OSError, ValueError) as error:
        _write(f"accel: the {what} could not be written: {error}\n", None)


def _write(text: str, path: Path | None) -> None:
    if path is not None:
        path.write_text(text, encoding="utf-8")
    elif sys.stderr is not None and not sys.stderr.closed:
        sys.stdout.flush()
        sys.stderr.write(text)


def execute(command: Command, script: str | None) -> int:
    """Run the program that `enter` has found as `__main__`. Returns 0, or 2 if the target holds no code to run."""
    load = (
        functools.partial(_load_module, command.target) if script is None else functools.partial(_load_script, script)
    )
    try:
        _execute(load, command.args)
    except _NoProgram as error:
        atexit.unregister(_finish)
        return refuse(error)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program that `argv` (default: the command line) names. Returns the exit code if nothing was raised."""
    try:
        plan = _parse(argv)
        script = enter(plan.command)
        if plan.compare is not None:
            return _compare(plan, plan.compare, script)
        config.set_current(replace(plan.settings, quiet=True))  # `_finish` writes the summary
        logs.to_stderr()
        if plan.profile is not None:
            timeline.start()
        patching.install(plan.catalogue, only=plan.only, exclude=plan.exclude)
    except SettingError as error:
        return refuse(error)
    atexit.register(_finish, plan, os.getpid())
    return execute(plan.command, script)


def _compare(plan: _CommandLine, out: Path, script: str | None) -> int:
    """Make a comparison run. Returns the exit code: 1 if a run of the program fails."""
    target, args, folder = plan.command
    spec = {
        "target": target if script is None else os.path.abspath(script),
        "args": args,
        "folder": folder or os.getcwd(),
        "settings": {name: getattr(plan.settings, name) for name in ("platform", "mode")},
        "only": plan.only,
        "exclude": plan.exclude,
    }
    try:
        result = runs.compare(spec, out)
    except runs.RunFailed as error:
        sys.stderr.write(f"accel: {error}\n")
        return 1
    sys.stderr.write(runs.one_line_summary(result, out))
    return 0
