"""Special methods of objects: what Python looks up in a class for operators, conversions, `with`, `in` and the like."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

from accel.record.objects.proxy import OPERATORS, Proxy, find_in_class
from accel.record.state.inputs import MISSING
from accel.record.state.wrapper import unwrap


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
            # Python's fallback for sequences; likewise the truth of an object by its length, below.
            if name == "__reversed__" and find_in_class(kind, "__getitem__")[0] is not None:
                return (self[i] for i in range(len(self) - 1, -1, -1))
            if name == "__bool__":
                return len(self) != 0 if find_in_class(kind, "__len__")[0] else True
            if name in ("__eq__", "__ne__"):
                return _identity(self, args[0], name)
            if name in OPERATORS:
                return NotImplemented
            if found is MISSING:
                raise TypeError(f"{kind.__name__!r} object has no {name}")
            return getattr(self._plain_, name)(*unwrap(args), **unwrap(kwargs))
        recording.break_("call.opaque", f"{kind.__name__}.{name}", touched=True)
        return getattr(kind, name)(self._plain_, *unwrap(args), **unwrap(kwargs))

    method.__name__ = name
    return method


def _identity(self: Any, other: Any, name: str) -> Any:
    """`==` and `!=` as `object` has them: `!=` denies what the class's own `==` says; else by identity."""
    if name == "__ne__" and find_in_class(type(self._plain_), "__eq__")[0] is not object:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal
    self._recording_.compares_identity = True
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
        self._recording_.compares_identity = True
        return hash(self._plain_)


for _name in (
    *OPERATORS,
    *"""__eq__ __ne__ __bool__ __len__ __iter__ __next__ __reversed__ __getitem__ __setitem__ __contains__ __call__
    __enter__ __exit__ __neg__ __pos__ __abs__ __invert__ __float__ __int__ __complex__""".split(),
):
    if not (_name.startswith("__i") and _name in OPERATORS and not hasattr(operator, _name)):
        setattr(SpecialMethods, _name, _special(_name))
