"""`python -m accel compile TARGET [ARGS...]`: compile, before the first real run, what a program's runs need.

The program runs in a process of its own, started here and ended here; its words are kept back, and shown where it
fails.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from accel import catalogue, config
from accel.backend import cache
from accel.cli import run
from accel.cli.options import BAD_INPUT, Parser, refuse
from accel.comparison.runs import environment
from accel.config import SettingError
from accel.precompile import words

SETTLED = 200
"""Steps without anything new after which the program has shown what it needs, unless the user says otherwise."""

LOOK_S = 0.1
"""Seconds between two looks at the program."""

RARELY_S = 30.0
"""Seconds between two lines where nobody watches a terminal."""

LAST_WORDS = 15
"""Lines that are shown of a program that failed."""

_SHARED = ("--platform", "--catalogue", "--only", "--exclude")
"""Options that mean what they mean to `accel.run`."""

_EPILOG = """The program is not simulated: it reads and writes its files as ever. It is ended by force once enough was
seen, as a power cut would: what it would have saved at its end is not saved, and a file that it was writing may be
incomplete. Give it an output folder of its own, or a copy of the restart file that it overwrites as it goes. Ctrl-C
ends it early; what was compiled until then is kept."""


class _Plan(NamedTuple):
    """A checked command line. catalogue: the file, None for the installed ones. report: path and format."""

    command: run.Command
    settings: config.Settings
    catalogue: str | None
    only: list[str]
    exclude: list[str]
    report: tuple[str, str] | None
    settled: int
    steps: int | None
    output: bool
    quiet: bool


class _Ended(NamedTuple):
    """How the program ended. last: what its process noted last, if anything; said: the end of its own words."""

    code: int
    last: Mapping[str, Any] | None
    said: list[str]


# -- the command line ------------------------------------------------------------------------------------------------


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


_count.__name__ = "whole number from 1"  # argparse puts it into its complaint


def _parser() -> Parser:
    parser = Parser(
        prog="python -m accel compile",
        usage="python -m accel compile [OPTION]... TARGET [ARGS...]",
        description="Run a program until nothing new needs compiling, keep all that was compiled in the disk cache, "
        "and end the program. Its next run, started as always, begins with compiled programs.",
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    place = parser.add_mutually_exclusive_group()
    for option in run.PLACES:
        place.add_argument(option.name, **option.argparse)
    for option in run.OPTIONS:
        if option.name in _SHARED:
            parser.add_argument(option.name, **option.argparse)
    steps = parser.add_mutually_exclusive_group()
    what = f"end once N steps brought nothing new; default {SETTLED}. A step is a call of the function that the "
    what += "catalogue names, or else of the one with most time in it"
    steps.add_argument("--settled", metavar="N", type=_count, default=SETTLED, help=what)
    steps.add_argument("--steps", metavar="N", type=_count, help="end after N steps, whatever they bring")
    parser.add_argument("--report", metavar="FILE", help="write the report here: JSON, Markdown or text by suffix")
    parser.add_argument("--output", action="store_true", help="show what the program says; default: only if it fails")
    parser.add_argument("--quiet", action="store_true", help="say nothing but what could not be done")
    what = "a dotted module, run as python -m would, or a script file; then its own arguments"
    parser.add_argument("command", metavar="TARGET [ARGS...]", nargs=argparse.REMAINDER, help=what)
    return parser


def _plan(argv: Sequence[str]) -> _Plan:
    """What the command line and the environment ask for. Raises SettingError for what cannot be used."""
    options = _parser().parse_args(argv)
    options.mode = None
    folder, default = run.folder_of(options)
    target, *args = options.command or [default]
    if not target:
        raise SettingError("TARGET", "", run.TARGETS, "is missing")
    settings = run.settings_of(options)
    _check_settings(settings)
    if options.catalogue is not None:
        catalogue.load(options.catalogue)
    report = None if options.report is None else run.report_file(options.report)
    return _Plan(
        run.Command(target, args, folder),
        settings,
        None if options.catalogue is None else os.path.abspath(options.catalogue),
        options.only,
        options.exclude,
        None if report is None else (str(report.path), str(report.format)),
        options.settled,
        options.steps,
        options.output,
        options.quiet,
    )


def _check_settings(settings: config.Settings) -> None:
    """Compiling must not be switched off, and there must be a place for what is compiled."""
    if not settings.enabled:
        raise SettingError(config.VARIABLES["enabled"], 0, "1, or unset", "compiles nothing")
    if settings.mode == "off":
        raise SettingError(config.VARIABLES["mode"], "off", "auto, or unset", "compiles nothing")
    config.set_current(settings)
    problem = cache.problem()
    if problem:
        value = "off" if settings.cache_dir is None else str(settings.cache_dir)
        raise SettingError(config.VARIABLES["cache_dir"], value, _FOLDERS, f"keeps nothing: {problem}")


_FOLDERS = "a folder that you can write to and others cannot"


# -- the program -----------------------------------------------------------------------------------------------------


class _Status:
    """The line that says how far the program is: on a terminal always the same one, elsewhere one now and then."""

    def __init__(self, quiet: bool) -> None:
        self._silent = quiet or sys.stderr is None
        self._terminal = not self._silent and sys.stderr.isatty()
        self._said = time.perf_counter()
        self._shown = ""

    def show(self, line: str) -> None:
        """Say it, if it is news."""
        if self._silent or line == self._shown:
            return
        if self._terminal:
            sys.stderr.write("\r" + line.ljust(len(self._shown)))
            self._shown = line
        elif time.perf_counter() - self._said >= RARELY_S:
            self._said = time.perf_counter()
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def clear(self) -> None:
        """Leave the terminal as it was."""
        if self._terminal and self._shown:
            sys.stderr.write("\r" + " " * len(self._shown) + "\r")
            sys.stderr.flush()
            self._shown = ""


def _run(plan: _Plan, script: str | None) -> _Ended:
    """Run the program until its process ends. Ctrl-C ends that at once: `code` is then that of an interrupt."""
    with tempfile.TemporaryDirectory(prefix="accel-compile-") as name:
        folder = Path(name)
        news, spec = folder / "news.json", folder / "spec.json"
        spec.write_text(json.dumps(_spec(plan, script, news)), encoding="utf-8")
        status = _Status(plan.quiet)
        with (folder / "words.txt").open("w+b") as said:
            stream = None if plan.output else said
            process = subprocess.Popen(
                [sys.executable, "-m", "accel.precompile.child", str(spec)],
                stdin=None if sys.stdin is not None and not sys.stdin.isatty() else subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=environment("accel"),
                start_new_session=True,  # Ctrl-C is ours alone: the program must not save what is half done
            )
            try:
                code = _follow(process, news, plan, status)
            except KeyboardInterrupt:
                code = _INTERRUPTED
            finally:
                status.clear()
                process.kill()
                process.wait()
            said.seek(0)
            text = said.read().decode("utf-8", errors="replace")
        return _Ended(code, _noted(news), text.splitlines()[-LAST_WORDS:])


_INTERRUPTED = 130


def _spec(plan: _Plan, script: str | None, news: Path) -> dict[str, Any]:
    return {
        "target": plan.command.target if script is None else os.path.abspath(script),
        "args": plan.command.args,
        "folder": plan.command.folder or os.getcwd(),
        "platform": plan.settings.platform,
        "catalogue": plan.catalogue,
        "only": plan.only,
        "exclude": plan.exclude,
        "report": plan.report,
        "settled": plan.settled,
        "steps": plan.steps,
        "news": str(news),
    }


def _follow(process: subprocess.Popen[bytes], news: Path, plan: _Plan, status: _Status) -> int:
    """Show how far the program is until its process has ended; its exit code."""
    while True:
        try:
            return process.wait(LOOK_S)
        except subprocess.TimeoutExpired:
            last = _noted(news)
            if last is not None:
                status.show(words.progress(last["progress"], plan.settled, plan.steps))


def _noted(news: Path) -> dict[str, Any] | None:
    """What the process has noted last; None where that is nothing yet."""
    try:
        found: dict[str, Any] = json.loads(news.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return found


# -- the end ---------------------------------------------------------------------------------------------------------


def main(argv: Sequence[str]) -> int:
    """Do what the command line asks for; returns the exit code: 1 where nothing was kept or the program failed."""
    try:
        plan = _plan(argv)
        script = run.enter(plan.command)
    except SettingError as error:
        return refuse(error)
    if not plan.quiet:
        sys.stderr.write(words.before(Path.cwd(), plan.settled, plan.steps))
        sys.stderr.flush()
    ended = _run(plan, script)
    if ended.code == BAD_INPUT and ended.last is None:
        sys.stderr.write("\n".join(ended.said) + "\n")
        return BAD_INPUT
    return _say(plan, ended)


def _say(plan: _Plan, ended: _Ended) -> int:
    """Say what was kept, and what went wrong, if anything did; the exit code."""
    account = ended.last
    if ended.code:
        sys.stderr.write(_failure(plan, ended))
    if account is None or "report" not in account:
        return ended.code if ended.code == _INTERRUPTED else 1
    assert plan.settings.cache_dir is not None, "it was checked"
    if not plan.quiet:
        sys.stdout.write(words.after(account, plan.settings.cache_dir))
    return 0 if not ended.code and words.kept_programs(account["report"]) else 1


def _failure(plan: _Plan, ended: _Ended) -> str:
    """How it came that the program ended before enough was seen."""
    kept = f"; {words.until_then(ended.last['progress'])}" if ended.last is not None else ""
    if ended.code == _INTERRUPTED:
        return f"accel: interrupted{kept}\n"
    said = [] if plan.output or not ended.said else ["its last words:", *(f"  {line}" for line in ended.said)]
    return "\n".join([f"accel: the program ended with exit code {ended.code}{kept}", *said]) + "\n"
