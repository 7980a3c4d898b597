"""What recorded code has in the place of a generator, and of its methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.ir.tape import Node, nodes_in
from accel.record import inputs
from accel.record.arrays.arrays import RecordedValue, as_static, as_template, wrap
from accel.record.draws.draw import Draw, Form, not_drawn
from accel.record.draws.generators import KINDS, kind_of
from accel.record.objects.modules import Opaque
from accel.record.objects.proxy import OWN, Proxy
from accel.record.recording import Recording, recordable
from accel.record.standin import StandIn
from accel.record.wrapper import isinstance_wrapper, unwrap
from accel.rules import core
from accel.rules.rule import Unsupported


class GeneratorProxy(Proxy):
    """A generator of a kind that replays can draw from."""

    __slots__ = ()

    def as_operand(self) -> Any:
        raise Unsupported("effect.random", f"a {type(self._plain_).__name__} is given to a function")

    def __getattribute__(self, name: str) -> Any:
        if name in OWN or name == "as_operand":
            return object.__getattribute__(self, name)
        recording, plain = self._recording_, self._plain_
        if not recording.active:
            return getattr(plain, name)
        if name in KINDS[type(plain)].methods:
            return DrawingMethod(self, name)
        value = getattr(plain, name)
        if not callable(value):
            recording.break_("effect.random", f".{name} of a {type(plain).__name__}", touched=True)
            return value
        return Opaque(recording, value)

    def __setattr__(self, name: str, value: object) -> None:
        self._recording_.break_("effect.random", f".{name} of a {type(self._plain_).__name__} is set", touched=True)
        setattr(self._plain_, name, unwrap(value))


class DrawingMethod(StandIn):
    """A drawing method of a generator."""

    __slots__ = ("_name", "_owner")

    def __init__(self, owner: GeneratorProxy, name: str) -> None:
        self._recording_ = owner._recording_
        self._plain_ = getattr(owner._plain_, name)
        self._owner, self._name = owner, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording = self._recording_
        plain_args, plain_kwargs = unwrap(args), unwrap(kwargs)
        recording.write_down(lambda: journal_state(recording, self._owner), None)
        result = self._plain_(*plain_args, **plain_kwargs)
        return recording.write_down(lambda: record_draw(recording, self._owner, self._name, args, kwargs, result), result)


def method_stand_in(recording: Recording, method: Any) -> DrawingMethod:
    """The stand-in of a method bound to a generator that the program names itself, such as `np.random.normal`."""
    owner = method.__self__
    text = "numpy.random" if type(owner) is np.random.RandomState else type(owner).__name__
    key = ("generator", id(recording.registry.keep_alive(owner)))
    return DrawingMethod(recording.enter(owner, key, f"the generator of {text}", inputs.of_constant(owner)), method.__name__)


def journal_state(recording: Recording, owner: GeneratorProxy) -> None:
    """Before a generator's first draw, let the journal put back its state."""
    plain = owner._plain_
    if id(plain) in recording.drawn_from:
        return
    recording.drawn_from.add(id(plain))
    kind = KINDS[type(plain)]
    state = kind.state(plain)
    recording.journal.add(lambda: kind.put_back(plain, state))


def record_draw(
    recording: Recording, owner: GeneratorProxy, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> Any:
    """Write a draw down that has given `result`."""
    parameters = KINDS[type(owner._plain_)].methods[name]
    if parameters.bound(args, kwargs).get("out") is not None:
        raise Unsupported("effect.random", f"{name}() with out=")
    given = tuple(_given(arg, name, static=parameters.is_static(i)) for i, arg in enumerate(args))
    named = {key: _given(arg, name, static=parameters.is_static(key)) for key, arg in kwargs.items()}
    return wrap(recording, result, draw_node(recording, owner, name, given, named, result))


def draw_node(
    recording: Recording, owner: GeneratorProxy, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> Node:
    """The node of what a draw gives. args, kwargs: a template. result: of the form that it gives."""
    kind = type(result)
    is_number = kind in (int, float) or isinstance(result, np.number)
    if not (is_number or kind is np.ndarray) or not recordable(np.asarray(result)):
        raise Unsupported("effect.random", f"{name}() gives a {kind.__name__}")
    draws, slots = recording.draws, recording.inputs
    text = f"{slots.name(owner._slot_)}.{name}()"
    slot = slots.add(("draw", len(draws)), text, not_drawn(len(draws)))
    form = Form((), None, kind) if is_number else Form(result.shape, result.dtype, None)
    draws.append(Draw(slot, owner._slot_, name, args, kwargs, form))
    return recording.writer.input_node(slot, result)


def _given(value: Any, name: str, *, static: bool) -> Any:
    """An argument of a draw as a template."""
    if static:
        return as_static(value)
    if isinstance_wrapper(value) and issubclass(type(value), RecordedValue):
        template = as_template(value)
        if not all(map(is_there, nodes_in(template))):
            raise Unsupported("effect.random", f"{name}() takes what the program has yet to compute")
        return template
    kind = type(value)
    if kind in (tuple, list):
        return kind([_given(part, name, static=False) for part in value])
    return as_template(value)


def is_there(node: Node) -> bool:
    """Whether a value is known before launch: Python computes it, or it is a part of an array of an input as it was."""
    while node.rule is core.READ:
        node = node.args[0]
    return node.host or node.is_input
