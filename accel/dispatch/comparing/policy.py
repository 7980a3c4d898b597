"""Comparison policy: which replays of a target are compared with NumPy, and which differences demote it.

The first replays of a program are compared, then ever fewer. The time of comparisons stays below a share of the time
that the compiled calls have taken, and of the time that they have gained.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from accel.dispatch.compiling import is_quiet
from accel.dispatch.paths.path import RecordedPath
from accel.platform import config, interrupts, logs
from accel.platform.clocks import time
from accel.platform.ledger import Ledger, current_run, open_ledger
from accel.platform.reasons import Refusal
from accel.policy.call import Call, note_counted

if TYPE_CHECKING:
    from accel.backend.executable import Executable
    from accel.dispatch.comparing.comparison import Comparison
    from accel.dispatch.comparing.errors import Tolerance
    from accel.dispatch.comparing.nonfinite import NonFinite
    from accel.dispatch.replay import StagedOutputs

FIRST_COMPARED = 2
"""Replays of a new program that are always compared with NumPy."""

COMPARE_AGAIN_FACTOR = 10
"""A path is compared again at the latest when its replays have grown by this factor since the last comparison."""

THRESHOLD_SHARE = 1e-3
"""The share of all compared elements that may differ because an operand of `<` or `>` lay near its threshold."""

THRESHOLD_FREE = 16
"""Number of elements that may always differ for that reason, however few were compared."""

MAX_NAMED = 3
"""The most fields that a message names, the worst ones first. The report has all of them."""

COPIES_TIMED = 8
"""The number of comparisons of a target in which copies to the device and back are timed."""


class Comparisons:
    """A target's comparisons with NumPy. last_s: seconds of the last call that was answered twice, for that."""

    def __init__(self, name: str) -> None:
        self.last_s = 0.0
        self._name = name
        self._points = 0
        self._near_points = 0
        self._explained: dict[str, float] = {}
        self._nonfinite: WeakKeyDictionary[RecordedPath, NonFinite] = WeakKeyDictionary()
        self._underflows: WeakKeyDictionary[RecordedPath, int] = WeakKeyDictionary()
        # by path, the ledger and its number of calls at the last comparison that found no mismatch
        self._agreed: WeakKeyDictionary[RecordedPath, tuple[Ledger, int]] = WeakKeyDictionary()

    @property
    def _ledger(self) -> Ledger:
        return open_ledger(self._name)

    def is_due(self, path: RecordedPath, mode: str) -> bool:
        """Whether the path's next replay is to be compared."""
        if mode == "verify" or path.replays < FIRST_COMPARED:
            return True
        # a comparison also times NumPy, by which the program's speed is judged: only useful while nothing is compiled
        if not path.speed.knows_numpy:
            return is_quiet()
        if path.replays >= COMPARE_AGAIN_FACTOR * max(1, path.compared_at):
            return True
        share = config.current().check_share
        # a share of this target's time, and of that of all targets. What a comparison takes from the program is NumPy's
        # call, too, which a compiled call would have spared it: of a fast program, many calls' time
        ledger, run = self._ledger, current_run()
        accounts = (ledger, ledger.compiled_total_s), (run, run.compiled_s)
        return all(
            each.compared_s + self.last_s < share * min(each.gained_s, compiled_s) for each, compiled_s in accounts
        )

    def not_due_for(self, path: RecordedPath) -> int:
        """Number of the path's next replays that need not be compared, as far as their number tells."""
        return COMPARE_AGAIN_FACTOR * path.compared_at - path.replays - 1 if path.speed.knows_numpy else 0

    def is_suspect(self, path: RecordedPath, staged: StagedOutputs, underflowed: bool) -> bool:
        """Whether a replay is to be compared at once, by what it has met.

        It gives NaN or infinity where the path's compared replays gave none, or far fewer. Or it has flushed a
        subnormal number to 0: of a path's runs that have, the first, second, fourth, eighth is compared.
        """
        if underflowed:
            count = self._underflows[path] = self._underflows.get(path, 0) + 1
            if count & (count - 1) == 0:
                return True
        return self._nonfinite_of(path).are_new(staged)

    def _nonfinite_of(self, path: RecordedPath) -> NonFinite:
        known = self._nonfinite.get(path)
        if known is None:
            from accel.dispatch.comparing.nonfinite import NonFinite

            known = self._nonfinite[path] = NonFinite()
        return known

    def compare(
        self,
        path: RecordedPath,
        executable: Executable,
        staged: StagedOutputs,
        call: Call,
        tolerance: Tolerance,
        *,
        whole: bool = False,
    ) -> Refusal | None:
        """Run NumPy's call too, and compare the replay with it. Returns why the target is to be demoted, or None.

        path: the one that the replay has taken. executable: what was run. tolerance: the target's. whole: of vast
        arrays, too, all is compared.
        The call's result is NumPy's. An Exception of the program's own code is left in `call.raised`.
        """
        from accel.dispatch.comparing.comparison import Comparison
        from accel.dispatch.comparing.nonfinite import counts_of
        from accel.dispatch.comparing.snapshot import Snapshot
        from accel.dispatch.comparing.texts import ShownTexts

        started = time.perf_counter()
        replay_s = started - call.began
        # before NumPy's call, which may change its arguments
        snapshot = Snapshot(staged, whole=whole)
        self._time_copies(executable, staged)
        nonfinite = counts_of(staged)
        staged.complete(snapshot.values, vast=whole)
        texts = ShownTexts(staged) if staged.trace.outputs.shown else None
        if texts is not None:
            texts.watch()
        try:
            call.run(fair=is_quiet())
        except Exception as error:
            interrupts.pass_on(error)
            what = f"NumPy raised {type(error).__name__}: {error}; the replay raised nothing"
            self._ledger.count_numpy(None, time.perf_counter() - started)
            return Refusal("verify.mismatch", "", self._doubt(path) + what)
        finally:
            if texts is not None:
                texts.stop()
        comparison = Comparison(staged, call.result, snapshot, tolerance.of(executable), texts)
        logs.LOGGER.debug("%s compared with NumPy, largest error %.2g", self._name, comparison.error)
        refusal = self.judge(comparison, tolerance.rtol)
        if refusal is None:
            self._nonfinite_of(path).note(nonfinite)
            self._agreed[path] = self._ledger, self._ledger.calls + 1  # `_count` adds this call
        else:
            refusal = replace(refusal, detail=self._doubt(path) + refusal.detail)
        self._count(path, call, replay_s, time.perf_counter() - started)
        return refusal

    def _doubt(self, path: RecordedPath) -> str:
        """Say which results may be wrong after a mismatch: those of replays since the last comparison that agreed."""
        if path.replays <= path.compared_at:
            return ""
        ledger, calls = self._agreed.get(path, (self._ledger, 0))
        first = calls + 1 if ledger is self._ledger else 1  # counted anew since then
        self._ledger.doubt(first)
        return f"results since call {first} may be wrong: rerun with `--mode off`; "

    def _count(self, path: RecordedPath, call: Call, replay_s: float, comparing_s: float) -> None:
        numpy_s, quiet = call.seconds or 0.0, is_quiet()
        if quiet:
            path.speed.note_compared(call.fair_s)
            # the first comparisons may be all that tells how slow the calls before were
            self._ledger.charge("slowdown", path.speed.more_slowdown_s())
        else:  # where a program comes from disk while others are compiled, these may be its only calls on NumPy
            path.speed.disturbed_s.add(numpy_s)
        path.note_compared()
        self.last_s = replay_s + comparing_s
        self._ledger.count_compared(replay_s + comparing_s, numpy_s, quiet=quiet)
        # without NumPy's own time, which `Call.run` has counted
        note_counted(replay_s + comparing_s - numpy_s)

    def _time_copies(self, executable: Executable, staged: StagedOutputs) -> None:
        """Time the copies of one run to the device and back, and enter it into the ledger. Later runs are not timed."""
        copy_s = self._ledger.copy_s
        if len(copy_s) < COPIES_TIMED:
            copy_s.append(executable.time_copies(staged.given, staged.made, staged.changed))

    def judge(self, comparison: Comparison, rtol: float) -> Refusal | None:
        """Enter a comparison into the ledger. Returns the refusal for which the target is demoted, or None."""
        from accel.dispatch.comparing.errors import Verdict
        from accel.dispatch.comparing.texts import LAST_DIGIT

        ledger, verdict, beyond = self._ledger, comparison.judge(self._explained), comparison.beyond
        self._points += comparison.points
        if comparison.last_digit is not None:
            ledger.differ(comparison.last_digit, LAST_DIGIT)
        # an explained difference does not raise the error that the report shows as the target's largest
        if verdict in (Verdict.WITHIN, Verdict.MISMATCH):
            ledger.compared(comparison.error)
        if verdict is Verdict.THRESHOLD:
            self._near_points += sum(difference.points for difference in beyond)
            if self._near_points > max(THRESHOLD_FREE, THRESHOLD_SHARE * self._points):
                verdict = Verdict.MISMATCH
        new = [difference for difference in beyond if ledger.differ(difference, str(verdict))]
        if verdict is Verdict.MISMATCH:
            return Refusal("verify.mismatch", "", self._detail(comparison, rtol))
        for difference in new:
            logs.LOGGER.info("%s differs from NumPy, %s: %s", self._name, verdict, difference.detail)
        return None

    def _detail(self, comparison: Comparison, rtol: float) -> str:
        beyond = comparison.beyond
        detail = "; ".join(difference.detail for difference in beyond[:MAX_NAMED])
        if len(beyond) > MAX_NAMED:
            detail += f"; and {len(beyond) - MAX_NAMED} more fields, see the report"
        detail += f"; relative error {comparison.error:.2g}, tolerance {rtol:.2g}"
        if self._near_points > THRESHOLD_FREE:
            detail += f"; {self._near_points} of {self._points} points compared so far lay near a threshold, too many"
        return detail
