"""Streaks: replays in a row that nothing is decided for, and that are counted together.

How a call is answered depends on the stage of its program, on its speed, and on whether a comparison is due. To find
out, and to count the call, takes as long as a small kernel. Most calls are like the one before. So after some that one
program has answered, the next ones go straight to it. A call that is unlike them in anything is answered as if there
were no streak: nothing has happened by then.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from accel.backend import resident
from accel.dispatch.preconditions import unmet_precondition
from accel.dispatch.state import TargetState
from accel.platform import config, timeline, underflow
from accel.platform.clocks import time
from accel.platform.ledger import Ledger
from accel.policy import budget
from accel.policy.call import THREAD, Call, is_fault

if TYPE_CHECKING:
    from accel.dispatch.paths.program import Program
    from accel.dispatch.replay import StagedOutputs
    from accel.dispatch.replaying import Replaying

MOST_CALLS, STREAK_S, GROWTH = 31, 0.01, 4
"""Maximum calls and seconds of a streak, and how many calls in a row have to come before it for each of its own. So a
program that is ready, or a comparison that is due, waits no longer than that; and what is lost where every eighth call
takes another path is an eighth of a replay."""

MISSED = object()
"""In place of a result: the call has to be examined."""


class Streak:
    """Calls of one target that go straight to the program of the last ones.

    left: those to come. allowed: False if every call has to be observed.
    """

    def __init__(self, state: TargetState, replaying: Replaying) -> None:
        self.left = 0
        self.allowed = True
        self._state = state
        self._replaying = replaying
        self._program: Program | None = None
        self._settings: config.Settings | None = None
        self._in_row = 0
        self._taken, self._seconds, self._least_s = 0, 0.0, inf  # not counted yet

    # -- when there is one --------------------------------------------------------------------------------------------

    def begin(self, program: Program, staged: StagedOutputs, seconds: float) -> None:
        """Begin one, if there may be one. The program has just answered a call, in that many seconds."""
        path, row = program.whole, self._in_row + 1 if program is self._program else 1
        self._program, self._in_row = program, row
        calls = min(MOST_CALLS, row // GROWTH, int(STREAK_S / seconds), self._replaying.comparisons.not_due_for(path))
        if self.allowed and calls > 0 and self._is_possible(program, staged):
            self._settings, self.left = config.current(), calls
            self._state.ledger.count_later(self)

    def _is_possible(self, program: Program, staged: StagedOutputs) -> bool:
        """Whether the program has answered its call in the plainest way, and nothing is to be found out about it."""
        speed, outputs = program.whole.speed, staged.trace.outputs
        return not (
            program.is_merged
            or self._state.paths.are_pending
            or speed.wanted
            or speed.pauses
            or staged.trace.draws
            or outputs.shown
            or not program.variant.executable.on_cpu
            or resident.current.is_open
            or underflow.has_happened()
            or budget.for_later_runs
        )

    # -- its calls ----------------------------------------------------------------------------------------------------

    def replay(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer a call; MISSED if it has to be examined. Raises what an interrupt raises."""
        self.left -= 1
        inside, turn, call = THREAD.inside, self._state.turn, Call(_answer_nothing, args, kwargs)
        try:
            if not inside and turn.take(call) and self._is_like_the_last():
                started, THREAD.inside = time.perf_counter(), True  # no target runs inside, as in any replay
                if self._replaying.answer_as_before(self._program, call):
                    spent = time.perf_counter() - started
                    THREAD.counted_s += spent
                    self._taken += 1
                    self._seconds += spent
                    self._least_s = min(self._least_s, spent)
                    return call.result
        except BaseException as error:
            if not is_fault(error):
                raise
            if call.done:
                return call.result
        finally:
            # no call is made here: a signal handler that raised after it would leave the rest undone
            THREAD.inside = inside
            if turn.holder is call:
                del turn.holder
        self.left = self._in_row = 0
        return MISSED

    def _is_like_the_last(self) -> bool:
        """Whether the process is in the state in which the streak began."""
        return (
            self._settings is config.in_force
            and timeline.calls is None
            and unmet_precondition(self._state.mode) is None
        )

    def end(self) -> None:
        """End it, as a call is examined: whatever that changes, it is judged by all calls so far."""
        self.left = 0
        self.enter(self._state.ledger)

    # -- counting them ------------------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether no more calls come that are counted later."""
        return self.left <= 0 and not self._taken

    def enter(self, ledger: Ledger) -> None:
        """Count the calls so far. ledger: the target's."""
        taken, seconds, least_s, program = self._taken, self._seconds, self._least_s, self._program
        self._taken, self._seconds, self._least_s = 0, 0.0, inf
        if taken and program is not None:
            self._in_row += taken
            self._replaying.count(program, program.whole, seconds, least_s, taken)

    def forget(self) -> None:
        """At the end of the process: drop the program."""
        self.left, self._program = 0, None


def _answer_nothing() -> None:
    """Stands for the target's function, which no replay calls."""
