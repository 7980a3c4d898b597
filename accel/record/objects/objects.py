"""Objects and classes of the program: attributes by path, methods followed, new objects made."""

from __future__ import annotations

import abc
import functools
import operator
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from types import FunctionType, SimpleNamespace
from typing import Any

from accel.ir.tape import SERIAL
from accel.record.objects.computed import answered, attribute_of_class, opaque_attribute, property_of
from accel.record.objects.follow import Followed, followed_once, target_function
from accel.record.objects.generators import Maker
from accel.record.objects.kinds import is_bare_namedtuple, makes_plainly
from accel.record.objects.own_attributes import (
    guard_no_own,
    has_attribute,
    is_computed_without,
    is_slot,
    note_attribute,
    own_attribute,
    restore_attribute,
)
from accel.record.objects.proxy import OWN, Proxy, SpecialMethods, find_in_class, guard_class, one_per_object
from accel.record.objects.scan import CLASS_READ
from accel.record.state import inputs
from accel.record.state.changes import AttributeState
from accel.record.state.inputs import MISSING
from accel.record.state.opaque import call_opaque
from accel.record.state.recording import Recording
from accel.record.state.wrapper import StandIn, has_wrapper, unwrap
from accel.record.values.arrays import as_static
from accel.record.values.draws.generators import is_maker
from accel.record.values.numbers import TYPE_STAND_INS
from accel.record.values.wrapping import known, remember
from accel.rules.rule import Unsupported


