"""Results that NumPy fills in the middle of a program's run, on the program's own memory, where XLA takes longer.

Such calls cost some microseconds. They have no derivatives: programs that are differentiated keep XLA's operations, and
so do those of several devices, of other devices than the host, and of other precisions than NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accel.rules.tracing import current


def are_allowed() -> bool:
    """Whether the program that is traced may have such calls, and this version of JAX has them."""
    from accel.platform import callbacks

    return current().has_host_calls and callbacks.are_possible()


def filled(
    function: Callable[..., None],
    read: Sequence[Any],
    shape: Sequence[int],
    dtype: Any,
    otherwise: Callable[..., Any] | None = None,
) -> Any:
    """Call `function(*read, result)`, which writes to its last argument, an array of this shape and dtype.

    otherwise: XLA's own, of what is read: for many at once, as iterations of a loop that are computed together. None
    for a function of one array, element by element, which computes many by itself.
    """
    import jax
    import numpy as np

    from accel.platform import callbacks

    form = tuple(shape), np.dtype(dtype).str

    @jax.custom_batching.custom_vmap
    def result(read: Sequence[Any]) -> Any:
        return callbacks.filled(function, read, form)

    @result.def_vmap
    def of_many(size: int, are_many: Any, read: Sequence[Any]) -> tuple[Any, bool]:
        if otherwise is None:
            return filled(function, read, (size, *shape), dtype), True
        axes = [0 if each else None for each in are_many[0]]
        return jax.vmap(otherwise, axes, axis_size=size)(*read), True

    return result(list(read))
