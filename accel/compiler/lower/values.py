"""Values: those of a program's operations while it is traced."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.compiler.lower import looping
from accel.compiler.lower.arguments import ProgramArguments
from accel.compiler.lower.operations import compute
from accel.compiler.lower.passes.arrange import Part
from accel.compiler.lower.passes.branches import Conditional
from accel.compiler.lower.passes.loops import batch, scan
from accel.compiler.lower.passes.loops.loop import Loop
from accel.compiler.lower.passes.loops.operands import filled, is_box_read
from accel.ir import views
from accel.ir.loop import body_of
from accel.ir.tape import Node
from accel.ir.template import fill
from accel.rules import core
from accel.rules.lowering import Array


class Values:
    """The values of a program's nodes while it is traced."""

    def __init__(
        self,
        arguments: ProgramArguments | looping.Parameters,
        arrays: list[Any],
        constants: list[Any],
        scalars: dict[str, Any],
    ) -> None:
        self._arguments = arguments
        self._inputs = (arrays, constants, scalars)
        self._values: dict[int, Any] = {}
        self._rows: dict[int, tuple[Any, int]] = {}  # by node: a loop's column of all iterations, and which of its rows

    def fetch(self, node: Node) -> Any:
        """The node's value. Computes or stores it first where that is still to be done."""
        value = self._values.get(node.index)
        if value is None:
            if node.index in self._rows:
                column, row = self._rows[node.index]
                value = column[row]
            elif is_box_read(node) and not self._arguments.includes(node):  # a loop had it, and left it to others
                value = compute(node, fill(node.args, self.fetch, Node), {})
            else:
                value = self._arguments.value(node, *self._inputs)
            self._values[node.index] = value
        return value

    def ensure(self, nodes: Iterable[Node]) -> None:
        """Fetch what a loop takes from outside, before its iterations are traced.

        What is first computed inside a loop exists only there, but would be kept for the rest of the program (a leaked
        tracer).
        """
        for node in nodes:
            self.fetch(node)

    def table(self, values: NDArray[Any]) -> Any:
        """A loop's table: as it stands, or an argument of the program."""
        return self._arguments.table(values, self._inputs[1])

    def set_row(self, node: Node, column: Array, row: int) -> None:
        """Set a node's value to a row of an array, not looked up before it is asked for."""
        self._rows[node.index] = column, row

    def packed(self, nodes: Sequence[Node], dtype: np.dtype[Any]) -> Any:
        """The nodes' values, each a number, as a vector of `dtype`."""
        return self._stack(nodes, lambda value, shape: core.cast(value, dtype).reshape(shape))

    def stack(self, nodes: Sequence[Node]) -> Any:
        """The nodes' values along a new first axis."""
        from jax import numpy as jnp

        return self._stack(nodes, lambda value, _: jnp.asarray(value))

    def _stack(self, nodes: Sequence[Node], convert: Callable[[Any, tuple[int, ...]], Any]) -> Any:
        """convert: is given a value, or some rows of a column, and the shape that numbers have there."""
        from jax import numpy as jnp

        # Rows of one column are taken together: one operation, not one for each node. The last line puts the parts back
        # into the order of the nodes.
        columns: dict[int, tuple[Any, list[int], list[int]]] = {}  # array, its rows, their positions in the stack
        single = [position for position, node in enumerate(nodes) if node.index not in self._rows]
        for position, node in enumerate(nodes):
            if node.index in self._rows:
                column, row = self._rows[node.index]
                _, rows, positions = columns.setdefault(id(column), (column, [], []))
                rows.append(row)
                positions.append(position)
        parts = [convert(column[np.array(rows)], (len(rows),)) for column, rows, _ in columns.values()]
        if single:
            parts.append(jnp.stack([convert(self.fetch(nodes[position]), ()) for position in single]))
        if len(parts) == 1 and not columns:
            return parts[0]
        order = [position for _, _, positions in columns.values() for position in positions] + single
        return jnp.concatenate(parts)[np.argsort(order)]

    def set(self, node: Node, value: object) -> None:
        self._values[node.index] = value

    def compute(self, part: Part) -> None:
        """Compute an operation, or all iterations of a loop."""
        if isinstance(part, Node):
            if body_of(part) is None:
                self._compute_node(part)
            else:
                self._compute_iterations(part)
        elif isinstance(part, Conditional):
            self._compute_conditional(part)
        else:
            self._compute_loop(part)

    def _compute_node(self, node: Node) -> None:
        node = self._before_writes(node)
        args, kwargs = fill((node.args, node.kwargs), self.fetch, Node)
        self.set(node, compute(node, args, kwargs))

    def _compute_conditional(self, conditional: Conditional) -> None:
        """Compute the side that is chosen. What its operations give exists only there, but for what the phis choose."""
        from jax import lax

        outside = {node.index: node for node in conditional.operands() if node.index not in conditional.inside}
        for node in outside.values():
            self.fetch(node)
        before = dict(self._values), dict(self._rows)

        def side(place: int) -> list[Any]:
            try:
                for part in conditional.sides[place]:
                    self.compute(part)
                return [self._chosen(phi, phi.args[1][place]) for phi in conditional.phis]
            finally:
                self._values, self._rows = dict(before[0]), dict(before[1])

        sides = [functools.partial(side, place) for place in range(len(conditional.sides))]
        results = lax.switch(self.fetch(conditional.choice), sides)
        for phi, value in zip(conditional.phis, results, strict=True):
            self.set(phi, value)

    def _chosen(self, phi: Node, side: Node | None) -> Any:
        form = phi.kwargs["form"]
        return core.any_value(form) if side is None else core.cast(self.fetch(side), form[1]).reshape(form[0])

    def _compute_iterations(self, node: Node) -> None:
        """Compute a loop by data."""
        body = body_of(node)
        assert body is not None
        begin, entry, moving, fixed = fill(node.args, self.fetch, Node)

        def values_of(parameters: looping.Parameters) -> Values:
            return Values(parameters, [], [], {})

        self.set(node, looping.run(body, begin, entry, moving, fixed, values_of))

    def _compute_loop(self, loop: Loop) -> None:
        for node in loop.first:
            self._compute_node(node)
        batched = batch.plan(loop)
        if batched is None:
            scan.run(loop, self, self._compute_in_loop)
        else:
            batch.run(batched, self, self._compute_in_loop)

    def _compute_in_loop(self, node: Node, operands: Sequence[Any]) -> Any:
        """One operation of a loop's iterations."""
        return compute(node, *filled(node, operands))

    def _before_writes(self, node: Node) -> Node:
        """If the last writes were to other parts of the array, read the array as it was before them.

        Otherwise XLA keeps a copy of the whole array for each: it may still have to be read when the next write is
        made.
        """
        while node.rule is core.READ and node.args[0].rule is core.WRITE:
            before, step = node.args[0].args[:2]
            if not views.disjoint(before.shape, step, node.args[1]) or not self._is_known(before):
                break
            node = node.replaced(args=(before, *node.args[1:]))
        return node

    def _is_known(self, node: Node) -> bool:
        """Whether the node has a value. Those inside a loop have none, nor have constants that no operation reads."""
        return node.index in self._values or self._arguments.holds(node)
