"""Evaluate a tape's operations in a function that JAX differentiates and maps.

It computes each operation by the lowering of its rule, as programs do. It leaves out the parts that only a compiled
program on one device needs: no value is stored on purpose, and none is hidden from XLA. A branch becomes a `lax.switch`
or a selection. A loop by data becomes a bounded scan. Gates stand before the operands that selections drop (see
accel.transform.pure.gates).

XLA:CPU might compute the value of a write from already overwritten elements (accel.compiler.lower.passes.aliasing).
Programs copy the value first, by means of an argument that XLA cannot know. A pure function has no such argument. There
the array is not written to: a selection builds the new array, and the selected value is written to zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from accel.compiler.lower import looping
from accel.compiler.lower.operations import as_array, compute
from accel.compiler.lower.passes.aliasing import copied_before_writes
from accel.compiler.lower.passes.branches import Conditional, branched
from accel.ir.loop import LoopBody, body_of
from accel.ir.tape import Node
from accel.ir.template import fill
from accel.ir.views import Extent, Index
from accel.rules import core, tracing
from accel.rules.lowering import jnp, lax
from accel.transform.pure import gates, norms
from accel.transform.pure.gates import EVERYWHERE, Mask

Part = Node | Conditional


class Plan:
    """The operations to compute, analysed once.

    body: operations in order. roots: the requested values. rounds: maximum iterations of a loop by data; None: the
    maximum of the compiled program. derives: True if the function can be differentiated. False leaves out the gates,
    stores values as in programs, and bounds loops only as programs do. still: indices of operands that are constants.
    """

    def __init__(
        self,
        body: Sequence[Node],
        roots: Sequence[Node],
        rounds: int | None,
        derives: bool = True,
        still: Container[int] = (),
    ) -> None:
        body = copied_before_writes(body)
        self.nodes = {node.index: node for node in body}
        self.parts: list[Part] = branched(body, frozenset(node.index for node in roots))
        self.live = gates.live_masks(body, roots) if derives else {}
        self.moving = gates.moving_masks(body, still) if derives else {}
        self.rounds = rounds
        self.derives = derives
        self.bodies = {
            node.index: Plan(inner.operations, inner.roots, rounds, derives)
            for node in body
            if (inner := body_of(node)) is not None
        }


class Evaluation:
    """The values of one plan's operations. given: by index, the values of input nodes."""

    def __init__(self, plan: Plan, given: Mapping[int, Any]) -> None:
        self._plan = plan
        self._values: dict[int, Any] = dict(given)
        self._plain: dict[int, Any] = {}
        self._masks: dict[Mask, Any] = {}

    def run(self) -> None:
        for part in self._plan.parts:
            self._compute(part)

    def fetch(self, node: Node) -> Any:
        return self._values[node.index]

    # -- operations ---------------------------------------------------------------------------------------------------

    def _compute(self, part: Part) -> None:
        if isinstance(part, Conditional):
            self._compute_conditional(part)
        elif body_of(part) is not None:
            self._values[part.index] = self._rounds(part)
        elif self._plan.derives and norms.is_norm(part):
            args, kwargs = self._operands(part)
            self._values[part.index] = norms.computed(part, args, lambda *given: compute(part, given, kwargs))
        else:
            self._values[part.index] = self._moving(part, _computed(part, *self._operands(part)), part)

    def _operands(self, node: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        live = self._plan.live.get(node.index, EVERYWHERE)
        if live and gates.is_elementwise(node) and node.dtype is not None:
            fetch: Callable[[Node], Any] = lambda each: self._gated(each, node, live)  # noqa: E731
        else:
            fetch = self.fetch
        return fill((node.args, node.kwargs), lambda each: self._moving(each, fetch(each), node), Node)  # type: ignore[no-any-return]

    def _moving(self, which: Node, value: Any, node: Node) -> Any:
        """Return an operand or result of an operation, with derivatives only where the operation's result varies."""
        mask = self._plan.moving.get(node.index, EVERYWHERE)
        if not mask or which.shape != node.shape or not _has_derivatives(which) or not _is_traced(value):
            return value
        return gates.gate(value, self._mask(mask, node.shape))

    def _gated(self, operand: Node, node: Node, live: Mask) -> Any:
        """Return an operand whose derivatives count only where the operation's result is read."""
        value = self.fetch(operand)
        if not _has_derivatives(operand) or not _is_traced(value):
            return value
        inner = self._plan.nodes.get(operand.index)
        has_own = inner is not None and gates.is_elementwise(inner) and operand.shape == node.shape
        if has_own and live <= self._plan.live.get(operand.index, EVERYWHERE):
            return value
        return gates.gate(jnp.broadcast_to(value, node.shape), self._mask(live, node.shape))

    # -- masks --------------------------------------------------------------------------------------------------------

    def _mask(self, live: Mask, shape: tuple[int, ...]) -> Any:
        found = self._masks.get(live)
        if found is None:
            truths = [gates.condition_value(each, self._condition) for each in sorted(live, key=repr)]
            found = jnp.asarray(truths[0])
            for truth in truths[1:]:
                found = found & truth
            self._masks[live] = found = jnp.broadcast_to(found, shape)
        return found

    def _condition(self, index: int, key: Hashable, form: tuple[int, ...]) -> Any:
        """Return the mask of elements at which an operation reads an operand.

        The operation may come later in the tape, so its operands are computed as plain values.
        """
        node = self._plan.nodes[index]
        if node.rule is core.PHI:
            choice = self._plain_value(node.args[0])
            return jnp.broadcast_to(jnp.asarray(choice) == key[1], form)  # type: ignore[index]
        args, kwargs = fill((node.args, node.kwargs), self._plain_value, Node)
        args = tuple(as_array(each) for each in args)
        kwargs = {name: as_array(each) if name in node.rule.operands else each for name, each in kwargs.items()}
        return gates.read_truths(node, key, args, kwargs, form)

    def _plain_value(self, node: Node) -> Any:
        """Return a node's value without gates and derivatives, from the computed values or computed for this
        purpose."""
        stack = [node]
        while stack:
            top = stack[-1]
            if self._known_plain(top) is not None:
                stack.pop()
                continue
            missing = [each for each in top.operands() if self._known_plain(each) is None]
            if missing:
                stack += missing
                continue
            self._plain[top.index] = self._computed_plain(top)
            stack.pop()
        return self._known_plain(node)

    def _known_plain(self, node: Node) -> Any:
        found = self._plain.get(node.index)
        if found is None:
            value = self._values.get(node.index)
            if value is not None:
                found = self._plain[node.index] = _stopped(value)
        return found

    def _computed_plain(self, node: Node) -> Any:
        args, kwargs = fill((node.args, node.kwargs), lambda each: self._known_plain(each), Node)
        if body_of(node) is not None:
            return self._bounded(node, *args)
        return _computed(node, args, kwargs)

    # -- branches -----------------------------------------------------------------------------------------------------

    def _compute_conditional(self, conditional: Conditional) -> None:
        """Compute the chosen side of a branch. Mapped over members, both sides are computed, so each has its gates."""
        choice = jnp.asarray(self.fetch(conditional.choice)).astype(np.int32).reshape(())
        outside = {node.index: node for node in conditional.operands() if node.index not in conditional.inside}
        before = self._values, self._plain, self._masks

        def side(place: int) -> Any:
            def computed() -> list[Any]:
                here = choice == place
                self._values, self._plain, self._masks = (dict(each) for each in before)  # type: ignore[assignment]
                try:
                    for node in outside.values():
                        self._values[node.index] = self._entering(node, here)
                    for part in conditional.sides[place]:
                        self._compute(part)
                    return [self._chosen(phi, phi.args[1][place]) for phi in conditional.phis]
                finally:
                    self._values, self._plain, self._masks = before

            return computed

        results = lax.switch(choice, [side(place) for place in range(len(conditional.sides))])
        for phi, value in zip(conditional.phis, results, strict=True):
            self._values[phi.index] = value

    def _entering(self, node: Node, here: Any) -> Any:
        value = self.fetch(node)
        if not self._plan.derives or not _has_derivatives(node) or not _is_traced(value):
            return value
        return gates.gate(value, jnp.broadcast_to(here, value.shape))

    def _chosen(self, phi: Node, side: Node | None) -> Any:
        form = phi.kwargs["form"]
        return core.any_value(form) if side is None else core.cast(self.fetch(side), form[1]).reshape(form[0])

    # -- loops by data ------------------------------------------------------------------------------------------------

    def _rounds(self, node: Node) -> list[Any]:
        return self._bounded(node, *fill(node.args, self.fetch, Node))

    def _bounded(self, node: Node, begin: Any, entry: Any, moving: Sequence[Any], fixed: Sequence[Any]) -> list[Any]:
        body = body_of(node)
        assert body is not None
        return bounded(body, self._plan.bodies[node.index], begin, entry, moving, fixed)


def _computed(node: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return chosen(*args) if is_chosen(node) else compute(node, args, kwargs)


def _stopped(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)([_stopped(each) for each in value])
    return lax.stop_gradient(value) if _is_traced(value) else value


def _has_derivatives(node: Node) -> bool:
    return node.dtype is not None and node.dtype.kind in "fc"


def _is_traced(value: object) -> bool:
    import jax

    return isinstance(value, jax.Array)


def bounded(
    body: LoopBody, plan: Plan, begin: Any, entry: Any, moving: Sequence[Any], fixed: Sequence[Any]
) -> list[Any]:
    """Run a loop by data with a bound on its iterations, so that reverse mode can go back through them.

    The result is that of `accel.compiler.lower.looping.run`. Iterations are computed in chunks, and only the state at
    the start of each chunk is kept. Iterations after the last one cost next to nothing, unless the function is mapped
    over members. A plan that does not derive uses a `lax.while_loop`, which ends with the last iteration of the last
    member.
    """
    import jax

    limit = body.limit if plan.rounds is None else min(body.limit, plan.rounds)
    chunk = max(1, math.isqrt(limit))

    def goes_on(carry: looping.Carry) -> Any:
        return looping.goes_on(carry, limit)

    def turn(carry: looping.Carry) -> looping.Carry:
        here = goes_on(carry)
        given = {
            node.index: gates.gate(jnp.asarray(value), jnp.broadcast_to(here, jnp.shape(value)))
            if plan.derives and _has_derivatives(node)
            else value
            for node, value in zip(body.parameters, (*carry[0], *fixed), strict=True)
        }
        values = Evaluation(plan, given)
        values.run()
        return looping.after_iteration(body, values.fetch, carry)

    def one(carry: Any, _: Any) -> Any:
        return lax.cond(goes_on(carry), turn, lambda same: same, carry), None

    @jax.checkpoint
    def several(carry: Any) -> Any:
        return lax.scan(one, carry, None, length=chunk)[0]

    def more(carry: Any, _: Any) -> Any:
        return lax.cond(goes_on(carry), several, lambda same: same, carry), None

    first = looping.before_iterations(body, begin, entry, moving)
    if not plan.derives:
        return looping.after_iterations(lax.while_loop(goes_on, turn, first), body)
    return looping.after_iterations(lax.scan(more, first, None, length=-(-limit // chunk))[0], body)


# -- writes -----------------------------------------------------------------------------------------------------------


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
