"""Subclasses of Python's numbers, such as members of an IntEnum: where they compute as the numbers that they are."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np

from accel.record.state.wrapper import isinstance_wrapper
from accel.rules.rule import Unsupported

NUMBERS = (int, float, complex)

_CONVERSIONS = frozenset({"__int__", "__float__", "__complex__", "__index__", "__bool__"})
_BINARY = "add sub mul truediv floordiv mod pow divmod and or xor lshift rshift".split()
_OTHERS = "eq ne lt le gt ge neg pos abs invert round trunc floor ceil".split()
_OPERATORS = _CONVERSIONS | {f"__{name}__" for name in (*_BINARY, *(f"r{each}" for each in _BINARY), *_OTHERS)}


def number_of_class(kind: type, own: Set[str] = _OPERATORS) -> type | None:
    """Python's number type that a subclass such as an IntEnum is; None for others, and if it defines any of `own`."""
    base = next((each for each in NUMBERS if issubclass(kind, each)), None)
    if base is None or kind in (bool, *NUMBERS) or issubclass(kind, np.generic):
        return None
    defined = {name for owner in kind.__mro__[: kind.__mro__.index(base)] for name in vars(owner)}
    return None if defined & own or any(name.startswith("__array") for name in dir(kind)) else base


def as_number(value: Any) -> Any:
    """An instance of a number's subclass as Python's number; any other value as it is.

    Raises Unsupported if the class has operators of its own: Python calls these.
    """
    plain = value._plain_ if isinstance_wrapper(value) else value
    kind = type(plain)
    if not isinstance(plain, NUMBERS) or kind in (bool, *NUMBERS) or isinstance(plain, np.generic):
        return value
    base = number_of_class(kind)
    if base is None:
        raise Unsupported("call.opaque", f"a {kind.__name__}, which has operators of its own")
    return getattr(base, f"__{base.__name__}__")(plain)


def as_numpy_number(value: Any) -> Any:
    """An instance of a number's subclass as NumPy's number; any other value as it is.

    NumPy takes a plain Python number in an array's dtype, but one of a subclass as float64 or int64.
    """
    base = number_of_class(type(value), _CONVERSIONS)
    number = value if base is None else np.asarray(value)[()]
    return number if isinstance(number, np.generic) else value
