"""Entering: how a plain value from outside becomes a recorded one, with a slot that says how to fetch it again.

Everything that recorded code reads passes here: arguments, attributes, globals, closures, defaults, container
elements. A value that needs no wrapper is guarded; one that cannot be guarded breaks the tape.
"""

from __future__ import annotations

import builtins
import collections
import dataclasses
import enum
import functools
import os
import sys
from collections.abc import Callable, Container
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any

import numpy as np
import wrapt

from accel.ir import bits
from accel.ir.tape import Storage
from accel.platform import warned
from accel.platform.bodies import is_body
from accel.record.objects.containers.classes import DictObjectProxy
from accel.record.objects.containers.lists import DequeProxy, ListProxy
from accel.record.objects.containers.mappings import CounterProxy, DefaultDictProxy, DictProxy, OrderedDictProxy
from accel.record.objects.containers.sets import SetProxy
from accel.record.objects.containers.tuples import NamedTupleProxy
from accel.record.objects.follow import Followed, target_function
from accel.record.objects.functions import SCALAR_FUNCTIONS, RuleFunction
from accel.record.objects.generators import GeneratorProxy, Maker, method_stand_in
from accel.record.objects.kinds import (
    followable_class,
    is_bare_enum,
    is_bare_namedtuple,
    is_bare_number,
    is_dict_class,
    is_namedtuple,
)
from accel.record.objects.library import scientific, wrappers  # noqa: F401 - adds rows
from accel.record.objects.library.cached import Cached
from accel.record.objects.library.cached import Wrapper as CacheWrapper
from accel.record.objects.library.copies import COPYING, Copying, Replace
from accel.record.objects.library.piecewise import Piecewise
from accel.record.objects.modules import EnvironmentFunction, EnvironProxy, ModuleProxy, Opaque
from accel.record.objects.names.cells import enter_body
from accel.record.objects.names.namespaces import is_pythons
from accel.record.objects.objects import ObjectProxy, class_proxy
from accel.record.objects.proxy import find_in_class, guard_class, one_per_object
from accel.record.objects.records import enter_records, is_records
from accel.record.objects.sinks import log, streams
from accel.record.objects.sinks.log import LOG_FUNCTIONS, LogFunction, LoggerProxy
from accel.record.objects.sinks.show import StreamProxy, is_stream
from accel.record.objects.sinks.warn import WarnFunction
from accel.record.state import inputs
from accel.record.state.kept import EnteredTuple
from accel.record.state.opaque import TRANSPARENT, Harmless, computes, is_harmless
from accel.record.state.recording import Recording
from accel.record.state.storages import recordable
from accel.record.values.arrays import RecordedArray, RecordedScalar
from accel.record.values.draws.generators import KINDS, is_maker, is_method, kind_of
from accel.record.values.grids import Grid, is_grid
from accel.record.values.numbers import TYPE_STAND_INS
from accel.record.values.wrapping import known, remember
from accel.rules.rule import lookup
from accel.rules.scalars import HOST_FUNCTIONS

PLAIN = frozenset({str, bytes, bool, type(None), np.bool_, type(Ellipsis), type(NotImplemented)})
_EXACT = frozenset({int, float})
_PURE = HOST_FUNCTIONS | SCALAR_FUNCTIONS
"""Functions of Python's own that compute with numbers."""

CALLABLES = (FunctionType, BuiltinFunctionType, BuiltinMethodType, MethodType, MethodWrapperType)


def enter_value(recording: Recording, value: object, slot: int) -> tuple[inputs.Check | None, Any]:
    """The check of a value that comes in through a slot, None where it needs none, and its recorded form."""
    kind = type(value)
    for accepts, handler in _HANDLERS:
        if accepts(value, kind):
            return handler(recording, value, slot)
    return _object(recording, value, slot)


# -- handlers: the guard, and the recorded form -----------------------------------------------------------------------

Entered = tuple[inputs.Check | None, Any]


def _literal(recording: Recording, value: object, slot: int) -> Entered:
    return (inputs.is_same(value) if value is None else inputs.is_equal(value)), value


def _identical(recording: Recording, value: object, slot: int) -> Entered:
    return inputs.is_same(value), value


def _frozenset(recording: Recording, value: object, slot: int) -> Entered:
    return inputs.has_parts(value, iter), value


