"""`accel compile TARGET [ARGS...]`: compiles the programs that later runs need, before the first real run.

The program runs in a process of its own, which is started and ended here. Its output is shown only if it fails.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from accel import catalogue
from accel.backend.disk import cache
from accel.platform import config, project
from accel.platform.clocks import time
from accel.platform.config import SettingError
from accel.platform.options import BAD_INPUT, Parser, refuse, split_at_target
from accel.platform.status import TerminalLine, is_terminal
from accel.tools.cli import commandline, lengths, program
from accel.tools.cli.starts import Start, StartCommand
from accel.tools.comparison.runs import environment
from accel.tools.precompile import messages, stops

SETTLED = 200
"""Steps without anything new after which the run ends. The default of --settled."""

LOOK_S = 0.1
"""Seconds between two checks of the program's progress."""

RARELY_S = 30.0
"""Seconds between two lines about the progress if standard error is not a terminal."""

MAX_OUTPUT_LINES = 15
"""Maximum lines of output to show of a program that failed: the last ones."""

_SHARED = ("--platform", "--catalogue", "--only", "--exclude", "--auto")
"""Options that mean the same as for `accel run`."""

_EPILOG = """The program really runs: it reads and writes its files as usual. Once enough has been seen, it is
killed: what it would save at its end is not saved, and a file that it was writing may be
incomplete. Give it an output folder of its own, or a copy of the restart file that it
overwrites. Ctrl-C ends it early; what was compiled until then is kept."""


class _CommandLine(NamedTuple):
    """A checked command line. catalogue: the file, None for the installed ones. report: path and format."""

    command: StartCommand
    settings: config.Settings
    catalogue: str | None
    only: list[str]
    exclude: list[str]
    auto: bool | None
    report: tuple[str, str] | None
    settled: int
    steps: int | None
    output: bool
    quiet: bool


class _Ended(NamedTuple):
    """How the program ended. last: the final content of its process's file, or None. output: its last lines."""

    code: int
    last: Mapping[str, Any] | None
    output: list[str]


# -- the command line ------------------------------------------------------------------------------------------------


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


_count.__name__ = "whole number from 1"  # argparse uses it in its error message


def _parser() -> Parser:
    parser = Parser(
        prog="accel compile",
        usage="accel compile [OPTION]... TARGET [ARGS...]",
        description="Run a program until nothing new needs compiling, keep the compiled programs in the disk cache, "
        "and end the program. Its next run, started as usual, begins with compiled programs.",
        epilog=_EPILOG,
    )
    group = parser.add_mutually_exclusive_group()
    for option in commandline.PLACES:
        group.add_argument(option.name, **option.argparse)
    for option in commandline.OPTIONS:
        if option.name in _SHARED:
            parser.add_argument(option.name, **option.argparse)
    steps = parser.add_mutually_exclusive_group()
    what = f"end after N steps without anything new; default {SETTLED}"
    steps.add_argument("--settled", metavar="N", type=_count, default=SETTLED, help=what)
    steps.add_argument("--steps", metavar="N", type=_count, help="end after N steps in any case")
    parser.add_argument("--report", metavar="FILE", help="write the report here: JSON, Markdown or text by suffix")
    parser.add_argument("--output", action="store_true", help="show the program's output; default: only if it fails")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    parser.add_argument("command", metavar="TARGET", nargs=argparse.REMAINDER, help=commandline.TARGET_HELP)
    return parser


def _parse(argv: Sequence[str]) -> _CommandLine:
    """Parse the command line and the environment. Raises SettingError for invalid input."""
    parser = _parser()
    own, words = split_at_target(parser, argv)
    options = parser.parse_args(own)
    options.mode = None
    command = commandline.command_of(options, words)
    settings = commandline.settings_of(options)
    _check_settings(settings)
    if options.catalogue is not None:
        catalogue.load(options.catalogue)
    report = None if options.report is None else commandline.report_file(options.report)
    return _CommandLine(
        command,
        settings,
        None if options.catalogue is None else os.path.abspath(options.catalogue),
        options.only,
        options.exclude,
        options.auto,
        None if report is None else (str(report.path), str(report.format)),
        options.settled,
        options.steps,
        options.output,
        options.quiet,
    )


def _check_settings(settings: config.Settings) -> None:
    """Raise SettingError if compiling is switched off, or if compiled programs could not be stored."""
    if not settings.enabled:
        raise SettingError(config.VARIABLES["enabled"], 0, "1, or unset", "compiles nothing")
    if settings.mode == "off":
        raise SettingError(config.VARIABLES["mode"], "off", "auto, or unset", "compiles nothing")
    config.set_current(settings)
    problem = cache.problem()
    if problem:
        value = "off" if settings.cache_dir is None else str(settings.cache_dir)
        raise SettingError(config.VARIABLES["cache_dir"], value, _FOLDERS, f"keeps nothing: {problem}")


_FOLDERS = "a folder that only you can write to"


# -- the program -----------------------------------------------------------------------------------------------------


