"""The base of proxies: objects, containers, modules and classes as recorded code sees them.

Reads enter through their path, writes go to the real object at once and are noted as outputs. There is one proxy per
object and recording, so that `is` stays what it was. Special methods are those that Python looks up in a class, for
operators, conversions, `with`, `in` and the like.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from accel.record.state import inputs
from accel.record.state.inputs import MISSING
from accel.record.state.recording import Recording
from accel.record.state.wrapper import Wrapper, unwrap
from accel.record.values.operands import BINARY, COMPARE


class Proxy(Wrapper):
    """Base of the proxies. slot: where a later call finds the object; None for one made in the recorded call."""

    __slots__ = ("_slot_",)
    _slot_: int | None

    def __init__(self, recording: Recording, value: object, slot: int | None = None) -> None:
        object.__setattr__(self, "_recording_", recording)
        object.__setattr__(self, "_plain_", value)
        object.__setattr__(self, "_slot_", slot)
        recording.registry.born(self)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._plain_)

    def __hash__(self) -> int:
        return hash(self._plain_)

    def __eq__(self, other: object) -> Any:
        return self._plain_ == unwrap(other)

    def __ne__(self, other: object) -> Any:
        return self._plain_ != unwrap(other)

    def __repr__(self) -> str:
        self._recording_.break_("value.forced", "the text of an object")
        return repr(self._plain_)

    def __str__(self) -> str:
        self._recording_.break_("value.forced", "the text of an object")
        return str(self._plain_)

    def __reduce_ex__(self, protocol: object) -> Any:
        self._recording_.break_("escape.object", "an object is copied or pickled", touched=True)
        return self._plain_.__reduce_ex__(protocol)


OWN = frozenset({"_recording_", "_plain_", "_slot_", "__class__"})


OPERATORS = frozenset(
    f"__{prefix}{name}__"
    for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
    for prefix in ("", "r", "i")
) | {"__lt__", "__le__", "__gt__", "__ge__"}


def operated(name: str, value: Any, *others: Any) -> Any:
    """The result of an operator of plain values, of which the first has the special method `name`.

    Python's own way: the method itself may raise where the other value has one that does not.
    """
    if name == "__pow__":
        return pow(value, *others)
    if hasattr(operator, name):
        return getattr(operator, name)(value, *others)
    return getattr(operator, f"__{name[3:]}")(*others, value)  # `__radd__`: the other value is the first operand


def one_per_object(recording: Recording, value: object, make: Callable[[Recording, Any], Any]) -> Any:
    """The stand-in of a function, module or class: one per recording, so that `is` stays what it was."""
    found = recording.registry.stand_ins.get(id(value))
    if found is None or found[0] is not value:
        found = recording.registry.stand_ins[id(value)] = (value, make(recording, value))
    return found[1]


def find_in_class(kind: type, name: str) -> tuple[type | None, Any]:
    """The class of the method resolution order that defines `name`, and what it defines."""
    for owner in kind.__mro__:
        if name in owner.__dict__:
            return owner, owner.__dict__[name]
    return None, MISSING


def guard_class(recording: Recording, kind: type, name: str, found: Any) -> None:
    """Let replays check that a lookup of `name` through a class finds what it found; MISSING for nothing."""
    key = ("lookup", id(kind), name)
    if recording.inputs.find(key) is None:
        recording.registry.keep_alive(kind)
        recording.inputs.add(key, f"{kind.__name__}.{name}", inputs.of_class(kind, name), inputs.is_same(found))


def _special(name: str) -> Callable[..., Any]:
    """A special method of the user's class, followed; Python's own default where it has none."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:  # `__call__` alone is given names
        recording = self._recording_
        kind = type(self._plain_)
        _, found = find_in_class(kind, name)
        # Looked up in the class, as Python does: what an object has under such a name itself is not asked.
        if recording.active and isinstance(found, FunctionType):
            return getattr(self, name)(*args, **kwargs)
        if found is MISSING or found is getattr(object, name, None):
            if recording.active:
                guard_class(recording, kind, name, found)
            # Python's fallback for sequences; likewise the truth of an object by its length, below.
            if name == "__reversed__" and find_in_class(kind, "__getitem__")[0] is not None:
                return (self[i] for i in range(len(self) - 1, -1, -1))
            if name == "__bool__":
                length = find_in_class(kind, "__len__")[1]
                if recording.active:
                    guard_class(recording, kind, "__len__", length)
                return True if length is MISSING else len(self) != 0
            if name in ("__eq__", "__ne__"):
                return _identity(self, args[0], name)
            if name in OPERATORS:
                return NotImplemented
            if found is MISSING:
                raise TypeError(f"{kind.__name__!r} object has no {name}")
            return getattr(self._plain_, name)(*unwrap(args), **unwrap(kwargs))
        recording.break_("call.opaque", f"{kind.__name__}.{name}", touched=True)
        if name in OPERATORS:
            return operated(name, self._plain_, *unwrap(args))
        return getattr(kind, name)(self._plain_, *unwrap(args), **unwrap(kwargs))

    method.__name__ = name
    return method


def _identity(self: Any, other: Any, name: str) -> Any:
    """`==` and `!=` as `object` has them: `!=` denies what the class's own `==` says; else by identity."""
    if name == "__ne__" and find_in_class(type(self._plain_), "__eq__")[0] is not object:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal
    self._recording_.code.compares_identity = True
    if self._plain_ is unwrap(other):
        return name == "__eq__"
    return NotImplemented  # Python asks the other one, then compares by identity itself


class SpecialMethods(Proxy):
    """The proxy of an object as far as Python itself calls its methods; a subclass says what `object.name` gives."""

    __slots__ = ()

    def __hash__(self) -> int:
        """Asked for by dicts and sets, which tell objects apart by it and by `==`."""
        kind = type(self._plain_)
        if find_in_class(kind, "__hash__")[0] is not object:
            self._recording_.break_("call.opaque", f"{kind.__name__}.__hash__")
        self._recording_.code.compares_identity = True
        return hash(self._plain_)

    def __instancecheck__(self, value: object) -> bool:
        """Asked where an object stands for a class, such as those of typing; Python's TypeError where it does not."""
        self._recording_.break_("call.opaque", f"isinstance of a {type(self._plain_).__name__}", touched=True)
        return isinstance(unwrap(value), self._plain_)

    def __subclasscheck__(self, kind: object) -> bool:
        self._recording_.break_("call.opaque", f"issubclass of a {type(self._plain_).__name__}", touched=True)
        return issubclass(unwrap(kind), self._plain_)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **kwargs: Any) -> Any:
        """An operator of a NumPy number that is a constant: the object's class decides whether NumPy answers it."""
        name = type(self._plain_).__name__
        self._recording_.break_("call.opaque", f"a {name} as a NumPy number's operand", touched=True)
        function = _BY_UFUNC.get(ufunc) if len(args) == ufunc.nin and not kwargs else None
        return (function or getattr(ufunc, method))(*unwrap(args), **unwrap(kwargs))


_BY_UFUNC = {ufunc: function for function, ufunc in (*BINARY.values(), *COMPARE.values())} | {np.divmod: divmod}


for _name in (
    *OPERATORS,
    *"""__eq__ __ne__ __bool__ __len__ __iter__ __next__ __reversed__ __getitem__ __setitem__ __contains__ __call__
    __enter__ __exit__ __neg__ __pos__ __abs__ __invert__ __float__ __int__ __complex__""".split(),
):
    if not (_name.startswith("__i") and _name in OPERATORS and not hasattr(operator, _name)):
        setattr(SpecialMethods, _name, _special(_name))
