"""Calls on NumPy: as a whole, or with the programs of the targets inside them; and what is counted of them."""

from __future__ import annotations

from typing import Any

from accel.dispatch.compiling import is_quiet
from accel.dispatch.paths.program import Program
from accel.dispatch.state import TargetState
from accel.platform import gain
from accel.platform.clocks import time
from accel.platform.ledger import current_run
from accel.policy import budget
from accel.policy.account import expected_gain_s
from accel.policy.call import THREAD, Call
from accel.policy.speed import Speed


class NumPyCalls:
    """Answers calls of one target on NumPy. Their caller has noted why. What the program's code raises is raised."""

    def __init__(self, state: TargetState) -> None:
        self._state = state
        self._account = state.account
        self._parts = state.parts
        self._paths = state.paths

    def whole(self, call: Call, *, quiet: bool = False) -> Any:
        """Answer an examined call. Targets inside it do not use their programs, unless the caller has allowed that.

        quiet: whether its time may be compared with those of compiled calls.
        """
        looked_s = time.perf_counter() - call.began
        try:
            return call.run(fair=quiet or is_quiet())
        finally:
            if call.seconds is not None:
                self._account.count_numpy(call, quiet=quiet)
                if self._state.may_rest:
                    self._account.begin_rest(looked_s, call.seconds, waits=self._paths.are_pending)

    def uncovered(self, call: Call, *, quiet: bool = False) -> Any:
        """Answer a call that no program of this target's is going to cover: targets called inside it may have theirs.

        So it is where calls like this one are refused, given up, or beyond the budget. Where this target's program is
        only late, the time without any program is wanted: `late`.
        """
        if self._parts.used:
            return self._in_parts(call)[0]
        THREAD.inside = False  # `Target.answer` puts it back
        return self.whole(call, quiet=quiet)

    def unmatched(self, call: Call, *, quiet: bool = False) -> Any:
        """Answer a call that no known path takes, and that is not recorded either."""
        if self._parts.used:
            result, missed_s = self._in_parts(call)
            self._parts.note_unmatched(missed_s)
            return result
        try:
            return self.uncovered(call, quiet=quiet)
        finally:
            self._note_unmatched(call)

    def backing_off(self, call: Call, *, is_long: bool) -> Any:
        """Answer a call whose program is not tried, because its last runs were discarded. is_long: nor soon."""
        if self._parts.used:
            return self.unmatched(call)  # as those runs' calls were, most likely
        # in a long wait, the targets inside this one are of use
        return self.uncovered(call) if is_long else self.late(call)

    def late(self, call: Call, *, quiet: bool = False) -> Any:
        """Answer a call whose program is still to come."""
        if self._parts.used:
            return self._in_parts(call)[0]
        try:
            return self.whole(call, quiet=quiet)
        finally:
            self._note_unmatched(call)

    def without_program(self, program: Program, call: Call) -> Any:
        """Answer a call of a program that is to be compiled, to learn how long it takes on NumPy."""
        quiet = is_quiet()
        if budget.for_later_runs:  # nested targets get programs of their own: a later run may want those first
            result = self.uncovered(call, quiet=quiet)
        elif not self._parts.used:
            result = self.late(call, quiet=quiet)
        elif program.whole.is_coming:  # its parts need not even be recorded
            result = self.whole(call, quiet=quiet)
        else:
            result, missed_s = self._in_parts(call)
            self._parts.note_matched(missed_s)
            program.wait(missed_s)
            if missed_s < (call.seconds or 0.0):
                if quiet:
                    program.whole.speed.parts_s.add(call.seconds or 0.0)
                return result
            # no part has run a program
            self._note_sample(program, call, quiet=quiet)
            return result
        self._note_missed(program, call.seconds or 0.0)
        self._note_sample(program, call, quiet=quiet)
        return result

    def instead_of_program(self, speed: Speed, call: Call, *, quiet: bool) -> Any:
        """Answer a call of a path with a program, to time NumPy. Or not quiet: while something else is compiled."""
        if quiet:
            result = self.whole(call, quiet=True)
            speed.note_wanted(call.fair_s)
            return result
        if self._parts.used:
            return self._in_parts(call)[0]
        result = self.whole(call)
        speed.note_disturbed(call.seconds or 0.0)
        return result

    def enter_rested(self) -> None:
        """Account for the calls of a rest. Their time counts for a path that waits to be compiled, too."""
        calls, seconds = self._account.add_rested()
        if calls:
            self._note_missed(self._paths.waiting, seconds, calls)
            self._parts.note_rested(calls)

    def _in_parts(self, call: Call) -> tuple[Any, float]:
        """Answer a call by the programs of the targets inside it, where they have some: that is no time of NumPy's.

        Returns the result, and the seconds in which no program has run.
        """
        THREAD.inside = False  # `Target.answer` puts it back
        run, potential = current_run(), gain.potential_gain
        launched_s, potential_s = run.launched_s, potential.seconds
        result = self.whole(call)
        missed_s = max(0.0, (call.seconds or 0.0) - (run.launched_s - launched_s))
        # beyond what the targets inside have added themselves
        potential.add(expected_gain_s(missed_s) - (potential.seconds - potential_s))
        self._parts.note(call, missed_s)
        return result, missed_s

    def _note_sample(self, program: Program, call: Call, *, quiet: bool) -> None:
        """Note a call's time on NumPy before the program is compiled, and by how much compiling slowed it down."""
        seconds = call.seconds or 0.0
        program.whole.note_numpy(call.fair_s, quiet=quiet)
        # compiling in the background costs what it slows the program down by, and not what it takes
        if not quiet:
            program.whole.speed.note_disturbed(seconds)
            self._account.ledger.charge("slowdown", program.whole.speed.more_slowdown_s())

    def _note_missed(self, program: Program | None, seconds: float, calls: int = 1) -> None:
        """Note calls that have run on NumPy before the program was compiled, and their seconds."""
        if program is not None:
            program.wait(seconds, calls)
            gain.potential_gain.add(expected_gain_s(seconds, calls))

    def _note_unmatched(self, call: Call) -> None:
        if self._paths.with_program:
            self._account.note_unmatched(call.seconds or 0.0)
