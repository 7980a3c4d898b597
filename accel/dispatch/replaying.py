"""Replaying: one call by a path's program, committed or compared; or why the program does not answer it."""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from accel.backend import resident
from accel.dispatch.comparing.policy import Comparisons
from accel.dispatch.compiling import is_quiet
from accel.dispatch.paths.path import RecordedPath
from accel.dispatch.paths.program import Program
from accel.dispatch.paths.stages import Stage
from accel.dispatch.refusals import why_not_run
from accel.dispatch.state import TargetState
from accel.dispatch.streak import Streak
from accel.platform import callbacks, underflow
from accel.platform.clocks import time
from accel.platform.reasons import Refusal
from accel.policy import budget
from accel.policy.call import Call, is_fault, note_counted

if TYPE_CHECKING:
    from accel.dispatch.replay import SideExit, StagedOutputs, StaleConstants


class Answered(NamedTuple):
    """The call has been answered: what it returned or raised is in the call. refusal: why the program is given up."""

    refusal: Refusal | None = None


class Unanswered(NamedTuple):
    """The program cannot answer this call. for_good: nor any other."""

    refusal: Refusal
    for_good: bool = False


@functools.cache
def _replay() -> Any:
    """The package that runs programs, imported with the first. As a statement, that would take 6 us of each call."""
    return importlib.import_module("accel.dispatch.replay")


class Replaying:
    """Runs the programs of one target's paths. comparisons: with NumPy."""

    def __init__(self, state: TargetState) -> None:
        self._state = state
        self._paths = state.paths
        self._account = state.account
        self.comparisons = Comparisons(state.name)
        self.streak = Streak(state, self)

    def replay(
        self, program: Program, values: list[Any], call: Call
    ) -> Answered | Unanswered | SideExit | StaleConstants:
        """Answer a call by a program, or say what it has met: nothing has happened then."""
        replay = _replay()
        try:
            underflow.clear()
            given = program.variant.run(values)
            underflowed = underflow.has_happened()
        except replay.HostError as error:  # it depends on the numbers of this call: the next call may have others
            return Unanswered(Refusal("rule.parameter", "", f"a number of this call: {error}"))
        except callbacks.Failed as error:  # as NumPy's call will, if it comes to that
            return self._discarded(program, call, Refusal("path.exception", "", str(error)))
        except Exception as error:
            if not is_fault(error):
                raise
            return Unanswered(why_not_run(error), for_good=True)
        if not isinstance(given, replay.StagedOutputs):
            return cast("SideExit | StaleConstants", given)
        if given.drawn is not None:
            call.put_back = given.drawn.put_back
        taken = program.taken(given)
        if self.comparisons.is_due(taken, self._state.mode) or self.comparisons.is_suspect(taken, given, underflowed):
            if given.unfetched is not None or resident.current.is_held:
                given.fetch("it is compared with NumPy")
            program.backoff.note_accepted()
            return Answered(self._compare(program, taken, given, call))
        try:
            replay.commit.commit(given, call)
        except replay.commit.Unshowable as error:
            return self._discarded(program, call, Refusal("effect.print", "", str(error)))
        program.backoff.note_accepted()
        seconds = time.perf_counter() - call.began
        note_counted(seconds)
        self.count(program, taken, seconds, seconds)
        slower = self._evidence_of_slowness(program, taken)
        if slower is not None:
            return Answered(Refusal("speed.slower", "", slower))
        self.streak.begin(program, given, seconds)
        return Answered()

    def answer_as_before(self, program: Program | None, call: Call) -> bool:
        """Answer a call by the program that has answered the last ones, if nothing of it is other than it was."""
        if program is None or program.stage is not Stage.COMPILED:
            return False
        values = program.whole.matcher.match(call.args, call.kwargs)
        if not isinstance(values, list):
            return False
        replay = _replay()
        underflow.clear()
        given = program.variant.run(values)
        if not isinstance(given, replay.StagedOutputs):
            return False
        # what underflows is not counted twice: it is examined, whether or not it is suspect
        if underflow.has_happened() or self.comparisons.is_suspect(program.whole, given, underflowed=False):
            return False
        replay.commit.commit(given, call)
        return True

    def _discarded(self, program: Program, call: Call, refusal: Refusal) -> Unanswered:
        """Give up this run of the program: after some of them in a row, fewer calls try it."""
        program.backoff.note_discarded(self._account.charge_discarded(call), self._account.call_s)
        return Unanswered(refusal)

    def count(self, program: Program, path: RecordedPath, seconds: float, least_s: float, calls: int = 1) -> None:
        """Count calls of a path that the program has answered: `seconds` together, the shortest least_s."""
        figures = path.speed.count_replay(seconds, calls)
        self._account.ledger.count_compiled(seconds, *figures, calls=calls)
        path.replays += calls
        program.whole.replays += calls * program.is_merged
        self._paths.note_taken(path)
        path.speed.note_replays(seconds, least_s, calls, quiet=is_quiet())

    def _evidence_of_slowness(self, program: Program, path: RecordedPath) -> str | None:
        """The figures that show that the program is slower than NumPy, if they do."""
        # while another program is on its way, the one in use is not judged: the other may be faster
        if program.pending is not None or budget.for_later_runs:
            return None
        return path.speed.evidence_of_slowness() if is_quiet() else path.speed.evidence_while_busy()

    def _compare(self, program: Program, taken: RecordedPath, staged: StagedOutputs, call: Call) -> Refusal | None:
        """Run NumPy too. Its results stand; the replay's are compared with them, and never committed."""
        executable, whole = program.variant.executable, self._state.mode == "verify"
        refusal = self.comparisons.compare(taken, executable, staged, call, self._state.tolerance, whole=whole)
        if call.raised is None:
            self._paths.note_taken(taken)
        return refusal