class ObjectProxy(SpecialMethods):
    """An object of a class written in Python."""

    __slots__ = ()
    _knows_class_ = True

    def as_operand(self) -> Any:
        raise Unsupported("value.forced", f"a {type(self._plain_).__name__} is needed as an array or number")

    def __getattribute__(self, name: str) -> Any:
        if name in OWN:
            return object.__getattribute__(self, name)
        return class_of(self) if name == CLASS_READ else get_attribute(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        set_attribute(self, name, value)

    def __delattr__(self, name: str) -> None:
        delete_attribute(self, name)


_GENERIC_SETATTR: tuple[Any, ...] = (object.__setattr__, SimpleNamespace.__setattr__)
"""Functions that set attributes without running code of a class."""

_GENERIC_DELATTR: tuple[Any, ...] = (object.__delattr__, SimpleNamespace.__delattr__)


def class_of(proxy: Any) -> Any:
    """The object's class, as `type(object)` is in recorded code."""
    recording, kind = proxy._recording_, type(proxy._plain_)
    return class_proxy(recording, kind) if recording.active else kind


def get_attribute(proxy: Any, name: str) -> Any:
    """`object.name`, as Python looks it up: data descriptors, the object's own, then the class."""
    recording: Recording = proxy._recording_
    real = proxy._plain_
    if not recording.active:
        return getattr(real, name)
    _, found = find_in_class(type(real), name)
    if isinstance(found, property):
        return property_of(proxy, name, type(real), found)
    # What the call itself wrote or has read before, ahead of a look at the object: it holds the plain value only.
    state = recording.attributes.get((id(real), name))
    if state is not None:
        return _current_attribute(proxy, name, state)
    # A data descriptor (functools.cached_property is none, a validating field is): its __get__ runs unseen.
    if hasattr(type(found), "__set__") and not is_slot(found):
        return opaque_attribute(proxy, name)
    own = own_attribute(real, name)
    # An instance attribute hides what the class has under the name, unless that is a data descriptor.
    if own is not MISSING:
        return _enter_attribute(proxy, name, own)
    if found is MISSING or is_slot(found):
        return _missing_attribute(proxy, name)
    return class_attribute(proxy, name, type(real), found)


def _current_attribute(proxy: Any, name: str, state: AttributeState) -> Any:
    """The recorded value of an attribute. Breaks the tape if something else has replaced it."""
    real = proxy._plain_
    now = own_attribute(real, name)
    # A callback, a thread or C code has assigned it meanwhile.
    if now is not state.held:
        proxy._recording_.break_unseen(f".{name} was changed from outside the recorded code")
        return getattr(real, name)
    if state.wrapped is MISSING:
        owner, found = find_in_class(type(real), name)
        # What it never had, its class may have got meanwhile. Otherwise it is Python's own AttributeError.
        if owner is None or (not state.written and is_slot(found)):
            return getattr(real, name)
        return class_attribute(proxy, name, type(real), found)
    return state.wrapped


def _enter_attribute(proxy: Any, name: str, own: Any) -> Any:
    recording, slot = proxy._recording_, proxy._slot_
    if slot is None:
        recording.break_("escape.object", f"an attribute .{name} that the recording did not see set")
        return own
    # Should the object lose the attribute, `object.name` would run code of its class while the guard fetches.
    if is_computed_without(type(proxy._plain_), name):
        recording.inputs.narrow(slot, inputs.satisfies(has_attribute, name))
    wrapped = recording.enter(
        own, ("attr", slot, name), f"{recording.inputs.name(slot)}.{name}", inputs.attribute(slot, name)
    )
    if recording.active:
        note_attribute(proxy, name, wrapped, written=False)
    return wrapped


def _missing_attribute(proxy: Any, name: str) -> Any:
    """An attribute that is not there: a later call must find it missing too."""
    recording, slot = proxy._recording_, proxy._slot_
    kind = type(proxy._plain_)
    answering = find_in_class(kind, "__getattr__")[1]
    if answering is not MISSING:
        return answered(proxy, name, kind, answering)
    if slot is not None:
        recording.inputs.add(
            ("missing", slot, name),
            f"{recording.inputs.name(slot)}.{name}",
            inputs.attribute_or_missing(slot, name),
            inputs.is_same(MISSING),
        )
    note_attribute(proxy, name, MISSING, written=False)
    with recording.foreseen():
        return getattr(proxy._plain_, name)


DESCRIPTORS: dict[type, Callable[[Any, str, type, Any], Any]] = {}
"""Kinds of descriptors that modules above know how to ask: (proxy, name, kind, descriptor) -> what `object.name` is."""


def class_attribute(proxy: Any, name: str, kind: type, found: Any) -> Any:
    """A method, or a value that a class holds. kind: the class that the lookup begins at."""
    recording = proxy._recording_
    function = target_function(recording, found)
    # `del self.scheme` uncovers the class's `scheme`: before the call the object did have one of its own.
    is_deleted = (id(proxy._plain_), name) in recording.attributes  # the object's own, by this call
    if kind is type(proxy._plain_) and not is_deleted:  # super() looks past the object
        guard_no_own(recording, proxy._slot_, name)
    if isinstance(function, FunctionType):
        guard_class(recording, kind, name, found)
        return Followed(recording, function, (proxy,), found.__get__(proxy._plain_, kind))
    # Their functions are followed as well; a classmethod is bound to the class of the object, not to that which defines
    # it.
    if isinstance(function, (staticmethod, classmethod)):
        guard_class(recording, kind, name, found)
        inner = target_function(recording, function.__func__)
        if isinstance(inner, FunctionType):
            plain = found.__get__(proxy._plain_, type(proxy._plain_))
            if isinstance(function, staticmethod):
                return followed_once(recording, inner, plain)
            return Followed(recording, inner, (class_proxy(recording, type(proxy._plain_)),), plain)
    known_kind = DESCRIPTORS.get(type(found))
    if known_kind is not None:
        return known_kind(proxy, name, kind, found)
    # Any other descriptor, such as a C method: its __get__ runs unseen.
    if hasattr(type(found), "__get__"):
        return opaque_attribute(proxy, name)
    recording.registry.keep_alive(kind)
    return recording.enter(found, ("class", id(kind), name), f"{kind.__name__}.{name}", inputs.of_class(kind, name))


def set_attribute(proxy: ObjectProxy, name: str, value: object, *, generic: bool = False) -> None:
    """`object.name = value`: the real object gets the plain value at once.

    generic: by object.__setattr__, whatever the class has for that.
    """
    recording, real = proxy._recording_, proxy._plain_
    _, found = find_in_class(type(real), name)
    if isinstance(found, property) and recording.active and isinstance(found.fset, FunctionType):
        guard_class(recording, type(real), name, found)
        Followed(recording, found.fset, (proxy,))(value)
        return
    # Nothing but the object's own storage changes: only then can the write be put back, and made by a replay.
    ordinary = (generic or type(real).__setattr__ in _GENERIC_SETATTR) and (
        found is MISSING or is_slot(found) or not hasattr(type(found), "__set__")
    )
    before = own_attribute(real, name)
    if not ordinary:
        recording.break_("call.opaque", f"assignment to .{name} runs code of its class", touched=True)
    else:
        # before the write: nothing may come in between
        recording.journal.add(lambda: restore_attribute(real, name, before))
        if before is MISSING:
            recording.new_names.add((id(real), name))
        if not generic and recording.active:
            guard_class(recording, type(real), "__setattr__", find_in_class(type(real), "__setattr__")[1])
    (object.__setattr__ if generic else setattr)(real, name, recording.kept.unwrap_to_store(value))
    if ordinary and recording.active:
        note_attribute(proxy, name, value, written=True)


def delete_attribute(proxy: Any, name: str, *, generic: bool = False) -> None:
    """`del object.name`. generic: by object.__delattr__."""
    recording, real = proxy._recording_, proxy._plain_
    _, found = find_in_class(type(real), name)
    delete = object.__delattr__ if generic else delattr
    of_class = not generic and type(real).__delattr__ not in _GENERIC_DELATTR
    if of_class or (hasattr(type(found), "__delete__") and not is_slot(found)):
        recording.break_("call.opaque", f"deletion of .{name} runs code of its class", touched=True)
        delete(real, name)
        return
    before = own_attribute(real, name)
    if recording.active:
        get_attribute(proxy, name)  # it must be there on later calls too, and the object's own
        if recording.active and recording.inputs.find(("attr", proxy._slot_, name)) is not None and not is_slot(found):
            recording.inputs.narrow(proxy._slot_, inputs.has_own(name))
    recording.journal.add(lambda: restore_attribute(real, name, before))
    delete(real, name)
    if recording.active:
        note_attribute(proxy, name, MISSING, written=True)


class ClassProxy(Proxy):
    """A class of the program's: isinstance works with it, attributes are guarded, calls make new objects."""

    __slots__ = ()

    def __instancecheck__(self, value: object) -> bool:
        if getattr(self._plain_, "_is_protocol", False):  # asks for attributes
            self._recording_.break_("call.opaque", f"isinstance of the protocol {self._plain_.__name__}")
        _guard_subclass(self, type(unwrap(value)))
        return isinstance(unwrap(value), self._plain_)

    def __subclasscheck__(self, kind: object) -> bool:
        _guard_subclass(self, unwrap(kind))
        return issubclass(unwrap(kind), self._plain_)

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, name) if name in OWN else attribute_of_class(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        self._recording_.break_("effect.global", f"{self._plain_.__name__}.{name} is assigned", touched=True)
        setattr(self._plain_, name, self._recording_.kept.unwrap_to_store(value))

    def __delattr__(self, name: str) -> None:
        self._recording_.break_("effect.global", f"{self._plain_.__name__}.{name} is deleted", touched=True)
        delattr(self._plain_, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return construct(self._recording_, self._plain_, args, kwargs)

    def __or__(self, other: object) -> Any:
        return self._plain_ | unwrap(other)

    def __bool__(self) -> bool:
        return bool(self._plain_)


def _guard_subclass(proxy: Any, kind: Any) -> None:
    """Let replays check what a metaclass answers: classes may be registered later, and it may ask for anything."""
    recording, real = proxy._recording_, proxy._plain_
    if all(find_in_class(type(real), name)[0] is type for name in ("__instancecheck__", "__subclasscheck__")):
        return
    if type(real) is not abc.ABCMeta:
        recording.break_("call.opaque", f"the metaclass of {real.__name__}", touched=True)
    elif recording.active and recording.inputs.find(("subclass", id(kind), id(real))) is None:
        recording.registry.keep_alive(kind)
        recording.registry.keep_alive(real)
        check = inputs.satisfies(_is_subclass, real, issubclass(kind, real))
        recording.inputs.add(("subclass", id(kind), id(real)), f"{kind}", inputs.of_constant(kind), check)


def _is_subclass(kind: type, other: type, expected: bool) -> bool:
    return issubclass(kind, other) is expected


def _by_metaclass(operation: Callable[..., Any]) -> Callable[..., Any]:
    """A special method of a class itself, such as `len(Kind)` of an Enum: code of its metaclass, which runs unseen."""

    def method(self: ClassProxy, *args: Any) -> Any:
        self._recording_.break_("call.opaque", f"the metaclass of {self._plain_.__name__}", touched=True)
        return operation(self._plain_, *map(unwrap, args))

    return method


for _operation in (iter, len, operator.contains, operator.getitem):
    setattr(ClassProxy, f"__{_operation.__name__}__", _by_metaclass(_operation))


class ObjectType(StandIn):
    """`object`, whose methods are called where a class of the program's has its own, as in frozen dataclasses."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return object(*unwrap(args), **unwrap(kwargs))

    def __instancecheck__(self, value: object) -> bool:
        return True

    def __getattribute__(self, name: str) -> Any:
        if name in OWN:
            return object.__getattribute__(self, name)
        found = getattr(object, name)
        if not callable(found) or isinstance(found, type):
            return found
        return lambda *args, **kwargs: object_method(self._recording_, name, args, kwargs)


GENERIC: dict[str, Callable[..., Any]] = {
    "__setattr__": functools.partial(set_attribute, generic=True),
    "__delattr__": functools.partial(delete_attribute, generic=True),
}
"""Methods of `object` that change attributes."""


def object_method(recording: Recording, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`object.name(*args)` in recorded code."""
    if name in GENERIC and not kwargs and args and issubclass(type(args[0]), ObjectProxy):
        return GENERIC[name](*args)
    if any(map(has_wrapper, (*args, *kwargs.values()))):
        recording.break_("call.opaque", f"object.{name}", touched=True)
    return getattr(object, name)(
        *map(recording.kept.unwrap_to_store, args),
        **{key: recording.kept.unwrap_to_store(kwargs[key]) for key in kwargs},
    )


_OF_ANYTHING = (deque, defaultdict, Counter, OrderedDict)
"""Containers that hold recorded values as well as any others."""


CONSTRUCTORS: list[tuple[Callable[[type], bool], Callable[..., Any]]] = []
"""Kinds of classes that modules above know how to make an object of."""


def construct(recording: Recording, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`kind(*args)` in recorded code: a new object whose `__init__` is followed."""
    if not recording.active:
        return call_opaque(recording, kind, args, kwargs)
    # As collections makes them, they hold any values, recorded ones included.
    if is_bare_namedtuple(kind):
        guard_class(recording, kind, "__new__", find_in_class(kind, "__new__")[1])
        return kind(*args, **kwargs)
    if kind in _OF_ANYTHING:
        return kind(*args, **{name: as_static(kwargs[name]) for name in kwargs} if kind is deque else kwargs)
    if kind is SimpleNamespace and not args:
        made = remember(recording, ObjectProxy(recording, SimpleNamespace(), None))
        for name, value in kwargs.items():
            set_attribute(made, name, value)
        return made
    for accepts, make in CONSTRUCTORS:
        if accepts(kind):
            return make(recording, kind, args, kwargs)
    owner, init = find_in_class(kind, "__init__")
    is_empty = owner is object and not args and not kwargs
    if not (makes_plainly(kind) and (isinstance(init, FunctionType) or is_empty)):
        return call_opaque(recording, kind, args, kwargs)
    # A real object, so that isinstance, type() and repr() are right; its attributes get plain values, the proxy knows
    # the recorded ones.
    proxy = remember(recording, ObjectProxy(recording, object.__new__(kind), None))
    recording.made[id(proxy._plain_)] = next(SERIAL)
    guard_class(recording, kind, "__init__", init)
    if not is_empty:
        Followed(recording, init, (proxy,))(*args, **kwargs)
    return proxy


def class_proxy(recording: Recording, value: type) -> Any:
    """The stand-in for a class: one per class and recording."""
    if value in TYPE_STAND_INS:
        return TYPE_STAND_INS[value]
    if value is range:
        return recording.builtins["range"]
    if value is object:
        return one_per_object(recording, value, ObjectType)
    if is_maker(value):
        return one_per_object(recording, value, Maker)
    if getattr(value, "__module__", "") in ("builtins", "numpy"):
        return value
    seen = known(recording, value)
    return remember(recording, ClassProxy(recording, value)) if seen is None else seen
