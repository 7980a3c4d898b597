"""QD_JAX_EXACT: operations that NumPy itself computes, so that each bit of a program's results is NumPy's.

Kernels give NumPy's bits where the true result is rounded once, or not at all (`Rounding`). Each other operation is a
call of NumPy's or SciPy's own function in the middle of the program's run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.ir.loop import body_of
from accel.ir.tape import Node
from accel.ir.template import fill
from accel.rules import filling
from accel.rules.columns import rounds_freely
from accel.rules.evaluation import call
from accel.rules.rule import Rule
from accel.rules.special import WritesInto
from accel.rules.tracing import current


def is_numpys(node: Node) -> bool:
    """Whether NumPy is to compute an operation of the program that is traced."""
    if not current().is_exact or node.dtype is None or not rounds_freely(node):
        return False
    return body_of(node) is None and not isinstance(node.rule.recorded.special, WritesInto)


@dataclass(frozen=True)
class _Operand:
    """Stands for an array that the program gives. scalar: the type of a number that it is in NumPy, or None."""

    position: int
    scalar: Any


@dataclass(frozen=True)
class _Operation:
    """An operation called by the program. template: the arguments, with operands in them."""

    rule: Rule
    template: tuple[tuple[Any, ...], dict[str, Any]]

    def __call__(self, *arrays: Any) -> None:
        *given, result = arrays

        def value_of(operand: _Operand) -> Any:
            value = given[operand.position][()]
            return value if operand.scalar is None else operand.scalar(value)

        with np.errstate(all="ignore"):
            result[...] = call(self.rule, *fill(self.template, value_of, _Operand))


def by_numpy(node: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The operation's result, which NumPy computes.

    args, kwargs: with arrays of JAX's in place of NumPy's.
    """
    values = dict(_operands((node.args, node.kwargs), (args, kwargs)))
    given = {operand: value for operand, value in values.items() if hasattr(value, "shape")}
    positions = {operand: position for position, operand in enumerate(given)}

    def part(operand: Node) -> Any:
        return _Operand(positions[operand], operand.scalar) if operand in positions else values[operand]

    operation = _Operation(node.rule, fill((node.args, node.kwargs), part, Node))
    return filling.filled(operation, list(given.values()), node.shape, node.dtype, _refuse)


def _operands(template: Any, filled: Any) -> Iterator[tuple[Node, Any]]:
    """The operands of a template, and what stands for them in a filled one."""
    if isinstance(template, Node):
        yield template, filled
    elif isinstance(template, (tuple, list)):
        for part, other in zip(template, filled, strict=True):
            yield from _operands(part, other)
    elif isinstance(template, dict):
        for name, part in template.items():
            yield from _operands(part, filled[name])
    elif isinstance(template, slice):
        for name in ("start", "stop", "step"):
            yield from _operands(getattr(template, name), getattr(filled, name))


def _refuse(*operands: Any) -> Any:
    raise NotImplementedError("NumPy computes one member after the other")
