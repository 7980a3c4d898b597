"""Ufuncs: the loop that NumPy chooses, computed by the jax.numpy function of the same name.

NumPy's promotion is not imitated: `ufunc.resolve_dtypes` says which loop runs, operands are cast to its dtypes, and
the result is that loop's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from accel.ir.fingerprint import home_of
from accel.rules import complex_edges, complexes, powers, products, quotients
from accel.rules.columns import Reads, Rounding
from accel.rules.core import cast, every
from accel.rules.derivatives import derived_from
from accel.rules.lowering import Array, function_of, jnp, lax, number, where
from accel.rules.rule import Rule, Unsupported, derived, fill, make_rule, own_rule, qualified_name
from accel.rules.tracing import current

Loop = tuple[np.dtype[Any], ...]


@derived
def rule_for(ufunc: np.ufunc) -> Rule:
    """The rule of a ufunc's plain call; Unsupported where jax.numpy has no such function.

    Another library's ufunc may have the name of one of NumPy's, and compute something else.
    """
    if ufunc.__name__ not in ROWS:  # SciPy's are there once the program, or another process's, has imported it
        fill()
    if ufunc.__name__ not in ROWS or home_of(ufunc) is None:
        raise Unsupported("rule.missing", qualified_name(ufunc))
    row = ROWS[ufunc.__name__]
    return make_rule(
        qualified_name(ufunc),
        functools.partial(_evaluate, ufunc),
        functools.partial(_lower, row.lower),
        elementwise=not ufunc.signature,
        **row.facts,
    )


def loop_of(ufunc: np.ufunc, operands: Sequence[Any], dtype: Any) -> Loop:
    """The dtypes of NumPy's loop for these operands: inputs, then outputs.

    Python numbers promote weakly, as in NumPy 2; `dtype` is the ufunc's own parameter.
    """
    kinds = tuple(_dtype_of(operand) for operand in operands)
    given: dict[str, Any] = (
        {} if dtype is None else {"signature": (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout}
    )
    loop = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout), **given)
    _check_literals(operands, loop)
    return loop


def _dtype_of(operand: object) -> Any:
    kind = type(operand)
    if kind in (int, float, complex):
        return kind
    if isinstance(operand, (np.ndarray, np.generic)):
        return operand.dtype
    return np.asarray(operand).dtype


def _check_literals(operands: Sequence[Any], loop: Loop) -> None:
    """An integer that its loop's dtype cannot hold compares specially in NumPy; XLA would wrap it."""
    for operand, dtype in zip(operands, loop, strict=False):
        if type(operand) is int and dtype.kind in "iu" and not np.iinfo(dtype).min <= operand <= np.iinfo(dtype).max:
            raise Unsupported("rule.parameter", f"the integer {operand} in an operation on {dtype}")


def _evaluate(ufunc: np.ufunc, *operands: object, loop: Loop) -> Any:
    cast_operands = [np.asarray(x).astype(dtype) for x, dtype in zip(operands, loop, strict=False)]
    return ufunc(*cast_operands)


def _lower(function: Callable[..., Any], *operands: object, loop: Loop) -> Any:
    inputs = [x if _is_small_number(x) else cast(x, dtype) for x, dtype in zip(operands, loop, strict=False)]
    outputs = loop[len(operands) :]
    # XLA writes a known exponent out as a few multiplications
    if function is powers.power and type(inputs[1]) is int and inputs[1] >= 0 and loop[1].kind in "iu":
        return lax.integer_pow(inputs[0], inputs[1])
    given = _in_kind(inputs, loop)
    if function in (powers.power, powers.float_power) and isinstance(inputs[1], (int, float)) and loop[1].kind == "c":
        given[1] = float(inputs[1])
    result = function(*given)
    if len(outputs) == 1:
        return cast(result, outputs[0])
    return tuple(cast(part, dtype) for part, dtype in zip(result, outputs, strict=True))


def _is_small_number(x: object) -> bool:
    """Literals stay Python numbers, so that powers and products of them can be simplified."""
    return type(x) in (int, float)


def _in_kind(inputs: list[Any], loop: Loop) -> list[Any]:
    """Literals as Python floats in a loop of floats, else as arrays of the loop's dtype; arrays as they are."""
    return [
        x if not _is_small_number(x) else float(x) if dtype.kind == "f" else cast(x, dtype)
        for x, dtype in zip(inputs, loop, strict=False)
    ]


def _in_jax(name: str) -> Callable[..., Any]:
    """The jax.numpy function of that name."""

    def lower(*operands: object) -> Any:
        return function_of(name)(*operands)

    return lower


def truths_of(ufunc: np.ufunc, loop: Loop) -> tuple[Rule, int] | None:
    """The truth without which NumPy raises: a rule, and the operand that it is about."""
    if ufunc is np.power and loop[1].kind == "i":
        return NOT_NEGATIVE, 1
    return None


NOT_NEGATIVE = own_rule("exponent_not_negative", lambda x: every(x >= 0), lambda x: every(x >= 0))
"""NumPy raises for integers to negative integer powers."""


