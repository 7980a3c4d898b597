"""Calls on NumPy: as a whole, or with the programs of the targets inside them; and what is counted of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from accel.dispatch.compiling import is_quiet
from accel.dispatch.paths.known import KnownPaths
from accel.platform.ledger import current_run
from accel.policy.account import Account
from accel.policy.call import THREAD, Call
from accel.policy.parts import Parts


class NumPyCalls:
    """Answers calls of one target on NumPy. Their caller has noted why. All of them raise what the program's code does.

    is_limited: whether the budget holds.
    """

    def __init__(self, account: Account, parts: Parts, paths: KnownPaths, is_limited: Callable[[], bool]) -> None:
        self._account = account
        self._parts = parts
        self._paths = paths
        self._is_limited = is_limited

    def whole(self, call: Call, *, quiet: bool = False) -> Any:
        """Answer an examined call. Targets inside it do not use their programs, unless the caller has allowed that.

        quiet: whether its time may be compared with those of compiled calls.
        """
        looked_s = time.perf_counter() - call.began
        try:
            return call.run()
        finally:
            if call.seconds is not None:
                self._account.count_numpy(call, looked_s, quiet=quiet)
                if self._is_limited() and not (self._paths.with_program and self._account.gains_by_looking):
                    self._account.begin_rest(looked_s, call.seconds)

    def uncovered(self, call: Call, *, quiet: bool = False) -> Any:
        """Answer a call that no program of this target's is going to cover: targets called inside it may have theirs.

        So it is where calls like this one are refused, given up, or beyond the budget. Where this target's program is
        only late, the time without any program is wanted: `late`.
        """
        if self._parts.used:
            return self.in_parts(call)[0]
        THREAD.inside = False  # `Target.answer` puts it back
        return self.whole(call, quiet=quiet)

    def unmatched(self, call: Call, *, quiet: bool = False) -> Any:
        """Answer a call that no known path takes, and that is not recorded either."""
        if self._parts.used:
            result, missed_s = self.in_parts(call)
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
            return self.in_parts(call)[0]
        try:
            return self.whole(call, quiet=quiet)
        finally:
            self._note_unmatched(call)

    def in_parts(self, call: Call) -> tuple[Any, float]:
        """Answer a call by the programs of the targets inside it, where they have some: that is no time of NumPy's.

        Returns the result, and the seconds in which no program has run.
        """
        THREAD.inside = False  # `Target.answer` puts it back
        run = current_run()
        before_s = run.launched_s
        around, THREAD.taken = THREAD.taken, []
        try:
            result = self.whole(call)
        finally:
            parts, THREAD.taken = THREAD.taken, around
        self._parts.kinds.note(parts, list(self._paths))
        missed_s = max(0.0, (call.seconds or 0.0) - (run.launched_s - before_s))
        # before this process has a program, none can be in use
        settled = bool(self._paths.with_program) or (is_quiet() and run.device is not None)
        self._parts.note(call, missed_s, settled=settled)
        return result, missed_s

    def _note_unmatched(self, call: Call) -> None:
        if self._paths.with_program:
            self._account.note_unmatched(call.seconds or 0.0)
