"""Operands of a rolled loop.

The arguments of an operation are a template of tuples, lists, dictionaries and slices. Its *leaves* are the operands:
values, numbers and keys. A loop has one template for all iterations, and says for each leaf what it is in an iteration:

- `Invariant`: the same in every iteration.
- `Table`: a number or known array of its own in each iteration.
- `SameIteration` and `Carried`: values that the loop computes, in the same iteration or the one before.
- `MovingBox` and `MovingRead`: a slice by iteration.
- `Stacked`: another value from before the loop in each iteration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.compiler.lower.passes.loops.moving_box import MovingBox
from accel.ir.tape import Node
from accel.ir.template import fill, leaves
from accel.ir.views import Index
from accel.rules import core

LARGEST_TABLE = 1 << 20
"""Numbers in a table, and in what is collected of all iterations: 8 MiB of float64. Limits what a loop holds in memory
beside the program's own arrays; no measurement is known."""


LEAVES = (Node, int, float, complex, np.generic, Index)
"""Types of leaves that may differ between a loop's iterations. All else in a template must be the same in all."""


@dataclass(frozen=True, slots=True)
class Invariant:
    """Loop-invariant: the same in every iteration. leaf: a static value, or one from before the loop."""

    leaf: Any


@dataclass(frozen=True, slots=True)
class SameIteration:
    """The value of operation `position` of the same iteration."""

    position: int


@dataclass(frozen=True, slots=True)
class Carried:
    """Loop-carried: the value of operation `position` of the iteration before."""

    position: int


@dataclass(frozen=True, slots=True)
class Table:
    """A number or known array that differs from iteration to iteration. values: (iterations, ...)."""

    values: Any


@dataclass(frozen=True, slots=True)
class MovingRead:
    """A moving box of a value from before the loop.

    The tape holds each read once, however many loops look at it; here each loop reads for itself.
    """

    base: Node
    at: MovingBox


@dataclass(frozen=True, slots=True)
class Stacked:
    """Values from before the loop, another one for each iteration: what an earlier loop computed, as a rule."""

    nodes: tuple[Node, ...]


LoopOperand = Invariant | SameIteration | Carried | Table | MovingBox | MovingRead | Stacked
"""An operand of a rolled loop."""


def leaves_of(node: Node) -> list[Any]:
    """The leaves of an operation's arguments."""
    return leaves((node.args, node.kwargs), LEAVES)


def filled(node: Node, operands: Iterable[Any]) -> Any:
    """The arguments of an operation, by position and by name, with others in the place of `leaves_of(node)`."""
    given = iter(operands)
    return fill((node.args, node.kwargs), lambda _: next(given), LEAVES)


def may_vary(node: Node) -> bool:
    """Whether a plain number that the operation takes may be another one in each iteration, and so a traced value.

    `x * k` may have another k in each iteration. `np.roll(x, k)` may not: JAX needs shapes, axes and the like as static
    numbers. Operands of ufuncs come by position; functions take everything by name, axes and sizes too. Of the engine's
    own operations only those that take positions may.
    """
    return bool(node.args) and (not node.rule.own or node.rule in (core.READ_AT, core.WRITE_AT))


def is_box_read(node: Node) -> bool:
    """Whether a node reads a part of an array by basic indexing (which need not be a box: see `views.box_of`)."""
    return isinstance(node, Node) and node.rule is core.READ and isinstance(node.args[1], Index)