def _bounds(recording: Recording, value: object, slot: int) -> Entered:
    """A range or slice."""
    return inputs.has_parts(value, _bounds_of), value


def _bounds_of(value: Any) -> tuple[tuple[str, Any], ...]:
    return ("start", value.start), ("stop", value.stop), ("step", value.step)


def _opaque(recording: Recording, value: object, slot: int) -> Entered:
    return inputs.is_same(value), one_per_object(recording, value, Opaque)


def _enum(recording: Recording, value: object, slot: int) -> Entered:
    """A name for a value; one with methods or attributes, which would run and change unseen, is not looked into."""
    # Python gives members attributes of its own (`_value_`); any other was set by the program, and may be set again.
    bare = is_bare_enum(type(value)) and vars(value).keys() <= _ENUM_ATTRIBUTES  # type: ignore[arg-type]
    return (_identical if bare else _opaque)(recording, value, slot)


_ENUM_ATTRIBUTES = frozenset({"_value_", "_name_", "_sort_order_", "__objclass__"})


def _number(recording: Recording, value: object, slot: int) -> Entered:
    # Seeds and hashes that int64 may not hold once they are added to, and long doubles, which XLA does not have: they
    # are constants of the path.
    if (type(value) is int and abs(value) >= 2**62) or (isinstance(value, np.number) and not recordable(value)):
        return inputs.satisfies(bits.same_scalar, value), value
    node = recording.writer.input_node(slot, value)
    return inputs.has_type(type(value)), RecordedScalar(recording, value, node)


def _array(recording: Recording, value: Any, slot: int) -> Entered:
    seen = known(recording, value)
    if seen is not None:
        storage = seen._storage
        # Recorded code stored a new array in an object and something outside the recording's sight handed it back.
        if storage.origin is None:
            recording.break_("guard.unstable", f"{recording.inputs.name(slot)} holds an array made in this call")
            return None, value
        recording.aliases.append((slot, storage.origin.args[0]))
        return inputs.is_array_like(value), seen
    if not recordable(value) or value.dtype.hasobject:
        recording.break_("array.unknown", f"{recording.inputs.name(slot)} has dtype {value.dtype}")
        return None, value
    node = recording.writer.input_node(slot, value)
    storage = Storage(value, node, node)
    recording.storages.enter(storage, recording.inputs.name(slot))
    return inputs.is_array_like(value), remember(recording, RecordedArray(recording, value, storage, ()))


def _array_subclass(recording: Recording, value: object, slot: int) -> Entered:
    reason = "array.masked" if isinstance(value, np.ma.MaskedArray) else "array.unknown"
    recording.break_(reason, f"{recording.inputs.name(slot)} is a {type(value).__name__}")
    return None, value


def _tuple(recording: Recording, value: Any, slot: int) -> Entered:
    kind = type(value)
    if kind is not tuple and not is_bare_namedtuple(kind):  # type: ignore[arg-type]
        return (_named_tuple if is_namedtuple(kind) else _opaque)(recording, value, slot)  # type: ignore[arg-type]
    before, made = recording.registry.stand_ins.get(id(value), (None, None))
    if before is value:
        recording.same.append((slot, recording.kept.tuples[id(made)].slot))
        return inputs.has_type(kind), made
    # A tuple of another length is another path, even where the parts that are read are the same.
    recording.inputs.narrow(slot, inputs.has_length(kind, len(value)))
    parts = _parts(recording, value, slot)
    made = kind(*parts) if hasattr(kind, "_fields") else tuple(parts)
    recording.kept.tuples[id(made)] = EnteredTuple(recording.registry.keep_alive(made), value, slot)
    recording.registry.stand_ins[id(value)] = (value, made)
    return None, made


def _parts(recording: Recording, value: Any, slot: int) -> list[Any]:
    """The elements of a tuple, entered."""
    name = recording.inputs.name(slot)
    return [
        recording.enter(part, ("item", slot, i), f"{name}[{i}]", inputs.item(slot, i)) for i, part in enumerate(value)
    ]


def _named_tuple(recording: Recording, value: Any, slot: int) -> Entered:
    """One with methods of its own, which are followed."""

    def make(recording: Recording, value: Any, slot: int) -> Any:
        recording.inputs.narrow(slot, inputs.has_type(type(value)))
        return NamedTupleProxy(recording, value, slot, _parts(recording, value, slot))

    return _proxied(make)(recording, value, slot)


