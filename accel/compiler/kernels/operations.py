"""Elementwise operations: the cost and the instructions of each. Names and meaning are those of `jax.lax`.

Integer division and remainder, shifts and conversions to integers are defined, as in XLA, where C's are undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from accel.compiler.kernels.elementary import FUNCTIONS
from accel.compiler.kernels.graph import KernelNode
from accel.compiler.kernels.ir import Value


class Operation(NamedTuple):
    """One operation. cost: in units of an addition's time. emit: writes the instructions, given node and operand
    values."""

    cost: int
    emit: Callable[[KernelNode, Sequence[Value]], Value]


def _plain(emit: Callable[..., Value]) -> Callable[[KernelNode, Sequence[Value]], Value]:
    return lambda node, given: emit(*given)


# -- arithmetic --------------------------------------------------------------------------------------------------------


def _divide(x: Value, y: Value) -> Value:
    if x.dtype.kind == "f":
        return x / y
    safe = _safe_divisor(x, y)
    found = x.emitter.binary("sdiv" if x.dtype.kind == "i" else "udiv", x, safe)
    found = y.compare("eq", 0).where(-1 if x.dtype.kind == "i" else int(np.iinfo(x.dtype).max), found)
    return _overflows(x, y).where(x, found) if x.dtype.kind == "i" else found


def _remainder(x: Value, y: Value) -> Value:
    if x.dtype.kind == "f":
        return x.emitter.binary("frem", x, y)
    found = x.emitter.binary("srem" if x.dtype.kind == "i" else "urem", x, _safe_divisor(x, y))
    return y.compare("eq", 0).where(x, found)


def _overflows(x: Value, y: Value) -> Value:
    return x.compare("eq", int(np.iinfo(x.dtype).min)) & y.compare("eq", -1)


def _safe_divisor(x: Value, y: Value) -> Value:
    """Return `y`, or 1 where the division would trap."""
    stops = y.compare("eq", 0)
    if x.dtype.kind == "i":
        stops = stops | _overflows(x, y)
    return stops.where(1, y)


def _extreme(how: str) -> Callable[[Value, Value], Value]:
    def emit(x: Value, y: Value) -> Value:
        if x.dtype.kind == "b":
            return x | y if how == "gt" else x & y
        chosen = x.compare(how, y)
        return (chosen | x.is_nan()).where(x, y) if x.dtype.kind == "f" else chosen.where(x, y)

    return emit


def _absolute(x: Value) -> Value:
    if x.dtype.kind == "f":
        return x.abs()
    return x.compare("lt", 0).where(-x, x) if x.dtype.kind == "i" else x


def _sign(x: Value) -> Value:
    if x.dtype.kind == "f":
        return x.abs().compare("gt", 0).where(x._like(1).copysign(x), x)
    above = x.compare("gt", 0).where(1, x._like(0))
    return x.compare("lt", 0).where(-1, above) if x.dtype.kind == "i" else above


def _integer_pow(node: KernelNode, given: Sequence[Value]) -> Value:
    """Compute an integer power by repeated squaring, as JAX does."""
    (x,), power = given, int(node.about)
    if power == 0:
        return x._like(1)
    found, square, rest = None, x, abs(power)
    while rest:
        if rest & 1:
            found = square if found is None else found * square
        rest >>= 1
        if rest:
            square = square * square
    assert found is not None
    return 1.0 / found if power < 0 else found


def _round(node: KernelNode, given: Sequence[Value]) -> Value:
    return given[0].rint() if int(node.about) == 1 else given[0].emitter.intrinsic("round", given[0])


# -- logic -------------------------------------------------------------------------------------------------------------


def _comparison(how: str) -> Operation:
    def emit(x: Value, y: Value) -> Value:
        if x.dtype.kind == "b":
            # false is less than true
            x, y = x.cast("zext", np.uint8), y.cast("zext", np.uint8)
        return x.compare(how, y)

    return Operation(1, _plain(emit))


def _select(node: KernelNode, given: Sequence[Value]) -> Value:
    which, *cases = given
    if which.dtype.kind == "b":
        return which.where(cases[-1], cases[0])
    found = cases[-1]
    for number in reversed(range(len(cases) - 1)):
        found = which.compare("le", number).where(cases[number], found)
    return found


def _shift(instruction: str) -> Callable[[Value, Value], Value]:
    def emit(x: Value, count: Value) -> Value:
        bits = x.dtype.itemsize * 8
        inside = count.bits(f"u{x.dtype.itemsize}").compare("lt", bits)
        shifted = x.emitter.binary(instruction, x, inside.where(count, 0))
        beyond: Value | float = x.emitter.binary("ashr", x, x._like(bits - 1)) if instruction == "ashr" else 0
        return inside.where(shifted, beyond)

    return emit


# -- conversions -------------------------------------------------------------------------------------------------------


def _convert(node: KernelNode, given: Sequence[Value]) -> Value:
    (x,), dtype = given, node.dtype
    if x.dtype == dtype:
        return x
    if dtype.kind == "b":
        return x.compare("ne", 0)
    if dtype.kind == "f":
        if x.dtype.kind == "f":
            return x.cast("fpext" if dtype.itemsize > x.dtype.itemsize else "fptrunc", dtype)
        return x.cast("sitofp" if x.dtype.kind == "i" else "uitofp", dtype)
    return _saturated(x, dtype) if x.dtype.kind == "f" else as_integer(x, dtype)


def _saturated(x: Value, dtype: np.dtype[Any]) -> Value:
    """Convert a float to the nearest integer of a width towards 0; NaN to 0.

    LLVM's own saturating conversion leaves vectors: a bilinear interpolation took a tenth longer.
    """
    limits = np.iinfo(dtype)
    is_small, is_large = x.compare("lt", float(limits.min)), x.compare("ge", float(limits.max + 1))
    is_inside = ~(is_small | is_large | x.is_nan())
    found = is_inside.where(x, 0).cast("fptosi" if dtype.kind == "i" else "fptoui", dtype)
    return is_small.where(limits.min, is_large.where(limits.max, found))


def as_integer(x: Value, dtype: np.dtype[Any]) -> Value:
    """Convert an integer or a truth to an integer of another width."""
    if dtype.itemsize < x.dtype.itemsize:
        return x.cast("trunc", dtype)
    if dtype.itemsize == x.dtype.itemsize and x.dtype.kind != "b":
        return x.bits(dtype)
    return x.cast("sext" if x.dtype.kind == "i" else "zext", dtype)


OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        "add": Operation(1, lambda node, given: given[0] | given[1] if node.dtype.kind == "b" else given[0] + given[1]),
        "sub": Operation(1, _plain(lambda x, y: x - y)),
        "mul": Operation(1, lambda node, given: given[0] & given[1] if node.dtype.kind == "b" else given[0] * given[1]),
        "div": Operation(4, _plain(_divide)),
        "rem": Operation(20, _plain(_remainder)),
        "neg": Operation(1, _plain(lambda x: -x)),
        "abs": Operation(1, _plain(_absolute)),
        "sign": Operation(2, _plain(_sign)),
        "max": Operation(2, _plain(_extreme("gt"))),
        "min": Operation(2, _plain(_extreme("lt"))),
        "sqrt": Operation(5, _plain(lambda x: x.sqrt())),
        "rsqrt": Operation(9, _plain(lambda x: 1.0 / x.sqrt())),
        "square": Operation(1, _plain(lambda x: x * x)),
        "integer_pow": Operation(3, _integer_pow),
        "floor": Operation(1, _plain(lambda x: x.floor())),
        "ceil": Operation(1, _plain(lambda x: x.emitter.intrinsic("ceil", x))),
        "round": Operation(1, _round),
        "is_finite": Operation(1, _plain(lambda x: x.abs().compare("lt", np.inf))),
        **{how: _comparison(how) for how in ("eq", "ne", "lt", "le", "gt", "ge")},
        "and": Operation(1, _plain(lambda x, y: x & y)),
        "or": Operation(1, _plain(lambda x, y: x | y)),
        "xor": Operation(1, _plain(lambda x, y: x ^ y)),
        "not": Operation(1, _plain(lambda x: ~x)),
        "select_n": Operation(1, _select),
        "shift_left": Operation(2, _plain(_shift("shl"))),
        "shift_right_arithmetic": Operation(2, _plain(_shift("ashr"))),
        "shift_right_logical": Operation(2, _plain(_shift("lshr"))),
        "population_count": Operation(2, _plain(lambda x: x.emitter.intrinsic("ctpop", x))),
        "convert_element_type": Operation(1, _convert),
        "copy": Operation(0, _plain(lambda x: x)),
        "bitcast_convert_type": Operation(0, lambda node, given: given[0].bits(node.dtype)),
        "clamp": Operation(4, _plain(lambda low, x, high: _extreme("lt")(_extreme("gt")(x, low), high))),
        **{name: Operation(30, _plain(emit)) for name, emit in FUNCTIONS.items()},
    }
)
"""The elementwise operations, by name."""
