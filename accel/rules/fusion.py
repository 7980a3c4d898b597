"""Fusion: keeping XLA:CPU from computing a value together with what reads it.

Optimization barriers do not help, as they are gone before XLA:CPU fuses. The result of a conditional is stored. The
predicate is an argument of the program that is always true, which XLA cannot know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from accel.rules.lowering import Array
from accel.rules.tracing import current


def snapshot(x: Any) -> Any:
    """Copy `x` before the arrays behind it are written (see accel.compiler.lower.passes.aliasing).

    Gives `x` itself where no program of accel's is being traced, or it is not for a CPU.
    """
    from jax import lax

    always = current().stored_by
    return x if always is None or x.size == 0 else lax.cond(always, _same, _other, x)


def read_separately(read: Callable[[Any], Any], base: object) -> Any:
    """`read(base)`, which XLA does not fuse with anything.

    XLA copies the whole array in every iteration of a loop that writes to it, if a fusion reads it beside or after the
    write.
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
