"""The engine's own operations with index arrays: gathering and scattering elements and rows, and what they assume."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.rules.core import cast, is_within, namespace_of
from accel.rules.lowering import Array, from_start
from accel.rules.rule import own_rule


@dataclass(frozen=True)
class LiteralIndex:
    """An index array that the program's text gives. values: flat; shape: its shape."""

    values: tuple[int, ...]
    shape: tuple[int, ...]

    def array(self) -> np.ndarray[Any, Any]:
        """The index as a NumPy array."""
        return np.array(self.values, dtype=np.int64).reshape(self.shape)


def _index(template: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key that a template stands for. In 64 bits: JAX compares with sizes, which a small dtype cannot hold."""
    return tuple(
        entry.array()
        if isinstance(entry, LiteralIndex)
        else entry.astype(np.int64)
        if hasattr(entry, "astype")
        else entry
        for entry in template
    )


def _scatter_numpy(base: Any, index: Any, value: Any) -> Any:
    result = base.copy()
    result[_index(index)] = value
    return result


def _scatter(base: Array, index: tuple[Any, ...], value: Array | float) -> Any:
    return base.at[_index(index)].set(cast(value, base.dtype))


def _take_rows(rows: Any, index: Any, mask: Any) -> Any:
    """`rows[index]` where `mask` holds; elsewhere any row. In 64 bits (see `_index`)."""
    return rows[namespace_of(index).where(mask, index, 0).astype(np.int64)]


def _scatter_rows_numpy(rows: Any, index: Any, mask: Any, value: Any) -> Any:
    result = rows.copy()
    result[index[mask]] = np.broadcast_to(value, (len(mask), *rows.shape[1:]))[mask]
    return result


def _scatter_rows(rows: Array, index: Array, mask: Array, value: Array) -> Any:
    from jax import numpy as jnp

    value = jnp.broadcast_to(cast(value, rows.dtype), (mask.shape[0], *rows.shape[1:]))
    return rows.at[_positions(index, mask, rows.shape[0])].set(value, mode="drop")


def _selected_distinct_numpy(index: Any, mask: Any, size: int) -> Any:
    return all_differ(index[mask].astype(np.int64) % size)


def _selected_distinct(index: Array, mask: Array, size: int) -> Any:
    return _are_distinct(_positions(index, mask, size), size)


def _positions(index: Array, mask: Array, size: int) -> Any:
    """The positions, from 0, that selected indices point to; `size` for the others, which `mode="drop"` leaves out."""
    from jax import numpy as jnp

    return jnp.where(mask, from_start(index.astype(np.int64), size), size)


def _distinct_numpy(shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
    return all_differ(np.arange(math.prod(shape)).reshape(shape)[_index(index)])


def all_differ(values: NDArray[Any]) -> bool:
    """Whether no two elements of a NumPy array are equal."""
    return bool(np.unique(values).size == values.size)


def _distinct(shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
    from jax import numpy as jnp

    size = math.prod(shape)
    return _are_distinct(jnp.arange(size).reshape(shape)[_index(index)].reshape(-1), size)


def _are_distinct(positions: Array, size: int) -> Any:
    """Whether no position below `size` is there twice; others do not count. Counting takes less than sorting."""
    from jax import numpy as jnp

    # how often each position occurs
    return jnp.zeros(size, np.int32).at[positions].add(1, mode="drop").max(initial=0) <= 1


def _selected_in_bounds(index: Array, mask: Array, size: int) -> Any:
    return (~mask | is_within(index, size)).all()


# -- the operations: accel.rules.opcodes says what each is ------------------------------------------------------------


GATHER = own_rule("gather", lambda x, index: x[_index(index)], lambda x, index: x[_index(index)])
SCATTER = own_rule("scatter", _scatter_numpy, _scatter)
TAKE_ROWS = own_rule("take_rows", _take_rows, _take_rows)
SCATTER_ROWS = own_rule("scatter_rows", _scatter_rows_numpy, _scatter_rows)
DISTINCT = own_rule("distinct", _distinct_numpy, _distinct)
SELECTED_DISTINCT = own_rule("selected_distinct", _selected_distinct_numpy, _selected_distinct)
SELECTED_IN_BOUNDS = own_rule("selected_in_bounds", _selected_in_bounds, _selected_in_bounds)
