"""Traced programs as a flat list of operations: all inner functions are inlined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.compiler.kernels.elementary import FUNCTIONS
from accel.compiler.lower.precision.widths import function_of, is_literal


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal number in a program. value: a NumPy scalar."""

    value: Any


@dataclass(eq=False, slots=True)
class Variable:
    """A value of a flat program. constant: its array, if it is known before the program runs."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    constant: Any = None


Atom = Literal | Variable


@dataclass(eq=False, slots=True)
class Equation:
    """One operation of a flat program. eqn: the equation as it was traced."""

    eqn: Any
    operands: list[Atom]
    results: list[Variable]

    @property
    def params(self) -> dict[str, Any]:
        params: dict[str, Any] = self.eqn.params
        return params

    @property
    def name(self) -> str:
        name = str(self.eqn.primitive.name)
        return str(self.params["name"]) if name in _JITTED else name


@dataclass(eq=False, slots=True)
class Flat:
    """A traced program with all inner functions inlined."""

    inputs: list[Variable]
    outputs: list[Atom]
    steps: list[Equation]

    def producers(self) -> dict[Variable, Equation]:
        """Return, by value, the step that computes it."""
        return {result: step for step in self.steps for result in step.results}


def flat(closed: Any) -> Flat:
    """Return the operations of a closed jaxpr, with the operations of inner functions in place of their calls.

    JAX functions that are one operation of the kernels stay in one piece.
    """
    inputs = [_variable(var) for var in closed.jaxpr.invars]
    steps: list[Equation] = []
    outputs = _flatten(closed, inputs, steps)
    return Flat(inputs, outputs, steps)


def iteration(goes_on: Any, body: Any, fixed: int) -> Flat:
    """Return the operations of an iteration of `jax.lax.while_loop`, and of the question whether another one follows.

    fixed: number of inputs of `goes_on` besides the state. They come first, then the inputs of `body`.
    """
    inputs = [_variable(var) for var in (*goes_on.jaxpr.invars[:fixed], *body.jaxpr.invars)]
    steps: list[Equation] = []
    state = _flatten(body, inputs[fixed:], steps)
    return Flat(inputs, [*state, *_flatten(goes_on, [*inputs[:fixed], *state], steps)], steps)


_JITTED = frozenset({"jit", "pjit"})
"""Names of operations that call a named function."""


def _variable(var: Any) -> Variable:
    return Variable(tuple(var.aval.shape), np.dtype(var.aval.dtype))


def _flatten(closed: Any, given: Sequence[Atom], steps: list[Equation]) -> list[Atom]:
    jaxpr = closed.jaxpr
    values: dict[Any, Atom] = dict(zip(jaxpr.invars, given, strict=True))
    for var, value in zip(jaxpr.constvars, closed.consts, strict=True):
        array = np.asarray(value)
        values[var] = Variable(array.shape, array.dtype, array)

    def atom(var: Any) -> Atom:
        return Literal(np.asarray(var.val, var.aval.dtype)[()]) if is_literal(var) else values[var]

    for eqn in jaxpr.eqns:
        operands = [atom(var) for var in eqn.invars]
        inner = eqn.params["call"] if eqn.primitive.name == "custom_vmap_call" else function_of(eqn)
        dtypes = {var.aval.dtype for var in (*eqn.invars, *eqn.outvars)}
        if inner is not None and not (eqn.params.get("name") in FUNCTIONS and len(dtypes) == 1):
            values.update(zip(eqn.outvars, _flatten(inner, operands, steps), strict=True))
            continue
        results = [_variable(var) for var in eqn.outvars]
        steps.append(Equation(eqn, operands, results))
        values.update(zip(eqn.outvars, results, strict=True))
    return [atom(var) for var in jaxpr.outvars]
