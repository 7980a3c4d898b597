"""Derivatives that JAX lacks, or has otherwise at single points.

A lowering may put a constant where an operand is 0, or work on signs and bits. It gives the right value there, and a
wrong derivative. Programs without derivatives are not changed by any of this.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from accel.rules.tracing import current


def derived_from(value: Any, of: Any) -> Any:
    """`value`, with the derivatives that `of` has. Both are of one shape and dtype."""
    return _derived_from()(value, of) if current().has_derivatives else value


@functools.cache
def _derived_from() -> Any:
    import jax

    @jax.custom_jvp
    def first(value: Any, of: Any) -> Any:
        return value

    @first.defjvp
    def tangent(primals: Any, tangents: Any) -> Any:
        return first(*primals), tangents[1]

    return first


def with_slopes(function: Callable[..., Any], *slopes: Callable[..., Any]) -> Callable[..., Any]:
    """A function of some arrays of floats with the derivatives `slopes`, one by each of them.

    slopes: take the same arrays, and have derivatives themselves. One by which nothing is derived counts for nothing,
    not for 0 times an infinity.
    """
    derived = always_with_slopes(function, *slopes)
    return lambda *arrays: derived(*arrays) if current().has_derivatives else function(*arrays)


def always_with_slopes(function: Callable[..., Any], *slopes: Callable[..., Any]) -> Callable[..., Any]:
    """As `with_slopes`, in any program. For slopes: JAX asks for them later, when nothing tells what a program has."""
    return lambda *arrays: _with_slopes(function, slopes)(*arrays)


@functools.cache
def _with_slopes(function: Callable[..., Any], slopes: tuple[Callable[..., Any], ...]) -> Any:
    import jax
    from jax.custom_derivatives import SymbolicZero

    made = jax.custom_jvp(function)

    def tangent(arrays: Any, tangents: Any) -> Any:
        found = made(*arrays)
        total: Any = jax.numpy.zeros_like(found)
        for slope, along in zip(slopes, tangents, strict=True):
            if not isinstance(along, SymbolicZero):
                total = total + slope(*arrays) * along
        return found, total

    made.defjvp(tangent, symbolic_zeros=True)
    return made
