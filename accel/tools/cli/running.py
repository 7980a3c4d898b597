"""Run a program with accel installed, and write its reports.

accel's summary goes to standard error, after everything that the program does at exit. Mode `verify` has an exit code
of its own, MISMATCH.
"""

from __future__ import annotations

import atexit
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from accel.entry.hook import patching
from accel.platform import config, freed, logs, ranks, timeline
from accel.platform.config import SettingError
from accel.platform.ledger import current_run, ledgers
from accel.platform.options import refuse
from accel.platform.reasons import Refused
from accel.reports import last, summary
from accel.reports.advice import IN_SHELL, UNKEPT, Advice
from accel.reports.figures import LOST, figures_of_run
from accel.tools.cli import minutes
from accel.tools.cli.choices import RunChoice, chooses, summary_of_chosen, without_source
from accel.tools.cli.commandline import CommandLine, Report
from accel.tools.cli.lengths import History
from accel.tools.cli.program import execute, is_broken_off
from accel.tools.cli.starts import Start
from accel.tools.plugins.lines import INTERVAL_S, RARE_S, Looking

MISMATCH = 3
"""Exit code of a run in mode `verify` that found a mismatch and would otherwise have ended with 0.

Codes 1 and 2 are taken: 1 for an uncaught exception, 2 for invalid input.
"""


def _finish(
    plan: CommandLine, process: int, choice: RunChoice | None, lines: Looking | None, history: History | None
) -> None:
    """Write the reports. A forked child leaves that to its parent, and MPI ranks leave it to the first rank.

    A program that never imported NumPy, in a shell with QD_USE_JAX=1, has none: the last one stays.
    """
    if os.getpid() != process or not ranks.is_first() or (plan.unasked and "numpy" not in sys.modules):
        return
    patching.look_back()
    figures = figures_of_run()
    if plan.ensemble is not None:
        figures["members"] = plan.ensemble.members
    if history is not None and not is_broken_off():
        history.note_accelerated(figures)
    if lines is not None:
        from accel.tools.plugins import faster

        lines.stop()
        figures["faster"] = faster.advice(lines.profile)
    page = plan.profile is not None and _write_page(plan.program, plan.profile)
    kept = last.keep(figures, plan.program, profile=plan.profile if page else None)
    ended_by = getattr(sys, "last_value", None)  # the error that nobody has caught
    refused = isinstance(ended_by, Refused)
    advice = replace(IN_SHELL if kept else UNKEPT, compile_first=plan.compile_first, refused=refused)
    if choice is not None:  # which need not be advised
        advice = replace(advice, start_brief=None)
    for report in plan.reports:
        write_report(report, figures, advice)
    if lines is not None and plan.options.lines:
        told = ["", "to be faster", *(f"  {each}" for each in figures["faster"])] if figures["faster"] else []
        logs.say_at_end("\n".join([str(lines.profile), *told, ""]))
    if choice is None or summary.was_off(figures):
        return
    chosen = choice.settle(lost=figures["totals"]["net"] == LOST)
    if not plan.quiet and (chosen or plan.auto or without_source(plan.command.target)):
        logs.say_at_end(summary_of_chosen(chosen, plan.command.target, again=bool(choice.before)))


def _write_page(program: str, path: Path) -> bool:
    from accel.reports import profiling

    return _try_to_write(profiling.page(program), path, "profile")


def write_report(report: Report, figures: dict[str, Any], advice: Advice) -> None:
    """Write a report, or the summary, where the command line wants it."""
    if report.format is None:
        text = "\n".join([summary.summary_of(figures, advice), *(f"accel: {note}" for note in patching.held()), ""])
    else:
        from accel.reports import reporting

        text = reporting.render(figures, report.format, full=report.full, advice=advice)
    _try_to_write(text, report.path, "report")


def _try_to_write(text: str, path: Path | None, what: str) -> bool:
    """Write the text, to standard error without a path. Returns False if it cannot be written."""
    if path is None:
        logs.say_at_end(text)
        return True
    try:
        path.write_text(text, encoding="utf-8")
        return True
    except (OSError, ValueError) as error:
        logs.say_at_end(f"accel: the {what} could not be written: {error}\n")
        return False


def run(plan: CommandLine, settings: config.Settings, start: Start, history: History | None, begun_s: float) -> int:
    """Run a program with accel installed. Returns the exit code if nothing was raised.

    settings: for the program. history: of the program's lengths; None if they do not matter. begun_s: what
    accel's own start has taken so far.
    """
    try:
        config.set_current(replace(settings, quiet=True))  # `_finish` writes the summary
        with current_run().loading():
            choice = RunChoice(start) if chooses(start, named=plan.names_functions, asked=plan.auto) else None
            logs.to_stderr()
            if not plan.quiet and ranks.is_first():
                minutes.start()
            if plan.profile is not None:
                timeline.start()
            joining = None
            if plan.ensemble is not None:
                from accel.tools.cli.joining import Joining

                joining = Joining(plan.ensemble, plan.quiet)
            more = [*([] if joining is None else joining.rows), *([] if choice is None else choice.before)]
            patching.install(plan.catalogue, only=plan.options.only, exclude=plan.options.exclude, more=more)
    except SettingError as error:
        return refuse(error)
    current_run().charge("loading", begun_s)
    if history is not None and history.last is not None:
        current_run().expected_s, current_run().expected_gain_s = history.last.numpy_s, history.last.gain_s
        if history.last.freed:
            freed.current.begin(history.last.freed)
    lines = None
    if plan.options.lines or (settings.enabled and settings.mode == "auto"):
        lines = Looking(INTERVAL_S if plan.options.lines else RARE_S)
    # first, so that it runs after the program's own handlers
    atexit.register(_finish, plan, os.getpid(), choice, lines, history)
    if joining is not None:
        return joining.run(lambda: execute(start, auto=True, ready=joining.choose))
    process = os.getpid()
    try:
        code = execute(start, auto=choice is not None)
    except SystemExit as ended:
        if ended.code or not _found_mismatch(plan, process):
            raise
        return MISMATCH
    if code:  # nothing has run, so there is nothing to report
        atexit.unregister(_finish)
        return code
    return MISMATCH if _found_mismatch(plan, process) else 0


def _found_mismatch(plan: CommandLine, process: int) -> bool:
    """Return whether a run in mode `verify` found a mismatch.

    process: the id of the run's own process. In a forked child the result is False: the child keeps its own exit code.
    """
    if plan.settings.mode != "verify" or os.getpid() != process:
        return False
    return any(refusal.reason == "verify.mismatch" for book in ledgers() for refusal in book.refusals)