def _logaddexp2(x: Array | float, y: Array | float) -> Any:
    """Exact where both are the same, as NumPy's is."""
    found = jnp.logaddexp2(x, y)
    x, y = (jnp.broadcast_to(cast(each, found.dtype), found.shape) for each in (x, y))
    return derived_from(where(x == y, x + number(1, x), found), found)


def _modf(x: Array) -> Any:
    """Fraction and whole part; both keep the sign, and the fraction of an infinity is zero."""
    whole = jnp.trunc(x)
    zero = number(0, x)
    return derived_from(jnp.copysign(where(abs(x) == number(np.inf, x), zero, x - whole), x), x), whole


def _ldexp(x: Array, power: Array | int) -> Any:
    """The derivative is that of a product: jax.numpy makes the result of bits, whose derivative at 0 is wrong."""
    found = jnp.ldexp(x, power)
    factor = jnp.ldexp(jnp.ones_like(found), power)
    return derived_from(found, cast(x, found.dtype) * lax.stop_gradient(factor))


def _spacing(x: Array) -> Any:
    """By its own bits: the difference of neighbours is subnormal near 0, and XLA takes those for 0."""
    if x.dtype == np.float16:
        raise Unsupported("rule.parameter", "the spacing of halves")
    if current().has_derivatives:
        # refused where it is derived: JAX has no derivative of it
        return jnp.copysign(jnp.nextafter(abs(x), number(np.inf, x)) - abs(x), x)
    facts, whole = np.finfo(x.dtype), np.dtype(f"i{x.dtype.itemsize}").type
    digits = whole(facts.nmant)
    exponent = lax.bitcast_convert_type(abs(x), whole) >> digits
    subnormal = whole(1) << jnp.clip(exponent - whole(1), whole(0), digits)
    bits = where(exponent > digits, (exponent - digits) << digits, subnormal)
    found = where(abs(x) == facts.max, number(np.inf, x), lax.bitcast_convert_type(bits, x.dtype))
    signed = where(x == number(0, x), found, jnp.copysign(found, x))
    return where(jnp.isfinite(x), signed, number(np.nan, x))


def _reciprocal(x: Array) -> Any:
    if jnp.asarray(x).dtype.kind not in "fc":
        raise Unsupported("rule.parameter", "the reciprocal of whole numbers")
    return complexes.reciprocal(x) if complexes.is_complex(x) else number(1, x) / x


def _magnitude(x: Array) -> Any:
    """The absolute value as an unsigned integer, that of the smallest integer too."""
    return abs(x).astype(np.dtype(f"u{x.dtype.itemsize}"))


def _gcd(x: Array, y: Array) -> Any:
    return jnp.gcd(_magnitude(x), _magnitude(y)).astype(x.dtype)


