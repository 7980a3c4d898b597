"""scipy.special: ufuncs over jax.scipy.special, where that agrees with SciPy, and functions of several elements."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from accel.rules import filling
from accel.rules.derivatives import with_slopes
from accel.rules.hosted import on_host, ufuncs_on_host
from accel.rules.lowering import Array, Lazy, jnp, lax, number, where
from accel.rules.rule import Unsupported, rewritten
from accel.rules.tables import ufuncs

jsp: Any = Lazy("jax.scipy.special")


def _real(name: str, lower: Callable[..., Any]) -> Callable[..., Any]:
    def of_real(*operands: Any) -> Any:
        arrays = [operand for operand in operands if hasattr(operand, "dtype")]
        if any(array.dtype.kind == "c" for array in arrays):
            raise Unsupported("rule.parameter", f"scipy.special.{name} of complex numbers")
        given = [each if hasattr(each, "dtype") else number(each, arrays[0]) for each in operands]
        if name in _BY_SCIPY and filling.are_allowed():
            (x,) = given
            return filling.filled(functools.partial(_fill, name), given, x.shape, x.dtype)
        if name not in _IN_DOUBLE:
            return lower(*given)
        return lower(*(each.astype(float) for each in given)).astype(jnp.result_type(*given))

    return of_real


def _fill(name: str, x: Any, result: Any) -> None:
    with np.errstate(all="ignore"):
        getattr(special, name)(x, result)


def _in_jax(name: str) -> Callable[..., Any]:
    return lambda *operands: getattr(jsp, name)(*operands)


def _logit(x: Array) -> Any:
    """Compute the logit as SciPy does: near 1/2, where it is 0, by the distance from there."""
    twice = 2.0 * (x - 0.5)
    near = (x > 0.3) & (x < 0.65)
    twice = where(near, twice, number(0, x))
    return where(near, jnp.log1p(twice) - jnp.log1p(-twice), jnp.log(x / (1.0 - x)))


def _gammaln(x: Array) -> Any:
    """Each infinity is its own, with its sign; jax.scipy.special's is NaN at one."""
    return where(abs(x) == number(np.inf, x), x, jsp.gammaln(x))


def _psi(x: Array) -> Any:
    """SciPy's is infinite at 0, with the other sign."""
    return where(x == number(0, x), lax.neg(jnp.copysign(number(np.inf, x), x)), jsp.digamma(x))


def _log_expit(x: Array) -> Any:
    return lax.neg(lax.max(-x, number(0, x)) + jnp.log1p(jnp.exp(-abs(x))))


def _entr_slope(x: Array) -> Any:
    """-log(x) - 1; below 0 it is -inf everywhere, which does not change."""
    below = x < 0
    return where(below, number(0, x), -jnp.log(where(below, number(1, x), x)) - 1)


def _share(x: Array, y: Array) -> Any:
    """x / y, the derivative of x * log(y) by y. Where both are 0 that is 0 whatever y is."""
    x, y = jnp.broadcast_arrays(x, y)
    zero = (x == 0) & (y == 0)
    return where(zero, number(0, x), x / where(zero, number(1, y), y))


_OWN: dict[str, Callable[..., Any]] = {
    "gammaln": _gammaln,
    "logit": with_slopes(_logit, lambda x: 1.0 / (x * (1.0 - x))),
    "i1": lambda x: jsp.i1(x) + number(0, x),  # SciPy's zero is positive
    "i1e": lambda x: jsp.i1e(x) + number(0, x),
    "psi": _psi,
    "log_expit": with_slopes(_log_expit, lambda x: jsp.expit(-x)),
    "entr": with_slopes(lambda x: where(x == 0, jnp.zeros_like(x), jsp.entr(x)), _entr_slope),
    "xlogy": with_slopes(lambda x, y: jsp.xlogy(x, y), lambda x, y: jnp.log(y), _share),
    "xlog1py": with_slopes(lambda x, y: jsp.xlog1py(x, y), lambda x, y: jnp.log1p(y), lambda x, y: _share(x, 1 + y)),
    "i0": with_slopes(lambda x: jsp.i0(x), lambda x: jsp.i1(x)),
    "exp10": lambda x: jnp.power(number(10, x), x),
}

