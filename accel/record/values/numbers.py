"""Numbers: operations on scalars, as the host or the device computes them, and the types that would force them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from accel.record.state.on_behalf import on_behalf
from accel.record.state.recording import Recording, current
from accel.record.state.wrapper import StandIn, has_wrapper, isinstance_wrapper, unwrap
from accel.record.values.arrays import RecordedScalar, RecordedValue, as_template
from accel.record.values.operands import all_host, host_node
from accel.record.values.subclasses import NUMBERS, as_number
from accel.record.values.ufuncs import record_ufunc
from accel.record.values.wrapping import wrap
from accel.rules import core, scalars
from accel.rules.rule import Unsupported

MOST_DIGITS = 16
"""A power of ten with more digits is no float."""


def record_scalar(
    recording: Recording,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    result: Any,
    ufunc: Any = None,
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """Write down an operation on scalars: by Python where the host knows them all, else on the device."""
    numbers = tuple(map(as_number, args))
    if not any(isinstance(unwrap(arg), np.generic) for arg in args):
        args = numbers
    template = tuple(as_template(arg) for arg in args)
    named = {name: as_template(value) for name, value in (kwargs or {}).items()}
    if all_host((template, named)):
        return wrap(recording, result, host_node(recording, function, template, named, result))
    if named:
        raise Unsupported("rule.parameter", f"{function.__name__}: {', '.join(named)}")
    # `math.sqrt(np.float64(2))` is a Python float.
    if ufunc is None and getattr(function, "__module__", "") == "math":
        args = tuple(map(_as_python_float, args))
        template = tuple(as_template(arg) for arg in args)
    if all(_is_python(arg) for arg in args):
        return _record_python(recording, function, args, template, result)
    if ufunc is None:
        raise Unsupported("rule.missing", f"{getattr(function, '__name__', function)} of a NumPy scalar")
    return record_ufunc(recording, ufunc, args, {}, result)


def _as_python_float(value: Any) -> Any:
    """A NumPy scalar as the functions of `math` take it."""
    number = unwrap(value)
    if not isinstance(number, (np.floating, np.integer)) or not isinstance_wrapper(value):
        return value
    recording, node = value._recording_, value.node()
    if node.host:
        node = recording.writer.node(scalars.host_rule(float), (node,), {}, float(number), host=True)
    else:
        node = recording.writer.node(core.CONVERT, (node, float), {}, float(number))
    return RecordedScalar(recording, float(number), node)


def _is_python(value: object) -> bool:
    return type(unwrap(value)) in (bool, *NUMBERS)


def _logarithm(recording: Recording, value: object) -> Any:
    """Python divides by the logarithm of the base."""
    result = math.log(unwrap(value))
    if not isinstance_wrapper(value):
        return result
    return _record_python(recording, math.log, (value,), (as_template(value),), result)


def _record_python(
    recording: Recording, function: Any, args: tuple[Any, ...], template: tuple[Any, ...], result: object
) -> Any:
    """Python's own arithmetic on numbers that come from arrays: what Python would raise becomes an outcome."""
    if function is math.log and len(args) == 2:
        parts = [_logarithm(recording, arg) for arg in args]
        return _record_python(recording, operator.truediv, tuple(parts), as_template(tuple(parts)), result)
    if function is round and template[1:] not in ((), (None,)) and template[1] not in range(MOST_DIGITS):
        raise Unsupported("rule.parameter", "round to a number of digits that changes, is negative or large")
    row = scalars.PYTHON.get(function)
    if row is None:
        raise Unsupported("rule.missing", f"{getattr(function, '__name__', function)} of a number from an array")
    for check in row.checks:
        recording.writer.assume(check, template, unwrap(args))
    if function in scalars.COMPARISONS:
        _assume_compared_alike(recording, args)
    node = recording.writer.node(row.rule, template, {}, result)
    # What Python raises for by looking at the result, such as OverflowError of math.exp.
    if row.after is not None:
        recording.writer.assume(row.after, (node,), (result,))
    # Python's integers do not wrap round, those on the device do: the path holds only while none gets so large.
    if type(result) is int:
        if abs(result) > scalars.LARGEST_EXACT:
            raise Unsupported("rule.parameter", "an integer of 2**53 or more computed from an array's")
        if function in scalars.UNWRAPPED:
            recording.writer.assume(scalars.UNWRAPPED[function], template)
        else:
            recording.writer.assume(scalars.EXACT, (node,))
    return wrap(recording, result, node)


def _assume_compared_alike(recording: Recording, numbers: tuple[Any, ...]) -> None:
    """Python compares a whole number with a float exactly, devices once they have rounded it to a float."""
    if {type(unwrap(number)) for number in numbers} != {int, float}:
        return
    whole = next(number for number in numbers if type(unwrap(number)) is int)
    if isinstance_wrapper(whole):
        recording.writer.assume(scalars.EXACT, (as_template(whole),), (whole,))
    elif abs(whole) > scalars.LARGEST_EXACT:
        raise Unsupported("rule.parameter", "an integer of 2**53 or more is compared with a float")


