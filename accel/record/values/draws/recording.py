"""Writing draws down: as they are made, or as a standard draw, or one of indices, that the program goes on with."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from accel.ir.tape import Node, nodes_in
from accel.record.state.draw import Draw, Form, not_drawn
from accel.record.state.recording import Recording
from accel.record.state.storages import recordable
from accel.record.state.wrapper import has_wrapper, isinstance_wrapper, unwrap
from accel.record.values.arrays import RecordedArray, RecordedScalar, RecordedValue, as_static, as_template
from accel.record.values.draws import formulas
from accel.record.values.draws.early import MOST_EARLY, are_early, is_given, is_reproduced
from accel.record.values.draws.generators import KINDS
from accel.record.values.wrapping import new_array, wrap
from accel.rules.rule import Unsupported

_OF_ELEMENTS = frozenset({"permutation", "choice"})
"""Methods that may give an array's elements."""


class NotYetComputed(Exception):
    """An argument of a draw that the program has yet to compute."""


class DrawCall:
    """One call of a drawing method. bound: the arguments by name.

    state: of the generator before it, where another draw may have to be tried in its place. old: what the array that it
    writes to held before.
    """

    def __init__(
        self,
        recording: Recording,
        generator: Any,
        owner: int | None,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.recording, self.generator, self.owner, self.name = recording, generator, owner, name
        self.args, self.kwargs = args, kwargs
        self.parameters = KINDS[type(generator)].methods[name]
        self.bound = self.parameters.bound(args, kwargs)
        self.state: Any = None
        self.old: Any = None

    @property
    def written(self) -> Any:
        """The array that it writes to; None where it gives something new."""
        return self.bound.get("x") if self.name == "shuffle" else self.bound.get("out")

    @property
    def formula(self) -> formulas.Formula | None:
        """NumPy's formula for the draw, where there is one."""
        if type(self.generator) is random.Random:
            return None
        known = formulas.LEGACY if type(self.generator) is np.random.RandomState else formulas.FORMULAS
        return known.get(self.name)

    def note_state(self) -> None:
        """Note the generator's state where it is needed; before its first draw, let the journal put it back."""
        recording, generator = self.recording, self.generator
        kind = KINDS[type(generator)]
        is_first = id(generator) not in recording.drawn_from
        if is_first or self.written is not None or any(map(_may_be_computed, self.bound.values())):
            self.state = kind.state(generator)
        if is_first:
            recording.drawn_from.add(id(generator))
            state = self.state
            recording.journal.add(lambda: kind.put_back(generator, state))

    def node(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Node:
        """The node of what a draw gives. args, kwargs: a template. result: of the form that it gives."""
        kind = type(result)
        is_number = kind in (int, float) or isinstance(result, np.number)
        if not (is_number or kind is np.ndarray) or not recordable(np.asarray(result)):
            raise Unsupported("effect.random", f"{name}() gives a {kind.__name__}")
        draws, slots = self.recording.draws, self.recording.inputs
        assert self.owner is not None
        text = f"{slots.name(self.owner)}.{name}()"
        slot = slots.add(("draw", len(draws)), text, not_drawn(len(draws)))
        form = Form((), None, kind) if is_number else Form(result.shape, result.dtype, None)
        draws.append(Draw(slot, self.owner, name, args, kwargs, form))
        # a copy, since the program may change it
        self.recording.entered[slot] = (np.copy(result) if kind is np.ndarray else result, None)
        return self.recording.writer.drawn_node(slot, result)

    def drawn(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        """The recorded form of what a draw gives; arguments as of `node`."""
        return wrap(self.recording, result, self.node(name, args, kwargs, result))


def _may_be_computed(value: Any) -> bool:
    """Whether the program may have to compute an argument."""
    kind = type(value)
    if issubclass(kind, RecordedScalar):
        return not value.node().host
    return has_wrapper(value)


def record_draw(call: DrawCall, result: Any) -> Any:
    """Write a draw down that has given `result`. Raises Unsupported."""
    if call.name == "shuffle":
        return _shuffle(call)
    if call.written is not None:
        raise Unsupported("effect.random", f"{call.name}() with out=")
    try:
        args, kwargs = _templates(call)
    except NotYetComputed:
        return _computed(call, result)
    return call.drawn(call.name, args, kwargs, result)


def _templates(call: DrawCall) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a draw as templates. Raises NotYetComputed."""
    is_static = call.parameters.is_static

    def template(value: Any, argument: int | str) -> Any:
        # where there is another way, the program computes it: it can do more, and is faster
        is_source = argument in (0, *call.parameters.names[:1]) and issubclass(type(value), RecordedArray)
        elsewhere = call.formula is not None or (call.name in _OF_ELEMENTS and is_source)
        return given_template(value, static=is_static(argument), most=0 if elsewhere else MOST_EARLY)

    args = tuple(template(arg, i) for i, arg in enumerate(call.args))
    return args, {name: template(arg, name) for name, arg in call.kwargs.items()}


def given_template(value: Any, *, static: bool, most: int = MOST_EARLY) -> Any:
    """An argument as a template. most: limit on operations that NumPy does for it. Raises NotYetComputed."""
    if static:
        return as_static(value)
    if isinstance_wrapper(value) and issubclass(type(value), RecordedValue):
        template = as_template(value)
        nodes = nodes_in(template)
        if nodes and all(node.constant for node in nodes):
            return np.copy(value._plain_) if isinstance(value._plain_, np.ndarray) else value._plain_
        if not are_early(nodes, most) or not all(_is_reproduced(value, node) for node in nodes):
            raise NotYetComputed
        return template
    if isinstance_wrapper(value):
        value = type(value).as_operand(value)
    if type(value) in (tuple, list):
        return type(value)([given_template(part, static=False, most=most) for part in value])
    return as_template(value)


def _is_reproduced(value: Any, node: Node) -> bool:
    """Whether a replay gives a draw the very value that the recorded call gave it."""
    recording = value._recording_

    def value_of(slot: int) -> Any:
        plain, wrapped = recording.entered[slot]
        written = issubclass(type(wrapped), RecordedArray) and wrapped._storage.before is not None
        return wrapped._storage.before if written else plain

    return is_given(node) or is_reproduced(node, value._plain_, value_of)


def _computed(call: DrawCall, result: Any) -> Any:
    """A draw of which the program computes a parameter."""
    formula = call.formula
    if formula is not None:
        size = as_static(call.bound.get("size"))
        standard = formulas.standard_of(formula, call.generator, call.state, result, size)
        z = call.drawn(standard.method, standard.args, {}, standard.made)
        return wrap(call.recording, result, formulas.applied(call.recording, formula, call.bound, z, result))
    if call.name in _OF_ELEMENTS:
        return _elements(call, result)
    raise Unsupported("effect.random", f"{call.name}() takes what the program has yet to compute")


def _elements(call: DrawCall, result: Any) -> Any:
    """`permutation` or `choice` of an array that the program computes."""
    first = call.parameters.names[0]
    array = call.bound[first]
    if not issubclass(type(array), RecordedArray):
        raise Unsupported("effect.random", f"{call.name}() takes what the program has yet to compute")
    plain = array._plain_
    axis = formulas.axis_of(as_static(call.bound.get("axis", 0)), plain)
    rest = {name: value for name, value in call.bound.items() if name not in (first, "axis")}
    static = call.parameters.static
    try:
        options = {name: given_template(value, static=name in static) for name, value in rest.items()}
    except NotYetComputed:
        raise Unsupported("effect.random", f"{call.name}() takes what the program has yet to compute") from None
    if call.name == "choice" and options.get("size") is None:
        rest["size"] = options["size"] = ()  # an array of one index: as a number it would decide the path
    given = unwrap(rest)

    def draw(twin: Any) -> Any:
        return getattr(twin, call.name)(plain.shape[axis], **given)

    indices = formulas.indices_of(call.generator, call.state, draw, plain, axis, result)
    chosen = call.drawn(call.name, (plain.shape[axis],), options, indices)
    return wrap(call.recording, result, formulas.taken(array, chosen, axis).node())


def _shuffle(call: DrawCall) -> None:
    """`shuffle` of a recorded array, in place."""
    array, old, recording = call.written, call.old, call.recording
    axis = formulas.axis_of(as_static(call.bound.get("axis", 0)), old)
    size = old.shape[axis]

    def draw(twin: Any) -> Any:
        return twin.permutation(size)

    indices = formulas.indices_of(call.generator, call.state, draw, old, axis, array._plain_)
    chosen = call.drawn("permutation", (size,), {}, indices)
    before = new_array(recording, old, array.node())
    recording.writer.write_view(array._storage, array._chain, formulas.taken(before, chosen, axis).node())
