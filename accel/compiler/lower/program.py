"""Programs: what lowering makes of a trace, and what it is told about the trace's inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from accel.compiler.lower.written import OnHost, View
from accel.ir.bits import same_number
from accel.ir.tape import Node, Tape
from accel.ir.template import fill
from accel.record.run.outputs import Outputs
from accel.record.state.draw import Draw
from accel.rules.rule import Unsupported

if TYPE_CHECKING:
    from accel.compiler.lower.renewing import ConstantsAnew


@dataclass(frozen=True, slots=True)
class Known:
    """Input slots that are treated as constants. Guards hold the program to their values.

    scalars: Python and NumPy scalars. arrays: copies of arrays.
    """

    scalars: Mapping[int, Any] = field(default_factory=dict)
    arrays: Mapping[int, Any] = field(default_factory=dict)

    def __contains__(self, slot: int) -> bool:
        return slot in self.scalars or slot in self.arrays

    def value(self, slot: int) -> Any:
        return self.scalars[slot] if slot in self.scalars else self.arrays[slot]


@dataclass(frozen=True, slots=True)
class Packed:
    """An output number that the device computes: an element of the vector `pack` (see PACKS)."""

    pack: str
    position: int


@dataclass(frozen=True, slots=True)
class Fixed:
    """An output number that is the same in every run."""

    value: Any


OutputNumber = Packed | OnHost | Fixed
"""Source of a number that leaves the call."""


@dataclass(slots=True)
class LoweredProgram:
    """A lowered tape.

    function: takes the arrays of `slots`, then `constants`, then the packed scalars (see PACKS), and gives new arrays,
    changed arrays, and the packed outcomes and numbers. The last constant is true, which XLA cannot know: `always` of
    accel.rules.tracing and accel.compiler.lower.rounding.
    for_kernels: the same function without what only serves XLA; None where kernels cannot have it.
    is_rounded: whether it is compiled with NumPy's rounding.
    host: nodes that Python evaluates before launch, in order; scalars: those of them that the program takes, by pack.
    outcomes: what the device checks. numbers: where each output number comes from.
    operations: how many it has. fingerprint: of what it computes, or None (see accel.ir.fingerprint) where it holds
    something that has no description: indescribable says what. renewal: how its constants change. written: by position
    among the results, new and changed arrays, those of which it gives views alone, as a list (see
    accel.compiler.lower.written).
    """

    function: Callable[..., Any] | None
    for_kernels: Callable[..., Any] | None
    is_rounded: bool
    slots: list[int]
    constants: list[Any]
    host: list[Node]
    scalars: dict[str, list[Node]]
    outcomes: list[Any]
    numbers: list[OutputNumber]
    known: Known
    operations: int
    folded: int
    fingerprint: str | None
    indescribable: str
    renewal: ConstantsAnew
    written: Mapping[int, Sequence[View]]


class Lowerable(Protocol):
    """The part of a trace that is lowered."""

    tape: Tape
    outputs: Outputs
    pinned: dict[int, Any]
    draws: list[Draw]


def with_values(outputs: Outputs, value_of: Callable[[Any], Any]) -> dict[str, list[Any]]:
    """The parts of outputs that name nodes, with other values in the place of these."""
    return {
        "arrays": [value_of(node) for node in outputs.arrays],
        "numbers": [value_of(node) for node in outputs.numbers],
        "changed": [(slot, value_of(node)) for slot, node in outputs.changed],
        "state": [(slot, value_of(node)) for slot, node in outputs.state],
    }


def refilled(draw: Draw, value_of: Callable[[Any], Any], kind: type = Node) -> Draw:
    """A draw with other values in the place of the nodes, or leaves of another kind, among its arguments."""
    args, kwargs = fill((draw.args, draw.kwargs), value_of, kind)
    return replace(draw, args=args, kwargs=kwargs)


PACKS = {"f": np.dtype(np.float64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64), "c": np.dtype(np.complex128)}
"""Scalars travel packed, by kind: one transfer costs as much as many."""


def pack_of(dtype: np.dtype[Any] | None) -> str:
    """The pack that a scalar of a dtype travels in."""
    if dtype is None or dtype.kind not in "biufc":
        raise Unsupported("lower.failed", f"a scalar of dtype {dtype}")
    return dtype.kind if dtype.kind in "fc" or dtype == np.uint64 else "i"


def agrees(value: np.generic | bool | float, expected: np.generic | bool | float) -> bool:
    """Whether an outcome is what the path assumed."""
    return bool(value == expected) if isinstance(expected, (bool, int)) else same_number(value, expected)