def _proxied(make: Callable[..., Any]) -> Callable[[Recording, Any, int], Entered]:
    """One proxy per object: `is` stays what it was; a second way to the object is guarded to lead there."""

    def handler(recording: Recording, value: object, slot: int) -> Entered:
        seen = known(recording, value)
        if seen is not None:
            if seen._slot_ is not None:
                recording.same.append((slot, seen._slot_))
            return inputs.has_type(type(value)), seen
        return inputs.has_type(type(value)), remember(recording, make(recording, value, slot))

    return handler


def _module(recording: Recording, value: object, slot: int) -> Entered:
    return inputs.is_same(value), one_per_object(recording, value, ModuleProxy)


def _class(recording: Recording, value: Any, slot: int) -> Entered:
    if value in TYPE_STAND_INS:
        return inputs.is_same(value), TYPE_STAND_INS[value]
    if value in TRANSPARENT:
        return inputs.is_same(value), value
    # What an instance gets from its class (`code`, a method) is read past us from now on, so it is guarded here.
    if issubclass(value, BaseException):  # `except` needs the class itself
        for name in dir(value):
            if not hasattr(BaseException, name):
                guard_class(recording, value, name, find_in_class(value, name)[1])
        return inputs.is_same(value), value
    if is_harmless(value):
        return inputs.is_same(value), one_per_object(recording, value, Harmless)
    return inputs.is_same(value), class_proxy(recording, value)


def _callable(recording: Recording, value: object, slot: int) -> Entered:
    return inputs.is_same(value), one_per_object(recording, value, callable_stand_in)


def _body(recording: Recording, value: Any, slot: int) -> Entered:
    return enter_body(recording, value, slot), one_per_object(recording, value, callable_stand_in)


def _partial(recording: Recording, value: object, slot: int) -> Entered:
    """A functools.partial: its function and its arguments are entered."""
    name = recording.inputs.name(slot)

    def part(attribute: str) -> Any:
        fetch = inputs.attribute(slot, attribute)
        return recording.enter(getattr(value, attribute), ("partial", slot, attribute), f"{name}.{attribute}", fetch)

    made = functools.partial(part("func"), *part("args"), **part("keywords"))
    return inputs.has_type(functools.partial), one_per_object(recording, value, lambda *_: made)


def _bound(recording: Recording, value: Any, slot: int) -> Entered:
    """A bound method read from outside: its object is entered, its function followed."""
    name = recording.inputs.name(slot)
    owner = recording.enter(value.__self__, ("self", slot), f"{name}.__self__", inputs.attribute(slot, "__self__"))
    function = value.__func__
    made = Followed(recording, target_function(recording, function), (owner,), value)
    return inputs.is_method_of(function), one_per_object(recording, value, lambda *_: made)


def callable_stand_in(recording: Recording, value: object) -> Any:
    """The stand-in of a function: its rule, its followed code, or an opaque call."""
    if is_method(value):
        return method_stand_in(recording, value)
    # Single functions come first, then what has a rule, then Python's own. A function is followed only if nothing is
    # known of it.
    for accepts, kind in _STAND_INS:
        if accepts(value):
            return kind(recording, value)
    if lookup(value) is not None or isinstance(value, np.ufunc) or _is_in(_PURE, value):
        return RuleFunction(value)
    name = getattr(value, "__name__", "")
    if vars(builtins).get(name) is value and is_pythons(name, value):
        return recording.builtins[name]
    if is_harmless(value):
        return Harmless(recording, value)
    if computes(value):
        return RuleFunction(value)
    function = target_function(recording, value)
    return Followed(recording, function, (), value) if isinstance(function, FunctionType) else Opaque(recording, value)


_STAND_INS: tuple[tuple[Callable[[Any], bool], Callable[..., Any]], ...] = (
    (is_maker, Maker),
    (lambda value: value is os.getenv, EnvironmentFunction),
    (lambda value: _is_in(COPYING, value), Copying),
    (lambda value: value is dataclasses.replace, Replace),
    (lambda value: value is np.piecewise, Piecewise),
    (lambda value: type(value) is CacheWrapper, Cached),
    (lambda value: isinstance(value, FunctionType) and value in LOG_FUNCTIONS, LogFunction),
    (lambda value: value is warned.original or value is warned.warn, WarnFunction),
)
"""Single functions that recorded code has a stand-in for."""


