"""Building blocks of elementary functions: polynomials, unevaluated sums of two numbers, and powers of two.

A pair `(high, low)` is the unrounded sum of two numbers. Rounding errors of sums and products are numbers themselves
(T. J. Dekker, "A floating-point technique for extending the available precision", 1971; J.-M. Muller et al., "Handbook
of Floating-Point Arithmetic", 2018, chapter 4). LLVM keeps the written order of operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accel.compiler.kernels.ir import Value

Pair = tuple[Value, Value]

ONE_BITS = 0x3FF0_0000_0000_0000
MANTISSA = 2**52 - 1
SIGN_BIT = -(2**63)
WHOLE_BITS = 0x4330_0000_0000_0000
"""Bits of 2**52. A whole number added to 2**52 appears in the mantissa of the sum."""

HALF_BITS = 0x3FE0_0000_0000_0000
ROOT_BITS = 0x3FE6_A09E_0000_0000
"""Bits of 0.5, and of a number just below sqrt(0.5)."""

SHIFT = 1.5 * 2.0**52
"""Summand that rounds a number below 2**51 to a whole number, which then stands in the lowest bits."""


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """Evaluate a polynomial, constant coefficient first, by Estrin's method: few products wait for others."""
    terms: list[Any] = list(coefficients)
    while len(terms) > 2:
        pairs = [x.fma(high, low) for low, high in zip(terms[::2], terms[1::2], strict=False)]
        terms, x = pairs + terms[len(pairs) * 2 :], x * x
    return x.fma(terms[1], terms[0])


def literal(like: Value, number: float) -> Value:
    return like.emitter.literal(number, like.dtype)


def choose(truth: Value, yes: float, no: float, like: Value) -> Value:
    """Select one of two numbers, of the dtype of `like`."""
    return truth.where(literal(like, yes), no)


def at_most(x: Value, limit: float) -> Value:
    """Return the minimum of x and `limit`; NaN stays."""
    return x.compare("gt", limit).where(limit, x)


def at_least(x: Value, limit: float) -> Value:
    """Return the maximum of x and `limit`; NaN stays."""
    return x.compare("lt", limit).where(limit, x)


def ordered_sum(large: Value, small: Value) -> Pair:
    """Return the exact sum, if the first number is not smaller in magnitude, or is zero."""
    found = large + small
    return found, small - (found - large)


def exact_sum(x: Value, y: Value | float) -> Pair:
    """Return the exact sum (D. E. Knuth)."""
    found = x + y
    added = found - x
    return found, (x - (found - added)) + (y - added)


def exact_product(x: Value, y: Value | float) -> Pair:
    found = x * y
    return found, x.fma(y, -found)


def quotient(over: Pair, under: Pair) -> Pair:
    """Return the quotient of two pairs, precise to about 100 bits. Needs one division."""
    inverse = 1.0 / under[0]
    found = over[0] * inverse
    rest = (-found).fma(under[0], over[0]) + (-found).fma(under[1], over[1])
    return found, rest * inverse


def root(high: Value, low: Value) -> Pair:
    """Return the square root of a pair, precise to about 100 bits; 0 for zeros."""
    found = high.sqrt()
    return found, ((-found).fma(found, high) + low) / at_least(found + found, 2.0**-1000)


def split(x: Value, lowest_bits: int = ROOT_BITS) -> Pair:
    """Split positive finite x = 2**k * m into the floats k and m; other x give nonsense.

    m is at least the number whose bits are `lowest_bits`, which lies between 0.5 and 1, and less than twice that.
    """
    is_subnormal = x.compare("lt", 2.0**-1022)
    bits = is_subnormal.where(x * 2.0**54, x).bits("uint64")
    return split_normal(bits, lowest_bits, choose(is_subnormal, 2.0**52 + 1023 + 54, 2.0**52 + 1023, x))


def split_normal(bits: Value, lowest_bits: int = ROOT_BITS, offset: Value | float = 2.0**52 + 1023) -> Pair:
    """Split a normal number, given by its unsigned bits, as `split` does."""
    bits = bits + (ONE_BITS - lowest_bits)
    k = ((bits >> 52) | WHOLE_BITS).bits("float64") - offset
    return k, ((bits & MANTISSA) + lowest_bits).bits("float64")


def power_of_two(shifted: Value, less: int = 0) -> Value:
    """Return 2**(n - less), a normal number, from `n + SHIFT`."""
    return ((shifted.bits() << 52) + (ONE_BITS - (less << 52))).bits("float64")


def scaled(x: Value, shifted: Value) -> Value:
    """Return x * 2**n from `n + SHIFT`, for n from -1100 to 1100. A subnormal result is rounded once."""
    bits = shifted.bits()
    half = (bits << 51) & ~MANTISSA
    return x * (half + ONE_BITS).bits("float64") * ((bits << 52) - half + ONE_BITS).bits("float64")


def with_sign(x: Value, negative: Value) -> Value:
    """Return x, negated in lanes in which the highest bit of the integer `negative` is set."""
    return (x.bits() ^ (negative & SIGN_BIT)).bits("float64")
