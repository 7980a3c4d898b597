"""Writes whose value XLA:CPU might compute from already overwritten elements (accel.compiler.lower.passes.aliasing).

Programs copy the value first, by means of an argument that XLA cannot know. A pure function has no such argument. There
the array is not written to: a selection builds the new array, and the selected value is written to zeros.
"""

from __future__ import annotations

from typing import Any

from accel.ir.tape import Node
from accel.ir.views import Extent, Index
from accel.rules import tracing
from accel.rules.lowering import jnp, lax


def is_chosen(node: Node) -> bool:
    """Return whether an operation is such a write, without other protection of its source."""
    return node.endangered and tracing.current().stored_by is None and isinstance(node.args[1], (Index, Extent))


def chosen(array: Any, place: Index | Extent, value: Any, *starts: Any) -> Any:
    """Return the array after the write, which has derivatives by the array and by the value."""
    array = jnp.asarray(array)

    def written(base: Any, what: Any) -> Any:
        return place.write(base, what, *starts)

    here = written(jnp.zeros(array.shape, bool), jnp.ones(jnp.shape(value), bool))
    return lax.select(here, written(jnp.zeros_like(array), value), array)
