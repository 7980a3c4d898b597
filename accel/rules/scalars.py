"""Rules for Python's own numbers: on the host as Python computes them, on the device with Python's errors as checks."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.rules.core import cast, namespace_of
from accel.rules.lowering import Array, function_of
from accel.rules.rule import Rule, Unsupported, derived, note_origin, own_rule
from accel.rules.tables import ufuncs

LARGEST_EXACT = 2.0**53 - 1
"""The largest whole number that no other one rounds to: devices check outcomes as floats. 2**53 + 1 rounds to 2**53."""


@derived
def host_rule(function: Callable[..., Any]) -> Rule:
    """The rule by which Python itself evaluates `function` of scalars before launch."""
    return Rule(name="host." + getattr(function, "__name__", repr(function)), function=function, lower=None)


@dataclass(frozen=True)
class PythonRow:
    """One operation of Python's on numbers that come from arrays.

    checks: truths about the operands, without which Python raises. after: truth about the result.
    """

    rule: Rule
    checks: tuple[Rule, ...] = ()
    after: Rule | None = None


def _check(name: str, function: Callable[..., Any]) -> Rule:
    return own_rule(name, function, function)


NOT_ZERO = _check("divisor_not_zero", lambda a, b: b != 0)
FINITE = _check("finite", lambda x: isinstance(x, int) or namespace_of(x).isfinite(x))
EXACT = _check("exact_integer", lambda x: abs(_float(x)) <= LARGEST_EXACT)
NOT_NEGATIVE = _check("not_negative", lambda x: namespace_of(x).logical_not(x < 0))
POSITIVE = _check("positive", lambda x: namespace_of(x).logical_not(x <= 0))
REAL_PART = own_rule("real_part", lambda x: x.real, lambda x: namespace_of(x).real(x))
IMAG_PART = own_rule("imag_part", lambda x: x.imag, lambda x: namespace_of(x).imag(x))
WITHIN_ONE = _check("within_one", lambda x: namespace_of(x).logical_not(abs(x) > 1))


def _are_whole(*numbers: object) -> bool:
    return all(isinstance(x, int) or (hasattr(x, "dtype") and x.dtype.kind in "biu") for x in numbers)


# `2 ** -1` is a float though both are whole, `(-8.0) ** 0.5` is complex, and `0.0 ** -1.0` raises
def _is_power_defined(a: Any, b: Any) -> Any:
    if np.iscomplexobj(a) or np.iscomplexobj(b):
        raise Unsupported("rule.parameter", "a power of Python's complex numbers")
    return b >= 0 if _are_whole(a, b) else (a > 0) | ((a == 0) & (b >= 0))


POWER = _check("power_defined", _is_power_defined)


def _divides_exactly(a: Any, b: Any) -> Any:
    """Python divides whole numbers themselves, a device the floats that are next to them."""
    return not _are_whole(a, b) or (abs(_float(a)) <= LARGEST_EXACT) & (abs(_float(b)) <= LARGEST_EXACT)


EXACT_QUOTIENT = _check("exact_truediv", _divides_exactly)


def _is_in_range(x: Any, low: int, high: int) -> Any:
    """Whether a whole number is, in a dtype that holds the bounds too."""
    if isinstance(x, int):
        return low <= x <= high
    info = np.iinfo(np.uint64 if x.dtype.kind == "u" else np.int64)
    wide = x.astype(info.dtype)
    return (wide >= info.dtype.type(max(low, info.min))) & (wide <= info.dtype.type(min(high, info.max)))


IN_RANGE = _check("in_range", _is_in_range)


def _lowered(name: str) -> Callable[..., Any]:
    return lambda *args: function_of(name)(*args)


def _row(
    function: Callable[..., Any], jnp_name: str, checks: tuple[Rule, ...] = (), after: Rule | None = None
) -> tuple[Callable[..., Any], PythonRow]:
    return _custom(function, _lowered(jnp_name), checks, after)


def _select_max(*args: object) -> Any:
    """max() by the comparisons that Python makes: a later value wins only if it is greater."""
    return _fold(args, lambda best, x: x > best)


def _select_min(*args: object) -> Any:
    return _fold(args, lambda best, x: x < best)


def _fold(args: tuple[Any, ...], wins: Callable[[Any, Any], Any]) -> Any:
    from jax import numpy as jnp

    best = args[0]
    for x in args[1:]:
        best = jnp.where(wins(best, x), x, best)
    return best


def _to_int(x: Array) -> Any:
    return cast(x, np.dtype(np.int64))


def _custom(
    function: Callable[..., Any], lower: Callable[..., Any], checks: tuple[Rule, ...] = (), after: Rule | None = None
) -> tuple[Callable[..., Any], PythonRow]:
    rule = Rule(name="python." + function.__name__, function=function, lower=lower)
    note_origin(rule, _python_rule, function)
    return function, PythonRow(rule, checks, after)


def _python_rule(function: Callable[..., Any]) -> Rule:
    return PYTHON[function].rule


def _is_rounded_alike(x: Any, digits: int | None = None) -> Any:
    """Whether `round` gives on the device what Python gives, which rounds the decimal digits: not beside a tie."""
    if digits is None or _are_whole(x):
        return abs(_float(x)) <= LARGEST_EXACT
    scaled = abs(_float(x)) * 10.0**digits
    from_tie = abs(scaled - namespace_of(x).floor(scaled) - 0.5)
    return (scaled < 2.0**50) & (from_tie > scaled * 1e-15)


ROUNDS = _check("rounds_alike", _is_rounded_alike)


def _round(x: Any, digits: int | None = None) -> Any:
    """Half to even. The quotient of two whole numbers is the float nearest to the decimal number."""
    if _are_whole(x):
        return x
    rint = _lowered("rint")
    return _to_int(rint(x)) if digits is None else rint(x * 10.0**digits) / 10.0**digits


def _hypot(*args: Any) -> Any:
    from jax import numpy as jnp

    # math.hypot takes any number of arguments, jnp.hypot two
    together: Any = jnp.hypot
    return functools.reduce(together, args[1:], args[0]) if len(args) > 1 else abs(args[0])


def _power(a: Array | float, b: Array | float) -> Any:
    dtype = np.dtype(np.int64 if _are_whole(a, b) else float)
    return ufuncs.ROWS["power"].lower(cast(a, dtype), cast(b, dtype))


def _float(x: Array | np.generic | float) -> Any:
    """A number that does not wrap."""
    return x if isinstance(x, (int, float)) else x.astype(float)


@derived
def _within(function: Callable[[Any, Any], Any]) -> Rule:
    return _check("exact_" + function.__name__, lambda a, b: abs(function(_float(a), _float(b))) <= LARGEST_EXACT)


def _bits(name: str) -> Callable[..., Any]:
    """An operation on the bits of whole numbers, which Python has any number of, and devices 64."""
    lowered = _lowered(name)

    def lower(*args: Any) -> Any:
        info = np.iinfo(np.int64)
        if any(isinstance(x, int) and not info.min <= x <= info.max for x in args):
            raise Unsupported("rule.parameter", "the bits of an integer of 2**63 or more")
        return lowered(*args)

    return lower


def _whole_bits(name: str) -> Callable[..., Any]:
    """An operation on bits whose truths are 0 and 1, as Python gives an integer."""
    lower = _bits(name)
    return lambda *args: lower(*(x if type(x) is int else _to_int(x) for x in args))


SHIFTS = _check("shift_not_negative", lambda a, b: b >= 0)
EXACT_SHIFT = _check("exact_lshift", lambda a, b: abs(_float(a)) * 2.0 ** _float(b) <= LARGEST_EXACT)

UNWRAPPED = {
    **{function: _within(function) for function in (operator.add, operator.sub, operator.mul, operator.pow)},
    operator.lshift: EXACT_SHIFT,
}
"""Checks for what wraps on the device, by the operands: their result may look small."""

COMPARISONS = frozenset({operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge})

PYTHON: dict[Callable[..., Any], PythonRow] = dict(
    [
        _row(operator.add, "add"),
        _row(operator.sub, "subtract"),
        _row(operator.mul, "multiply"),
        _custom(operator.truediv, ufuncs.ROWS["divide"].lower, (NOT_ZERO, EXACT_QUOTIENT)),
        _custom(operator.floordiv, ufuncs.ROWS["floor_divide"].lower, (NOT_ZERO,)),
        _custom(operator.mod, ufuncs.ROWS["remainder"].lower, (NOT_ZERO,)),
        _custom(operator.and_, _bits("bitwise_and")),
        _custom(operator.or_, _bits("bitwise_or")),
        _custom(operator.xor, _bits("bitwise_xor")),
        _custom(operator.lshift, _whole_bits("left_shift"), (SHIFTS,)),
        _custom(operator.rshift, _whole_bits("right_shift"), (SHIFTS,)),
        _custom(operator.invert, _whole_bits("bitwise_not")),
        _row(operator.neg, "negative"),
        _row(operator.pos, "positive"),
        _row(abs, "abs"),
        _row(operator.lt, "less"),
        _row(operator.le, "less_equal"),
        _row(operator.eq, "equal"),
        _row(operator.ne, "not_equal"),
        _row(operator.gt, "greater"),
        _row(operator.ge, "greater_equal"),
        _custom(operator.pow, _power, (POWER,), FINITE),
        _custom(max, _select_max),
        _custom(min, _select_min),
        _custom(int, _to_int, (EXACT,)),
        _custom(float, lambda x: cast(x, np.dtype(float))),
        _custom(round, _round, (ROUNDS,)),
        _row(math.sqrt, "sqrt", (NOT_NEGATIVE,)),
        _row(math.exp, "exp", after=FINITE),
        _row(math.log, "log", (POSITIVE,)),
        _row(math.log10, "log10", (POSITIVE,)),
        _row(math.log2, "log2", (POSITIVE,)),
        _row(math.expm1, "expm1", after=FINITE),
        _row(math.sin, "sin", (FINITE,)),
        _row(math.cos, "cos", (FINITE,)),
        _row(math.tan, "tan", (FINITE,)),
        _row(math.asin, "arcsin", (WITHIN_ONE,)),
        _row(math.acos, "arccos", (WITHIN_ONE,)),
        _row(math.atan, "arctan"),
        _row(math.atan2, "arctan2"),
        _row(math.sinh, "sinh", after=FINITE),
        _row(math.cosh, "cosh", after=FINITE),
        _row(math.tanh, "tanh"),
        _custom(math.hypot, _hypot),
        _row(math.fabs, "abs"),
        _row(math.radians, "radians"),
        _row(math.degrees, "degrees"),
        _row(math.isnan, "isnan"),
        _row(math.isinf, "isinf"),
        _row(math.isfinite, "isfinite"),
        _row(math.copysign, "copysign"),
        _custom(math.floor, lambda x: _to_int(_lowered("floor")(x)), (EXACT,)),
        _custom(math.ceil, lambda x: _to_int(_lowered("ceil")(x)), (EXACT,)),
        _custom(math.trunc, lambda x: _to_int(_lowered("trunc")(x)), (EXACT,)),
    ]
)
"""Python's functions of numbers that come from arrays, by identity."""

HOST_FUNCTIONS: frozenset[Callable[..., Any]] = frozenset(
    {*PYTHON, round, divmod, pow, complex, math.pow, math.fmod, math.gcd, math.isclose}
)
"""Python's functions that are recorded when called with recorded scalars."""
