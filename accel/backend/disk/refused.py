"""Refused recordings: times of a target's recordings that ended at a limit or took long, kept for later runs.

Such a recording gains nothing, and a later run would make it again. So a later run waits until its calls have taken so
long that another recording is a small part of that. A note is for the code that was recorded, as its files hold it, for
one limit on operations, and for calls of about one length.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from accel.backend.disk import cache
from accel.backend.disk.references import Files, Unnamed
from accel.platform import config
from accel.platform.reasons import Refusal

LONG_S = 0.25
"""Seconds beyond its call from which a refused recording is noted, whatever the reason."""

PAYS_FACTOR = 20.0
"""Time of a run's calls before another recording, as a multiple of the time of all refused recordings."""

SIZE_FACTOR = 8.0
"""Ratio of NumPy times from which calls count as of another size: no note is for them. A busy machine changes calls of
one size by less than that."""


@dataclass(frozen=True, slots=True)
class RefusedRecordings:
    """Times of a target's recordings that gave no program.

    count: in all runs. seconds: of all of them. least_s, most_s: what such calls took on NumPy. refusal: why the last
    one ended.
    """

    count: int
    seconds: float
    least_s: float
    most_s: float
    refusal: Refusal

    def holds(self, call_s: float, total_s: float) -> bool:
        """Whether another recording would not pay yet.

        call_s, total_s: what this run's last call, and what all its calls so far, have taken on NumPy, in seconds.
        """
        is_alike = self.least_s / SIZE_FACTOR <= call_s <= SIZE_FACTOR * self.most_s
        return is_alike and total_s < PAYS_FACTOR * self.seconds

    def with_another(self, seconds: float, call_s: float, refusal: Refusal) -> RefusedRecordings:
        """Return a copy that counts one more recording."""
        total_s, least_s, most_s = self.seconds + seconds, min(self.least_s, call_s), max(self.most_s, call_s)
        return RefusedRecordings(self.count + 1, total_s, least_s, most_s, refusal)


NONE = RefusedRecordings(0, 0.0, math.inf, 0.0, Refusal("limit.nodes"))


def read(key: str) -> RefusedRecordings:
    """Return what is known of a target's refused recordings, with its present code. key: the target's."""
    known, max_nodes, files = cache.load(key, cache.REFUSED, tuple) or (NONE, 0, Files())
    return known if max_nodes == config.current().max_nodes and files.are_unchanged() else NONE


def save(key: str, known: RefusedRecordings, files: Iterable[str]) -> None:
    """Keep what is known, unless one of the files in which the recorded code stands may hold something else by now."""
    hashed = Files()
    try:
        for file in files:
            hashed.add(file)
    except Unnamed:
        return
    known = replace(known, refusal=replace(known.refusal, stack=()))
    cache.keep(key, cache.REFUSED, (known, config.current().max_nodes, hashed))


def forget(key: str) -> None:
    """A recording has succeeded after all."""
    cache.discard(key, cache.REFUSED)