class _Progress:
    """Shows the progress: on a terminal as one line that is overwritten, elsewhere as a line now and then.

    Not a `status.StatusLine`: that one hides while this process is idle, and here it only waits.
    """

    def __init__(self, quiet: bool) -> None:
        self._silent = quiet or sys.stderr is None
        self._line = TerminalLine(sys.stderr) if not self._silent and is_terminal(sys.stderr) else None
        self._said = time.perf_counter()

    def show(self, line: str) -> None:
        """Show the line, unless it is shown already."""
        if self._line is not None:
            self._line.show(line)
        elif not self._silent and time.perf_counter() - self._said >= RARELY_S:
            self._said = time.perf_counter()
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    def clear(self) -> None:
        """Erase the line from the terminal."""
        if self._line is not None:
            self._line.erase()


def _run(plan: _CommandLine, start: Start) -> _Ended:
    """Run the program until its process ends. A signal kills the process; `code` is then one of `stops.WORDS`."""
    with stops.noted() as stopped, tempfile.TemporaryDirectory(prefix="accel-compile-") as name:
        folder = Path(name)
        news, spec = folder / "news.json", folder / "spec.json"
        spec.write_text(json.dumps(_spec(plan, start, news)), encoding="utf-8")
        progress = _Progress(plan.quiet)
        with (folder / "output.txt").open("w+b") as output:
            stream = None if plan.output else output
            process = subprocess.Popen(
                [sys.executable, "-m", "accel.tools.precompile.child", str(spec)],
                stdin=None if sys.stdin is not None and not sys.stdin.isatty() else subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=environment("accel"),
                start_new_session=True,  # the program must not get Ctrl-C, or it might save an incomplete state
            )
            try:
                code = _follow(process, news, plan, progress, stopped)
            finally:
                # in any case: nothing of the program may go on after this command
                process.kill()
                process.wait()
                progress.clear()
            output.seek(0)
            text = output.read().decode("utf-8", errors="replace")
        return _Ended(code, _read(news), text.splitlines()[-MAX_OUTPUT_LINES:])


def _spec(plan: _CommandLine, start: Start, news: Path) -> dict[str, Any]:
    target, args = start.elsewhere
    return {
        "target": target,
        "args": args,
        "program": shlex.join(["accel", "compile", plan.command.target, *plan.command.args]),
        "folder": plan.command.folder or os.getcwd(),
        "home": project.home(),
        "platform": plan.settings.platform,
        "catalogue": plan.catalogue,
        "only": plan.only,
        "exclude": plan.exclude,
        "auto": plan.auto,
        "report": plan.report,
        "settled": plan.settled,
        "steps": plan.steps,
        "news": str(news),
    }


def _follow(
    process: subprocess.Popen[bytes], news: Path, plan: _CommandLine, progress: _Progress, stopped: stops.Stops
) -> int:
    """Show the progress until the process ends or a signal arrives. Returns the exit code of either."""
    while not stopped.code:
        try:
            code = process.wait(LOOK_S)
            return stopped.code or code  # a scheduler may have sent the signal to both
        except subprocess.TimeoutExpired:
            last = _read(news)
            if last is not None:
                progress.show(messages.progress(last["progress"], plan.settled, plan.steps))
    return stopped.code


def _read(news: Path) -> dict[str, Any] | None:
    """Return the content of the process's file; None if there is none yet."""
    try:
        content: dict[str, Any] = json.loads(news.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return content


# -- the end ---------------------------------------------------------------------------------------------------------


def main(argv: Sequence[str]) -> int:
    """Run the command. Returns the exit code: 1 if nothing was stored or the program failed, 2 for invalid input."""
    try:
        plan = _parse(argv)
        start = program.enter(plan.command)
    except SettingError as error:
        return refuse(error)
    if not plan.quiet:
        sys.stderr.write(messages.before(Path.cwd(), plan.settled, plan.steps))
        sys.stderr.flush()
    ended = _run(plan, start)
    # the child refused its input, such as a pattern that selects nothing: no program has run
    if ended.code == BAD_INPUT and ended.last is None:
        sys.stderr.write("\n".join(ended.output) + "\n")
        return BAD_INPUT
    lengths.forget()
    return _say(plan, ended)


def _say(plan: _CommandLine, ended: _Ended) -> int:
    """Print how many programs were stored, and any failure. Returns the exit code."""
    account = ended.last
    if ended.code:
        sys.stderr.write(_failure(plan, ended))
    if account is None or "report" not in account:
        return ended.code if ended.code in stops.WORDS else 1
    assert plan.settings.cache_dir is not None, "it was checked"
    for slip in account["slips"]:
        sys.stderr.write(f"accel: {slip}\n")
    if not plan.quiet:
        sys.stdout.write(messages.after(account, plan.settings.cache_dir))
    return 0 if not ended.code and messages.kept_programs(account["report"]) else 1


def _failure(plan: _CommandLine, ended: _Ended) -> str:
    """Return the message for a program that ended while new paths were still compiled."""
    kept = f"; {messages.until_then(ended.last['progress'])}" if ended.last is not None else ""
    if ended.code in stops.WORDS:
        return f"accel: {stops.WORDS[ended.code]}{kept}\n"
    output = [] if plan.output or not ended.output else ["its last output:", *(f"  {line}" for line in ended.output)]
    return "\n".join([f"accel: the program ended with exit code {ended.code}{kept}", *output]) + "\n"
