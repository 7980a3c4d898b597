"""Run a program with accel installed: `python -m accel.run scripts.run_simulation`.

The program runs as Python itself would run it, with the same exit code. accel's summary goes to standard error, after
everything that the program does at exit. Invalid input gives a message of one line and exit code 2, before the program
starts.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from accel import config, logs
from accel.cli.chosen import as_catalogue, summary_of_chosen
from accel.cli.commandline import CommandLine, parse
from accel.cli.options import refuse
from accel.cli.program import enter, execute
from accel.comparison import runs
from accel.config import SettingError
from accel.hook import patching
from accel.reports import profiling, reporting, summary, timeline


def _finish(plan: CommandLine, process: int) -> None:
    """Write the reports. A forked child does not: its parent does."""
    if os.getpid() != process:
        return
    for report in plan.reports:
        text = summary.summary_line() + "\n" if report.format is None else reporting.report(report.format)
        _try_to_write(text, report.path, "report")
    if plan.auto and not plan.settings.quiet:
        _try_to_write(summary_of_chosen(patching.chosen()), None, "choice")
    if plan.chosen is not None:
        _try_to_write(as_catalogue(patching.chosen(), plan.command.target), plan.chosen, "catalogue")
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
        # both streams may go to one file: the summary comes after the program's output
        sys.stdout.flush()
        sys.stderr.write(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program that `argv` (default: the command line) names. Returns the exit code if nothing was raised."""
    try:
        plan = parse(argv)
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
    atexit.register(_finish, plan, os.getpid())  # first, so that it runs after the program's own handlers
    code = execute(plan.command, script, auto=plan.auto)
    if code:  # nothing has run, so there is nothing to report
        atexit.unregister(_finish)
    return code


def _compare(plan: CommandLine, out: Path, script: str | None) -> int:
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
