"""Boxes that move: where the iterations of a loop read or write an array, one box of one size for each iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.ir.views import Box, Index, box_of


@dataclass(frozen=True, slots=True)
class MovingBox:
    """A box of one size, elsewhere in an array in each iteration. starts: (iterations, axes). box: any of the boxes."""

    starts: Any
    box: Box

    def meets(self, other: MovingBox) -> Any:
        """(iterations, iterations): whether this box in one and the other in another have elements in common."""
        mine, theirs = self.starts[:, None, :], other.starts[None, :, :]
        return ((mine < theirs + other.box.sizes) & (theirs < mine + self.box.sizes)).all(axis=2)

    def equals(self, other: MovingBox) -> bool:
        same_form = (self.box.sizes, self.box.given) == (other.box.sizes, other.box.given)
        return same_form and bool((self.starts == other.starts).all())

    @property
    def moving(self) -> tuple[int, ...]:
        """The axes along which the box moves."""
        return tuple(np.flatnonzero((self.starts != self.starts[0]).any(axis=0)).tolist())

    def is_simple(self) -> bool:
        """Whether boxes are one element long along the axes that they move along: one indexing reads all of them."""
        return all(self.box.sizes[axis] == 1 for axis in self.moving)

    def read(self, base: object) -> Any:
        """The boxes of all iterations, stacked: (iterations, *given)."""
        from jax import numpy as jnp

        found = self._front(base)[self._key()]
        if not self.moving:
            return jnp.broadcast_to(found.reshape(self.box.given), (len(self.starts), *self.box.given))
        return found.reshape((len(self.starts), *self.box.given))

    def write(self, base: Any, values: Any) -> Any:
        """The array with the values of all iterations, (iterations, *given), in their boxes."""
        from jax import numpy as jnp

        # From the axes of the keys' results to the array's own: the moving ones in front, as one axis of iterations.
        rest = [size for axis, size in enumerate(self.box.sizes) if axis not in self.moving]
        values = values.reshape((len(self.starts), *rest))
        if self._is_block():  # one update of a box, which XLA makes in place; indexing would scatter point by point
            (axis,) = self.moving
            forward = values if self.starts[0, axis] < self.starts[-1, axis] else values[::-1]
            block = jnp.moveaxis(forward, 0, axis)
            return Box(tuple(self.starts.min(axis=0).tolist()), block.shape, block.shape).write(base, block)
        moved = self._front(base).at[self._key()].set(values)
        return jnp.moveaxis(moved, range(len(self.moving)), self.moving)

    def _is_block(self) -> bool:
        """Whether the boxes lie side by side, in order or in reverse."""
        if len(self.moving) != 1:
            return False
        steps = np.diff(self.starts[:, self.moving[0]])
        return bool((steps == 1).all() or (steps == -1).all())

    def _front(self, base: Any) -> Any:
        from jax import numpy as jnp

        return jnp.moveaxis(base, self.moving, range(len(self.moving)))

    def _key(self) -> tuple[Any, ...]:
        first = self.starts[0]
        rest = [
            slice(int(first[axis]), int(first[axis]) + size)
            for axis, size in enumerate(self.box.sizes)
            if axis not in self.moving
        ]
        return (*_positions([self.starts[:, axis] for axis in self.moving]), *rest)


def _positions(columns: list[Any]) -> list[Any]:
    """Indices along the moving axes: a slice where one axis moves evenly, which is much faster."""
    if len(columns) == 1:
        column = columns[0]
        steps = np.unique(np.diff(column))
        if len(steps) == 1 and steps[0]:
            step, stop = int(steps[0]), int(column[-1]) + int(steps[0])
            return [slice(int(column[0]), stop if stop >= 0 else None, step)]
    return columns


def moving_box(base: tuple[int, ...], keys: Sequence[Index]) -> MovingBox | None:
    """The box that keys of an array of shape `base` select in each iteration; None if the boxes differ in size."""
    boxes = [box_of(base, step.key) for step in keys]
    if any(box is None for box in boxes) or len({(box.sizes, box.given) for box in boxes if box}) != 1:
        return None
    found = [box for box in boxes if box]
    return MovingBox(np.array([box.starts for box in found], np.int32), found[0])
