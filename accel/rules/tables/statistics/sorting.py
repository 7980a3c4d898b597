"""Sorting, and searching in sorted arrays.

XLA:CPU sorts floats by a comparison of many steps, some 50 times slower than NumPy; integers go six times faster. So
floats are mapped to integers that sort alike (*keys*), where NumPy cannot be called (accel.rules.order).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.rules import order
from accel.rules.columns import Rounding
from accel.rules.core import in_common_dtype
from accel.rules.lowering import Array, jnp, lax, number, where
from accel.rules.rule import Unsupported, rewritten, rule
from accel.rules.tables.statistics.reductions import real_only
from accel.rules.tracing import current

# -- keys -------------------------------------------------------------------------------------------------------------


def keys_of(x: Any) -> Any:
    """Signed integers that sort as NumPy sorts `x` (real): NaN last, the zeros' signs apart."""
    kind, width = x.dtype.kind, 8 * x.dtype.itemsize
    if kind == "b":
        return x.astype(np.int8)
    if kind == "i":
        return x
    # a float's bits, read as an integer, sort as the float does if it is positive, and the other way round if not
    raw = lax.bitcast_convert_type(x, np.dtype(f"i{x.dtype.itemsize}"))
    if kind == "u":
        # unsigned numbers, moved down by half of their range
        return raw ^ number(np.iinfo(raw.dtype).min, raw)
    largest = number(np.iinfo(raw.dtype).max, raw)
    ordered = raw ^ ((raw >> (width - 1)) & largest)
    return where(x != x, largest, ordered)


def from_keys(keys: Array, dtype: np.dtype[Any]) -> Any:
    """The values that `keys_of` made `keys` from; any NaN becomes the ordinary one."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return keys != 0
    if dtype.kind == "i":
        return keys
    if dtype.kind == "u":
        return lax.bitcast_convert_type(keys ^ number(np.iinfo(keys.dtype).min, keys), dtype)
    largest = number(np.iinfo(keys.dtype).max, keys)
    raw = keys ^ ((keys >> (8 * dtype.itemsize - 1)) & largest)
    return lax.bitcast_convert_type(raw, dtype)


# -- sorting ----------------------------------------------------------------------------------------------------------


def _check_kind(kind: object, order: Any = None) -> None:
    if kind not in (None, "quicksort", "stable", "mergesort", "heapsort"):
        raise Unsupported("rule.parameter", f"kind={kind!r}")


def _line_up(a: Any, axis: Any) -> tuple[Any, int]:
    return (a.reshape(-1), 0) if axis is None else (a, axis % max(1, a.ndim))


def _sort_selected(*, a: Array, mask: Array, axis: int | None = -1, kind: str | None = None, stable: Any = None) -> Any:
    """Along the first axis: what the mask leaves out is sorted as the largest number, or NaN, and comes last."""
    _check_kind(kind)
    keys = keys_of(real_only(a))
    if current().has_derivatives:
        raise Unsupported("shape.dynamic", "numpy.sort of a masked selection in a pure function")
    chosen = mask.reshape(mask.shape + (1,) * (a.ndim - 1))
    keys = where(chosen, keys, number(np.iinfo(keys.dtype).max, keys))
    return order.in_order(from_keys(keys, a.dtype), 0, functools.partial(_by_keys, axis=0))


def _is_real(*, a: Any, **rest: object) -> bool | None:
    """False for complex numbers, which programs let NumPy sort; None: there is nothing to check."""
    return False if a.dtype.kind == "c" else None


@rule(
    np.sort,
    "a | axis kind stable",
    holds=_is_real,
    or_on_host=True,
    rounding=Rounding.EXACT,
    rows=_sort_selected,
    reorders=True,
    work=20.0,
)
def sort(*, a: Array, axis: int | None = -1, kind: str | None = None, stable: object = None) -> Any:
    """By keys; equal elements cannot be told apart, so stability does not matter."""
    _check_kind(kind)
    a, axis = _line_up(real_only(a), axis)
    if current().has_derivatives and a.dtype.kind == "f":
        return jnp.take_along_axis(a, jnp.argsort(keys_of(a), axis=axis), axis)
    return order.in_order(a, axis, functools.partial(_by_keys, axis=axis))


def _by_keys(a: Any, axis: int) -> Any:
    return from_keys(lax.sort(keys_of(a), dimension=axis), a.dtype)


def one_zero(x: Any) -> Any:
    """Floats with every zero positive; adding 0 would do, if XLA left that alone."""
    return where(x == number(0, x), number(0, x), x) if x.dtype.kind == "f" else x


def _sort_keys(a: Any) -> Any:
    """Keys by which equal elements, the two zeros among them, stay equal."""
    return keys_of(one_zero(a))


def _is_stable(kind: str | None = None, stable: bool | None = None) -> bool:
    return bool(stable) or kind in ("stable", "mergesort")


def _determined(
    a: Array | NDArray[Any],
    axis: int | None = -1,
    kind: str | None = None,
    stable: bool | None = None,
    shape: tuple[int, ...] | None = None,
) -> Any:
    """Whether no two keys along the axis are equal, nor NaN both; None for stable kinds, for which that is no matter.

    Otherwise the order is NumPy's own: its unstable sorts differ between dtypes, sizes and processors.
    """
    if a.dtype.kind == "c":
        return False
    if _is_stable(kind, stable):
        return None
    a, axis = _line_up(a, axis)
    if a.ndim == 0:
        return True
    if isinstance(a, np.ndarray):
        in_order = np.sort(a, axis)
        return bool((_differ(in_order, axis) & (in_order == in_order).swapaxes(0, axis)[:-1]).all())
    keys = _sort_keys(a)
    places = _order((keys,), a.shape, axis)  # as in `argsort`: XLA sorts once for both
    return _differ(jnp.take_along_axis(keys, places, axis), axis).all()


def _differ(in_order: Array | NDArray[Any], axis: int) -> Any:
    """Whether each element differs from the next along an axis, which is made the first; works on NumPy and JAX."""
    line = in_order.swapaxes(0, axis)
    return line[:-1] != line[1:]


@rule(
    np.argsort,
    "a | axis kind stable",
    holds=_determined,
    otherwise='equal keys, whose order NumPy leaves open but for kind="stable"',
    or_on_host=True,
    work=20.0,
)
def argsort(*, a: Any, axis: Any = -1, kind: object = None, stable: object = None) -> Any:
    """Stable; where NumPy's kind is not, the keys differ (see `_determined`)."""
    _check_kind(kind)
    if not a.ndim:
        return jnp.zeros(1, np.int64)
    a, axis = _line_up(a, axis)
    return _order((_sort_keys(a),), a.shape, axis)


