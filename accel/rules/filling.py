"""Results that NumPy fills in the middle of a program's run, on the program's own memory, where XLA takes longer.

Such calls cost some microseconds. They have no derivatives: programs that are differentiated keep XLA's operations, and
so do those of several devices, of other devices than the host, and of other precisions than NumPy's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

_allowed: ContextVar[bool] = ContextVar("calls that fill results", default=False)


@contextlib.contextmanager
def allowed(are_allowed: bool) -> Iterator[None]:
    """While a program is traced: whether it computes in NumPy's precision, on one CPU, and is not differentiated."""
    token = _allowed.set(are_allowed and _are_possible())
    try:
        yield
    finally:
        _allowed.reset(token)


def _are_possible() -> bool:
    from accel.backend import callbacks

    return callbacks.are_possible()


def are_allowed() -> bool:
    """Whether the program that is traced may have such calls."""
    return _allowed.get()


def filled(
    function: Callable[..., None],
    read: Sequence[Any],
    shape: Sequence[int],
    dtype: Any,
    otherwise: Callable[..., Any],
    operands: Sequence[Any] | None = None,
) -> Any:
    """What `function(*read, result)` writes to its last argument, an array of this shape and dtype.

    otherwise: XLA's own, of `operands` (those that are read, unless given): for many at once, as rounds of a loop that
    are computed together.
    """
    import jax
    import numpy as np

    from accel.backend import callbacks

    operands = read if operands is None else operands
    form = tuple(shape), np.dtype(dtype).str

    # with the operands beside what is really read: XLA drops what is not
    @jax.custom_batching.custom_vmap
    def result(operands: Sequence[Any], read: Sequence[Any]) -> Any:
        return callbacks.filled(function, read, form)

    @result.def_vmap
    def of_many(size: int, are_many: Any, operands: Sequence[Any], read: Sequence[Any]) -> tuple[Any, bool]:
        axes = [0 if each else None for each in are_many[0]]
        return jax.vmap(otherwise, axes, axis_size=size)(*operands), True

    return result(list(operands), list(read))
