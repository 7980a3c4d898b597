"""Lowering: a tape with what is known of its inputs becomes one pure function over jax.numpy.

What depends on constants alone is computed here, once, by NumPy itself (*folding*). What depends on scalars alone
stays with Python (*host*). The rest is the program. Each operation's result is checked against the shape and dtype
that NumPy produced at that line.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accel import aliasing, batch, nest, ragged, roll, views
from accel.compact import Compact, Repeated, compact
from accel.fingerprint import Indescribable, fingerprint
from accel.reasons import source_line
from accel.record import Trace
from accel.record.inputs import same_number
from accel.rules import core, fusion
from accel.rules.rule import Rule, Unsupported
from accel.tape import INPUT, Node, Outcome, fill

EMBEDDED = 8
"""Constants of up to so many elements are written into the program; larger ones are arguments."""

NESTED = 400
"""A program of more operations, loops rolled, is searched for nests."""

MAX_OPERATIONS = 4000
"""A program of more operations, loops rolled, would take XLA a minute and more."""

_BY_SHAPE = frozenset({"accel.full", "numpy.zeros", "numpy.ones", "numpy.empty", "numpy.full"})
"""Rules whose results XLA makes for less than it costs to read them from memory."""


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
    operations: how many it has. fingerprint: of what it computes, or None (see accel.fingerprint).
    """

    function: Callable[..., Any]
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


def is_worth(nodes: list[Node]) -> bool:
    """Whether a recording that has come so far may still become a program: what of it is no loop must be short."""

    def value_of(node: Node) -> Any:
        return np.zeros(node.shape, node.dtype) if node.dtype is not None and (node.host or node.constant) else None

    body = [node for node in nodes if node.rule.name != INPUT and not node.host]
    return _size(_arranged(body, frozenset(), value_of)) <= MAX_OPERATIONS


Part = Node | roll.Loop | nest.Nest


def _arranged(body: list[Node], used: frozenset[int], value_of: Callable[[Node], Any]) -> list[Part]:
    """The operations with their loops: rolled, or as nests where that leaves much less.

    used: indices of nodes that are results. value_of: a node's value where it is known before launch, else None.
    """
    rolled: list[Part] = [*roll.roll(body, used, value_of)]
    size = _size(rolled)
    if size <= NESTED:
        return rolled
    nested: list[Part] = [*nest.find(body, used, value_of, ragged.plan)]
    return nested if 2 * _size(nested) < size else rolled


def _size(parts: Sequence[Part]) -> int:
    """What a program costs to compile, in operations."""
    return sum(1 if isinstance(part, Node) else 2 * part.size for part in parts)


def lower(trace: Trace, known: Known, *, on_cpu: bool = True, spanned: frozenset[int] = frozenset()) -> Program:
    """The program of a trace. Raises Unsupported where a rule cannot do what the tape asks.

    on_cpu: whether it is for XLA:CPU, which stores too little (see accel.rules.fusion). spanned: slots whose arrays
    the caller reads from spans (see accel.spans).
    """
    return _Lowering(trace, known, on_cpu, spanned).program()


class _Lowering:
    def __init__(self, trace: Trace, known: Known, on_cpu: bool, spanned: frozenset[int]) -> None:
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
                if other.rule.name == INPUT
                else all(self._fixed[operand.index] for operand in other.operands())
            )
        return self._fixed[node.index]

    def value(self, node: Node) -> Any:
        """The value of a fixed node, by NumPy."""
        for other in self._pending(node):
            self._folded[other.index] = (
                self._input_value(other.args[0])
                if other.rule.name == INPUT
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
            fingerprint=fingerprint(body, [*targets, *checked, *device_numbers], self._entry),
        )

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
        if node.rule.name == INPUT or node.host:
            return True
        return self.fixed(node) and not (node.rule.name in _BY_SHAPE and node.constant)

    def _leaf(self, node: Node) -> None:
        """Give a leaf its way into the program."""
        if not self.is_leaf(node) or self.fixed(node):
            if self.is_leaf(node):
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
        parts = _arranged(body, frozenset(node.index for node in results), self._fixed_value)
        size = _size(parts)
        if size > MAX_OPERATIONS:
            raise Unsupported("limit.compile", f"{size} operations, loops rolled; at most {MAX_OPERATIONS}")
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
            values = _Values(self, arrays, constants[:-1], scalars)
            with fusion.stored_by(constants[-1] if self._on_cpu else None):
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
            raise Indescribable(node)
        return "host" if node.host else "array", found

    def table(self, values: Any, constants: Any) -> Any:
        """A loop's table inside the program."""
        place = self._tables.get(id(values))
        return values if place is None else constants[place]

    def leaf_value(self, node: Node, arrays: Any, constants: Any, scalars: Any) -> Any:
        """A leaf's value inside the program."""
        if self.fixed(node):
            place = self._places.get(node.index)
            return _as_array(self.value(node)) if place is None else self._constants[place].restore(constants[place])
        if node.host:
            pack, place = self._scalar_places[node.index]
            return scalars[pack][place].astype(node.dtype)
        return arrays[self._slots[node.args[0]]]


