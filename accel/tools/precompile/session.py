"""One run of a program by `accel compile`, and its end.

Once nothing new needs compiling, the process ends at once, in the middle of the program: handlers at exit do not run,
and a restart file is not written. The same happens at Ctrl-C, at SIGTERM from a scheduler or `timeout`, and at the end
of the terminal.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from accel.dispatch.target import Target
from accel.entry.hook import patching
from accel.platform import config
from accel.platform.clocks import time
from accel.policy.call import THREAD
from accel.reports import last
from accel.reports.advice import IN_SHELL
from accel.reports.figures import figures_of_run
from accel.tools.cli.choices import RunChoice
from accel.tools.cli.commandline import CommandLine
from accel.tools.cli.running import write_report
from accel.tools.precompile import messages
from accel.tools.precompile.watch import NewsCounter

RARELY_S = 20.0
"""Seconds between two lines about the progress."""

SIGNALS = {
    getattr(signal, name): words
    for name, words in (("SIGINT", "interrupted"), ("SIGTERM", "ended by SIGTERM"), ("SIGHUP", "ended by SIGHUP"))
    if hasattr(signal, name)  # Windows has no SIGHUP
}
"""Signals that end the command, in words."""


class Session:
    """The run. choice: what accel chooses of the program, if it does. code: the program's exit code, once it ended."""

    def __init__(self, plan: CommandLine, choice: RunChoice | None) -> None:
        self.code = 0
        self._plan = plan
        self._choice = choice
        self._watch = NewsCounter(plan.options.settled, plan.options.steps)
        self._told = time.perf_counter()
        self._targets: dict[int, Target] = {}
        self._process = os.getpid()

    def begin(self) -> None:
        """Follow the program's calls from now on."""
        for number in SIGNALS:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):  # ignored as under `nohup`
                signal.signal(number, self._stop)
        _keep_handlers()
        _tell_after_calls(self._after)

    def _after(self, target: Target, nested: bool) -> None:
        """Record the end of a target's call. Ends the process if nothing new needs compiling.

        nested: True if the call was inside another target's call.
        """
        self._targets[id(target)] = target
        if nested or os.getpid() != self._process:  # a child that the program forked
            return
        if self._watch.after(target.name):
            self.finish(kills=True)
        options = self._plan.options
        if time.perf_counter() - self._told >= RARELY_S and not options.quiet:
            self._told = time.perf_counter()
            _say(messages.progress(self._watch.progress(), options.settled, options.steps))

    def finish(self, *, kills: bool = False) -> None:
        """Compile the remaining paths, say what is kept, and end the process. kills: the program is not yet at its end.

        Does nothing in a forked child of the program.
        """
        if os.getpid() != self._process:
            return
        for target in self._targets.values():
            target.compile_remaining()
        if self._choice is not None:
            self._choice.settle(beforehand=True)
        figures, progress, plan = figures_of_run(), self._watch.progress(), self._plan
        last.keep(figures, f"accel compile {plan.program}")
        patching.look_back()
        if self.code:
            _say(messages.failure(self.code, progress))
        for report in plan.reports:
            if report.format is not None and report.full:  # not the brief one, which --demo prints after a run
                write_report(report, figures, IN_SHELL)
        if not plan.options.quiet:
            folder = config.current().cache_dir
            assert folder is not None, "it was checked"
            _say(messages.after(figures, progress, folder, killed=kills))
        _end(0 if not self.code and messages.kept_programs(figures) else 1)

    def _stop(self, number: int, frame: object) -> None:
        """End the process, because of a signal."""
        if os.getpid() != self._process:  # a child that the program forked: the signal ends it as it would have
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        _say(f"accel: {SIGNALS[signal.Signals(number)]}; {messages.until_then(self._watch.progress())}")
        _end(128 + number)


def _say(text: str) -> None:
    """Write to standard error, whatever the program has put in its place."""
    with contextlib.suppress(OSError):  # the terminal may be gone
        os.write(2, f"{text}\n".encode())


def _end(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # it may be an object of the program's
            stream.flush()
    os._exit(code)


def _keep_handlers() -> None:
    """Let the program replace none of these handlers: its own might save an incomplete state, or go on."""
    plain, process = signal.signal, os.getpid()

    def set_handler(number: int, handler: Any) -> Any:
        is_kept = number in SIGNALS and os.getpid() == process  # a child that it forks may have its own
        return signal.getsignal(number) if is_kept else plain(number, handler)

    signal.signal = set_handler  # type: ignore[assignment]


def _tell_after_calls(after: Callable[[Target, bool], None]) -> None:
    """Call `after` after each call of a target, with the target and whether it was called inside another one."""
    answer = Target.answer

    def answer_and_tell(self: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inside = THREAD.inside
        result = answer(self, args, kwargs)
        after(self, inside)
        return result

    Target.answer = answer_and_tell  # type: ignore[method-assign]