def _is_in(functions: Container[Any], value: object) -> bool:
    """Whether a value is one of some functions."""
    try:
        return value in functions
    except Exception:  # not hashable
        return False


def _grid(recording: Recording, value: object, slot: int) -> Entered:
    return inputs.is_same(value), one_per_object(recording, value, Grid)


def _environ(recording: Recording, value: object, slot: int) -> Entered:
    return inputs.is_same(value), EnvironProxy(recording)


def _stream(recording: Recording, value: object, slot: int) -> Entered:
    # a check that lets another stream pass, as under contextlib.redirect_stdout
    return inputs.satisfies(streams.is_standard), _proxied(StreamProxy)(recording, value, slot)[1]


def _object(recording: Recording, value: object, slot: int) -> Entered:
    # A C object that can be called (a compiled regex's method, a Generator's): no Python code to follow.
    if callable(value) and not isinstance(find_in_class(type(value), "__call__")[1], FunctionType):
        return _callable(recording, value, slot)
    if not followable_class(type(value)) or any(value is stream for stream in (sys.stdout, sys.stderr, sys.stdin)):
        return _opaque(recording, value, slot)
    return _proxied(ObjectProxy)(recording, value, slot)


def _generator(recording: Recording, value: object, slot: int) -> Entered:
    recording.inputs.narrow(slot, KINDS[type(value)].check)
    return _proxied(GeneratorProxy)(recording, value, slot)


def _is(*kinds: type) -> Callable[[Any, type], bool]:
    return lambda value, kind: kind in kinds


def _rule_object(value: object, kind: type) -> bool:
    return lookup(value) is not None or kind is np.ufunc


Handler = Callable[[Recording, Any, int], Entered]
_HANDLERS: tuple[tuple[Callable[[Any, type], bool], Handler], ...] = (
    (lambda value, kind: kind in PLAIN, _literal),
    # one object for all of its kind, but for those with fields or metadata
    (lambda value, kind: issubclass(kind, np.dtype) and value.isbuiltin == 1, _identical),
    (lambda value, kind: isinstance(value, enum.Enum), _enum),
    (lambda value, kind: kind is frozenset and all(type(part) in PLAIN | _EXACT for part in value), _frozenset),
    (_is(range, slice), _bounds),
    (lambda value, kind: kind in (int, float, complex) or issubclass(kind, np.number), _number),
    (is_bare_number, _identical),
    (is_records, enter_records),
    (_is(np.ndarray), _array),
    (lambda value, kind: issubclass(kind, np.ndarray), _array_subclass),
    (lambda value, kind: kind is tuple or (issubclass(kind, tuple) and hasattr(kind, "_fields")), _tuple),
    (_is(list), _proxied(ListProxy)),
    (_is(dict), _proxied(DictProxy)),
    (_is(collections.deque), _proxied(DequeProxy)),
    (_is(collections.OrderedDict), _proxied(OrderedDictProxy)),
    (_is(collections.defaultdict), _proxied(DefaultDictProxy)),
    (_is(collections.Counter), _proxied(CounterProxy)),
    (lambda value, kind: is_dict_class(kind), _proxied(DictObjectProxy)),
    (_is(set), _proxied(SetProxy)),
    (lambda value, kind: value is os.environ, _environ),
    (lambda value, kind: kind in log.LOGGERS, _proxied(LoggerProxy)),
    (lambda value, kind: is_stream(value), _stream),
    (lambda value, kind: is_grid(value), _grid),
    (_is(ModuleType), _module),
    (_is(functools.partial), _partial),
    (lambda value, kind: callable(value) and not issubclass(kind, type) and _is_in(TRANSPARENT, value), _identical),
    (lambda value, kind: issubclass(kind, type), _class),
    (_rule_object, _callable),
    (lambda value, kind: is_method(value), _callable),
    (_is(MethodType), _bound),
    (lambda value, kind: is_body(value), _body),
    (lambda value, kind: isinstance(value, (*CALLABLES, wrapt.CallableObjectProxy, wrapt.FunctionWrapper)), _callable),
    (lambda value, kind: issubclass(kind, ModuleType), _module),
    (lambda value, kind: kind_of(value) is not None, _generator),
)
"""Handlers by kind of value: the first row that accepts a value. Others enter as objects."""
