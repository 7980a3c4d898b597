"""Attempts: recordings of a target that led to no program, and when the next one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accel import config
from accel.dispatch.call import Call
from accel.reasons import Refusal

if TYPE_CHECKING:
    from accel.dispatch.replay import Matcher
    from accel.record import Trace

MAX_ATTEMPTS = 12
"""Recordings that may end in a refusal before the target stays on NumPy, if none of its paths was compiled."""

MAX_SKIPPED = 1024
"""The most calls on NumPy between two recordings that may end in a refusal. After a long recording at once so many."""

LIMIT_PENALTY = 4
"""A recording that ran into a limit counts as this many more: it was a long one, and the next would be too."""


class Attempts:
    """The recordings of one target that led to no program.

    count: recordings so far, successful ones too, with penalties. calls_to_skip: calls that go to NumPy before the next
    one. refused: guards of calls that are known to be refused, with the refusal.
    """

    def __init__(self) -> None:
        self.count = 0
        self.calls_to_skip = 0
        self.refused: list[tuple[Matcher, Refusal]] = []
        self._repeats = 0

    @property
    def are_used_up(self) -> bool:
        """Whether no more should be made while no path is known."""
        return self.count >= MAX_ATTEMPTS

    def skip(self) -> bool:
        """Whether this call goes to NumPy because of earlier refusals."""
        if self.calls_to_skip <= 0:
            return False
        self.calls_to_skip -= 1
        return True

    def refusal_of(self, call: Call) -> Refusal | None:
        """Why an earlier call like this one was refused; None if none was."""
        for matcher, refusal in self.refused:
            if isinstance(matcher.match(call.args, call.kwargs), list):
                self._repeats += 1
                self.calls_to_skip = max(self.calls_to_skip, min(self._repeats, MAX_SKIPPED))
                return refusal
        return None

    def note(self, refusal: Refusal, trace: Trace | None) -> None:
        """Note a recording that was refused: the next one comes later each time."""
        from accel.dispatch.replay import Matcher

        if trace is not None and all(outcome.node.host for outcome in trace.tape.outcomes):
            self.refused.append((Matcher(trace), refusal))
            if len(self.refused) > 4 * config.current().max_variants:
                self.refused.pop(0)
        costly = refusal.reason.startswith("limit.")
        self.count += LIMIT_PENALTY if costly else 0
        self.calls_to_skip = MAX_SKIPPED if costly else min(2 ** max(0, self.count - 4), MAX_SKIPPED)
