"""Operators, indexing and attributes of recorded values, put on their classes here, above all that they need."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from accel.record.state.inputs import MISSING
from accel.record.state.on_behalf import on_behalf
from accel.record.state.recording import Recording
from accel.record.state.wrapper import isinstance_wrapper, unwrap
from accel.record.values import compressed
from accel.record.values.arrays import (
    CompressedArray,
    RecordedArray,
    RecordedNumPyScalar,
    RecordedScalar,
    RecordedValue,
)
from accel.record.values.calls.call import call
from accel.record.values.indexing import get_item, get_item_of_selection, set_item
from accel.record.values.methods import attribute_of
from accel.record.values.numbers import TYPE_STAND_INS, record_scalar, scalar_call
from accel.record.values.operands import BINARY, COMPARE, UNARY
from accel.record.values.settling import or_settled, settle
from accel.record.values.subclasses import NUMBERS
from accel.record.values.ufuncs import record_ufunc
from accel.record.values.wrapping import known


def binary(
    value: RecordedValue, other: object, args: tuple[Any, Any], function: Callable[..., Any], ufunc: np.ufunc
) -> Any:
    """`function(*args)` for an operator of the recorded `value`; args: it and `other`, either first."""
    if not _is_operand(value, other):
        return _foreign(value, other, args, function)
    recording = value._recording_
    result = on_behalf(function, unwrap(args))
    if isinstance(result, (list, tuple)):
        return NotImplemented  # a sequence repeated, which Python does with what is in it
    return recording.write_down(lambda: _record_operator(recording, function, ufunc, args, result), result)


def _is_operand(value: Any, other: Any) -> bool:
    """Whether an operator's other side is a number or an array, or a sequence that NumPy takes for one."""
    if isinstance(other, (list, tuple)):
        return isinstance(value._plain_, (np.ndarray, np.generic))
    return isinstance(other, (np.ndarray, np.generic, bool, *NUMBERS))


def _foreign(value: RecordedValue, other: object, args: tuple[Any, ...], function: Callable[..., Any]) -> Any:
    """An operator whose other side is neither number nor array: its class answers, or NumPy, object by object."""
    recording, real = value._recording_, value._plain_
    if not isinstance(real, (np.ndarray, np.generic)) or _answers_first(unwrap(other), real):
        return NotImplemented
    # Comparing a number with a string or None runs no code of the program's; an array compares object by object.
    if isinstance(real, np.ndarray) or not isinstance(other, (str, bytes, type(None))):
        simple = isinstance(other, (str, bytes, type(None)))
        recording.break_("call.opaque", f"a {type(unwrap(other)).__name__} as an array's operand", touched=not simple)
    return on_behalf(function, unwrap(args))


def _answers_first(other: Any, real: object) -> bool:
    """Whether NumPy leaves an operator to the other side's class."""
    own = getattr(type(other), "__array_ufunc__", MISSING)
    if own is not MISSING:
        return own is None
    least = -1000000.0
    priority = getattr(other, "__array_priority__", least)
    return bool(priority > (0.0 if isinstance(real, np.ndarray) else least))


def unary(value: RecordedValue, function: Callable[..., Any], ufunc: np.ufunc) -> Any:
    """`function(value)` for an operator of a recorded value."""
    recording = value._recording_
    result = on_behalf(function, (value._plain_,))
    return recording.write_down(lambda: _record_operator(recording, function, ufunc, (value,), result), result)


def _record_operator(
    recording: Recording, function: Callable[..., Any], ufunc: np.ufunc, args: tuple[Any, ...], result: object
) -> Any:
    if not isinstance(result, np.ndarray) and all(map(_is_number, args)):
        return record_scalar(recording, function, args, result, ufunc)
    if isinstance(result, np.ndarray) and known(recording, result) is not None:
        return known(recording, result)  # an in-place operator, already written down
    operands = tuple(map(_as_array, args))
    return or_settled(lambda: record_ufunc(recording, ufunc, operands, {}, result), operands)


def _is_number(value: object) -> bool:
    return (
        issubclass(type(value), RecordedScalar) or not isinstance_wrapper(value) or isinstance(unwrap(value), NUMBERS)
    )


def _as_array(operand: object) -> Any:
    """A sequence as the array that NumPy makes of it."""
    return call(np.asarray, (operand,), {}) if isinstance(operand, (list, tuple)) else operand


def _inplace(array: Any, other: Any, function: Callable[..., Any], ufunc: np.ufunc) -> Any:
    """`array op= other`: NumPy's in-place operator, written through the view."""
    recording = array._recording_

    def write() -> Any:
        if issubclass(type(array), CompressedArray):
            return compressed.record_inplace(array, ufunc, other)
        record_ufunc(recording, ufunc, (array, _as_array(other)), {"out": array}, result)
        return array

    if not _is_operand(array, other):
        recording.break_("call.opaque", f"a {type(unwrap(other)).__name__} as an array's operand", touched=True)
    if issubclass(type(array), CompressedArray):
        result = on_behalf(function, (array._plain_, unwrap(other)))
        return recording.write_down(lambda: or_settled(write, (array, other)), result)
    recording.storages.before_write(array._storage, array._plain_)
    # NumPy raises here, or array._plain_ is changed
    result = on_behalf(function, (array._plain_, unwrap(other)))
    return recording.write_down(lambda: or_settled(write, (other,)), result)


