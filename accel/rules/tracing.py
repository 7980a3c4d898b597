"""Tracing: how the program that is being traced is to compute, beside what its operands say.

Set once, around the whole program. Without that, as where a rule is tried alone, operations are plain ones of JAX's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Tracing:
    """Questions that rules may ask of the program that is traced."""

    stored_by: Any = None
    """Traced bool by which values are copied (`stored`): it is true, and XLA cannot know. None: none are."""
    has_host_calls: bool = False
    """Whether NumPy may fill results (accel.rules.filling): in its own precision, on one CPU, without derivatives."""
    has_derivatives: bool = False
    """Whether forms that have derivatives are chosen where the fastest have none. Sorting and selecting go by integer
    keys, which have none; elements are gathered by their places instead."""
    for_kernels: bool = False
    """Whether accel's own kernels take the program (accel.compiler.kernels), whose reductions keep NaN as NumPy's
    do."""
    is_exact: bool = False
    """Whether NumPy computes what it rounds in its own way (accel.compiler.lower.exact)."""


_current: ContextVar[Tracing] = ContextVar("how the program that is traced computes", default=Tracing())  # noqa: B039


def current() -> Tracing:
    """Options of the program that is being traced."""
    return _current.get()


@contextlib.contextmanager
def traced(**changes: Any) -> Iterator[None]:
    """While a program, or a part of it, is traced: fields of `Tracing` that are other than around it."""
    token = _current.set(replace(_current.get(), **changes))
    try:
        yield
    finally:
        _current.reset(token)


def stored(x: Any) -> Any:
    """Copy `x` before the arrays behind it are written (see accel.compiler.lower.passes.aliasing).

    XLA:CPU fuses across barriers, and stores the result of a conditional. Gives `x` itself where no program of accel's
    is being traced, or it is not for a CPU.
    """
    from jax import lax

    def other(x: Any) -> Any:
        """Never runs; without it, XLA would remove the conditional."""
        return ~x if x.dtype == bool else x + x

    always = current().stored_by
    return x if always is None or x.size == 0 else lax.cond(always, lambda x: x, other, x)
