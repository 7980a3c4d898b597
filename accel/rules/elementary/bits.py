"""The bits of float64 numbers: exponents, powers of two, leading digits, and polynomials.

XLA may join a product and a sum into one rounding, and adds constants together: `(x + c) - c` is `x`. So nothing here
depends on either. Leading digits are cut off by a mask, which XLA does not look through, and products of such digits
are exact, however they are added. Numbers are rounded by the instruction for that, and a sum whose rounding error is
wanted has no constant among its operands.

XLA:CPU takes subnormal operands for zero, and makes zeros of subnormal results. Integers are not touched by that:
where the smallest numbers matter, they are told apart by their bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accel.rules.lowering import lax, where

INF_BITS = 0x7FF0_0000_0000_0000
"""The bits of infinity. Those of NaN are larger, those of finite numbers smaller."""

SIGN_BIT = -(2**63)
MAGNITUDE = 2**63 - 1
"""Masks: the sign of a number, and all but the sign."""

ONE_BITS = 0x3FF0_0000_0000_0000
MANTISSA = 2**52 - 1
WHOLE_BITS = 0x4330_0000_0000_0000
"""The bits of 2**52, whose mantissa is the whole number that is added to it."""

UNIT = 1.5 * 2.0**52
"""A number that is added to whole ones, so that they stand in its lowest bits, the negative ones too."""

LEADING = -(2**32)
"""A mask of the 21 leading binary digits."""


def as_bits(x: Any) -> Any:
    """float64 to int64."""
    return lax.bitcast_convert_type(x, np.int64)


def as_float(bits: Any) -> Any:
    """int64 to float64."""
    return lax.bitcast_convert_type(bits, np.float64)


def shift_right(bits: Any, by: int) -> Any:
    return lax.shift_right_logical(bits, np.int64(by))


def magnitude(x: Any) -> Any:
    """The bits of |x|."""
    return as_bits(x) & MAGNITUDE


def with_sign_of(x: Any, sign: Any) -> Any:
    """x, not negative, with the sign of the number `sign`."""
    return as_float(as_bits(x) | (as_bits(sign) & SIGN_BIT))


def leading(x: Any) -> Any:
    """x cut off after 21 binary digits: the product of two such numbers is exact."""
    return as_float(as_bits(x) & LEADING)


def split(x: Any, lowest_bits: int) -> tuple[Any, Any]:
    """k and m of x = 2**k * m, both float64, for positive finite x, subnormal ones too; nonsense for others.

    m is at least the float whose bits are `lowest_bits`, and less than twice that, which lies between 0.5 and 1.
    """
    bits = as_bits(x)
    subnormal = bits < 2**52
    # a subnormal number is a whole one times 2**-1074: put behind 2**52, it is normal
    bits = where(subnormal, as_bits(as_float(bits | WHOLE_BITS) - 2.0**52), bits)
    bits = bits + (ONE_BITS - lowest_bits)
    offset = where(subnormal, np.float64(2.0**52 + 1023 + 1074), np.float64(2.0**52 + 1023))
    return as_float(shift_right(bits, 52) | WHOLE_BITS) - offset, as_float((bits & MANTISSA) + lowest_bits)


def power_of_two(n: Any) -> Any:
    """2**n for whole n from -1022 to 1023, float64."""
    return as_float(lax.shift_left(as_bits(n + (UNIT + 1023.0)), np.int64(52)))


def scaled(x: Any, n: Any) -> Any:
    """x * 2**n for x from 0.5 to 2 and whole n from -1080 to 1024, or to 1025 for x < 1; 0 where that is subnormal."""
    bits = as_bits(x) + lax.shift_left(as_bits(n + UNIT), np.int64(52))
    return as_float(where(bits < 2**52, np.int64(0), lax.min(bits, np.int64(INF_BITS))))


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """With the constant coefficient first, by Estrin's method: neighbours are joined, so that few have to wait."""
    terms: list[Any] = list(coefficients)
    while len(terms) > 1:
        pairs = [low + x * high for low, high in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[len(pairs) * 2 :]
        x = x * x
    return terms[0]