def _forward(function: Callable[..., Any], ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    return lambda self, other: binary(self, other, (self, other), function, ufunc)


def _pow(self: RecordedValue, other: object, modulo: int | None = None) -> Any:
    if modulo is None:
        return binary(self, other, (self, other), operator.pow, _power_of(self, other))
    return scalar_call(self._recording_, pow, (self, other, modulo))


def _power_of(value: RecordedValue, exponent: object) -> np.ufunc:
    """Arrays to a literal half are square roots; NumPy's numbers are C's `pow`: inf for -inf, 0.0 for -0.0."""
    is_half = type(exponent) is float and exponent == 0.5
    return np.float_power if is_half and type(value._plain_) is np.float64 else np.power


def _reflected(function: Callable[..., Any], ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    return lambda self, other: binary(self, other, (other, self), function, ufunc)


def _in_place(name: str, function: Callable[..., Any], ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    inplace = getattr(operator, f"i{name}")

    def method(self: RecordedValue, other: object) -> Any:
        if issubclass(type(self), RecordedScalar):
            return NotImplemented
        return _inplace(self, other, inplace, ufunc)

    return method


def _single(function: Callable[..., Any], ufunc: np.ufunc) -> Callable[[Any], Any]:
    return lambda self: unary(self, function, ufunc)


def _array_ufunc(self: RecordedValue, ufunc: np.ufunc, method: str, *args: object, **kwargs: object) -> Any:
    return call(getattr(ufunc, method) if method != "__call__" else ufunc, args, kwargs)


def _array_function(
    self: RecordedValue, function: object, types: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    return call(function, args, kwargs)


def _rounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A special method by which `function` of Python's acts on a number."""
    return lambda self, *args: scalar_call(self._recording_, function, (self, *args))


def _round(self: RecordedScalar, *digits: Any) -> Any:
    """`round(self)`: NumPy's numbers are rounded by NumPy where digits are given."""
    if isinstance(self._plain_, (np.floating, np.integer)):
        if digits not in ((), (None,)):
            return call(np.round, (self, *digits), {})
        whole = call(np.rint, (self,), {}) if isinstance(self._plain_, np.floating) else self
        return TYPE_STAND_INS[int](whole)
    return scalar_call(self._recording_, round, (self, *digits))


def _item_of_scalar(self: RecordedNumPyScalar, key: Any) -> Any:
    """`x[None]` of a NumPy scalar: an array with that number, or for `x[()]` the scalar."""
    recording = self._recording_
    try:
        result = on_behalf(operator.getitem, (self._plain_, unwrap(key)))
    except IndexError as error:  # one that iteration takes for the end of it
        recording.note_exception(error, recording.writer.where())
        raise
    if not recording.active or not isinstance(result, np.ndarray):
        return self if recording.active else result
    return call(np.array, (self,), {})[key]


def attach() -> None:
    """Give the classes of recorded values their operators."""
    for name, (function, ufunc) in BINARY.items():
        setattr(RecordedValue, f"__{name}__", _forward(function, ufunc))
        setattr(RecordedValue, f"__r{name}__", _reflected(function, ufunc))
        setattr(RecordedValue, f"__i{name}__", _in_place(name, function, ufunc))

    for name, (function, ufunc) in COMPARE.items():
        setattr(RecordedValue, f"__{name}__", _forward(function, ufunc))

    for name, (function, ufunc) in UNARY.items():
        setattr(RecordedValue, f"__{name}__", _single(function, ufunc))

    for name, function in (("floor", math.floor), ("ceil", math.ceil), ("trunc", math.trunc)):
        setattr(RecordedScalar, f"__{name}__", _rounded(function))
    for kind, name, method in _OTHERS:
        setattr(kind, name, method)


_OTHERS: tuple[tuple[type, str, Callable[..., Any]], ...] = (
    (RecordedValue, "__pow__", _pow),
    (RecordedScalar, "__round__", _round),
    (RecordedValue, "__pos__", _single(operator.pos, np.positive)),
    (RecordedValue, "__array_ufunc__", _array_ufunc),
    (RecordedValue, "__array_function__", _array_function),
    (RecordedValue, "__getattr__", attribute_of),
    (RecordedNumPyScalar, "__getitem__", _item_of_scalar),
    (RecordedArray, "__getitem__", get_item),
    (RecordedArray, "__setitem__", set_item),
    (CompressedArray, "__getitem__", get_item_of_selection),
    (CompressedArray, "count", compressed.count),
    (CompressedArray, "settle", settle),
)