class _Values:
    """The values of a program's nodes while it is traced."""

    def __init__(self, lowering: _Lowering, arrays: Any, constants: Any, scalars: Any) -> None:
        self._lowering = lowering
        self._inputs = (arrays, constants, scalars)
        self._values: dict[int, Any] = {}
        self._rows: dict[int, tuple[Any, int]] = {}
        self._recomputation = fusion.Recomputation()

    def __getitem__(self, node: Node) -> Any:
        value = self._least(node)
        if not isinstance(value, Repeated):
            return value
        if self._recomputation.is_costly(node):
            self._recomputation.stored(node)
            self._store(node, fusion.materialize)
        return self._least(node).whole()

    def _store(self, node: Node, store: Callable[[Any], Any]) -> None:
        """Have XLA store the value, instead of computing it again wherever it is read."""
        value = self._least(node)
        if isinstance(value, Repeated):
            self.set(node, Repeated(store(value.value), value.shape))
        else:
            self.set(node, store(value))

    def _least(self, node: Node) -> Any:
        """The node's value, or what repeats in it."""
        value = self._values.get(node.index)
        if value is None:
            if node.index in self._rows:
                column, row = self._rows[node.index]
                value = column[row]
            elif roll.is_box_read(node) and not self._lowering.is_leaf(node):  # a loop had it, and left it to others
                value = compute(node, fill(node.args, self.__getitem__), {})
            else:
                value = self._lowering.leaf_value(node, *self._inputs)
            self._values[node.index] = value
        return value

    def table(self, values: Any) -> Any:
        """A loop's table: as it stands, or an argument of the program."""
        return self._lowering.table(values, self._inputs[1])

    def set_row(self, node: Node, column: Any, row: int) -> None:
        """Set a node's value to a row of an array, not looked up before it is asked for."""
        self._rows[node.index] = column, row

    def stack(self, nodes: Sequence[Node]) -> Any:
        """The nodes' values along a new first axis."""
        from jax import numpy as jnp

        columns: dict[int, tuple[Any, list[int], list[int]]] = {}  # array, its rows, their places in the stack
        single = [place for place, node in enumerate(nodes) if node.index not in self._rows]
        for place, node in enumerate(nodes):
            if node.index in self._rows:
                column, row = self._rows[node.index]
                _, rows, places = columns.setdefault(id(column), (column, [], []))
                rows.append(row)
                places.append(place)
        parts = [column[np.array(rows)] for column, rows, _ in columns.values()]
        if single:
            parts.append(jnp.stack([jnp.asarray(self[nodes[place]]) for place in single]))
        order = [place for _, _, places in columns.values() for place in places] + single
        return jnp.concatenate(parts)[np.argsort(order)]

    def set(self, node: Node, value: Any) -> None:
        self._values[node.index] = value

    def compute(self, part: Part) -> None:
        """Compute an operation, or all rounds of a loop or nest."""
        if isinstance(part, nest.Nest):
            ragged.run(part, self, _compute_inside)
            return
        if isinstance(part, Node):
            part = self._before_writes(part)
            for operand in self._recomputation.to_copy(part):
                self._store(operand, fusion.copied)
            for operand in self._recomputation.to_store(part):
                self._store(operand, fusion.materialize)
            shape = self._repeated_shape(part)
            value_of = self.__getitem__ if shape is None else self._least_value
            value = compute(part, fill(part.args, value_of), fill(part.kwargs, value_of), shape)
            self.set(part, value if shape is None else Repeated(value, part.shape))
            for operand in part.operands():
                if operand.index in self._values:
                    self.set(operand, fusion.reread(self._values[operand.index]))
            return
        for node in part.rounds[0]:
            self.compute(node)
        batched = batch.plan(part)
        if batched is None:
            with self._recomputation.in_loop(roll.stored_before(part)):
                roll.run(part, self, self._compute_in_loop)
        else:
            batch.run(batched, self, self._compute_in_loop)

    def _compute_in_loop(self, node: Node, args: Any, kwargs: Any) -> Any:
        """One operation of a loop's rounds. What it has stored, others of the round store again: XLA sees that."""
        costly = frozenset(operand.index for operand in self._recomputation.to_store(node))
        if costly:
            args, kwargs = fusion.materialize_operands((node.args, node.kwargs), (args, kwargs), costly)
        return _compute_inside(node, args, kwargs)

    def _before_writes(self, node: Node) -> Node:
        """A read of what later writes elsewhere in the array left alone, as a read of the array before them.

        Otherwise XLA keeps a copy of the whole array for each: it may still have to be read when the next write is
        made.
        """
        while node.rule is core.READ and node.args[0].rule is core.WRITE:
            before, step = node.args[0].args[:2]
            if not views.apart(before.shape, step, node.args[1]) or not self._is_known(before):
                break
            node = node.with_args((before, *node.args[1:]))
        return node

    def _is_known(self, node: Node) -> bool:
        """Whether the node has a value: those inside a loop have none."""
        return node.index in self._values or self._lowering.is_leaf(node)

    def _repeated_shape(self, node: Node) -> tuple[int, ...] | None:
        """The shape of what repeats in the result, where that follows from the operands alone."""
        arrays = [operand for operand in node.operands() if operand.shape]
        if not node.rule.elementwise or node.dtype is None or not arrays:
            return None
        values = [self._least(operand) for operand in arrays]
        if not all(isinstance(value, Repeated) for value in values):
            return None
        shape = np.broadcast_shapes(*(value.value.shape for value in values))
        return shape if len(shape) == len(node.shape) and shape != node.shape else None

    def _least_value(self, node: Node) -> Any:
        value = self._least(node)
        return value.value if isinstance(value, Repeated) else value


