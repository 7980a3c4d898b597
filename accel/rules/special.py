"""The calls that are recorded as more, or as less, than one operation on their operands.

Each class is one way. A row names it in its column `special`, with what that way needs to know.
`accel.record.values.calls.special.SPECIALS` has the function that records it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Special:
    """A way of recording a call. Ways that need to know nothing are plain subclasses."""


@dataclass(frozen=True, slots=True)
class Static(Special):
    """An answer that depends on types and shapes, which guards hold: np.ndim. The tape gets nothing.

    by_value: it depends on values too, which become guards.
    """

    by_value: bool = False


@dataclass(frozen=True, slots=True)
class Unrecordable(Special):
    """No compiled program can stand for it: np.unique.

    reason: an id of accel.platform.reasons; why: in words, for the report.
    """

    reason: str
    why: str


@dataclass(frozen=True, slots=True)
class Rewrite(Special):
    """A function that is a few calls of others, which are recorded in its place: np.ptp.

    calls: makes them, from recorded values by parameter name.
    """

    calls: Callable[..., Any]


class BroadcastArrays(Rewrite):
    """np.broadcast_arrays: a rewrite into views that may be written to, unlike those of np.broadcast_to."""


class OfArray(Rewrite):
    """np.reshape, np.outer: a rewrite that takes lists and numbers as well, of which it is given arrays."""


class ArrayOf(Special):
    """np.array, np.asarray, ...: the operand itself, a view of it, a copy, or an array of nested values."""


@dataclass(frozen=True, slots=True)
class Like(Special):
    """np.zeros_like, ...: an array filled with one number. fill: the number; None where it is an argument."""

    fill: int | None


class WritesInto(Special):
    """A function that changes its first operand: np.copyto. `lower` returns the operand's new value."""


class NanToNum(Special):
    """np.nan_to_num, which changes its operand with copy=False."""


class Where(Special):
    """np.where, np.nonzero: with one argument an index for each true element, with three a computation."""


class Shaped(Special):
    """The result's shape depends on values: np.bincount. `lower` is given that of the recording as `shape`; `holds`
    says whether a later call has the same."""


class CallOnHost(Special):
    """The program calls the function itself in the middle of its run (accel.rules.hosted): scipy.ndimage.label."""


class Finite(Special):
    """NumPy raises for singular matrices, where XLA gives infinities or NaN: np.linalg.inv. Replays check for them."""
