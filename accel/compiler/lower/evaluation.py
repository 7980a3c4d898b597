"""Evaluation: the operations of a traced program are gone through once more, as `rounding` and the kernels ask for.

Functions inside the program are inlined. The sides of branches and the bodies of loops are traced anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from accel.platform import jax_internals

Evaluate = Callable[[Any, Sequence[Any]], list[Any]]
"""Gives the results of a closed jaxpr for these arguments."""

INLINED = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}
"""Operations that call a function: by name, the parameter that holds it."""


def function_of(eqn: Any) -> Any:
    """Return the traced function that an operation stands for; None if it is an operation of its own."""
    parameter = INLINED.get(eqn.primitive.name)
    return jax_internals.expanded(eqn) if parameter is None else eqn.params[parameter]


def is_literal(var: Any) -> bool:
    return hasattr(var, "val")


def retraced(function: Callable[..., Any], evaluator: Callable[..., Evaluate]) -> Callable[..., Any]:
    """`function`, a function of JAX's, whose operations are gone through once more.

    evaluator: takes the function's arguments; what it returns takes the traced function and the arguments' leaves, and
    gives the results' leaves.
    """

    @functools.wraps(function)  # JAX names the program and its arguments by it
    def computed(*given: Any) -> Any:
        import jax

        closed, form = jax.make_jaxpr(function, return_shape=True)(*given)
        values = evaluator(*given)(closed, jax.tree_util.tree_leaves(given))
        return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(form), values)

    return computed


class Evaluation:
    """Goes through the operations of one traced program."""

    def closed(self, closed: Any, given: Sequence[Any]) -> list[Any]:
        """Evaluate a closed jaxpr for these values."""
        raise NotImplementedError

    def step(self, eqn: Any, given: Sequence[Any]) -> Sequence[Any]:
        """The results of one operation."""
        name, inner = eqn.primitive.name, function_of(eqn)
        if inner is not None:
            return self.closed(inner, given)
        # a choice by platform has sides that not every platform has
        if name == "cond" and eqn.params.get("branches_platforms") is None:
            return self._choice(eqn, given)
        if name in ("scan", "while"):
            return self._scan(eqn, given) if name == "scan" else self._while(eqn, given)
        found = eqn.primitive.bind(*given, **eqn.params)
        return found if eqn.primitive.multiple_results else [found]

    def _choice(self, eqn: Any, given: Sequence[Any]) -> Sequence[Any]:
        from jax import lax

        index, *operands = given
        sides = [lambda *operands, branch=branch: self.closed(branch, operands) for branch in eqn.params["branches"]]
        result: Sequence[Any] = lax.switch(index, sides, *operands)
        return result

    def _scan(self, eqn: Any, given: Sequence[Any]) -> Sequence[Any]:
        from jax import lax

        params, body = eqn.params, eqn.params["jaxpr"]
        consts, carry, moving = _parted(given, *scan_counts(eqn))

        def turn(carry: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
            after, collected, _ = _parted(self.closed(body, [*consts, *carry, *row]), len(carry), len(eqn.outvars))
            return after, collected

        about = {name: params[name] for name in ("length", "reverse", "unroll")}
        after, collected = lax.scan(turn, carry, moving, **about)
        return [*after, *collected]

    def _while(self, eqn: Any, given: Sequence[Any]) -> Sequence[Any]:
        from jax import lax

        params = eqn.params
        asking, consts, carry = _parted(given, params["cond_nconsts"], params["body_nconsts"])

        def goes_on(carry: Sequence[Any]) -> Any:
            return self.closed(params["cond_jaxpr"], [*asking, *carry])[0]

        def turn(carry: Sequence[Any]) -> list[Any]:
            after = self.closed(params["body_jaxpr"], [*consts, *carry])
            lives = goes_on(carry)
            # a loop over a batch has a condition for each member: those that have ended keep their values
            return [_chosen(lives, *each) for each in zip(after, carry, strict=True)] if lives.shape else after

        result: Sequence[Any] = lax.while_loop(lambda carry: goes_on(carry).any(), turn, carry)
        return result


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    """`x` where the condition, of the first axes, holds, else `y`."""
    from jax import lax

    return lax.select(lax.broadcast_in_dim(condition, x.shape, range(condition.ndim)), x, y)


def scan_counts(eqn: Any) -> tuple[int, int]:
    """Return the number of operands that a scan keeps constant, and the number that it carries.

    By the axes: what moves has one less in an iteration. The parameters that say so have other names from JAX 0.11 on.
    """
    body = eqn.params["jaxpr"]
    carry = sum(var.aval.ndim == inner.ndim for var, inner in zip(eqn.outvars, body.out_avals, strict=True))
    moving = sum(var.aval.ndim != inner.ndim for var, inner in zip(eqn.invars, body.in_avals, strict=True))
    return len(eqn.invars) - carry - moving, carry


def _parted(values: Sequence[Any], first: int, second: int) -> tuple[list[Any], list[Any], list[Any]]:
    """The first values, the second ones, and the others."""
    return list(values[:first]), list(values[first : first + second]), list(values[first + second :])
