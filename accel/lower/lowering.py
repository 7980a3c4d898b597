"""Lowering proper: what a program needs of a tape, how it gets that, and the function that JAX traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from accel.ir.fingerprint import Indescribable, fingerprint
from accel.ir.tape import Node, Outcome
from accel.lower import pipeline
from accel.lower.folding import Folding
from accel.lower.operations import as_array
from accel.lower.passes.arrange import Part, check_size
from accel.lower.pipeline import About, Watch
from accel.lower.program import (
    PACKS,
    Fixed,
    Known,
    Lowerable,
    OnHost,
    OutputNumber,
    Packed,
    Program,
    agrees,
    pack_of,
)
from accel.lower.repetition import CompactConstant, without_repetition
from accel.lower.values import Values
from accel.rules import core, fusion, rounding
from accel.rules.rule import Unsupported

if TYPE_CHECKING:
    from jax import Array

EMBEDDED = 8
"""Constants of up to so many elements are written into the program, where XLA computes with them. Larger ones are
arguments, so that one compiled program serves whatever they hold; their values are no part of its fingerprint."""


def lower(
    trace: Lowerable,
    known: Known,
    *,
    on_cpu: bool = True,
    spanned: frozenset[int] = frozenset(),
    watch: Watch | None = None,
) -> Program:
    """The program of a trace. Raises Unsupported where a rule cannot do what the tape asks.

    on_cpu: whether it is for XLA:CPU, which stores too little (see accel.rules.fusion). spanned: slots whose arrays
    the caller reads from spans (see accel.backend.spans). watch: is shown the operations before and after each pass.
    """
    return _Lowering(trace, known, on_cpu, spanned, watch).program()


class _Lowering:
    def __init__(
        self, trace: Lowerable, known: Known, on_cpu: bool, spanned: frozenset[int], watch: Watch | None
    ) -> None:
        self._trace = trace
        self._on_cpu = on_cpu
        self._spanned = spanned
        self._watch = watch
        self._known = known
        self._folding = Folding(trace, known)
        self._slots: dict[int, int] = {}
        self._constants: list[CompactConstant] = []
        self._positions: dict[int, int] = {}
        self._tables: dict[int, int] = {}
        self._scalars: dict[str, list[Node]] = {pack: [] for pack in PACKS}
        self._scalar_positions: dict[int, tuple[str, int]] = {}

    # -- the parts ----------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        trace = self._trace
        with np.errstate(all="ignore"):  # folding computes again what NumPy has computed, and warned of, before
            outcomes = self._outcomes()
            changed = [node for _, node in trace.outputs.changed]
            targets = [*trace.outputs.arrays, *changed]
            numbers = trace.outputs.numbers
            device_numbers = [node for node in numbers if not node.host and not self._folding.is_fixed(node)]
            checked = [outcome.node for outcome in outcomes]
            results = [*targets, *checked, *device_numbers]
            body: Sequence[Node] = [node for node in self._needed(results) if not self.is_leaf(node)]
            body, parts = self._optimized(body, results)
            # In the order of their use: the positions of arguments are part of the fingerprint.
            for node in (*(operand for part in parts for operand in part.operands()), *results):
                self._leaf(node)
        host = self._host()
        function, positions = self._function(parts, targets, checked, device_numbers)
        described, indescribable = self._fingerprint(body, [trace.outputs.arrays, changed, checked, device_numbers])
        return Program(
            function=function,
            slots=list(self._slots),
            # The last is the argument that keeps XLA from fusing and contracting (see rules.fusion, rules.rounding).
            constants=[*(constant.stored for constant in self._constants), np.bool_(True)],
            host=host,
            scalars=self._scalars,
            outcomes=outcomes,
            numbers=[self._number(node, positions) for node in numbers],
            known=self._known,
            operations=len(body),
            folded=self._folding.count,
            fingerprint=described,
            indescribable=indescribable,
        )

    def _fingerprint(self, body: Sequence[Node], results: Sequence[Sequence[Node]]) -> tuple[str | None, str]:
        """The program's fingerprint and "", or None and what of it has no description."""
        tables = [self._constants[position].stored for position in self._tables.values()]
        try:
            return fingerprint(body, results, self._entry, tables), ""
        except Indescribable as error:
            return None, str(error)

    def _number(self, node: Node, positions: dict[int, Packed]) -> OutputNumber:
        if node.index in positions:
            return positions[node.index]
        if node.host and not self._folding.is_fixed(node):
            return OnHost(node.index)
        return Fixed(self._folding.value(node))

    def _outcomes(self) -> list[Outcome]:
        """What the device checks. Outcomes on the host are guards, which the matcher checks."""
        device: list[Outcome] = []
        for outcome in self._trace.tape.outcomes:
            if self._folding.is_fixed(outcome.node):
                if not agrees(self._folding.value(outcome.node), outcome.expected):
                    raise Unsupported("guard.unstable", "an outcome of constants differs from the recorded one")
            elif not outcome.node.host:
                device.append(outcome)
        return device

    def _needed(self, roots: Iterable[Node]) -> list[Node]:
        """The nodes that the roots are computed from on the device, leaves included, in order."""
        found: dict[int, Node] = {}
        stack = list(roots)
        while stack:
            node = stack.pop()
            if node.index in found:
                continue
            found[node.index] = node
            if not self.is_leaf(node):
                stack.extend(node.operands())
        return [found[index] for index in sorted(found)]

    def is_leaf(self, node: Node) -> bool:
        """Whether the device gets the node's value instead of computing it."""
        if node.is_input or node.host:
            return True
        # What is one number repeated (`np.zeros(shape)`) the device makes faster than it reads it.
        return self._folding.is_fixed(node) and not (node.rule.cost.by_shape and node.constant)

    def _leaf(self, node: Node) -> None:
        """Give a leaf its way into the program."""
        if not self.is_leaf(node):
            return
        if self._folding.is_fixed(node):
            self._constant(node)
        elif node.host:
            if node.index not in self._scalar_positions:
                pack = pack_of(node.dtype)
                self._scalar_positions[node.index] = pack, len(self._scalars[pack])
                self._scalars[pack].append(node)
        else:
            self._slots.setdefault(node.args[0], len(self._slots))

    def _constant(self, node: Node) -> None:
        value = self._folding.value(node)
        if isinstance(value, np.ndarray) and value.size > EMBEDDED and node.index not in self._positions:
            self._positions[node.index] = len(self._constants)
            self._constants.append(without_repetition(value))

    def _host(self) -> list[Node]:
        """What Python evaluates before launch: all that depends on scalars alone. Any of it may raise, read or not."""
        return [node for node in self._trace.tape.nodes if node.host and not self._folding.is_fixed(node)]

    # -- the function -------------------------------------------------------------------------------------------------

    def _optimized(self, body: Sequence[Node], results: list[Node]) -> tuple[Sequence[Node], Sequence[Part]]:
        """The operations after the passes, without and with their loops. Large tables of the loops become arguments."""
        if self._watch is not None:
            self._watch("recorded", "what NumPy computed", self._trace.tape.nodes)
            self._watch("needed", "leave out what is constant, what Python computes, and what nothing reads", body)
        indices = frozenset(node.index for node in results)
        about = About(indices, self._trace.outputs.state, self._spanned, self._fixed_value)
        body = pipeline.optimized(body, about, self._watch)
        parts = pipeline.with_loops(body, about, self._watch)
        check_size(parts)
        for table in (table for part in parts if not isinstance(part, Node) for table in part.tables):
            if table.size > EMBEDDED:
                self._tables[id(table)] = len(self._constants)
                self._constants.append(CompactConstant(table, table.shape))
        return body, parts

    def _function(
        self, parts: Sequence[Part], targets: list[Node], outcomes: list[Node], numbers: list[Node]
    ) -> tuple[Callable[..., Any], dict[int, Packed]]:
        packs: dict[str, list[Node]] = {**{pack: [] for pack in PACKS}, "f": list(outcomes)}
        positions = {}
        for node in numbers:
            pack = pack_of(node.dtype)
            positions[node.index] = Packed(pack, len(packs[pack]))
            packs[pack].append(node)

        def function(arrays: list[Any], constants: list[Any], scalars: dict[str, Any]) -> Any:
            values = Values(self, arrays, constants[:-1], scalars)
            with fusion.stored_by(constants[-1] if self._on_cpu else None), rounding.kept_by(constants[-1]):
                for part in parts:
                    values.compute(part)
            arrays_out = [self._own(node, values.fetch(node)) for node in targets]
            read = {pack: [values.fetch(node) for node in nodes] for pack, nodes in packs.items() if nodes}
            return arrays_out, {pack: _packed(found, PACKS[pack]) for pack, found in read.items()}

        return function, positions

    def _fixed_value(self, node: Node) -> Any:
        return self._folding.value(node) if node.dtype is not None and self._folding.is_fixed(node) else None

    def _own(self, node: Node, value: Array) -> Any:
        """A result that the device was given (an input, a constant), as an array of its own: callers write to it."""
        if not self.is_leaf(node):
            return value
        from jax import numpy as jnp

        return jnp.array(value, copy=True)

    def _entry(self, node: Node) -> Any:
        """How a leaf comes into the program: a value that is written into it, or the position of an argument."""
        if self._folding.is_fixed(node):
            position = self._positions.get(node.index)
            if position is None:
                return "value", self._folding.value(node)
            return "constant", position, self._constants[position].form
        found = self._scalar_positions.get(node.index) if node.host else self._slots.get(node.args[0])
        if found is None:
            raise Indescribable("an operand that is no argument of it")
        return "host" if node.host else "array", found

    def table(self, values: NDArray[Any], constants: list[Any]) -> Any:
        """A loop's table inside the program."""
        position = self._tables.get(id(values))
        return values if position is None else constants[position]

    def leaf_value(self, node: Node, arrays: list[Any], constants: list[Any], scalars: dict[str, Any]) -> Any:
        """A leaf's value inside the program."""
        if self._folding.is_fixed(node):
            position = self._positions.get(node.index)
            if position is None:
                return as_array(self._folding.value(node))
            return self._constants[position].restore(constants[position])
        if node.host:
            pack, position = self._scalar_positions[node.index]
            return scalars[pack][position].astype(node.dtype)
        return arrays[self._slots[node.args[0]]]


def _packed(values: list[Any], dtype: np.dtype[Any]) -> Any:
    from jax import numpy as jnp

    return jnp.stack([core.cast(value, dtype).reshape(()) for value in values])
