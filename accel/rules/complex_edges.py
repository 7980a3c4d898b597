"""Functions of a complex variable where a part is zero, infinite or NaN: as NumPy's, which are the C library's.

C99's annex G says what each part is there. XLA gives NaN for parts that are known, and zeros of another sign.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel.rules.derivatives import derived_from
from accel.rules.lowering import function_of, jnp, lax, number, where

Edge = Callable[[Any, Any, Any, Any], tuple[Any, Any]]
"""From the parts a, b of the argument and p, q of XLA's result, the parts of NumPy's result."""


def with_edges(name: str) -> Callable[[Any], Any]:
    """The function of that name, with NumPy's parts at the edges where its argument is complex."""
    edge, (real, imag) = _EDGES[name], _SIDES.get(name, (0, 0))

    def lower(x: Any) -> Any:
        found = function_of(name)(x)
        if found.dtype.kind != "c":
            return found
        x = jnp.asarray(x)
        p, q = _signed(found.real, x.real, real), _signed(found.imag, x.imag, imag)
        return derived_from(lax.complex(*edge(x.real, x.imag, p, q)), found)

    return lower


def exp2(x: Any) -> Any:
    """NumPy's way: the exponential of both parts times log(2)."""
    scale = number(np.log(2.0), x.real)
    return with_edges("exp")(lax.complex(x.real * scale, x.imag * scale))


def expm1(x: Any) -> Any:
    """NumPy's way, also where the exponential is close to 1."""
    if x.dtype.kind != "c":
        return jnp.expm1(x)
    a, b = x.real, x.imag
    half = jnp.sin(b / number(2, b))
    real = jnp.expm1(a) * jnp.cos(b) - number(2, a) * half * half
    return lax.complex(real, jnp.exp(a) * jnp.sin(b))


def log1p(x: Any) -> Any:
    """NumPy's way, near 0 too."""
    if x.dtype.kind != "c":
        return jnp.log1p(x)
    real = x.real + number(1, x.real)
    found = lax.complex(jnp.log(jnp.hypot(real, x.imag)), jnp.arctan2(x.imag, real))
    return derived_from(found, jnp.log1p(x))


def _signed(part: Any, like: Any, way: int) -> Any:
    return jnp.copysign(part, number(way, like) * like) if way else part


def _is_lost(a: Any, b: Any) -> Any:
    """The result where a is infinite, and the angle b is no number."""
    return jnp.isinf(a) & ~jnp.isfinite(b)


def _exp(a: Any, b: Any, p: Any, q: Any) -> tuple[Any, Any]:
    lost, zero = _is_lost(a, b), number(0, a)
    real = where(lost, where(a > zero, a, zero), p)
    return real, where(lost & (a < zero), jnp.copysign(zero, b), where(b == zero, b, q))


def _scaled(name: str, a: Any, by: Any) -> Any:
    """sinh or cosh of a real number times one of at most 1; it overflows only where the product does."""
    function, half = function_of(name), jnp.exp(abs(a) / number(2, a))
    sign = jnp.sign(a) if name == "sinh" else number(1, a)
    return where(abs(a) > number(80, a), half / number(2, a) * by * half * sign, function(a) * by)


def _sinh(a: Any, b: Any, p: Any, q: Any) -> tuple[Any, Any]:
    """By real functions: XLA's complex one overflows too early."""
    at_zero = (a == number(0, a)) & ~jnp.isfinite(b)
    real = where(at_zero, a, where(_is_lost(a, b), number(np.inf, a), _scaled("sinh", a, jnp.cos(b))))
    return real, where(b == number(0, b), b, _scaled("cosh", a, jnp.sin(b)))


def _cosh(a: Any, b: Any, p: Any, q: Any) -> tuple[Any, Any]:
    zero, one = number(0, a), number(1, a)
    on_axis = where(jnp.isnan(a), b, b * jnp.copysign(one, a))
    imag = where((a == zero) & ~jnp.isfinite(b), zero, _scaled("sinh", a, jnp.sin(b)))
    real = where(_is_lost(a, b), number(np.inf, a), _scaled("cosh", a, jnp.cos(b)))
    return real, where(b == zero, on_axis, imag)


