"""Fusion: making XLA store a value that it would otherwise compute again wherever it is read.

XLA:CPU fuses a producer into whatever reads it. Where the reader looks at several elements (a stencil, an
interpolation), the producer is computed once for each: an interpolation of a field that took 330 us to compute cost
2,000 us instead of 390. And code that decides at each element where to read gets no vector instructions.

What is to be kept out of a fusion, and at which price:

- `materialize`: a value that several operations read. No copy, unless the value is small.
- `materialize_by_copy`: a value that even a single reader must not compute itself. One copy, row by row.
- `snapshot`: a value that is written into the array from which it is computed. One copy, made before the write.
- `copy_to_write`: an array of which a large part is replaced by what is computed from other parts. One copy.
- `read_separately`: not a value but a read: of a part of an array that the same loop writes to.
- `wrap_padded`: a value that is rolled. A copy with some more columns, of which each roll is a slice.
- `materialize_padded`: one that is rolled later, and read by others before.

How: optimization barriers alone do not help, as they are gone before XLA:CPU fuses. Three other things do.

- The result of a conditional is stored, at the cost of a copy. The predicate is an argument of the program that is
  always true, which XLA cannot know.
- What is updated in place is stored first, without a copy, where several operations read it. Here the first element is
  written over itself, at an index that the same argument decides.
- A concatenation along the last axis is copied together row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from accel.rules.tracing import current

if TYPE_CHECKING:
    from jax import Array

SMALL = 4096
"""Elements whose copy costs next to nothing."""

REACH = 2
"""Elements by which a roll along the last axis may move what it reads from a wrap-padded array."""


@dataclass(frozen=True, slots=True)
class WrapPadded:
    """An array of `size` elements along its last axis, stored as `np.pad(x, REACH, mode="wrap")` pads that axis."""

    stored: Any
    size: int

    def rolled(self, by: int) -> Any:
        """The array rolled by `by` elements."""
        from jax import lax

        return lax.slice_in_dim(self.stored, REACH - by, REACH - by + self.size, axis=self.stored.ndim - 1)


def wrap_padded(x: Any) -> WrapPadded | None:
    """`x` stored with its two ends continued, once for all rolls of it; None where that is no help.

    Rolls along the last axis are slices of it, which XLA:CPU reads with whole vectors. A roll that is fused with what
    reads it asks at each element where it is: a stencil of 121x240 takes 50 us so, and 17 with this.
    """
    from jax import lax

    if current().stored_by is None or x.ndim < 2 or x.shape[-1] < 2 * REACH:
        return None
    if id(x) not in current().padded:
        parts = [lax.slice_in_dim(x, start, stop, axis=x.ndim - 1) for start, stop in ((-REACH, None), (0, REACH))]
        _remember(x, WrapPadded(_joined([parts[0], x, parts[1]]), x.shape[-1]))
    padded: WrapPadded = current().padded[id(x)][1]
    return padded


def _joined(parts: Sequence[Any]) -> Any:
    """The parts side by side along the last axis, stored: the barrier keeps XLA from slicing the parts out again."""
    from jax import lax

    return lax.optimization_barrier(lax.concatenate(parts, parts[0].ndim - 1))


def _remember(x: object, made: WrapPadded) -> Any:
    current().padded[id(x)] = x, made  # `x` itself too: its id must not be given to another array
    return x


def from_padded(x: object) -> Any:
    """`x` for later readers: a slice of the copy if `wrap_padded` has stored one, so that `x` is not computed again."""
    found = current().padded.get(id(x)) if current().stored_by is not None else None
    return x if found is None else _remember(found[1].rolled(0), found[1])


def materialize(x: Any) -> Any:
    """Store `x` before several operations read it, in place if it is large.

    Gives `x` itself where no program of accel's is being traced, or it is not for a CPU; so do the functions below.
    """
    from jax import lax

    always = current().stored_by
    if always is None or x.ndim == 0 or x.size == 0:
        return x
    if x.size <= SMALL:
        return lax.cond(always, _same, _other, x)
    first = lax.slice(x, (0,) * x.ndim, (1,) * x.ndim)
    index = lax.select(always, np.int32(0), np.int32(1))
    return lax.dynamic_update_slice(x, first, (index,) * x.ndim)


def materialize_padded(x: Any) -> Any:
    """Store `x` as `wrap_padded` does, for values that are rolled sooner or later: all its readers read that copy.

    To store it in place first would take a copy and two small kernels more.
    """
    return materialize(x) if x.size <= SMALL or wrap_padded(x) is None else from_padded(x)


def materialize_by_copy(x: Any) -> Any:
    """Store `x` by a row-wise copy, which XLA:CPU computes with nothing else: even a single reader gets it from memory.

    For the operand of a costly operation, which is to have whole vectors. Small or one-dimensional: as `materialize`.
    """
    from jax import lax

    if current().stored_by is None or x.ndim < 2 or x.size <= SMALL:
        return materialize(x)
    axis, width = x.ndim - 1, x.shape[-1]
    longer = _joined([x, lax.slice_in_dim(x, 0, 1, axis=axis)])  # of `x` alone there would be nothing to join
    return lax.slice_in_dim(longer, 0, width, axis=axis)


def snapshot(x: Any) -> Any:
    """Copy `x` before anything is written to the arrays that it is computed from. For what has to be right, not fast.

    `materialize` is not enough for that: XLA:CPU may join the write in it with the one that follows, both in place.
    """
    from jax import lax

    always = current().stored_by
    return x if always is None or x.size == 0 else lax.cond(always, _same, _other, x)


def copy_to_write(x: Any, *, endangered: bool) -> Any:
    """A copy of `x`, to be written to while `x` is read: XLA takes it for another array.

    endangered: whether XLA might see `x` in another shape (accel.lower.passes.aliasing). Then nothing may be written to
    it in place, not even what stands there.
    """
    from jax import lax
    from jax import numpy as jnp

    always = current().stored_by
    if always is None or x.size == 0 or not endangered:
        return materialize(x)
    return lax.select(jnp.broadcast_to(always, x.shape), x, jnp.zeros_like(x))


def read_separately(read: Callable[[Any], Any], base: object) -> Any:
    """`read(base)`, which XLA does not fuse with anything.

    In a loop that writes to the array too, a fusion that reads it beside or after the write makes XLA copy all of it,
    in every iteration.
    """
    from jax import lax

    always = current().stored_by
    if always is None:
        return read(base)
    return lax.cond(always, read, lambda whole: _other(read(whole)), base)


@dataclass(frozen=True, slots=True)
class SeparateRead:
    """A view step that is read by `read_separately`."""

    step: Any

    def read(self, base: object) -> Any:
        return read_separately(self.step.read, base)


def _same(x: Array) -> Any:
    return x


def _other(x: Array) -> Any:
    """Never runs; differs from `_same`, or XLA would merge the two."""
    return ~x if x.dtype == bool else x + x
