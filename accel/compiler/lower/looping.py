"""Loops by data in a traced program: `lax.while_loop` around the body's operations (see accel.compiler.loops)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from accel.compiler.lower import pipeline
from accel.compiler.lower.passes.arrange import Part
from accel.ir.loop import LoopBody
from accel.ir.tape import Node
from accel.rules import core
from accel.rules.lowering import Array

if TYPE_CHECKING:
    from accel.compiler.lower.values import Values


class Parameters:
    """Values of one iteration for the operations of a loop body, as `ProgramArguments` is for a program."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    def includes(self, node: Node) -> bool:
        return node.is_input

    holds = includes

    def value(self, node: Node, *given: object) -> Any:
        return self._values[node.args[0]]

    def table(self, values: NDArray[Any], constants: object) -> Any:
        return values


def parts_of(body: LoopBody) -> Sequence[Part]:
    """The operations of an iteration after all passes, with the loops in it."""
    about = pipeline.About(
        results=frozenset(node.index for node in body.roots),
        state=list(enumerate(body.updates)),
        value_of=lambda node: None,
        left=body.updates,
    )
    return pipeline.with_loops(pipeline.optimized(body.operations, about), about)


def run(
    body: LoopBody,
    begin: Any,
    entry: Any,
    moving: Sequence[Any],
    fixed: Sequence[Any],
    values_of: Callable[[Parameters], Values],
) -> list[Any]:
    """Emit a loop. Returns the values that it carries, whether its condition ended it, and whether its limit did.

    begin: the condition's value before the loop. entry: whether the path's assumptions so far hold; None if there are
    none. values_of: the values of an iteration, from its parameters.

    An iteration on a way that was not recorded is the last one: iterations that NumPy does not make may never end.
    """
    from jax import lax

    parts = parts_of(body)

    def turn(carry: Carry) -> Carry:
        values = values_of(Parameters([*carry[0], *fixed]))
        for part in parts:
            values.compute(part)
        return after_iteration(body, values.fetch, carry)

    first = before_iterations(body, begin, entry, moving)
    return after_iterations(lax.while_loop(lambda carry: goes_on(carry, body.limit), turn, first), body)


Carry = tuple[list[Any], Any, Any, Any]
"""Between two iterations: the values that move, what was asked last, whether all that was assumed holds, and how many
iterations there were."""


def before_iterations(body: LoopBody, begin: Any, entry: Any, moving: Sequence[Any]) -> Carry:
    """The carry of the first iteration; arguments as of `run`."""
    from jax import numpy as jnp

    first = [_as_carried(value, node) for value, node in zip(moving, body.parameters, strict=False)]
    asked = jnp.asarray(begin).reshape(()) == body.stay
    holds = jnp.asarray(True if entry is None else entry).reshape(())
    return first, asked, holds, jnp.int32(0)


def goes_on(carry: Carry, limit: int) -> Any:
    """Whether there is another iteration."""
    _, asked, holds, count = carry
    return asked & holds & (count < limit)


def after_iteration(body: LoopBody, fetch: Callable[[Node], Any], carry: Carry) -> Carry:
    """The carry after an iteration. fetch: gives its values. carry: the one before it."""
    from jax import numpy as jnp

    after = [_as_carried(fetch(node), model) for node, model in zip(body.updates, body.parameters, strict=False)]
    asked = jnp.asarray(fetch(body.asked)).reshape(()) == body.stay
    holds = _takes_any(body, [fetch(node) for node in body.assumed])
    return after, asked, holds, carry[3] + jnp.int32(1)


def after_iterations(carry: Carry, body: LoopBody) -> list[Any]:
    """Return the loop's results, from the last carry."""
    after, asked, holds, count = carry
    return [*after, holds & ~asked, holds & asked & (count == body.limit)]


def _takes_any(body: LoopBody, assumed: Sequence[Any]) -> Any:
    """Whether an iteration takes one of the ways that were recorded."""
    from jax import numpy as jnp

    found = jnp.asarray(False)
    for kind in body.kinds:
        pairs = [(value, wanted) for value, wanted in zip(assumed, kind, strict=True) if wanted is not None]
        found = found | core.agree((value for value, _ in pairs), (wanted for _, wanted in pairs))
    return found


def _as_carried(value: Any, node: Node) -> Array | Any:
    """A value in a node's shape and dtype, as a loop carries it."""
    from jax import lax

    return lax.convert_element_type(core.cast(value, node.dtype).reshape(node.shape), np.dtype(node.dtype))
