"""Paths: the ways that calls of one target take, each recorded once and compiled, and which of them is likely next."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np

LOOK_BACK = 8
"""Paths taken last by which the next one is foretold."""

REMEMBERED = 1000
"""Sequences of paths that are kept for that."""


class Forecast:
    """Which path is likely next: the one that came after the same last paths before.

    Programs are periodic: a filter every sixth step, a smaller time step after it. A path that its outcomes refute has
    cost a whole run.
    """

    def __init__(self) -> None:
        self._recent: tuple[int, ...] = ()
        self._after: dict[tuple[int, ...], Path] = {}

    def order(self, paths: list[Path]) -> list[Path]:
        """The paths, the likely one first."""
        if len(paths) < 2:
            return list(paths)
        likely = self._after.get(self._recent)
        if likely is None or likely is paths[0] or likely not in paths:
            return list(paths)
        return [likely, *(path for path in paths if path is not likely)]

    def followed(self, path: Path) -> None:
        """Learn which path a call took."""
        if len(self._after) > REMEMBERED:
            self._after.clear()
        self._after[self._recent] = path
        self._recent = (*self._recent, id(path))[-LOOK_BACK:]


class Times:
    """The last 32 of one kind of times, in seconds."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=32)
        self._median: float | None = None

    def __len__(self) -> int:
        return len(self._seconds)

    def __iter__(self) -> Iterator[float]:
        return iter(self._seconds)

    def add(self, seconds: float) -> None:
        self._seconds.append(seconds)
        self._median = None

    def clear(self) -> None:
        self._seconds.clear()
        self._median = None

    def median(self) -> float:
        """Asked for at every replay, and changed by comparisons only. Raises statistics.StatisticsError if empty."""
        if self._median is None:
            self._median = statistics.median(self._seconds)
        return self._median


class Path:
    """One recorded path of a target: pending at first, then compiled.

    constants: values seen so far, of slots that may be folded. varying: slots that may not. spanned: slots whose arrays
    the program takes from spans; again: the program with these, where it is being compiled. numpy_call_s: seconds of
    the last call on NumPy; waited_s: of all of them since it was recorded.
    """

    def __init__(self, trace: Any) -> None:
        from accel.replay import Matcher

        self.trace = trace
        self.matcher = Matcher(trace)
        self.observed = 0
        self.constants: dict[int, Any] = {}
        self.varying: set[int] = set()
        self.spanned: frozenset[int] = frozenset()
        self.again: Future[Any] | None = None
        self.respecialized = 0
        self.variant: Any = None
        self.pending: Future[Any] | None = None
        self.started = 0.0
        self.numpy_call_s = 0.0
        self.waited_s = 0.0
        self.dead = False
        self.replays = 0
        self.checked_at = 0
        self.slower = 0
        self.numpy_s = Times()
        self.compiled_s = Times()
        self.outcomes = [outcome for outcome in trace.tape.outcomes if not outcome.node.host]
        self._candidates = self._foldable()

    def _foldable(self) -> frozenset[int]:
        """Slots that may be folded: scalars, and arrays that are no direct arguments and are never written."""
        changed = {slot for slot, _ in self.trace.outputs.changed}
        inputs = self.trace.inputs
        arguments = {inputs.find(("arg", i)) for i in range(64)} | {
            index for key, index in inputs.entries() if key[0] == "kwarg"
        }
        arrays = set(self.trace.array_slots) - changed - arguments - set(self.trace.decided)
        return frozenset(arrays | set(self.trace.scalar_slots))

    def observe(self, values: list[Any]) -> None:
        """Watch one more call's inputs, before the call."""
        from accel.record.inputs import same_scalar

        for slot in self._candidates - self.varying:
            value = values[slot]
            if slot not in self.constants:
                self.constants[slot] = value.copy() if isinstance(value, np.ndarray) else value
            elif isinstance(value, np.ndarray):
                if value.tobytes() != self.constants[slot].tobytes():
                    self.vary((slot,))
            elif not same_scalar(value, self.constants[slot]):
                self.vary((slot,))
        self.observed += 1

    def vary(self, slots: tuple[int, ...]) -> None:
        """What changed once is never folded again."""
        self.varying.update(slots)
        for slot in slots:
            self.constants.pop(slot, None)

    def known(self) -> Any:
        """What the next program takes for constant."""
        from accel.lower import Known

        arrays = {slot: value for slot, value in self.constants.items() if isinstance(value, np.ndarray)}
        scalars = {slot: value for slot, value in self.constants.items() if slot not in arrays}
        return Known(scalars, arrays)


def continues(other: Path, path: Path, place: int, value: Any) -> bool:
    """Whether `other` is the path that parts from `path` at device outcome `place`, taking `value` there."""
    if len(other.outcomes) <= place:
        return False
    for mine, theirs in zip(path.outcomes[:place], other.outcomes[:place], strict=True):
        if mine.where != theirs.where or mine.expected != theirs.expected:
            return False
    at = other.outcomes[place]
    return at.where == path.outcomes[place].where and float(at.expected) == value
