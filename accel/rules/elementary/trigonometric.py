"""Sines, cosines and tangents of float64 arrays, by fdlibm's polynomials and reduction (Sun Microsystems, 1993).

x = n * pi/2 + r with whole n and |r| of at most pi/4, where pi/2 is the sum of three numbers of 33 binary digits and a
fourth (e_rem_pio2.c). Their products with n are exact up to 2**20; where an array has a larger number, jax.numpy's
function computes all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel.rules.elementary.bits import polynomial
from accel.rules.lowering import extreme, jnp, lax, where

LARGEST = 2.0**20
"""The largest number that is reduced here: n is at most two thirds of it."""

INVERSE = 6.36619772367581382433e-01
"""2 / pi."""

PARTS = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624871116645580e-21)
REST = 8.47842766036889956997e-32
"""pi/2: 33 digits each, and what follows them."""

SIN = (
    *(-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04),
    *(2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10),
)
"""(sin(r) - r) / r**3 as a polynomial of r * r (k_sin.c)."""

COS = (
    *(4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05),
    *(-2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11),
)
"""(cos(r) - 1 + r * r / 2) / r**4 as a polynomial of r * r (k_cos.c)."""


def sin(x: Any) -> Any:
    """The sine, within 1 unit in the last place. NaN at infinity."""
    return _where_small(x, jnp.sin, lambda x: _turned(x, 0))


def cos(x: Any) -> Any:
    """The cosine, within 1 unit in the last place. NaN at infinity."""
    return _where_small(x, jnp.cos, lambda x: _turned(x, 1))


def tan(x: Any) -> Any:
    """The tangent, within 3 units in the last place. NaN at infinity."""
    return _where_small(x, jnp.tan, _tangent)


def _where_small(x: Any, otherwise: Callable[[Any], Any], function: Callable[[Any], Any]) -> Any:
    return lax.cond(extreme(abs(x), largest=True) <= LARGEST, function, otherwise, x)


def _reduced(x: Any) -> tuple[Any, Any, Any]:
    """n, as int32, and r as the sum of two numbers."""
    n = lax.round(x * INVERSE, lax.RoundingMethod.TO_NEAREST_EVEN)
    high, low = x - n * PARTS[0], np.float64(0.0)
    for part in PARTS[1:]:
        high, lost = _difference(high, n * part)
        low = low + lost
    low = low - n * REST
    r = high + low
    return lax.convert_element_type(n, np.int32), r, (high - r) + low


def _difference(a: Any, b: Any) -> tuple[Any, Any]:
    """a - b, and what its rounding loses (D. E. Knuth's sum of two)."""
    found = a - b
    taken = found - a
    return found, (a - (found - taken)) - (b + taken)


def _kernels(r: Any, more: Any) -> tuple[Any, Any]:
    """sin(r + more) and cos(r + more)."""
    z = r * r
    v = z * r
    sine = r - ((z * (0.5 * more - v * polynomial(z, SIN[1:])) - more) - v * SIN[0])
    half = 0.5 * z
    bent = z * z * polynomial(z, COS) - r * more
    # 1 - half, with what its rounding loses: `taken` has so few digits that 1 less it is exact
    taken = where(half < 0.045, np.float64(0.0), where(half < 0.2, np.float64(0.125), np.float64(0.25)))
    cosine = (1.0 - taken) - ((half - taken) - bent)
    return sine, cosine


def _turned(x: Any, quarters: int) -> Any:
    """sin(x + quarters * pi/2)."""
    n, r, more = _reduced(x)
    sine, cosine = _kernels(r, more)
    n = n + np.int32(quarters)
    found = where((n & 1) == 0, sine, cosine)
    found = where((n & 2) == 0, found, -found)
    return where(x == 0.0, x, found) if quarters == 0 else found


def _tangent(x: Any) -> Any:
    n, r, more = _reduced(x)
    sine, cosine = _kernels(r, more)
    even = (n & 1) == 0
    found = where(even, sine, -cosine) / where(even, cosine, sine)
    return where(x == 0.0, x, found)
