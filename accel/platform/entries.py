"""Entries of ledgers: states of targets, kinds of costs, differences from NumPy, and counts that others keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from accel.platform.ledger import Ledger


class State(StrEnum):
    """State of a target.

    INLINED: it runs as part of another target's program; direct calls, if any, run on NumPy.
    ABSENT: this revision of the program does not define it.
    DEMOTED: it was returned to NumPy for good.
    """

    COMPILED = "compiled"
    NUMPY = "numpy"
    DEMOTED = "demoted"
    INLINED = "inlined"
    ABSENT = "absent"
    UNCALLED = "uncalled"


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest difference of one field of a call's outputs from NumPy's.

    field: its name, as the user would write it. place: the index of the worst element, "" for a single value. what:
    both values, in words. error: the relative error. points: number of elements beyond the tolerance; 0 if types,
    shapes, objects or effects differ.
    """

    field: str
    place: str
    what: str
    error: float
    points: int = 0

    @property
    def detail(self) -> str:
        """The field, the place and both values, in words."""
        return f"{self.field}{self.place}: {self.what}"


COSTS = ("recording", "loading", "comparing", "guards", "discarded", "slowdown")
"""Kinds of costs, each in addition to NumPy's time for the same calls.

recording: recorded calls. loading: importing JAX and accel, loading programs, and compiling while the program waits.
comparing: comparisons with NumPy. guards: all else that accel does in a call, such as guard checks. discarded: runs
that ended in a side exit. slowdown: NumPy calls slowed down by a compile.
"""


@dataclass(slots=True, eq=False)
class FieldDifferences:
    """The differences of one field beyond the tolerance, with one verdict: their number, and the worst."""

    worst: Difference
    verdict: str
    count: int = 0


def real_costs(costs: Mapping[str, float]) -> dict[str, float]:
    """Return costs by kind, in the order of COSTS. A sum that is negative by chance counts as 0."""
    return {cost: max(0.0, costs[cost]) for cost in COSTS if cost in costs}


class CountedLater(Protocol):
    """Calls that are not entered into their ledger one by one."""

    @property
    def is_over(self) -> bool:
        """Return True if no more such calls will come, and all are entered."""

    def enter(self, ledger: Ledger) -> None:
        """Enter the calls so far."""


class CountedTransfers(Protocol):
    """Data that the launches of one program copied to the device and back."""

    @property
    def constants(self) -> int:
        """Bytes of constants copied to the device: once, and at each change."""

    @property
    def launches(self) -> int:
        """Number of launches."""

    def handed(self) -> Counter[str]:
        """Bytes copied to the device, by field."""

    def fetched(self) -> Counter[str]:
        """Bytes copied from the device, by field."""

    def lines(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return by field the "file:line" that caused each copy: to the device, and from it."""

    def begin_again(self) -> None:
        """Reset all counts."""
