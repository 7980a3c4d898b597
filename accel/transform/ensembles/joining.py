"""Merge the compiled step of all members with the steps of single members on NumPy, and compare samples of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from accel.platform import config, logs
from accel.platform.distances import distance
from accel.platform.reasons import Refusal
from accel.transform.ensembles.batch import BatchStep
from accel.transform.ensembles.paths import Paths
from accel.transform.ensembles.values import MemberValues
from accel.transform.ensembles.working_copy import Array, Stepped, is_same
from accel.transform.pure.recorded import refused


class Joined:
    """One step of all members.

    state: by name, the new value, and whether each member has its own. result: arrays with the members along their
    first axis.
    """

    def __init__(
        self,
        before: MemberValues,
        found: BatchStep,
        form: Any,
        alone: Mapping[int, Stepped],
        pristine: Callable[[str], Array],
        name: str,
    ) -> None:
        self._before, self._found, self._alone = before, found, alone
        self._pristine, self._name = pristine, name
        names = dict.fromkeys([*found.state, *(each for one in alone.values() for each in one.values)])
        self.state = {each: self._state_of(each) for each in names}
        if any(one.form != form for one in alone.values()):
            raise refused(name, "pure.result", "what it returns has another form on each path")
        self.result = [self._result_of(position) for position in range(len(found.result))]

    def _state_of(self, name: str) -> tuple[Any, bool]:
        base, is_apart = self._base(name)
        if not self._alone:
            return base, is_apart
        rows = {
            member: one.values[name] if name in one.values else self._pristine(name)
            for member, one in self._alone.items()
        }
        return self._with_rows(name, base, is_apart, rows)

    def _base(self, name: str) -> tuple[Any, bool]:
        """Return the value of the members that NumPy has not stepped, and whether each has its own."""
        if name in self._found.state:
            return self._found.state[name], name in self._found.apart
        if name in self._before.arrays:
            return self._before.arrays[name], name in self._before.apart
        return self._pristine_of_any(name), False

    def _pristine_of_any(self, name: str) -> Array:
        if len(self._alone) == self._before.members:
            return next(one.values[name] for one in self._alone.values() if name in one.values)
        return self._pristine(name)

    def _with_rows(self, name: str, base: Any, is_apart: bool, rows: Mapping[int, Array]) -> tuple[Any, bool]:
        members = self._before.members
        one = np.asarray(base)
        shape = one.shape[1:] if is_apart else one.shape
        for row in rows.values():
            if row.shape != shape or row.dtype != one.dtype:
                detail = f"{name} is {one.dtype}{list(shape)} in some members, {row.dtype}{list(row.shape)} in others"
                raise refused(self._name, "pure.result", detail)
        if not is_apart:
            first = next(iter(rows.values())) if len(rows) == members else one
            if all(is_same(row, first) for row in rows.values()):
                return first, False
        array = np.array(one if is_apart else np.broadcast_to(one, (members, *shape)))
        for member, row in rows.items():
            array[member] = row
        return array, True

    def _result_of(self, position: int) -> Any:
        base, is_apart = self._found.result[position], self._found.result_apart[position]
        rows = {member: one.result[position] for member, one in self._alone.items()}
        if rows:
            base, is_apart = self._with_rows("what it returns", base, is_apart, rows)
        return base if is_apart else np.broadcast_to(base, (self._before.members, *np.shape(base)))


# -- comparisons ------------------------------------------------------------------------------------------------------


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
