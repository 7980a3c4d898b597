"""Interface to a traced program's values, for the passes that emit loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from accel.ir.tape import Node
from accel.rules.lowering import Array

Compute = Callable[[Node, Sequence[Any]], Any]
"""Function that computes a loop operation's value from its operands, in the order of their leaves."""


class ValueStore(Protocol):
    """The values of a traced program by node (see `accel.compiler.lower.values.Values`)."""

    def fetch(self, node: Node) -> Any:
        """The node's value."""

    def ensure(self, nodes: Iterable[Node]) -> None:
        """Fetch what a loop takes from outside, before its iterations are traced."""

    def set(self, node: Node, value: object) -> None:
        """Set the value of a node that is used after the loop."""

    def set_row(self, node: Node, column: Array, row: int) -> None:
        """Set a node's value to a row of an array. The row is not read before it is asked for."""

    def stack(self, nodes: Sequence[Node]) -> Array:
        """The nodes' values along a new first axis."""

    def table(self, values: NDArray[Any]) -> Any:
        """A loop's table: as it stands, or an argument of the program."""
