"""One run of a program by `accel compile`, and its end.

Once nothing new needs compiling, the process ends at once, in the middle of the program: handlers at exit do not run,
and a restart file is not written. The same happens at Ctrl-C, at SIGTERM from a scheduler or `timeout`, and at the end
of the terminal. The program's output is hidden, and its last lines are shown only if it fails.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from typing import Any

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
from accel.tools.precompile.watch import ENDED, NewsCounter

RARELY_S = 20.0
"""Seconds between two lines about the progress."""

MAX_OUTPUT_LINES = 15
"""Maximum lines of output to show of a program that failed: the last ones."""

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
        self._streams: list[int] = []  # the real standard output and standard error, while they are hidden
        self._hidden: Any = None

    def begin(self) -> None:
        """Hide the program's output, and follow its calls from now on."""
        for number in SIGNALS:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):  # ignored as under `nohup`
                signal.signal(number, self._stop)
        _keep_handlers()
        sys.stdout.flush()
        sys.stderr.flush()
        self._streams = [os.dup(1), os.dup(2)]
        if not self._plan.options.output:
            self._hidden = tempfile.TemporaryFile()  # noqa: SIM115  # open until the process ends
            os.dup2(self._hidden.fileno(), 1)
            os.dup2(self._hidden.fileno(), 2)
        if sys.stdin is not None and sys.stdin.isatty():  # nobody sees what it asks for
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        _tell_after_calls(self._after)

    def _after(self, target: Target, nested: bool) -> None:
        """Record the end of a target's call. Ends the process if nothing new needs compiling.

        nested: True if the call was inside another target's call.
        """
        self._targets[id(target)] = target
        if nested or os.getpid() != self._process:  # a child that the program forked
            return
        enough = self._watch.after(target.name)
        if enough is not None:
            self.finish(enough)
        options = self._plan.options
        if time.perf_counter() - self._told >= RARELY_S and not options.quiet:
            self._told = time.perf_counter()
            line = messages.progress(self._watch.progress(), options.settled, options.steps)
            with contextlib.suppress(OSError):  # the terminal may be gone
                os.write(self._streams[1], f"{line}\n".encode())

    def finish(self, ending: str = ENDED) -> None:
        """Compile the remaining paths, say what is kept, and end the process.

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
        slips = patching.slips()  # which also logs them, to the hidden output
        output = self.shown_again()
        if self.code:
            sys.stderr.write(messages.failure(self.code, progress, output))
        for slip in slips:
            sys.stderr.write(f"accel: {slip}\n")
        for report in plan.reports:
            if report.format is not None and report.full:  # not the brief one, which --demo prints after a run
                write_report(report, figures, IN_SHELL)
        if not plan.options.quiet:
            folder = config.current().cache_dir
            assert folder is not None, "it was checked"
            sys.stdout.write(messages.after(figures, progress, ending, folder))
        self._end(0 if not self.code and messages.kept_programs(figures) else 1)

    def shown_again(self) -> list[str]:
        """Let the standard streams be the real ones again. Returns the last lines of the output that was hidden."""
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            with contextlib.suppress(Exception):  # it may be an object of the program's
                stream.flush()  # type: ignore[union-attr]
        for number, real in enumerate(self._streams, 1):
            os.dup2(real, number)
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        if self._hidden is None:
            return []
        self._hidden.seek(0)
        return str(self._hidden.read(), "utf-8", "replace").splitlines()[-MAX_OUTPUT_LINES:]

    def _stop(self, number: int, frame: object) -> None:
        """End the process, because of a signal."""
        if os.getpid() != self._process:  # a child that the program forked: the signal ends it as it would have
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        with contextlib.suppress(OSError):  # the terminal may be gone
            self.shown_again()
            sys.stderr.write(
                f"accel: {SIGNALS[signal.Signals(number)]}; {messages.until_then(self._watch.progress())}\n"
            )
        self._end(128 + number)

    def _end(self, code: int) -> None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
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
