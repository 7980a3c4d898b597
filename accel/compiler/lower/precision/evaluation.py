"""Evaluation: the operations of a traced program, computed in the widths that `widths` chooses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accel.compiler.lower.precision.widths import (
    EACH_ITS_OWN,
    NARROW,
    Widths,
    function_of,
    is_literal,
    is_wide,
    parted,
    scan_counts,
)

Evaluate = Callable[[Any, Sequence[Any]], list[Any]]
"""Gives the results of a closed jaxpr for these arguments."""


def reduced(function: Callable[..., Any], precision: str) -> Callable[..., Any]:
    """`function`, a function of JAX's, computed in less than float64. Its arguments and results keep their dtypes."""

    def evaluate(closed: Any, given: Sequence[Any]) -> list[Any]:
        values = ReducedEvaluation(Widths(precision)).closed(closed, given)
        return [_as(value, var.aval.dtype) for value, var in zip(values, closed.jaxpr.outvars, strict=True)]

    return retraced(function, lambda *given: evaluate)


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


def _as(value: Any, dtype: Any) -> Any:
    from jax import lax

    return value if value.dtype == dtype else lax.convert_element_type(value, dtype)


def _all_as(values: Sequence[Any], dtypes: Sequence[Any]) -> list[Any]:
    return [_as(value, dtype) for value, dtype in zip(values, dtypes, strict=True)]


def _dtypes(values: Sequence[Any]) -> list[Any]:
    return [np.dtype(value.dtype) for value in values]


class ReducedEvaluation:
    """Goes through the operations of one traced program."""

    def __init__(self, widths: Widths) -> None:
        self._widths = widths

    def closed(self, closed: Any, given: Sequence[Any]) -> list[Any]:
        """Evaluate a closed jaxpr for these values, each in the width that it has come to."""
        from jax import numpy as jnp

        jaxpr = closed.jaxpr
        values: dict[Any, Any] = dict(zip(jaxpr.invars, given, strict=True))
        values.update(zip(jaxpr.constvars, map(jnp.asarray, closed.consts), strict=True))

        def read(var: Any) -> Any:
            return jnp.asarray(var.val, var.aval.dtype) if is_literal(var) else values[var]

        for eqn in jaxpr.eqns:
            values.update(zip(eqn.outvars, self.step(eqn, [read(var) for var in eqn.invars]), strict=True))
        return [read(var) for var in jaxpr.outvars]

    def step(self, eqn: Any, given: Sequence[Any]) -> Sequence[Any]:
        """The results of one operation."""
        name, widths = eqn.primitive.name, self._widths
        inner = function_of(eqn)
        if inner is not None:
            return self.closed(inner, given)
        if widths.has_sides(eqn):
            return self._choice(eqn, given)
        if widths.is_loop(eqn):
            return self._scan(eqn, given) if name == "scan" else self._while(eqn, given)
        if name == "convert_element_type":
            return [_as(given[0], widths.converted(eqn, np.dtype(given[0].dtype)))]
        if name in EACH_ITS_OWN:
            return _bound(eqn, given, eqn.params)
        narrow = widths.is_narrowed(eqn, _dtypes(given))
        values = [
            _as(value, NARROW[var.aval.dtype] if narrow else var.aval.dtype) if is_wide(var) else value
            for value, var in zip(given, eqn.invars, strict=True)
        ]
        if name == "reduce":
            return self._reduce(values, eqn.params)
        params = {key: _narrowed(key, value) for key, value in eqn.params.items()} if narrow else eqn.params
        return [_scatter(name, values, params)] if name.startswith("scatter") else _bound(eqn, values, params)

    def _reduce(self, values: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        """A reduction by a computation of its own, which is traced again for the operands' dtypes."""
        from jax import lax

        first, dtypes = len(values) // 2, _dtypes(values)

        def join(left: Sequence[Any], right: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(_all_as(self.closed(params["jaxpr"], [*left, *right]), dtypes[:first]))

        found: Sequence[Any] = lax.reduce(tuple(values[:first]), tuple(values[first:]), join, params["dimensions"])
        return found

    # -- control flow -------------------------------------------------------------------------------------------------

    def _choice(self, eqn: Any, given: Sequence[Any]) -> Sequence[Any]:
        from jax import lax

        index, *operands = given
        dtypes = self._widths.of_choice(eqn, _dtypes(operands))

        def side(branch: Any, *operands: Any) -> list[Any]:
            return _all_as(self.closed(branch, operands), dtypes)

        sides = [functools.partial(side, branch) for branch in eqn.params["branches"]]
        result: Sequence[Any] = lax.switch(index, sides, *operands)
        return result

    def _scan(self, eqn: Any, given: Sequence[Any]) -> Sequence[Any]:
        from jax import lax

        params, body = eqn.params, eqn.params["jaxpr"]
        consts, carry, moving = parted(given, *scan_counts(eqn))
        dtypes = self._widths.settled(body, *map(_dtypes, (consts, carry, moving)))

        def turn(carry: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
            after, collected, _ = parted(self.closed(body, [*consts, *carry, *row]), len(carry), len(eqn.outvars))
            return _all_as(after, dtypes), collected

        about = {name: params[name] for name in ("length", "reverse", "unroll")}
        after, collected = lax.scan(turn, _all_as(carry, dtypes), moving, **about)
        return [*after, *collected]

    def _while(self, eqn: Any, given: Sequence[Any]) -> Sequence[Any]:
        from jax import lax

        params = eqn.params
        asking, consts, carry = parted(given, params["cond_nconsts"], params["body_nconsts"])
        dtypes = self._widths.settled(params["body_jaxpr"], _dtypes(consts), _dtypes(carry), [])

        def goes_on(carry: Sequence[Any]) -> Any:
            return self.closed(params["cond_jaxpr"], [*asking, *carry])[0]

        def turn(carry: Sequence[Any]) -> list[Any]:
            after = _all_as(self.closed(params["body_jaxpr"], [*consts, *carry]), dtypes)
            lives = goes_on(carry)
            # a loop over a batch has a condition for each member: those that have ended keep their values
            return [_chosen(lives, *each) for each in zip(after, carry, strict=True)] if lives.shape else after

        result: Sequence[Any] = lax.while_loop(lambda carry: goes_on(carry).any(), turn, _all_as(carry, dtypes))
        return result


# -- operations that are computed as they are --------------------------------------------------------------------------


def _narrowed(name: str, param: Any) -> Any:
    """A parameter of an operation: one that is a wide dtype becomes narrow, and products are those of float32.

    Of float32, GPUs and TPUs would multiply fewer bits where nothing is said.
    """
    if name == "precision" and param is None:
        from jax import lax

        return lax.Precision.HIGHEST, lax.Precision.HIGHEST
    if isinstance(param, np.dtype) or (isinstance(param, type) and issubclass(param, np.generic)):
        return NARROW.get(np.dtype(param), param)
    return param


def _bound(eqn: Any, values: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
    found = eqn.primitive.bind(*values, **params)
    return found if eqn.primitive.multiple_results else [found]


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    """`x` where the condition, of the first axes, holds, else `y`."""
    from jax import lax

    return lax.select(lax.broadcast_in_dim(condition, x.shape, range(condition.ndim)), x, y)


def _scatter(name: str, values: Sequence[Any], params: dict[str, Any]) -> Any:
    """A scatter, whose computation is traced again for the operands' dtypes."""
    from jax import lax

    about = {key: params[key] for key in ("indices_are_sorted", "unique_indices", "mode")}
    return getattr(lax, name.replace("-", "_"))(*values, params["dimension_numbers"], **about)
