"""Lowering: a tape with what is known of its inputs becomes one pure function over jax.numpy.

What depends on constants alone is computed here, once, by NumPy itself (*folding*). What depends on scalars alone
stays with Python (*host*). The rest is the program. Each operation's result is checked against the shape and dtype
that NumPy produced at that line.

arrangement  the operations with their loops; whether that is few enough
  roll       rounds of the same operations become one loop; batch: or all at once, where they are independent
  nest       loops in loops whose rounds differ in number and slices; ragged, layouts, abreast: how they run
exact        which operations have to round as NumPy does
aliasing     which writes XLA would do in place while what is overwritten is still to be read
compact      constants that repeat along an axis
operations   one operation, by its rule or by NumPy
recompute    which values are better stored than computed again by what reads them
values       the values of operations while the function is traced
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from accel.ir.fingerprint import Indescribable, fingerprint
from accel.ir.tape import Node, Outcome, Tape
from accel.lower.operations import as_array, evaluate
from accel.lower.passes import aliasing, exact
from accel.lower.passes.broadcast import Compact, compact
from accel.lower.passes.loops import Part, arranged, check_size
from accel.lower.values import Values
from accel.record.inputs import same_number
from accel.record.outputs import Outputs
from accel.rules import core, fusion, rounding
from accel.rules.rule import Unsupported

EMBEDDED = 8
"""Constants of up to so many elements are written into the program; larger ones are arguments."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is taken for constant: values of input slots. Guards hold the program to them.

    scalars: Python and NumPy scalars. arrays: copies of arrays.
    """

    scalars: Mapping[int, Any] = field(default_factory=dict)
    arrays: Mapping[int, Any] = field(default_factory=dict)

    def __contains__(self, slot: int) -> bool:
        return slot in self.scalars or slot in self.arrays

    def value(self, slot: int) -> Any:
        return self.scalars[slot] if slot in self.scalars else self.arrays[slot]


@dataclass(slots=True)
class Program:
    """A lowered tape.

    function: takes the arrays of `slots`, then `constants` (the last is true; see accel.rules.fusion), then
    the packed scalars (see PACKS), and gives new arrays, changed arrays, and the packed outcomes and numbers.
    host: nodes that Python evaluates before launch, in order; scalars: those of them that the program takes, by pack.
    outcomes: what the device checks.
    host_outcomes: the same on the host. numbers: where each output number is: ("f" | "i" | "c" | "host", place).
    operations: how many it has. fingerprint: of what it computes, or None (see accel.ir.fingerprint) where it holds
    something that has no description: indescribable says what.
    """

    function: Callable[..., Any] | None
    slots: list[int]
    constants: list[Any]
    host: list[Node]
    scalars: dict[str, list[Node]]
    outcomes: list[Any]
    host_outcomes: list[Any]
    numbers: list[tuple[str, int]]
    known: Known
    operations: int
    folded: int
    fingerprint: str | None
    indescribable: str


PACKS = {
    "f": np.dtype(np.float64),
    "i": np.dtype(np.int64),
    "u": np.dtype(np.uint64),
    "c": np.dtype(np.complex128),
}
"""Scalars travel packed, by kind: one transfer costs as much as many."""


def pack_of(dtype: np.dtype[Any] | None) -> str:
    """The pack that a scalar of a dtype travels in."""
    if dtype is None or dtype.kind not in "biufc":
        raise Unsupported("lower.failed", f"a scalar of dtype {dtype}")
    return dtype.kind if dtype.kind in "fc" or dtype == np.uint64 else "i"


class Lowerable(Protocol):
    """The part of a trace that is lowered."""

    tape: Tape
    outputs: Outputs
    decided: dict[int, Any]


def lower(trace: Lowerable, known: Known, *, on_cpu: bool = True, spanned: frozenset[int] = frozenset()) -> Program:
    """The program of a trace. Raises Unsupported where a rule cannot do what the tape asks.

    on_cpu: whether it is for XLA:CPU, which stores too little (see accel.rules.fusion). spanned: slots whose arrays
    the caller reads from spans (see accel.backend.spans).
    """
    return _Lowering(trace, known, on_cpu, spanned).program()


class _Lowering:
    def __init__(self, trace: Lowerable, known: Known, on_cpu: bool, spanned: frozenset[int]) -> None:
        self._trace = trace
        self._on_cpu = on_cpu
        self._spanned = spanned
        self._known = known
        self._folded: dict[int, Any] = {}
        self._fixed: dict[int, bool] = {}
        self._slots: dict[int, int] = {}
        self._constants: list[Compact] = []
        self._places: dict[int, int] = {}
        self._tables: dict[int, int] = {}
        self._scalars: dict[str, list[Node]] = {pack: [] for pack in PACKS}
        self._scalar_places: dict[int, tuple[str, int]] = {}

    # -- what is fixed ------------------------------------------------------------------------------------------------

    def fixed(self, node: Node) -> bool:
        """Whether the node's value is known before launch, on any later call."""
        for other in self._trace.tape.nodes[len(self._fixed) : node.index + 1]:
            self._fixed[other.index] = (
                other.args[0] in self._known or other.args[0] in self._trace.decided
                if other.is_input
                else all(self._fixed[operand.index] for operand in other.operands())
            )
        return self._fixed[node.index]

    def value(self, node: Node) -> Any:
        """The value of a fixed node, by NumPy."""
        for other in self._pending(node):
            self._folded[other.index] = (
                self._input_value(other.args[0])
                if other.is_input
                else evaluate(other, lambda operand: self._folded[operand.index])
            )
        return self._folded[node.index]

    def _input_value(self, slot: int) -> Any:
        decided = self._trace.decided.get(slot)
        return self._known.value(slot) if decided is None else decided

    def _pending(self, node: Node) -> list[Node]:
        """The nodes that a fixed node's value needs and that are not computed yet, in order."""
        found, stack = {}, [node]
        while stack:
            top = stack.pop()
            if top.index not in self._folded and top.index not in found:
                found[top.index] = top
                stack.extend(top.operands())
        return [found[index] for index in sorted(found)]

    # -- the parts ----------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        trace = self._trace
        with np.errstate(all="ignore"):
            outcomes, host_outcomes = self._outcomes()
            targets = [*trace.outputs.arrays, *(node for _, node in trace.outputs.changed)]
            numbers = trace.outputs.numbers
            device_numbers = [node for node in numbers if not node.host and not self.fixed(node)]
            needed = self._needed([*targets, *device_numbers, *(outcome.node for outcome in outcomes)])
            body = [node for node in needed if not self.is_leaf(node)]
            aliasing.mark(body, self._spanned)
            exact.mark(body, trace.outputs.state)
            results = [*targets, *device_numbers, *(outcome.node for outcome in outcomes)]
            parts = self._rolled(body, results)
            for node in (*(operand for part in parts for operand in part.operands()), *results):
                self._leaf(node)
        host = self._host(
            [
                *(node for pack in self._scalars.values() for node in pack),
                *(outcome.node for outcome in host_outcomes),
                *(node for node in numbers if node.host),
            ]
        )
        checked = [outcome.node for outcome in outcomes]
        function, places = self._function(parts, targets, checked, device_numbers)
        described, indescribable = self._fingerprint(body, [*targets, *checked, *device_numbers])
        return Program(
            function=function,
            slots=list(self._slots),
            constants=[*(constant.stored for constant in self._constants), np.bool_(True)],
            host=host,
            scalars=self._scalars,
            outcomes=outcomes,
            host_outcomes=host_outcomes,
            numbers=[self._number(node, places) for node in numbers],
            known=self._known,
            operations=len(body),
            folded=len(self._folded),
            fingerprint=described,
            indescribable=indescribable,
        )

    def _fingerprint(self, body: list[Node], results: list[Node]) -> tuple[str | None, str]:
        """The program's fingerprint and "", or None and what of it has no description."""
        tables = [self._constants[place].stored for place in self._tables.values()]
        try:
            return fingerprint(body, results, self._entry, tables), ""
        except Indescribable as error:
            return None, str(error)

    def _number(self, node: Node, places: dict[int, tuple[str, int]]) -> Any:
        if node.index in places:
            return places[node.index]
        if node.host and not self.fixed(node):
            return "host", node.index
        return "fixed", self.value(node)

    def _outcomes(self) -> tuple[list[Any], list[Any]]:
        device: list[Outcome] = []
        host: list[Outcome] = []
        for outcome in self._trace.tape.outcomes:
            if self.fixed(outcome.node):
                if not agrees(self.value(outcome.node), outcome.expected):
                    raise Unsupported("guard.unstable", "an outcome of constants differs from the recorded one")
            else:
                (host if outcome.node.host else device).append(outcome)
        return device, host

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
        return self.fixed(node) and not (node.rule.by_shape and node.constant)

    def _leaf(self, node: Node) -> None:
        """Give a leaf its way into the program."""
        if not self.is_leaf(node):
            return
        if self.fixed(node):
            self._constant(node)
        elif node.host:
            if node.index not in self._scalar_places:
                pack = pack_of(node.dtype)
                self._scalar_places[node.index] = pack, len(self._scalars[pack])
                self._scalars[pack].append(node)
        else:
            self._slots.setdefault(node.args[0], len(self._slots))

    def _constant(self, node: Node) -> None:
        value = self.value(node)
        if isinstance(value, np.ndarray) and value.size > EMBEDDED and node.index not in self._places:
            self._places[node.index] = len(self._constants)
            self._constants.append(compact(value))

    def _host(self, roots: list[Node]) -> list[Node]:
        found: dict[int, Node] = {}
        stack = [node for node in roots if not self.fixed(node)]
        while stack:
            node = stack.pop()
            if node.index not in found and not self.fixed(node):
                found[node.index] = node
                stack.extend(node.operands())
        return [found[index] for index in sorted(found)]

    # -- the function -------------------------------------------------------------------------------------------------

    def _rolled(self, body: list[Node], results: list[Node]) -> list[Part]:
        """The program's operations, loops rolled; tables of numbers that are too large to be written into it."""
        parts = arranged(body, frozenset(node.index for node in results), self._fixed_value)
        check_size(parts)
        for table in (table for part in parts if not isinstance(part, Node) for table in part.tables):
            if table.size > EMBEDDED:
                self._tables[id(table)] = len(self._constants)
                self._constants.append(Compact(table, table.shape))
        return parts

    def _function(
        self, parts: list[Part], targets: list[Node], outcomes: list[Node], numbers: list[Node]
    ) -> tuple[Callable[..., Any], dict[int, tuple[str, int]]]:
        packs: dict[str, list[Node]] = {**{pack: [] for pack in PACKS}, "f": list(outcomes)}
        places = {}
        for node in numbers:
            pack = pack_of(node.dtype)
            places[node.index] = pack, len(packs[pack])
            packs[pack].append(node)

        def function(arrays: Any, constants: Any, scalars: Any) -> Any:
            values = Values(self, arrays, constants[:-1], scalars)
            with fusion.stored_by(constants[-1] if self._on_cpu else None), rounding.kept_by(constants[-1]):
                for part in parts:
                    values.compute(part)
            return [self._own(node, values[node]) for node in targets], {
                pack: _packed([values[node] for node in nodes], PACKS[pack]) for pack, nodes in packs.items() if nodes
            }

        return function, places

    def _fixed_value(self, node: Node) -> Any:
        return self.value(node) if node.dtype is not None and self.fixed(node) else None

    def _own(self, node: Node, value: Any) -> Any:
        """A result that the device was given (an input, a constant), as an array of its own: callers write to it."""
        if not self.is_leaf(node):
            return value
        from jax import numpy as jnp

        return jnp.array(value, copy=True)

    def _entry(self, node: Node) -> Any:
        """How a leaf comes into the program: a value that is written into it, or the place of an argument."""
        if self.fixed(node):
            place = self._places.get(node.index)
            return ("value", self.value(node)) if place is None else ("constant", place, self._constants[place].form)
        found = self._scalar_places.get(node.index) if node.host else self._slots.get(node.args[0])
        if found is None:
            raise Indescribable("an operand that is no argument of it")
        return "host" if node.host else "array", found

    def table(self, values: Any, constants: Any) -> Any:
        """A loop's table inside the program."""
        place = self._tables.get(id(values))
        return values if place is None else constants[place]

    def leaf_value(self, node: Node, arrays: Any, constants: Any, scalars: Any) -> Any:
        """A leaf's value inside the program."""
        if self.fixed(node):
            place = self._places.get(node.index)
            return as_array(self.value(node)) if place is None else self._constants[place].restore(constants[place])
        if node.host:
            pack, place = self._scalar_places[node.index]
            return scalars[pack][place].astype(node.dtype)
        return arrays[self._slots[node.args[0]]]


def _packed(values: list[Any], dtype: Any) -> Any:
    from jax import numpy as jnp

    return jnp.stack([core.cast(value, dtype).reshape(()) for value in values])


def agrees(value: Any, expected: Any) -> bool:
    """Whether an outcome is what the path assumed."""
    return bool(value == expected) if isinstance(expected, (bool, int)) else same_number(value, expected)
