"""Masking: the padding of a value moved, or filled with a number that does not change a sum or a product.

Takes how a value is computed, and gives how it is computed with its padding elsewhere or filled. Does nothing where
there is no padding along the axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.lower.passes.nests.layouts import Computed, Frame, Layout, RoundInt

Ints = Callable[[Any], RoundInt]
"""From whole numbers, one for each round, what gives them in a traced program."""


def shifted(computed: Computed, layout: Layout, axis: int, offsets: NDArray[Any], ints: Ints) -> Computed:
    """The value with what counts of it elsewhere along an axis: from `offsets`, (rounds,).

    Operands whose slices begin at different places of their boxes have to be brought to one place before they meet.
    """
    if (layout.offsets[:, axis] == offsets).all():
        return computed
    size = layout.shape[axis]
    # With `size` zeros on both sides the element at `layout.offsets` stands at size + layout.offsets: in a slice that
    # begins `offsets` before that, it stands at `offsets`. What moves out, and the zeros that move in, do not count.
    start = ints(size + layout.offsets[:, axis] - offsets)

    def moved(frame: Frame) -> Any:
        from jax import lax
        from jax import numpy as jnp

        value = computed(frame)
        widths = [(size, size) if each == axis else (0, 0) for each in range(value.ndim)]
        return lax.dynamic_slice_in_dim(jnp.pad(value, widths), start.traced(frame), size, axis)

    return moved


def masked(computed: Computed, mask: Computed | None, neutral: bool | float) -> Computed:
    """The value with `neutral` where the mask is false."""
    if mask is None:
        return computed

    def chosen(frame: Frame) -> Any:
        from jax import numpy as jnp

        value = computed(frame)
        return jnp.where(mask(frame), value, np.asarray(neutral, value.dtype))

    return chosen


def mask_of(layout: Layout, axes: Sequence[int], ints: Ints) -> Computed | None:
    """Where elements count along the axes, (*layout.shape); None if all do."""
    bounds = [
        (axis, ints(layout.offsets[:, axis]), ints(layout.offsets[:, axis] + layout.lengths[:, axis]))
        for axis in axes
        if layout.is_ragged(axis)
    ]
    if not bounds:
        return None

    def mask(frame: Frame) -> Any:
        from jax import lax

        found: Any = None
        for axis, first, end in bounds:
            place = lax.broadcasted_iota(np.int32, layout.shape, axis)
            for bound in (  # a bound that is the array's own in all rounds needs no comparison
                place < end.traced(frame) if not (end.is_constant and end.constant == layout.shape[axis]) else None,
                place >= first.traced(frame) if not (first.is_constant and first.constant == 0) else None,
            ):
                if bound is not None:
                    found = bound if found is None else found & bound
        return found

    return mask