def _lcm(x: Array, y: Array) -> Any:
    left, right = _magnitude(x), _magnitude(y)
    common = jnp.gcd(left, right)
    none = common == number(0, common)
    # divided first: the product of both may overflow where their common multiple does not
    return (where(none, common, left // where(none, number(1, common), common)) * right).astype(x.dtype)


def _in_degrees(name: str) -> Callable[[Any], Any]:
    """By the factor that NumPy has in that precision; halves are multiplied as float32."""

    def lower(x: Any) -> Any:
        wide = np.promote_types(x.dtype, np.float32)
        return cast(cast(x, wide) * getattr(np, name)(wide.type(1)), x.dtype)

    return lower


def _exp2(x: Any) -> Any:
    """By the power: XLA's own is an exponential of `x * log(2)`, 2.0**33 not a whole number."""
    if x.dtype.kind == "c":
        return complex_edges.exp2(x)
    return jnp.exp2(x) if current().has_derivatives else powers.power(number(2, x), x)


def _nextafter(x: Any, y: Any) -> Any:
    """NumPy gives the first of equal halves, and the second of other equal numbers: the sign of zeros shows it."""
    found = jnp.nextafter(x, y)
    return where(x == y, x, found) if found.dtype == np.float16 else found


def _larger(x: Any, y: Any, loop: Loop) -> Any:
    """Which elements are taken by maximum and fmax; where both are equal, or one is NaN, both are."""
    x, y = (cast(each, loop[0]) for each in (x, y))
    return ~(x < y), ~(y < x)


def _smaller(x: Any, y: Any, loop: Loop) -> Any:
    return _larger(y, x, loop)


def _compared(name: str) -> Callable[[Any, Any], Any]:
    """Signed numbers with unsigned ones as exactly as NumPy does; the dtype that holds both would be a float."""
    ordered = name not in ("equal", "not_equal")

    def lower(x: Any, y: Any) -> Any:
        kinds = [part.dtype.kind if hasattr(part, "dtype") else "" for part in (x, y)]
        if sorted(kinds) != ["i", "u"]:
            return complexes.compared(name)(x, y) if ordered else getattr(jnp, name)(x, y)
        # a negative number stands to any unsigned one as -1 to 0; the others fit into uint64
        signed, as_signed = (x, (-1, 0)) if kinds[0] == "i" else (y, (0, -1))
        found = getattr(jnp, name)(x.astype(np.uint64), y.astype(np.uint64))
        return where(signed < 0, bool(getattr(np, name)(*as_signed)), found)

    return lower


# -- the rows ---------------------------------------------------------------------------------------------------------


class UfuncRow(NamedTuple):
    """Facts about a ufunc. lower: computes it, over jax.numpy. facts: columns of `Rule`."""

    lower: Callable[..., Any]
    facts: Mapping[str, Any]


def _row(name: str, lower: Callable[..., Any], **facts: object) -> dict[str, UfuncRow]:
    return {name: UfuncRow(lower, facts)}


def _rows(names: str, lowered: Callable[[str], Callable[..., Any]] = _in_jax, **facts: object) -> dict[str, UfuncRow]:
    """One for each name. lowered: gives each its lowering."""
    return {name: UfuncRow(lowered(name), facts) for name in names.split()}


EXACT, ROUNDED = Rounding.EXACT, Rounding.ROUNDED

ROWS: dict[str, UfuncRow] = {
    **_rows("add subtract", rounding=ROUNDED, arithmetic=True),
    **_rows("multiply", rounding=ROUNDED, arithmetic=True),
    **_row("divide", complexes.divide, rounding=ROUNDED, arithmetic=True, work=5.0, singular=True),
    **_row("reciprocal", _reciprocal, rounding=ROUNDED, singular=True),
    **_row("square", complexes.square, rounding=ROUNDED),
    **_row("sqrt", complex_edges.with_edges("sqrt"), rounding=ROUNDED, work=5.0, singular=True),
    **_row("power", powers.power, rounding=powers.rounding, work=powers.work, singular=True),
    **_row("float_power", powers.float_power, work=powers.work, singular=True),
    # signs, order, truths
    **_row("absolute", complexes.absolute, rounding=complexes.rounding, arithmetic=True),
    **_rows("negative", rounding=EXACT, arithmetic=True),
    **_rows("copysign fabs positive", rounding=EXACT),
    **_rows("maximum fmax", complexes.ordered, rounding=EXACT, arithmetic=True, reads=Reads((0, 1), _larger)),
    **_rows("minimum fmin", complexes.ordered, rounding=EXACT, arithmetic=True, reads=Reads((0, 1), _smaller)),
    **_rows("less less_equal greater greater_equal", _compared, rounding=EXACT, arithmetic=True, compares=True),
    **_rows("equal not_equal", _compared, rounding=EXACT, arithmetic=True),
    **_rows("isfinite isinf isnan signbit", rounding=EXACT, jumps=False),
    **_rows("logical_and logical_not logical_or logical_xor", rounding=EXACT),
    # what jumps
    **_rows("ceil floor rint trunc", rounding=EXACT, jumps=True),
    **_row("sign", complexes.sign, rounding=complexes.rounding, jumps=True),
    **_row("floor_divide", quotients.floor_divide, rounding=ROUNDED, jumps=True),
    **_row("remainder", quotients.remainder, rounding=ROUNDED, jumps=True),
    **_row("fmod", quotients.fmod, rounding=ROUNDED, jumps=True),
    **_row("divmod", quotients.divmod, rounding=ROUNDED, jumps=True),
    **_row("modf", _modf, rounding=ROUNDED, jumps=True),
    **_rows("heaviside", rounding=ROUNDED, jumps=True),
    # functions of a real or complex variable
    **_rows("exp sin cos tan tanh cosh sinh arcsinh arctan", complex_edges.with_edges, work=20.0),
    **_rows("log log10 log2 arcsin arctanh arccos", complex_edges.with_edges, work=20.0, singular=True),
    **_row("log1p", complex_edges.log1p, work=20.0, singular=True),
    **_row("arccosh", complex_edges.with_edges("arccosh"), singular=True),
    **_rows("arctan2 cbrt logaddexp", work=20.0, singular=True),
    **_row("exp2", _exp2),
    **_row("expm1", complex_edges.expm1),
    **_rows("hypot"),
    **_row("logaddexp2", _logaddexp2, singular=True),
    **_rows("deg2rad radians rad2deg degrees", _in_degrees),
    **_row("conjugate", _in_jax("conj")),
    # bits and whole numbers
    **_rows("bitwise_and bitwise_count bitwise_or bitwise_xor invert left_shift right_shift"),
    **_rows("frexp"),
    **_row("nextafter", _nextafter),
    **_row("ldexp", _ldexp),
    **_row("spacing", _spacing),
    **_row("gcd", _gcd),
    **_row("lcm", _lcm),
    # products
    **_row("matmul", products.matmul, work=20.0),
    **_rows("matvec vecdot vecmat"),
}
"""NumPy's ufuncs by their own name, with all that is known of each. SciPy's are added by its table.

Where no lowering is given, jax.numpy's function of the same name agrees with NumPy on the same dtypes."""