def _tanh(a: Any, b: Any, p: Any, q: Any) -> tuple[Any, Any]:
    """By real functions: near its poles, XLA's complex one has no digit right."""
    zero, far = number(0, a), abs(a) > number(20, a)
    near, sine, cosine = where(far, zero, a), jnp.sin(b), jnp.cos(b)
    rise = jnp.sinh(near)
    below = rise * rise + cosine * cosine
    real = where(far, where(jnp.isfinite(b) | jnp.isinf(a), jnp.sign(a), b - b), rise * jnp.cosh(near) / below)
    real = where((a == zero) & ~jnp.isfinite(b), a, real)
    imag = sine * cosine * where(far, number(4, a) * jnp.exp(number(-2, a) * abs(a)), number(1, a) / below)
    return real, where(b == zero, b, where(_is_lost(a, b), jnp.copysign(zero, b), imag))


def _sin(a: Any, b: Any, p: Any, q: Any) -> tuple[Any, Any]:
    real, imag = _turned(_sinh)(a, b, p, q)
    return real, where(jnp.isnan(real) & jnp.isinf(imag), number(np.inf, imag), imag)


def _cos(a: Any, b: Any, p: Any, q: Any) -> tuple[Any, Any]:
    return _cosh(-b, a, p, q)


def _log(a: Any, b: Any, p: Any, q: Any) -> tuple[Any, Any]:
    return where(jnp.isinf(a) | jnp.isinf(b), number(np.inf, a), p), q


def _sqrt(a: Any, b: Any, p: Any, q: Any) -> tuple[Any, Any]:
    infinite, inf = jnp.isinf(b), number(np.inf, a)
    real = where(infinite | (jnp.isnan(b) & (a == inf)), inf, p)
    return real, where(infinite, b, where(jnp.isnan(b) & (a == -inf), inf, q))


def _arcsinh(a: Any, b: Any, p: Any, q: Any) -> tuple[Any, Any]:
    return _unless_unknown(a, b, p), where(jnp.isnan(a) & (b == number(0, b)), b, q)


def _arccos(a: Any, b: Any, p: Any, q: Any) -> tuple[Any, Any]:
    return where((a == number(0, a)) & jnp.isnan(b), number(np.pi / 2, a), p), _unless_unknown(a, b, q)


def _arccosh(a: Any, b: Any, p: Any, q: Any) -> tuple[Any, Any]:
    imag, real = _arccos(a, b, q, p)
    return real, imag


def _unless_unknown(a: Any, b: Any, part: Any) -> Any:
    """NaN where a part of the argument is NaN and none infinite: where XLA has a large number for one."""
    unknown = (jnp.isnan(a) & ~jnp.isinf(b)) | (jnp.isnan(b) & ~jnp.isinf(a))
    return where(unknown, number(np.nan, part), part)


def _arctan(a: Any, b: Any, p: Any, q: Any) -> tuple[Any, Any]:
    unknown = jnp.isnan(a) | (jnp.isnan(b) & ~jnp.isinf(a))
    # beside the poles, where XLA's is infinite as soon as a * a underflows
    beside = (abs(b) == number(1, b)) & (abs(a) < number(1e-10, a))
    q = where(beside, jnp.copysign((number(np.log(2), a) - jnp.log(abs(a))) / number(2, a), b), q)
    return where(unknown, number(np.nan, p), p), where(jnp.isnan(a) & (b == number(0, b)), b, q)


def _turned(edge: Edge) -> Edge:
    """The edges of f(iz)/i, for those of f."""

    def lower(a: Any, b: Any, p: Any, q: Any) -> tuple[Any, Any]:
        real, imag = edge(-b, a, -q, p)
        return imag, -real

    return lower


_EDGES: dict[str, Edge] = {
    "exp": _exp,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "sin": _sin,
    "cos": _cos,
    "tan": _turned(_tanh),
    **dict.fromkeys(("log", "log2", "log10"), _log),
    "sqrt": _sqrt,
    "arcsinh": _arcsinh,
    "arcsin": _turned(_arcsinh),
    "arccos": _arccos,
    "arccosh": _arccosh,
    "arctan": _arctan,
    "arctanh": _turned(_arctan),
}

_SIDES = {
    "sqrt": (0, 1),
    "arcsinh": (1, 1),
    "arctan": (1, 1),
    "arcsin": (1, 1),
    "arctanh": (1, 1),
    "arccos": (0, -1),
    "arccosh": (0, 1),
}
"""For each of the result's parts, on branch cuts too: 1 if it has the sign of the argument's part, -1 if the opposite,
0 if that does not tell."""
