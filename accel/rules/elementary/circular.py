"""Inverse trigonometric functions of float64 arrays, by the polynomials of fdlibm (Sun Microsystems, 1993)."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.rules.elementary.bits import as_bits, polynomial, with_sign_of
from accel.rules.lowering import jnp, lax, where

HALF_PI, HALF_PI_LOW = 1.57079632679489655800e00, 6.12323399573676603587e-17
"""Their sum is half of pi."""

LARGEST = np.finfo(float).max

ARCTAN = (
    *(3.33333333333329318027e-01, -1.99999999998764832476e-01, 1.42857142725034663711e-01, -1.11111104054623557880e-01),
    *(9.09088713343650656196e-02, -7.69187620504482999495e-02, 6.66107313738753120669e-02, -5.83357013379057348645e-02),
    *(4.97687799461593236017e-02, -3.65315727442169155270e-02, 1.62858201153657823623e-02),
)
"""(r - arctan(r)) / r**3 as a polynomial of r * r, for r up to 7/16 (s_atan.c)."""

ARCTAN_HALF, ARCTAN_HALF_LOW = 4.63647609000806093515e-01, 2.26987774529616870924e-17
ARCTAN_ONE, ARCTAN_ONE_LOW = 7.85398163397448278999e-01, 3.06161699786838301793e-17

ARCSIN_ABOVE = (
    *(1.66666666666666657415e-01, -3.25565818622400915405e-01, 2.01212532134862925881e-01),
    *(-4.00555345006794114027e-02, 7.91534994289814532176e-04, 3.47933107596021167570e-05),
)
ARCSIN_BELOW = (
    *(1.0, -2.40339491173441421878e00, 2.02094576023350569471e00),
    *(-6.88283971605453293030e-01, 7.70381505559019352791e-02),
)
"""(arcsin(x) - x) / x**3 as a quotient of polynomials of x * x, for x up to 0.5 (e_asin.c)."""


def _arctan_of_ratio(small: Any, large: Any) -> Any:
    """arctan(small / large), for numbers of which the first is not negative and not the larger one.

    arctan(t) is arctan(c) + arctan((t - c) / (1 + t * c)), for c of 0, 1/2 or 1.
    """
    near_half, near_one = small >= (7 / 16) * large, small >= (11 / 16) * large

    def choose(none: float, half: float, one: float) -> Any:
        return where(near_one, np.float64(one), where(near_half, np.float64(half), np.float64(none)))

    c = choose(0.0, 0.5, 1.0)
    r = (small - c * large) / (large + c * small)
    z = r * r
    bent = r * z * polynomial(z, ARCTAN)
    start, low = choose(0.0, ARCTAN_HALF, ARCTAN_ONE), choose(0.0, ARCTAN_HALF_LOW, ARCTAN_ONE_LOW)
    return start - ((bent - low) - r)


def arctan(x: Any) -> Any:
    """The inverse tangent, within 2 units in the last place."""
    size, one = abs(x), np.float64(1.0)
    found = _arctan_of_ratio(lax.min(size, one), lax.min(lax.max(size, one), LARGEST))
    return with_sign_of(_complement(size > 1.0, found), x)


def _complement(wanted: Any, angle: Any) -> Any:
    """pi/2 - angle where that is wanted."""
    return where(wanted, HALF_PI - (angle - HALF_PI_LOW), angle)


def arctan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y), within 2 units in the last place. Subnormal coordinates count as zero."""
    y, x = jnp.broadcast_arrays(y, x)
    height, width = abs(y), abs(x)
    large, small = lax.max(height, width), lax.min(height, width)
    zero, one = np.float64(0.0), np.float64(1.0)
    # so that their sum is finite, and their difference not subnormal
    factor = where(large > 1e300, np.float64(0.25), where(large < 1e-290, np.float64(2.0**60), one))
    infinite = large > LARGEST
    small = where(infinite, where(small > LARGEST, one, zero), small * factor)
    large = where(infinite | (large == 0.0), one, large * factor)
    angle = _complement(height > width, _arctan_of_ratio(small, large))
    angle = where(as_bits(x) < 0, 2.0 * HALF_PI - (angle - 2.0 * HALF_PI_LOW), angle)
    return where((x != x) | (y != y), x + y, with_sign_of(angle, y))


def arcsin(x: Any) -> Any:
    """The inverse sine, within 2 units in the last place; NaN outside -1 to 1."""
    root, bent, inner = _arcsin_parts(x)
    outer = 0.5 * HALF_PI - ((2.0 * bent - HALF_PI_LOW) - (0.5 * HALF_PI - 2.0 * root))
    return with_sign_of(where(inner, root + bent, outer), x)


def arccos(x: Any) -> Any:
    """The inverse cosine, within 2 units in the last place; NaN outside -1 to 1."""
    root, bent, inner = _arcsin_parts(x)
    negative = x < 0.0
    # pi/2 less the inverse sine; or twice that of the half angle, or pi less that
    middle = HALF_PI - (x - (HALF_PI_LOW - where(negative, -bent, bent)))
    outer = where(negative, 2.0 * (HALF_PI - (root + (bent - HALF_PI_LOW))), 2.0 * (root + bent))
    return where(inner, middle, outer)


def _arcsin_parts(x: Any) -> tuple[Any, Any, Any]:
    """s, arcsin(s) - s, and whether |x| < 0.5: s is |x| there, else the root of (1 - |x|) / 2."""
    size = abs(x)
    inner = size < 0.5
    z = where(inner, size * size, (1.0 - size) * 0.5)
    root = where(inner, size, lax.sqrt(z))
    return root, root * (z * polynomial(z, ARCSIN_ABOVE) / polynomial(z, ARCSIN_BELOW)), inner
