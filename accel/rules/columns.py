"""The columns of a rule besides how it is computed, in groups by the passes and modules that read them.

A row gives a column by its name alone, as in `rounding=Rounding.EXACT`, and leaves out those whose default holds. All
are about one operation of a tape. So a row that is recorded as calls of others (`Rewrite`) needs none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeAlias, TypeVar

from accel.ir.tape import Node
from accel.rules.special import Special

T = TypeVar("T")
Fact: TypeAlias = "T | Callable[[Node], T]"
"""A fact about a function; where it depends on the arguments, a function of the operation's node."""


def fact(column: Fact[T], node: Node) -> T:
    """The fact in a column of `node.rule`, for this operation."""
    return column(node) if callable(column) else column


def rounds_freely(node: Node) -> bool:
    """Whether the last places of a node's floating-point result are the library's that computes it."""
    is_float = node.dtype is None or node.dtype.kind in "fc"
    return is_float and fact(node.rule.numerics.rounding, node) is Rounding.FREE


class Rounding(Enum):
    """Rounding of the elements of a floating-point result."""

    EXACT = auto()
    """Not at all: each is one of the operands' elements, or follows from it alone."""
    ROUNDED = auto()
    """The true result, rounded once, by NumPy and, unless XLA rewrites the expression, by XLA too."""
    FREE = auto()
    """NumPy and XLA may differ in the last place."""


@dataclass(frozen=True, slots=True)
class Reads:
    """Which elements of its operands a selection reads: of the others nothing reaches the result.

    operands: by name, or by position where the operation has them so. masks: takes the operation's arguments, as JAX
    arrays and numbers. For each operand in order it gives the truths of those elements, broadcastable to the result's
    shape; for an operand that is a list, a list of truths. given: the argument without which all is read.

    Of a reduction, the truths are in the shape of the operand.
    """

    operands: tuple[str | int, ...]
    masks: Callable[..., tuple[Any, ...]]
    given: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedAs:
    """Facts for writing a call down on the tape. Read by accel.record.values (calls, compressed)."""

    special: Special | None = None
    """The way in which a call is recorded that is more than one operation on its operands. None: it is one."""
    holds: Callable[..., Any] | None = None
    """Condition on the operands under which `lower` agrees with NumPy, which raises or differs otherwise. Takes the
    row's parameters and the result's `shape`, as NumPy and as JAX arrays. Replays check it. Returns a truth, or None
    for a call that needs no check. None: no call needs one."""
    otherwise: str = "arguments for which NumPy and JAX differ"
    """Words of the report for a call that does not satisfy `holds`."""
    or_on_host: bool = False
    """Where `holds` is false, or for parameters that the row has not, the program calls the function itself
    (accel.rules.hosted)."""
    masked: Callable[..., Any] | None = None
    """For a reduction: `lower` over what a boolean mask selects, with the keyword `mask`. None: it is refused there."""
    rows: Callable[..., Any] | None = None
    """For a function whose result has as many rows as its operand: `lower` over what a boolean mask selects, with the
    keyword `mask`. None: it is refused there."""
    reorders: bool = False
    """Of `rows`: those that count come first in the result. Otherwise they stay where the mask holds."""
    needs_elements: bool = False
    """NumPy raises for an empty selection. Replays check that the selection has an element."""
    out_decides: bool = False
    """NumPy chooses the dtype that it computes in by `out` too, which must then be of that dtype."""
    nested: bool = False
    """The function itself goes through nested lists; otherwise a list inside a "*sequence" operand is one array."""


@dataclass(frozen=True, slots=True)
class Locality:
    """Which elements of the operands an element of the result comes from."""

    elementwise: bool = False
    """From the elements at the same place alone, with broadcasting. Read by record.values.compressed and
    lower.values."""
    rowwise: Callable[[Mapping[str, Any], Callable[[object], bool]], bool] | None = None
    """From the bound arguments, and a function that says which values are selections of rows: whether row i of the
    result (along its first axis) comes from rows i of these, and all of the other operands. None: it never does, unless
    `elementwise`. Read by record.values.compressed."""
    view: Callable[..., Any] | None = None
    """Given an operand, the result and the bound arguments: the step of accel.ir.views from the operand to the result,
    if they share memory. None: such a result is refused. Read by record.values.calls."""
    reads: Reads | None = None
    """Which elements of the operands it reads; None: all. Read by accel.transform.pure.gates, which keeps the others
    out of derivatives."""


@dataclass(frozen=True, slots=True)
class Numerics:
    """Rounding of the result, and the effect of a difference in the last place."""

    rounding: Fact[Rounding] = Rounding.FREE
    """See `Rounding`. Read by the exact pass and by dispatch.comparing.monte_carlo."""
    jumps: Fact[bool | None] = None
    """Whether an operand's last place may decide between quite different results, as in `floor`. None: it does where
    the result is whole or bool and an operand a float. Read by the exact pass and by dispatch.comparing.monte_carlo."""
    compares: bool = False
    """There is a threshold: where the operands are closer than the tolerance, either answer is right. Read by
    dispatch.comparing.monte_carlo."""
    careful: bool = False
    """XLA's own reductions on the CPU may be wrong where they read the result. Read by backend.compile, which then
    compiles the program without them."""


@dataclass(frozen=True, slots=True)
class Slope:
    """Facts about the derivative."""

    singular: bool = False
    """It is infinite, or none, at some operands for which there is a value, as that of a root is at 0: the constants
    that selections put in the place of others often are such points. Of a row that is `elementwise`. Read by
    accel.transform.pure.gates, which lets no derivatives through there."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The price of the operation on the device, and when it is worth computing once."""

    work: Fact[float] = 1.0
    """For each element, in simple operations: an addition is 1. Read by the branches pass and by
    accel.dispatch.paths.work."""
    arithmetic: bool = False
    """Takes as long with a number that the program is given as with one that it knows. Read by lower.folding, which
    leaves a number that only such operations read an input, so that one program serves for all its values."""
    by_shape: bool = False
    """The result is one number repeated, which XLA makes for less than reading it costs. Read by lower.lowering, which
    does not keep such a result as a constant."""
