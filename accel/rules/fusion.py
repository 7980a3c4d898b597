"""Fusion: making XLA store a value that it would otherwise compute again at every place that reads it.

XLA:CPU fuses a producer into whatever reads it. Where the reader looks at several places (a stencil, an
interpolation), the producer is computed once for each: an interpolation of a field that took 330 us to compute cost
2,000 us instead of 390. And code that decides at each element where to read gets no vector instructions. Optimization
barriers are gone before XLA:CPU fuses; three other things are not. The result of a conditional is stored, at the cost
of a copy; its predicate is an argument of the program, always true, which XLA cannot know. What is updated in place is
stored first, without a copy, where several operations read it: there the first element is written over itself, at a
place that the same argument decides. And a concatenation along the last axis is copied together row by row.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.ir.tape import Node

SMALL = 4096
"""Elements whose copy costs next to nothing."""

_always: ContextVar[Any] = ContextVar("always", default=None)
_rings: ContextVar[dict[int, tuple[Any, Ring]]] = ContextVar("rings")


@contextlib.contextmanager
def stored_by(always: Any) -> Iterator[None]:
    """While a program is traced: let `materialize` use `always`, a traced bool that is true."""
    token, rings = _always.set(always), _rings.set({})
    try:
        yield
    finally:
        _always.reset(token)
        _rings.reset(rings)


@contextlib.contextmanager
def inside() -> Iterator[None]:
    """While what a loop's rounds compute is traced: rings that are made there are not known outside."""
    token = _rings.set(dict(_rings.get({})))
    try:
        yield
    finally:
        _rings.reset(token)


REACH = 2
"""Elements along the last axis by which a roll may move what it reads from a ring."""


@dataclass(frozen=True, slots=True)
class Ring:
    """An array of `size` elements along its last axis, stored with REACH of those from its other end on either side."""

    stored: Any
    size: int

    def rolled(self, by: int) -> Any:
        """The array, rolled by so many elements."""
        from jax import lax

        return lax.slice_in_dim(self.stored, REACH - by, REACH - by + self.size, axis=self.stored.ndim - 1)


def ring(x: Any) -> Ring | None:
    """`x` as a ring, which the program stores once; None where it is no help.

    Rolls are slices of it, which XLA:CPU reads with whole vectors. A roll that is fused with what reads it asks at each
    element where it is: a stencil of 121x240 takes 50 us so, and 17 with a ring.
    """
    from jax import lax

    if _always.get() is None or x.ndim < 2 or x.shape[-1] < 2 * REACH:
        return None
    if id(x) not in _rings.get():
        parts = [lax.slice_in_dim(x, start, stop, axis=x.ndim - 1) for start, stop in ((-REACH, None), (0, REACH))]
        _remember(x, Ring(_joined([parts[0], x, parts[1]]), x.shape[-1]))
    return _rings.get()[id(x)][1]


def _joined(parts: Sequence[Any]) -> Any:
    """The parts side by side along the last axis, stored: XLA does not take them apart again."""
    from jax import lax

    return lax.optimization_barrier(lax.concatenate(parts, parts[0].ndim - 1))


def _remember(x: Any, made: Ring) -> Any:
    _rings.get()[id(x)] = x, made
    return x


def reread(x: Any) -> Any:
    """`x` as it is best read from now on: where it is stored as a ring, from there."""
    found = _rings.get().get(id(x)) if _always.get() is not None else None
    return x if found is None else _remember(found[1].rolled(0), found[1])


def materialize(x: Any) -> Any:
    """`x`, stored before anything reads it; `x` itself where no program of accel's is being traced."""
    from jax import lax

    always = _always.get()
    if always is None or x.ndim == 0 or x.size == 0:
        return x
    if x.size <= SMALL:
        return lax.cond(always, _same, _other, x)
    first = lax.slice(x, (0,) * x.ndim, (1,) * x.ndim)
    place = lax.select(always, np.int32(0), np.int32(1))
    return lax.dynamic_update_slice(x, first, (place,) * x.ndim)


def taken(x: Any) -> Any:
    """`x`, copied before anything is written to the arrays that it is read from.

    `materialize` is not enough for that: XLA:CPU may join the write in it with the one that follows, both in place.
    """
    from jax import lax

    always = _always.get()
    return x if always is None or x.size == 0 else lax.cond(always, _same, _other, x)


def copied(x: Any) -> Any:
    """Store `x` by a row-wise copy that XLA:CPU does not fuse. Small or one-dimensional arrays: as `materialize`."""
    from jax import lax

    if _always.get() is None or x.ndim < 2 or x.size <= SMALL:
        return materialize(x)
    axis, width = x.ndim - 1, x.shape[-1]
    longer = _joined([x, lax.slice_in_dim(x, 0, 1, axis=axis)])
    return lax.slice_in_dim(longer, 0, width, axis=axis)


def materialize_operands(template: Any, values: Any, chosen: frozenset[int]) -> Any:
    """`values`, which fill `template`, with those of the nodes `chosen` (their indices) stored."""
    if isinstance(template, Node):
        return materialize(values) if template.index in chosen else values
    if isinstance(template, dict):
        return {name: materialize_operands(part, values[name], chosen) for name, part in template.items()}
    if isinstance(template, (tuple, list)):
        parts = [materialize_operands(part, value, chosen) for part, value in zip(template, values, strict=True)]
        return type(values)(*parts) if hasattr(values, "_fields") else type(values)(parts)
    return values


def apart(read: Callable[[Any], Any], base: Any) -> Any:
    """`read(base)`, which XLA does not fuse with anything.

    In a loop that writes to the array too, a fusion that reads it beside or after the write makes XLA copy all of it,
    in every round.
    """
    from jax import lax

    always = _always.get()
    if always is None:
        return read(base)
    return lax.cond(always, read, lambda whole: _other(read(whole)), base)


@dataclass(frozen=True, slots=True)
class Apart:
    """A view step that is read `apart`."""

    step: Any

    def read(self, base: Any) -> Any:
        return apart(self.step.read, base)


def _same(x: Any) -> Any:
    return x


def _other(x: Any) -> Any:
    """Never runs; differs from `_same`, or XLA would merge the two."""
    return ~x if x.dtype == bool else x + x
