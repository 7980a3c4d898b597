"""The steps of a run, and the kinds of time in each.

A step is the time from the end of one call of a target to the end of its next call. The target is the one that a
catalogue names as the program's step. Without one, it is the target with the most time among those called more than
once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from accel.platform.timeline import COMPARED, COMPILED, NUMPY, CallRecord

OTHER = "other"
"""Kind of time that the program spends outside all targets."""

PARTS = (COMPILED, COMPARED, NUMPY, OTHER)
"""The kinds of time in a step."""


class Step(NamedTuple):
    """One step, or the mean of the steps from `first` to `last`. parts: seconds by kind (see PARTS)."""

    first: int
    last: int
    seconds: float
    parts: dict[str, float]


def pacing_target(calls: Iterable[CallRecord], named: str | None) -> str | None:
    """Return the target whose calls delimit steps; None if no target was called twice. named: by a catalogue."""
    counts: dict[str, int] = {}
    totals: dict[str, float] = {}
    for call in calls:
        counts[call.target] = counts.get(call.target, 0) + 1
        totals[call.target] = totals.get(call.target, 0.0) + call.seconds
    several = [target for target, count in counts.items() if count > 1]
    return named if named in several else max(several, key=totals.__getitem__, default=None)


def steps_of(calls: Sequence[CallRecord], target: str | None) -> list[Step]:
    """Return the steps, in order. Calls before the end of the target's first call belong to no step."""
    steps: list[Step] = []
    begin: float | None = None
    parts: dict[str, float] = {}
    for call in calls:
        parts[call.kind] = parts.get(call.kind, 0.0) + call.seconds
        if call.target == target:
            if begin is not None:
                seconds = call.end - begin
                parts[OTHER] = max(0.0, seconds - sum(parts.values()))
                steps.append(Step(len(steps) + 1, len(steps) + 1, seconds, parts))
            begin, parts = call.end, {}
    return steps


def binned(steps: Sequence[Step], columns: int) -> list[Step]:
    """Return at most `columns` steps, each the mean of neighbouring ones."""
    size = -(-len(steps) // columns) if steps else 1
    return [_mean(steps[start : start + size]) for start in range(0, len(steps), size)]


def _mean(steps: Sequence[Step]) -> Step:
    count = len(steps)
    parts = {part: sum(step.parts.get(part, 0.0) for step in steps) / count for part in PARTS}
    return Step(steps[0].first, steps[-1].last, sum(step.seconds for step in steps) / count, parts)
