"""Derivatives: those that JAX has not, or has otherwise at single points.

A lowering that puts a constant where an operand is 0, or that works on signs and bits, gives the right value and a
wrong derivative there. Programs without derivatives are not changed by any of this.
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


def with_slope(function: Callable[[Any], Any], slope: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of one array with the derivative `slope`, which has derivatives itself."""

    def lower(x: Any) -> Any:
        return _with_slope(function, slope)(x) if current().has_derivatives else function(x)

    return lower


@functools.cache
def _with_slope(function: Callable[[Any], Any], slope: Callable[[Any], Any]) -> Any:
    import jax

    made = jax.custom_jvp(function)
    made.defjvps(lambda tangent, answer, x: slope(x) * tangent)
    return made
