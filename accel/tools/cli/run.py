"""Run a program with accel installed: `accel run scripts.run_simulation`.

The program runs as Python itself would run it, with the same exit code. Invalid input gives a message of one line and
exit code 2, before the program starts. A run that is known to be too short to gain anything is left alone: little of
accel is imported then.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence

from accel.platform import config, logs, ranks, tuning
from accel.platform.clocks import time
from accel.platform.config import SettingError
from accel.platform.options import refuse
from accel.tools.cli import lengths
from accel.tools.cli.broken import without
from accel.tools.cli.commandline import CommandLine, parse
from accel.tools.cli.program import enter, execute, is_broken_off


def _joined(settings: config.Settings) -> config.Settings:
    """Join the other processes of the run, and return the settings for the program. Only the first process returns."""
    if settings.machines is None:
        return settings
    from accel.backend.machines.joining import join

    return join(settings)


def main(argv: Sequence[str] | None = None, *, unasked: bool = False) -> int:
    """Run the program that `argv` names (default: the command line). Returns the exit code if nothing was raised.

    unasked: see `CommandLine`.
    """
    try:
        plan = parse(argv)._replace(unasked=unasked)
        settings = _joined(plan.settings)  # before `enter`, which imports the packages of a module
        start = enter(plan.command)
    except SettingError as error:
        return refuse(error)
    history = lengths.History(plan, start) if lengths.counts(plan) else None
    if history is not None and history.last is not None and history.last.is_left_alone:
        atexit.register(_end_alone, plan, os.getpid(), history)
        tuning.keep_freed()  # often most of what a run under accel gains, and it costs nothing
        return execute(start, hooked=False)
    began = time.process_time()
    try:
        from accel.tools.cli import running  # which takes long to import
    except Exception as error:
        logs.say_at_end(without(error))
        return execute(start, hooked=False)
    return running.run(plan, settings, start, history, time.process_time() - began)


def _end_alone(plan: CommandLine, process: int, history: lengths.History) -> None:
    """Note how long a run took that was left alone, and say that it was."""
    if os.getpid() != process or not ranks.is_first():
        return
    sentence = history.note_alone(whole=not is_broken_off())
    if not plan.quiet:
        logs.say_at_end(f"accel: {sentence}\n")
