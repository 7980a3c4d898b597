"""Sampled differential testing: some steps of one member are repeated on NumPy and compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.platform import config, logs
from accel.platform.distances import distance
from accel.platform.reasons import Refusal
from accel.transform.ensembles.batch import BatchStep
from accel.transform.ensembles.paths import Paths
from accel.transform.ensembles.working_copy import Array, Stepped


class Sampling:
    """Choice of the steps to compare: after each build of the program the first, second, fourth, eighth and so on.

    has_failed: True once a difference was found. NumPy steps all members from then on.
    """

    def __init__(self) -> None:
        self.has_failed = False
        self._builds, self._since, self._taken = 0, 0, 0

    def next(self, known: np.ndarray[Any, Any], paths: Paths) -> int | None:
        """Return the member to compare in this step, or None. known: by member, whether it took a known path."""
        if paths.builds != self._builds:
            self._builds, self._since = paths.builds, 0
        candidates = np.flatnonzero(known)
        if self.has_failed or candidates.size == 0:
            return None
        self._since += 1
        if self._since & (self._since - 1):
            return None
        self._taken += 1
        return int(candidates[(self._taken - 1) % candidates.size])

    def fail(self, name: str, difference: str) -> None:
        self.has_failed = True
        refusal = Refusal("verify.mismatch", "", difference)
        logs.LOGGER.warning("%s", refusal.message(f"ensemble of {name}", "goes on by NumPy, member by member"))


def differing(found: BatchStep, form: Any, member: int, wanted: Stepped) -> str | None:
    """Return in words how a member's compiled step differs from NumPy's; None if they agree."""
    if wanted.form != form or set(wanted.values) < set(found.state):
        return "what it returns or changes"
    pairs = [
        (name, np.asarray(array[member] if name in found.apart else array), wanted.values[name])
        for name, array in found.state.items()
    ]
    for position, (array, is_apart) in enumerate(zip(found.result, found.result_apart, strict=True)):
        pairs.append((f"result {position}", np.asarray(array[member] if is_apart else array), wanted.result[position]))
    return next((name for name, ours, theirs in pairs if not _agree(ours, theirs)), None)


def _agree(ours: Array, theirs: Array) -> bool:
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False
    if theirs.dtype.kind not in "fc":
        return bool(np.array_equal(ours, theirs))
    difference, scale = distance(ours, theirs)
    return difference <= config.current().tolerance * scale
