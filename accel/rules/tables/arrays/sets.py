"""Sets: the different values of an array. How many there are is what the path assumes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.rules.core import counted
from accel.rules.lowering import Array, jnp
from accel.rules.rule import Unsupported, rewritten, rule
from accel.rules.special import Shaped
from accel.rules.tables.statistics.sorting import from_keys, keys_of, one_zero


def _is_first(ordered: Any, equal_nan: bool) -> Any:
    """Of sorted values, whether each differs from the one before it; works on NumPy and JAX."""
    xp = np if isinstance(ordered, np.ndarray) else jnp
    later, before = ordered[1:], ordered[:-1]
    differs = later != before
    if equal_nan:  # two NaN differ from themselves
        differs = differs & ~((later != later) & (before != before))
    return xp.concatenate([xp.ones(min(1, ordered.size), bool), differs])


def _check(ar: Array) -> None:
    if ar.dtype.kind not in "fiub":
        raise Unsupported("rule.parameter", "numpy.unique of complex numbers")


def _as_many(*, ar: Array | NDArray[Any], shape: tuple[int, ...], equal_nan: bool = True, **rest: object) -> Any:
    if isinstance(ar, np.ndarray):
        return len(np.unique(ar, equal_nan=equal_nan)) == shape[0]
    _check(ar)  # here too: a program that wants the number alone has no use for the values
    ordered = from_keys(jnp.sort(keys_of(one_zero(ar.reshape(-1)))), ar.dtype)
    return counted(_is_first(ordered, equal_nan)) == shape[0]


@rule(np.unique, "ar | return_index return_inverse return_counts equal_nan", holds=_as_many, special=Shaped())
def unique(
    *,
    ar: Array,
    shape: tuple[int, ...],
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    equal_nan: bool = True,
) -> Any:
    _check(ar)
    flat = ar.reshape(-1)
    order = jnp.argsort(keys_of(one_zero(flat)), stable=True)
    ordered = flat[order]
    first = _is_first(ordered, equal_nan)
    starts = jnp.nonzero(first, size=shape[0], fill_value=0)[0].astype(np.int64)
    found = [ordered[starts]]
    if return_index:
        found.append(order[starts].astype(np.int64))
    if return_inverse:
        ranks = jnp.cumsum(first, dtype=np.int64) - 1
        found.append(jnp.zeros(flat.shape, np.int64).at[order].set(ranks).reshape(_form_of_inverse(ar)))
    if return_counts:
        found.append(jnp.diff(starts, append=np.int64(flat.size)))
    return found[0] if len(found) == 1 else tuple(found)


def _form_of_inverse(ar: Array) -> tuple[int, ...]:
    """NumPy 2 gives the indices in the array's own shape."""
    is_flat = np.unique(np.zeros((1, 1)), return_inverse=True)[1].ndim == 1
    return (ar.size,) if is_flat else ar.shape


def _different(values: Any, assume_unique: bool) -> Any:
    return np.ravel(values) if assume_unique else np.unique(values)


@rewritten(np.union1d, "ar1 ar2")
def union1d(ar1: Any, ar2: Any) -> Any:
    return np.unique(np.concatenate((ar1, ar2), axis=None))


@rewritten(np.intersect1d, "ar1 ar2 | assume_unique")
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    both = np.sort(np.concatenate([_different(each, assume_unique) for each in (ar1, ar2)]))
    return both[:-1][both[1:] == both[:-1]]


@rewritten(np.setdiff1d, "ar1 ar2 | assume_unique")
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    first = _different(ar1, assume_unique)
    return first[np.isin(first, ar2, invert=True)]


@rewritten(np.setxor1d, "ar1 ar2 | assume_unique")
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    both = np.sort(np.concatenate([_different(each, assume_unique) for each in (ar1, ar2)]))
    border = np.ones_like(both[:1], dtype=bool)
    differs = np.concatenate((border, both[1:] != both[:-1], border))
    return both[differs[1:] & differs[:-1]]