def _order(keys: tuple[Any, ...], shape: tuple[int, ...], axis: int) -> Any:
    if len(keys) == 1:
        return order.positions(keys[0], axis, lambda key: _order_by_xla((key,), key.shape, axis))
    return _order_by_xla(keys, shape, axis)


def _order_by_xla(keys: tuple[Any, ...], shape: tuple[int, ...], axis: int) -> Any:
    positions = lax.broadcasted_iota(np.int64, shape, axis)
    return lax.sort((*keys, positions), dimension=axis, num_keys=len(keys), is_stable=True)[-1]


@rule(np.lexsort, "*keys | axis", work=20.0)
def lexsort(*, keys: tuple[Any, ...], axis: int = -1) -> Any:
    columns = [real_only(jnp.asarray(key)) for key in keys]
    if not columns[0].ndim:
        raise Unsupported("rule.parameter", "lexsort of scalars")
    sorted_by = tuple(map(_sort_keys, reversed(columns)))
    return _order(sorted_by, columns[0].shape, axis % columns[0].ndim)


@rewritten(np.sort_complex, "a")
def sort_complex(a: Any) -> Any:
    if a.dtype.kind == "c":
        return np.sort(a)
    return np.sort(a).astype("F" if a.dtype.char in "bhBH" else "D")


# -- searching --------------------------------------------------------------------------------------------------------


def _common(a: Any, v: object) -> tuple[Any, Any]:
    """Both as the dtype in which NumPy compares them, as keys that sort as NumPy's comparison does."""
    a, v = in_common_dtype(jnp.asarray(a), jnp.asarray(v))
    if a.dtype.kind == "c":
        raise Unsupported("rule.parameter", "complex numbers")
    if a.dtype.kind == "f":
        a, v = one_zero(a), one_zero(v)
    return keys_of(a), keys_of(v)


def find_places(a: object, v: object, side: str) -> Any:
    """np.searchsorted by bisection, all values at once; NumPy's answer where `a` is sorted."""
    keys, wanted = _common(a, v)
    low = jnp.zeros(wanted.shape, np.int64)
    high = jnp.full(wanted.shape, keys.shape[0], np.int64)
    # each round halves the positions that are left
    for _ in range(keys.shape[0].bit_length()):
        middle = (low + high) >> 1
        probe = keys[jnp.minimum(middle, keys.shape[0] - 1)]
        right = (low < high) & (probe < wanted if side == "left" else probe <= wanted)
        low, high = where(right, middle + 1, low), where(right, high, middle)
    return low


def rising(a: Array | NDArray[Any] | list[Any] | tuple[Any, ...]) -> Any:
    """Whether a vector is sorted, NaN last; works on NumPy, JAX and the program's own sequences."""
    if isinstance(a, (list, tuple)):
        a = np.asarray(a)
    return ((a[:-1] <= a[1:]) | (a[1:] != a[1:])).all()


@rule(
    np.searchsorted,
    "a v | side",
    holds=lambda a, **rest: rising(a),
    rowwise=lambda bound, is_rows: not is_rows(bound["a"]),
    work=20.0,
)
def searchsorted(*, a: Array, v: Array | float, side: str = "left") -> Any:
    return find_places(a, v, side)


@rewritten(np.digitize, "x bins | right")
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """By searchsorted, for bins that rise and for bins that fall."""
    if len(bins) and bool(bins[-1] != bins[-1]):
        raise Unsupported("rule.parameter", "numpy.digitize: NaN among the bins")
    falling = len(bins) > 1 and bool(bins[0] > bins[-1])
    side: Any = "left" if right else "right"
    if not falling:
        return np.searchsorted(bins, x, side=side)
    return len(bins) - np.searchsorted(bins[::-1], x, side=side)