def scalar_call(
    recording: Recording, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
) -> Any:
    """`function(*args)` for a function of Python's that takes scalars (round, math.sqrt, float, max)."""
    kwargs = kwargs or {}
    result = on_behalf(function, unwrap(args), unwrap(kwargs))
    if not has_wrapper(args) and not has_wrapper(kwargs):
        return result
    return recording.write_down(lambda: record_scalar(recording, function, args, result, kwargs=kwargs), result)


def convert(recording: Recording, kind: type, value: Any) -> Any:
    """`kind(value)` for a recorded value."""
    result = on_behalf(kind, (unwrap(value),))

    def write() -> Any:
        node = value.node()
        if issubclass(type(value), RecordedScalar) and node.host:
            return wrap(
                recording, result, recording.writer.node(scalars.host_rule(kind), (node,), {}, result, host=True)
            )
        if isinstance(result, np.ndarray) or node.dtype is None:
            raise Unsupported("rule.missing", f"{kind.__name__} of an array")
        if node.shape:
            node = recording.writer.node(core.RESHAPE, (node, ()), {}, np.asarray(unwrap(value)).reshape(()))
        if node.dtype.kind == "c":
            raise Unsupported("rule.missing", f"{kind.__name__} of a complex number")
        if np.dtype(kind).kind in "iu" and node.dtype.kind == "f":
            number = np.asarray(unwrap(value)).reshape(())[()]
            if kind is int:
                recording.writer.assume(scalars.EXACT, (node,), (number,))
            else:
                recording.writer.assume(core.FITS, (node, np.dtype(kind)), (number, np.dtype(kind)))
        elif np.dtype(kind).kind in "iu" and kind is not int and node.dtype.kind in "iu":
            info = np.iinfo(kind)
            recording.writer.assume(scalars.IN_RANGE, (node, info.min, info.max), (unwrap(value), info.min, info.max))
        elif kind is int and node.dtype == np.uint64:
            recording.writer.assume(scalars.EXACT, (node,), (int(unwrap(value)),))
        converted = recording.writer.node(core.CONVERT, (node, kind), {}, result)
        return wrap(recording, result, converted)

    return recording.write_down(write, result)


def record_extreme(recording: Recording, function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    """`max` or `min` of numbers of one type, as one operation on the device."""
    result = function(*unwrap(values))

    def write() -> Any:
        rule = scalars.PYTHON[function].rule
        return wrap(recording, result, recording.writer.node(rule, as_template(values), {}, result))

    return recording.write_down(write, result)


def record_sum(recording: Recording, values: list[Any], start: Any, result: Any) -> Any:
    """A sum of Python numbers: Python's own where the host knows them all, else one addition after another."""
    template = as_template(values), as_template(start)
    if all_host(template):
        return wrap(recording, result, recording.writer.node(scalars.host_rule(sum), template, {}, result, host=True))
    total = start
    for value in values:
        total = total + value
    if type(unwrap(total)) is not type(result):
        raise Unsupported("rule.missing", "a sum of mixed numbers")
    return wrap(recording, result, total.node()) if isinstance_wrapper(total) else result


class TypeStandIn(StandIn):
    """A number type whose call would force a value (float, int, numpy.float64).

    As a dtype it is the type; isinstance and issubclass work with it.
    """

    __slots__ = ("dtype",)

    def __init__(self, kind: type) -> None:
        self._plain_ = kind
        self.dtype = np.dtype(kind)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording = current()
        if recording is None:
            return on_behalf(self._plain_, unwrap(args), unwrap(kwargs))
        if kwargs or len(args) != 1:
            return scalar_call(recording, self._plain_, args, kwargs)
        if not isinstance_wrapper(args[0]):
            with recording.foreseen():
                return self._plain_(args[0])
        if issubclass(type(args[0]), RecordedValue):
            return convert(recording, self._plain_, args[0])
        return self._of_object(recording, args[0])

    def _of_object(self, recording: Recording, value: object) -> Any:
        """An object as a number, by its own special method, which is followed."""
        method = getattr(type(value), f"__{self._plain_.__name__}__", None)
        if recording.active and method is not None:
            return self(method(value))
        recording.break_("value.forced", f"{self._plain_.__name__}() of an object", touched=True)
        return self._plain_(unwrap(value))

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self._plain_)

    def __or__(self, other: object) -> Any:
        return self._plain_ | unwrap(other)

    def __ror__(self, other: object) -> Any:
        return unwrap(other) | self._plain_


_NUMBER_TYPES: tuple[type, ...] = (float, int, complex, *(np.dtype(code).type for code in "bBhHiIlLqQefdFD"))

TYPE_STAND_INS: dict[type, TypeStandIn] = {kind: TypeStandIn(kind) for kind in _NUMBER_TYPES}
"""Stand-ins for number types, one each, so that `is` works."""
