"""Recordings: how many a target has had, which calls were refused by them, and when the next one may be made.

A refused recording costs as much as several calls and gains nothing. So further refusals double the number of calls
until the next one, and a call that is like a refused one is not recorded again.
"""

from __future__ import annotations

import math
import time
from types import FunctionType
from typing import TYPE_CHECKING

from accel.backend import resident
from accel.dispatch import late
from accel.platform import config
from accel.platform.ledger import current_run
from accel.platform.reasons import Refusal
from accel.policy import account, parts
from accel.policy.call import Call

if TYPE_CHECKING:
    from accel.dispatch.replay import Matcher
    from accel.record import Result, Trace

MAX_RECORDINGS = 12
"""Recordings that may end in a refusal before the target stays on NumPy, if none of its paths was compiled."""

FREE_RECORDINGS = 4
"""Number of recordings from which each refusal doubles the calls until the next one. Before, that is one call."""

MAX_SKIPPED = 1024
"""Maximum number of calls on NumPy between two recordings that may be refused. After a long recording, this number at
once."""

LIMIT_PENALTY = 4
"""A recording that ran into a limit counts as this many more: it was a long one, and the next would be too."""

BROKEN_OFF_FACTOR = 3.0
"""Factor on the recording time after which a loop's iteration is recorded again, if its recording was broken off for
time. The longer the run, the longer a recording may take. With this factor all of them take at most half as long again
as the last."""

REFUSED_PER_PATH = 4
"""Number of refused calls whose guards are kept, for each path that a target may have."""


class Recordings:
    """The recordings of one target.

    count: so far, successful ones too, with penalties. calls_to_skip: calls that go to NumPy before the next one.
    refused: guards of calls that are known to be refused, with the refusal. broken_off_s: the last was broken off after
    so many seconds; 0 if it was not.
    """

    def __init__(self) -> None:
        self.count = 0
        self.calls_to_skip = 0
        self.broken_off_s = 0.0
        self.refused: list[tuple[Matcher, Refusal]] = []
        self._repeats = 0

    def make(
        self,
        function: FunctionType,
        call: Call,
        *,
        counts: bool = True,
        effects: bool = True,
        longest: int | None = None,
        max_s: float = math.inf,
    ) -> tuple[Result, float]:
        """Record a call. Returns what came of it, and the seconds that it took.

        The call is done then, unless the recording was undone (Undone) or the program's own code raised an error
        (Raised). counts: False for a call that matches a known path and is recorded to find rare ones.
        effects: whether replays may show text. longest: operations of the longest path that this one is to have a
        program with; None if it need not have one with others. max_s: see `record`.
        """
        imported_s = late.import_now()
        current_run().charge("loading", imported_s)
        late.early.begin()  # there will be something to compile soon
        account.recorded.note_end(imported_s)  # a step that waits for it has waited long enough
        from accel.compiler.loops import rolled
        from accel.compiler.lower.passes.arrange import is_worth
        from accel.compiler.merge.trace import MOST_GROWTH, SMALL
        from accel.record import Completed, record

        if resident.current.is_held:
            resident.current.bring_up_to_date("it is recorded")
        self.count += counts
        parts.recorded.count += 1
        limit, started = config.current().max_nodes, time.perf_counter()
        # rounds of a loop by data that leave the tape do not make the program longer
        kept = math.inf if longest is None else int(MOST_GROWTH * longest) + SMALL
        recorded = record(
            function,
            call.args,
            call.kwargs,
            max_nodes=limit,
            worth=is_worth,
            effects=effects,
            max_s=max_s,
            longest=kept,
        )
        is_broken_off = recorded.refusal is not None and recorded.refusal.reason == "limit.nodes"
        self.broken_off_s = max_s if is_broken_off and time.perf_counter() - started > max_s else 0.0
        if isinstance(recorded, Completed):
            call.result, call.done = recorded.result, True
            if recorded.trace is not None and recorded.refusal is None:
                recorded.trace = rolled(recorded.trace)
        return recorded, time.perf_counter() - started

    @property
    def are_used_up(self) -> bool:
        """Whether no more should be made while no path is known."""
        return self.count >= MAX_RECORDINGS

    def may_take(self, seconds: float) -> bool:
        """Whether the next one, which may take so long, has a better chance than one that was broken off."""
        return seconds >= BROKEN_OFF_FACTOR * self.broken_off_s

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
                # matching takes time too: each call that is recognised lets one more of the next calls go by unmatched
                self._repeats += 1
                self.calls_to_skip = max(self.calls_to_skip, min(self._repeats, MAX_SKIPPED))
                return refusal
        return None

    def note_refused(
        self, refusal: Refusal, trace: Trace | None, *, skips: bool = True, is_telling: bool = True
    ) -> None:
        """Note a recording that was refused. trace: as far as it got; None if that describes no call.

        skips: whether the next calls go to NumPy for that. Where something else says which are worth a recording, no.
        is_telling: whether it says how long those of other calls take.
        """
        from accel.dispatch.replay import Matcher

        # guards alone tell such calls from others only if no outcome depends on what a device would compute
        is_for_good = skips or not self.broken_off_s
        if trace is not None and is_for_good and all(outcome.node.host for outcome in trace.tape.outcomes):
            self.refused.append((Matcher(trace), refusal))
            if len(self.refused) > REFUSED_PER_PATH * config.current().max_variants:
                self.refused.pop(0)
        if not is_telling:
            self.broken_off_s = 0.0
        if not skips:
            return
        costly = refusal.reason.startswith("limit.")
        self.count += LIMIT_PENALTY if costly else 0
        put_off = 2 ** max(0, self.count - FREE_RECORDINGS)
        self.calls_to_skip = MAX_SKIPPED if costly else min(put_off, MAX_SKIPPED)
