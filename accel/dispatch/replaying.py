"""Replaying: one call by a path's program, committed or compared; or why the program does not answer it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from accel.backend import resident
from accel.dispatch.comparing.policy import Comparisons
from accel.dispatch.compiling import Compiling, is_quiet
from accel.dispatch.paths.known import KnownPaths
from accel.dispatch.paths.path import Path
from accel.dispatch.refusals import why_not_run
from accel.platform import underflow
from accel.platform.reasons import Refusal
from accel.policy import budget
from accel.policy.account import Account
from accel.policy.call import THREAD, Call, is_fault, note_counted

if TYPE_CHECKING:
    from typing import Any

    from accel.dispatch.replay import SideExit, StagedOutputs, StaleConstants


class Answered(NamedTuple):
    """The call has been answered: what it returned or raised is in the call.

    slower: figures that show that the program is slower than NumPy. differs: why it may not be used any more.
    """

    slower: str | None = None
    differs: Refusal | None = None


class Unanswered(NamedTuple):
    """The program cannot answer this call. for_good: nor any other."""

    refusal: Refusal
    for_good: bool = False


class Replaying:
    """Runs the programs of one target's paths. comparisons: with NumPy.

    mode, tolerance: give the target's, the latter with the unit in the last place by which rounding may explain more.
    """

    def __init__(
        self,
        name: str,
        paths: KnownPaths,
        account: Account,
        compiling: Compiling,
        mode: Callable[[], str],
        tolerance: Callable[[], tuple[float, float | None]],
    ) -> None:
        self._paths = paths
        self._account = account
        self._compiling = compiling
        self._mode = mode
        self._tolerance = tolerance
        self.comparisons = Comparisons(name)

    def replay(self, path: Path, values: list[Any], call: Call) -> Answered | Unanswered | SideExit | StaleConstants:
        """Answer a call by the path's program, or say what it has met: nothing has happened then."""
        from accel.dispatch.replay import HostError, SideExit, StaleConstants
        from accel.dispatch.replay.commit import commit
        from accel.record.state.shown import Unshowable

        try:
            underflow.clear()
            given = path.variant.run(values)
            underflowed = underflow.has_happened()
        except HostError as error:  # it depends on the numbers of this call: the next call may have others
            return Unanswered(Refusal("rule.parameter", "", f"a number of this call: {error}"))
        except Exception as error:
            if not is_fault(error):
                raise
            return Unanswered(why_not_run(error), for_good=True)
        if isinstance(given, (StaleConstants, SideExit)):
            return given
        if given.drawn is not None:
            call.put_back = given.drawn.put_back
        taken = path.taken(given)
        if self.comparisons.is_due(taken, self._mode()) or self.comparisons.is_suspect(taken, given, underflowed):
            if given.unfetched is not None or resident.current.is_held:
                given.fetch("it is compared with NumPy")
            path.accept_run()
            return Answered(differs=self._compare(path, taken, given, call))
        try:
            commit(given, call)
        except Unshowable as error:
            path.back_off(self._account.charge_discarded(call), self._account.call_s)
            return Unanswered(Refusal("effect.print", "", str(error)))
        path.accept_run()
        return Answered(slower=self._count(path, taken, time.perf_counter() - call.began))

    def _count(self, path: Path, taken: Path, seconds: float) -> str | None:
        """Count a call. path: whose program has run. taken: the recorded path that the call has taken.

        Returns the figures that show that the program is slower than NumPy, if they do.
        """
        self._account.ledger.count_compiled(seconds, taken.speed.gained_s(seconds), taken.speed.spread_s)
        note_counted(seconds)
        taken.replays += 1
        path.replays += path is not taken
        self._note_taken(taken)
        quiet = is_quiet()
        (taken.speed.compiled_s if quiet else taken.speed.busy_s).add(seconds)
        if path.successor is not None and path.successor.done() and resident.current.is_held:
            resident.current.bring_up_to_date("a program is put to use")
        if path.reconsider():
            self._compiling.note_compiled(path)
        # while another program is on its way, the one in use is not judged: the other may be faster
        if path.successor is not None or budget.for_later_runs:
            return None
        return taken.speed.evidence_of_slowness() if quiet else taken.speed.evidence_while_busy()

    def _compare(self, path: Path, taken: Path, staged: StagedOutputs, call: Call) -> Refusal | None:
        """Run NumPy too. Its results stand; the replay's are compared with them, and never committed."""
        tolerance, unit = self._tolerance()
        executable, whole = path.variant.executable, self._mode() == "verify"
        refusal = self.comparisons.compare(taken, executable, staged, call, tolerance=tolerance, unit=unit, whole=whole)
        if call.raised is None:
            self._note_taken(taken)
        return refusal

    def _note_taken(self, path: Path) -> None:
        self._paths.note_taken(path)
        if THREAD.taken is not None:
            THREAD.taken.append(path)