_IN_JAX = "erf erfc expit ndtr ndtri erfinv gamma i0e".split()
_BY_SCIPY = frozenset("erfinv gamma gammaln ndtr ndtri psi".split())
"""Functions that programs on a CPU call SciPy for: it is as fast as XLA, whose have up to 1e16 wrong units in the last
place near roots, 3,000 elsewhere."""
_IN_DOUBLE = frozenset("i0 i0e i1 i1e logit".split()) | _BY_SCIPY
"""Functions of float32 that are computed in double precision, as SciPy's: single precision overflows on the way, or
loses digits near roots."""
_SINGULAR = frozenset("logit erfinv gamma entr xlogy xlog1py gammaln psi".split())

for _name, _lower in ({name: _in_jax(name) for name in _IN_JAX} | _OWN).items():
    _facts = {"work": 20.0, "singular": _name in _SINGULAR}
    ufuncs.ROWS[_name] = ufuncs.UfuncRow(_real(_name, _lower), _facts)


@rewritten(special.logsumexp, "a b | axis keepdims")
@np.errstate(all="ignore")
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    """By the largest elements, whose terms are taken out of the sum: what they leave may be far below 1.

    What has no weight counts for nothing. Where that result is no number, SciPy's is the logarithm of the plain sum.
    """
    if isinstance(b, (int, float)):
        b = _floating(a).dtype.type(b)
    given = a = _floating(a if b is None else a.astype(np.result_type(a.dtype, b.dtype)))
    if b is not None:
        a = np.where(np.equal(b, 0), -np.inf, a)
    weights: Any = a.dtype.type(1) if b is None else b
    top = np.max(a, axis=axis, keepdims=True)
    level = np.where(np.isfinite(top), top, a.dtype.type(0))
    of_top = np.where(np.equal(a, top), weights, a.dtype.type(0))
    most = np.sum(of_top, axis=axis, keepdims=True)
    # the largest elements' terms are their weights, exactly; so derivatives flow through all terms
    rest = np.sum(weights * np.exp(a - level) - of_top, axis=axis, keepdims=True)
    share = rest / most
    size = np.log1p(np.where(share < -1, -share - 2, share)) + np.log(np.abs(most)) + top
    is_known = np.isfinite(size)
    size = np.where(np.sign(share + 1) * np.sign(most) < 0, np.nan, size)
    plain = np.log(np.sum(weights * np.exp(np.where(is_known, 0, given)), axis=axis, keepdims=True))
    found = np.where(is_known, size, plain).astype(a.dtype)
    return found if keepdims else np.squeeze(found, axis=axis)


@rewritten(special.softmax, "x | axis")
def softmax(x: Any, axis: Any = None) -> Any:
    """The difference of whole numbers wraps as SciPy's."""
    _refuse_unusual(x)
    terms = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return terms / np.sum(terms, axis=axis, keepdims=True)


@rewritten(special.log_softmax, "x | axis")
@np.errstate(divide="ignore")
def log_softmax(x: Any, axis: Any = None) -> Any:
    _refuse_unusual(x)
    top = np.max(x, axis=axis, keepdims=True)
    shifted = x - np.where(np.isfinite(top), top, 0)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _refuse_unusual(x: Any) -> None:
    if x.dtype.kind == "c" or x.dtype == np.float16:
        raise Unsupported("rule.parameter", "complex numbers or halves")


def _floating(x: Any) -> Any:
    _refuse_unusual(x)
    return x if x.dtype.kind == "f" else x.astype(float)


ufuncs_on_host(special, ufuncs.ROWS.keys())
on_host(
    special,
    """
    comb: N k
    lambertw: z k
    polygamma: n x
    spherical_jn: n z
    spherical_yn: n z
    spherical_in: n z
    spherical_kn: n z
    """,
)
