"""The process that runs the program: `python -m accel.tools.precompile.child SPEC.json`, which `command` starts.

It compiles at first need, without a budget, and keeps every program on disk. Once nothing new needs compiling, it ends
at once, in the middle of the program: handlers at exit do not run, and a restart file is not written. It reports by a
file that is replaced atomically: the progress at first, and the result at the end.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from accel import catalogue
from accel.dispatch.target import Target
from accel.entry.hook import patching
from accel.platform import config, ledger, logs, project
from accel.platform.clocks import time
from accel.platform.options import refuse
from accel.policy import budget
from accel.policy.call import THREAD
from accel.reports import last, reporting
from accel.reports.advice import IN_SHELL
from accel.reports.figures import figures_of_run
from accel.tools.cli import choices, program
from accel.tools.cli.choices import RunChoice
from accel.tools.cli.starts import StartCommand
from accel.tools.precompile.watch import NewsCounter

TICK_S = 0.2
"""Seconds between two updates of the progress."""

MORE_VARIANTS = 4
"""Factor on the maximum number of programs per function: the next run may need other programs first."""

ENDED = "ended"
"""Ending of a run in which the program came to its own end."""


class Reporter:
    """Writes progress and result to the file `news`, and ends the process once nothing new needs compiling.

    program: the command, as `accel report` names the run. report: path and format of the user's report, or None.
    choice: what accel chooses of the program, if it does.
    """

    def __init__(
        self, news: Path, watch: NewsCounter, program: str, report: tuple[str, str] | None, choice: RunChoice | None
    ) -> None:
        self._choice = choice
        self._news = news
        self._program = program
        self._watch = watch
        self._report = report
        self._told = 0.0
        self._targets: dict[int, Target] = {}
        self._process = os.getpid()
        self._parent = os.getppid()

    def after(self, target: Target, nested: bool) -> None:
        """Record the end of a target's call. Ends the process if nothing new needs compiling.

        nested: True if the call was inside another target's call.
        """
        self._targets[id(target)] = target
        if nested or os.getpid() != self._process:  # a child that the program forked
            return
        enough = self._watch.after(target.name)
        if enough is not None:
            self.finish(enough)
            os._exit(0)
        if time.perf_counter() - self._told >= TICK_S:
            self._told = time.perf_counter()
            if os.getppid() != self._parent:  # the command's process is gone
                os._exit(1)
            self._write(progress=asdict(self._watch.progress()))

    def finish(self, ending: str = ENDED) -> None:
        """Compile the remaining paths, and write the result. Does nothing in a forked child of the program."""
        if os.getpid() == self._process:
            for target in self._targets.values():
                target.compile_remaining()
            if self._choice is not None:
                self._choice.settle(beforehand=True)
            figures = figures_of_run()
            report = json.loads(reporting.render(figures, "json"))
            last.keep(figures, self._program)
            self._write(progress=asdict(self._watch.progress()), ending=ending, report=report, slips=patching.slips())
            if self._report is not None:
                path, form = self._report
                Path(path).write_text(reporting.render(figures, form, advice=IN_SHELL), encoding="utf-8")

    def _write(self, **content: object) -> None:
        fresh = self._news.with_suffix(".fresh")
        fresh.write_text(json.dumps(content), encoding="utf-8")
        os.replace(fresh, self._news)


def _tell_after_calls(after: Callable[[Target, bool], None]) -> None:
    """Call `after` after each call of a target, with the target and whether it was called inside another one."""
    answer = Target.answer

    def answer_and_tell(self: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inside = THREAD.inside
        result = answer(self, args, kwargs)
        after(self, inside)
        return result

    Target.answer = answer_and_tell  # type: ignore[method-assign]


def settings_for_later(settings: config.Settings) -> config.Settings:
    """Return the settings for compiling ahead of time, for later runs that have `settings`."""
    # without ahead_of_time, each call waits for its program and no budget holds
    return replace(
        settings, mode="auto", ahead_of_time=False, quiet=True, max_variants=MORE_VARIANTS * settings.max_variants
    )


def main() -> int:
    """Run the program that the file names, as `accel run` would, until nothing new needs compiling."""
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    project.set_home(spec["home"])
    start = program.enter(StartCommand(spec["target"], spec["args"], spec["folder"]))
    config.set_current(settings_for_later(replace(config.current(), platform=spec["platform"])))
    logs.to_stderr()
    budget.for_later_runs = True
    rows = None if spec["catalogue"] is None else catalogue.load(spec["catalogue"])
    named = bool(rows or spec["only"] or spec["exclude"])
    try:
        chooses = choices.chooses(start, named=named) if spec["auto"] is None else spec["auto"]
        choice = choices.RunChoice(start) if chooses else None
        more = [] if choice is None else choice.before
        patching.install(rows, only=spec["only"], exclude=spec["exclude"], more=more)
    except config.SettingError as error:
        return refuse(error)
    ledger.current_run().beforehand = True
    watch = NewsCounter(spec["settled"], spec["steps"])
    reporter = Reporter(Path(spec["news"]), watch, spec["program"], spec["report"], choice)
    _tell_after_calls(reporter.after)
    # for a program that comes to its end by itself: `os._exit` skips this
    atexit.register(reporter.finish)
    return program.execute(start, auto=choice is not None)


if __name__ == "__main__":
    sys.exit(main())
