"""scipy.sparse: the product of a compressed sparse row matrix, which the program holds, and a vector or matrix.

The row stands for the function of this module. `accel.record.objects.library.scientific` calls it where recorded code
multiplies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from accel.rules.core import cast
from accel.rules.lowering import Array, jnp, where
from accel.rules.rule import Unsupported, rule

MOST_WASTED = 4
"""Maximum factor on the number of products when all rows are padded to the longest one. Guess."""


def rows_times(data: Any, indices: Any, indptr: Any, other: Any, sizes: tuple[int, int], longest: int) -> Any:
    """`csr @ other`. longest: the most elements that a row has."""
    return sparse.csr_array((data, indices, indptr), shape=sizes) @ other


def _holds(data: Any, indices: Any, indptr: Any, other: Any, longest: int, **rest: Any) -> Any:
    """SciPy's loop trusts these: a matrix that is changed by hand may be none."""
    lengths = indptr[1:] - indptr[:-1]
    within = (indices >= 0) & (indices < other.shape[0])
    last = (indptr[0] == 0) & (indptr[-1] <= data.shape[0]) & (indptr[-1] <= indices.shape[0])
    return ((lengths >= 0) & (lengths <= longest)).all() & within.all() & last


@rule(rows_times, "data indices indptr other | sizes longest", holds=_holds)
def _rows_times(
    *, data: Array, indices: Array, indptr: Array, other: Array, sizes: tuple[int, int], longest: int
) -> Any:
    """The products of all rows, each filled up to the longest one."""
    if data.dtype.kind not in "fiuc" or other.dtype.kind not in "fiuc" or np.float16 in (data.dtype, other.dtype):
        raise Unsupported("rule.parameter", "a sparse matrix of truths or halves")
    if sizes[0] * longest > MOST_WASTED * data.shape[0] + 1024:
        raise Unsupported("rule.parameter", "a sparse matrix with rows of very different lengths")
    dtype = np.promote_types(data.dtype, other.dtype)
    if not longest or not data.shape[0]:
        return jnp.zeros((sizes[0], *other.shape[1:]), dtype)
    at = indptr[:-1, None] + jnp.arange(longest, dtype=indptr.dtype)[None, :]
    there = at < indptr[1:, None]
    at = jnp.minimum(at, data.shape[0] - 1)
    columns = (*at.shape, *(1,) * (other.ndim - 1))
    products = cast(data[at], dtype).reshape(columns) * cast(other[indices[at]], dtype)
    there = jnp.broadcast_to(there.reshape(columns), products.shape)
    return jnp.sum(where(there, products, jnp.zeros_like(products)), axis=1, dtype=dtype)
