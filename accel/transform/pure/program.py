"""Programs: the result, the new state and the validity of a pure function, computed from its leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.compiler.lower import Known, agrees
from accel.compiler.lower.folding import Folding
from accel.compiler.lower.operations import as_array
from accel.compiler.merge import ABSENT
from accel.ir.tape import Node
from accel.ir.template import fill
from accel.record.state.leaves import FixedValue, FromSlot, NewArray, Number
from accel.record.state.leaves import Leaf as Part
from accel.rules import core
from accel.rules.lowering import jnp, lax
from accel.rules.rule import Unsupported
from accel.rules.tracing import traced
from accel.transform.pure import host, results
from accel.transform.pure.evaluation import Evaluation, Plan
from accel.transform.pure.places import Places
from accel.transform.pure.recorded import RecordedFunction, refused
from accel.transform.pure.results import Returned, Way, ways_of


@dataclass(slots=True)
class Output:
    """The result of one evaluation. result: leaves in order. ok: whether the call takes a known path."""

    result: list[Any]
    state: dict[str, Any]
    ok: Any


class PureProgram:
    """A recorded function as a JAX computation. names: of the leaves that it takes; all others are constants.

    takes_state: True if it also takes all leaves that it changes. derives: True if it can be differentiated, and floats
    are NaN in calls on unknown paths.
    """

    def __init__(
        self,
        recorded: RecordedFunction,
        places: Places,
        names: Sequence[str],
        rounds: int | None = None,
        *,
        takes_state: bool = False,
        derives: bool = True,
    ) -> None:
        self.recorded, self.places = recorded, places
        self.ways = ways_of(recorded.trace)
        self.returned = [results.returned_by(way, recorded, places) for way in self.ways]
        results.with_written(recorded, places, self.returned, self.ways)
        self._check_forms()
        results.check_known(recorded, places, self.state_names())
        results.check_aliases(recorded, places, self.ways, self.returned)
        results.check_names(recorded, places, self.returned)
        if takes_state:
            names = list(dict.fromkeys([*names, *(each for each in self.state_names() if each in places.leaves)]))
        self.names = names
        self.derives = derives
        self._given = {leaf.slot: name for name in names if (leaf := places.leaves[name]).slot is not None}
        self._folding = Folding(recorded.trace, self._known())
        self._fixed: dict[int, Any] = {}
        self._plan, self._host = self._planned(rounds)

    @property
    def form(self) -> Any:
        """The result, with a hole for each of its leaves."""
        return self.returned[0].form

    def state_names(self) -> list[str]:
        """Names of the values that calls may change."""
        names = dict.fromkeys(name for each in self.returned for name in each.state)
        names.update(dict.fromkeys(self.places.names[slot] for each in self.returned for slot in each.changed))
        return list(names)

    def _known(self) -> Known:
        values = enumerate(self.recorded.values)
        return Known({slot: value for slot, value in values if slot not in self._given and value is not ABSENT})

    def _check_forms(self) -> None:
        first = self.returned[0].form
        if any(each.form != first for each in self.returned):
            raise refused(self.recorded.name, "pure.result", "what it returns has another form on each path")

    # -- what is computed ---------------------------------------------------------------------------------------------

    def _planned(self, rounds: int | None) -> tuple[Plan, list[Node]]:
        outputs = self.recorded.trace.outputs
        roots = [*outputs.arrays, *outputs.numbers, *(node for _, node in outputs.changed)]
        roots += [node for way in self.ways for node, _ in way.assumed]
        body = self._needed(roots)
        device = [node for node in body if not node.host]
        wanted = [node for node in roots if not node.host]
        plan = Plan(device, wanted, rounds, self.derives, still=self._fixed)
        return plan, [node for node in body if node.host]

    def _needed(self, roots: Iterable[Node]) -> list[Node]:
        found: dict[int, Node] = {}
        stack, seen = list(roots), set[int]()
        while stack:
            node = stack.pop()
            if node.index in seen:
                continue
            seen.add(node.index)
            if not self._is_given(node):
                found[node.index] = node
                stack.extend(node.operands())
        return [found[index] for index in sorted(found)]

    def _is_given(self, node: Node) -> bool:
        """Return whether a node is an input or a constant. Constants are computed here, by NumPy."""
        if node.is_input and node.args[0] in self._given:
            return True
        if not self._folding.is_fixed(node) or (node.rule.cost.by_shape and node.constant):
            if node.is_input:
                raise refused(self.recorded.name, "pure.inputs", self.recorded.trace.inputs.name(node.args[0]))
            return False
        if node.index not in self._fixed:
            try:
                with np.errstate(all="ignore"):
                    self._fixed[node.index] = self._folding.value(node)
            except Exception:  # a number of a path that a call with these constants does not take
                self._fixed[node.index] = ABSENT
        return True

    # -- in a traced function -----------------------------------------------------------------------------------------

    def __call__(self, inputs: Mapping[str, Any]) -> Output:
        """Evaluate the program. inputs: a value for each of `names`."""
        return _Run(self, inputs).output()


class _Run:
    """One tracing of a program."""

    def __init__(self, program: PureProgram, inputs: Mapping[str, Any]) -> None:
        self._program = program
        self._inputs = {name: jnp.asarray(value) for name, value in inputs.items()}
        self._values: dict[int, Any] = {}
        self._checks: dict[int, list[Any]] = {}

    def output(self) -> Output:
        program = self._program
        trace = program.recorded.trace
        try:
            with traced(has_derivatives=True):
                for node in trace.tape.nodes:
                    self._give(node)
                for node in program._host:
                    self._compute_host(node)
                self._evaluation = Evaluation(program._plan, self._values)
                self._evaluation.run()
                truths = [self._is_taken(way) for way in program.ways]
                return self._returned(truths)
        except Unsupported as gap:
            is_missing = isinstance(gap.__cause__, NotImplementedError)  # of JAX, for want of a derivative
            raise refused(program.recorded.name, "pure.derivative" if is_missing else gap.reason, gap.detail) from gap

    def _give(self, node: Node) -> None:
        if node.is_input and node.args[0] in self._program._given:
            self._values[node.index] = self._inputs[self._program._given[node.args[0]]]
        elif node.index in self._program._fixed:
            value = self._program._fixed[node.index]
            if value is ABSENT and not node.host:
                value = np.zeros(node.shape, node.dtype)
            self._values[node.index] = as_array(value) if isinstance(value, (np.ndarray, np.generic)) else value

    def _compute_host(self, node: Node) -> None:
        args, kwargs = fill((node.args, node.kwargs), lambda each: self._values[each.index], Node)
        if any(self._values[each.index] is ABSENT for each in node.operands()):
            self._values[node.index] = ABSENT
            return
        value, self._checks[node.index] = host.computed(node, args, kwargs)
        self._values[node.index] = value

    def _value(self, node: Node) -> Any:
        value = self._evaluation.fetch(node)
        return 0 if value is ABSENT else value

    def _is_taken(self, way: Way) -> Any:
        truth: Any = True
        for node, expected in way.assumed:
            value = self._evaluation.fetch(node)
            if value is ABSENT:
                return False
            truth = truth & (agrees(value, expected) if _is_plain(value) else core.agree((value,), (expected,)))
        for index in way.nodes & self._checks.keys():
            for check in self._checks[index]:
                truth = truth & jnp.asarray(check).reshape(())
        return truth

    # -- results ------------------------------------------------------------------------------------------------------

    def _returned(self, truths: list[Any]) -> Output:
        program = self._program
        ok: Any = False
        for truth in truths:
            ok = ok | truth
        ok = jnp.asarray(ok).reshape(())
        count = len(program.returned[0].leaves)
        result = [
            self._chosen([self._part(way, each, each.leaves[at]) for way, each in self._both()], truths, ok)
            for at in range(count)
        ]
        state = {name: self._chosen(self._of_state(name), truths, ok) for name in program.state_names()}
        return Output(result, state, ok)

    def _both(self) -> Iterable[tuple[Way, Returned]]:
        return zip(self._program.ways, self._program.returned, strict=True)

    def _of_state(self, name: str) -> list[tuple[Any, Any]]:
        """Return a state variable's new value on each path."""
        places = self._program.places
        found = []
        for way, each in self._both():
            at = next((at for slot, at in each.changed.items() if places.names[slot] == name), None)
            if name in each.state:
                found.append(self._part(way, each, each.state[name]))
            elif at is not None:
                found.append(self._changed(way, at))
            else:
                found.append((("leaf", name), self._leaf(name)))
        return found

    def _leaf(self, name: str) -> Any:
        return self._inputs[name] if name in self._inputs else self._program.places.leaves[name].value

    def _changed(self, way: Way, at: int) -> tuple[Any, Any]:
        node = self._program.recorded.trace.outputs.changed[way.outputs.changed[at]][1]
        return ("node", node.index), self._value(node)

    def _part(self, way: Way, returned: Returned, part: Part) -> tuple[Any, Any]:
        """Return a leaf's value on one path, with a key that is equal for equal values."""
        outputs = self._program.recorded.trace.outputs
        if isinstance(part, NewArray):
            node = outputs.arrays[way.outputs.arrays[part.index]]
            return ("node", node.index, part.chain), self._seen(way, self._value(node), part.chain)
        if isinstance(part, Number):
            node = outputs.numbers[way.outputs.numbers[part.index]]
            return ("node", node.index), jnp.asarray(self._value(node), np.dtype(node.dtype)).reshape(())
        if isinstance(part, FromSlot):
            slot = way.slots[part.slot]
            key, value = (
                self._changed(way, returned.changed[slot])
                if slot in returned.changed
                else (("slot", slot), self._slot(slot))
            )
            return (*key, part.chain), self._seen(way, value, part.chain)
        assert isinstance(part, FixedValue)
        return ("literal", repr(part.value)), jnp.asarray(part.value, np.asarray(part.value).dtype)

    def _slot(self, slot: int) -> Any:
        name = self._program._given.get(slot)
        return jnp.asarray(self._program.recorded.values[slot]) if name is None else self._inputs[name]

    def _seen(self, way: Way, value: Any, chain: Sequence[Any]) -> Any:
        def number(leaf: Number) -> Any:
            return self._value(self._program.recorded.trace.outputs.numbers[way.outputs.numbers[leaf.index]])

        return results.chain_read(jnp.asarray(value), chain, number)

    def _chosen(self, found: list[tuple[Any, Any]], truths: list[Any], ok: Any) -> Any:
        """Return the value of the path that is taken; NaN if none is, provided that the dtype has NaN."""
        forms = {(jnp.shape(value), jnp.asarray(value).dtype) for _, value in found}
        if len(forms) > 1:
            detail = "an array or number has another shape or dtype on each path"
            raise refused(self._program.recorded.name, "pure.result", detail)
        key, value = found[0]
        value = jnp.asarray(value)
        for (other, another), truth in zip(found[1:], truths[1:], strict=True):
            if other != key:
                value = lax.select(jnp.broadcast_to(truth, value.shape), jnp.asarray(another), value)
        return _poisoned(value, ok) if self._program.derives else value


def _poisoned(value: Any, ok: Any) -> Any:
    """Return a value, or NaN on an unknown path. Its derivatives are NaN, too; a selection would make them zero."""
    if value.dtype.kind == "f":
        return value * lax.select(ok, np.ones((), value.dtype), np.full((), np.nan, value.dtype))
    if value.dtype.kind == "c":
        return lax.complex(_poisoned(value.real, ok), _poisoned(value.imag, ok))
    return value


def _is_plain(value: object) -> bool:
    return isinstance(value, (bool, int, float, complex, np.generic))