def compute(node: Node, args: Any, kwargs: Any, shape: tuple[int, ...] | None = None) -> Any:
    """One operation in a traced program, checked; Unsupported with its place in the user's program.

    shape: the result's, where it is not the node's.
    """
    if node.endangered:
        args = (*args[:2], fusion.taken(_as_array(args[2])))
    try:
        value = apply(node, args, kwargs)
    except Unsupported as gap:
        raise Unsupported(gap.reason, f"{node.rule.name} at {source_line(*node.where)}: {gap.detail}") from gap
    except Exception as error:
        raise Unsupported(
            "lower.failed", f"{node.rule.name} at {source_line(*node.where)}: {type(error).__name__}: {error}"
        ) from error
    return check(node, value, node.shape if shape is None else shape)


def _compute_inside(node: Node, args: Any, kwargs: Any, shape: tuple[int, ...] | None = None) -> Any:
    """One operation in a loop's rounds."""
    with fusion.inside():
        return compute(node, args, kwargs, shape)


def apply(node: Node, args: Any, kwargs: Any) -> Any:
    """One operation by its rule's lowering."""
    rule: Rule = node.rule
    if rule.lower is None:
        raise Unsupported("rule.missing", rule.name)
    if rule.cast:
        kwargs = {
            name: value if name in rule.keep or name not in rule.operands else _cast_all(value, node.dtype)
            for name, value in kwargs.items()
        }
    else:
        kwargs = {name: _as_array(value) if name in rule.operands else value for name, value in kwargs.items()}
    for name in rule.scattered:
        if isinstance(kwargs.get(name), jax_array()):
            kwargs[name] = fusion.materialize(kwargs[name])
    return rule.lower(*args, **kwargs)


@functools.cache
def jax_array() -> Any:
    import jax

    return jax.Array


def _cast_all(value: Any, dtype: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_cast_all(part, dtype) for part in value)
    return value if value is None else core.cast(value, dtype)


def _as_array(value: Any) -> Any:
    """Operands of functions are arrays, whatever they were in NumPy."""
    if isinstance(value, (list, tuple)):
        return type(value)(_as_array(part) for part in value)
    if isinstance(value, (np.ndarray, np.generic)):
        from jax import numpy as jnp

        return jnp.asarray(value)
    return value


def check(node: Node, value: Any, shape: tuple[int, ...]) -> Any:
    """The value, if it has the shape and dtype that NumPy produced there."""
    if node.dtype is None:  # several results: each is checked where it is picked
        return value
    from jax import numpy as jnp

    value = jnp.asarray(value)
    if value.shape != shape or value.dtype != node.dtype:
        raise Unsupported(
            "lower.mismatch",
            f"{node.rule.name} at {source_line(*node.where)}: NumPy gives {node.dtype}{list(shape)}, "
            f"JAX {value.dtype}{list(value.shape)}",
        )
    return value


def _packed(values: list[Any], dtype: Any) -> Any:
    from jax import numpy as jnp

    return jnp.stack([core.cast(value, dtype).reshape(()) for value in values])


def evaluate(node: Node, value_of: Callable[[Node], Any]) -> Any:
    """One operation by NumPy itself."""
    rule: Rule = node.rule
    args, kwargs = fill(node.args, value_of), fill(node.kwargs, value_of)
    if rule.special == "write":  # NumPy changes the first operand, and gives nothing
        changed = kwargs[rule.operands[0]] = np.array(kwargs[rule.operands[0]])
        _call(rule, args, kwargs)
        return changed
    return _call(rule, args, kwargs)


def _call(rule: Rule, args: Any, kwargs: Any) -> Any:
    if rule.signature is not None and not args:
        bound = inspect.BoundArguments(rule.signature, kwargs)
        return rule.function(*bound.args, **bound.kwargs)
    return rule.function(*args, **kwargs)


def agrees(value: Any, expected: Any) -> bool:
    """Whether an outcome is what the path assumed."""
    return bool(value == expected) if isinstance(expected, (bool, int)) else same_number(value, expected)
