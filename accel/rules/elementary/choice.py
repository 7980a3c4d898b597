"""Which function an operation gets: jax.numpy's, or one of this package's."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from accel.rules import fusion
from accel.rules.elementary import areas, circular, exponentials, logarithms, powers, trigonometric
from accel.rules.lowering import function_of, jnp
from accel.rules.tracing import current

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(logarithms.log, logarithms.log2, logarithms.log10, logarithms.log1p, logarithms.logaddexp),
        *(exponentials.sinh, exponentials.cosh),
        *(powers.power, powers.cbrt),
        *(circular.arctan, circular.arctan2, circular.arcsin, circular.arccos),
        *(areas.arcsinh, areas.arctanh),
        *(trigonometric.sin, trigonometric.cos, trigonometric.tan),
    )
}
"""By NumPy's names: what is at least 1.2 times as fast as XLA's function (`python -m benchmarks.elementary`)."""

FEW = 64
"""Elements for which XLA's function is as good: what a longer program costs to compile does not come back."""

STORED = frozenset({"power"})
"""Functions whose results are stored. XLA computes again what several loops read, but for quotients, and there is much
to them: a formula that reads a power three times took 1030 us instead of 630."""


def chosen(name: str, *operands: Any) -> Callable[..., Any]:
    """The function of that name of jax.numpy, or this package's where it is allowed, for real float64 arrays."""
    if current().has_elementary and name in FUNCTIONS and _are_many(operands):
        return functools.partial(_apply, name)
    return function_of(name)


def _are_many(operands: tuple[Any, ...]) -> bool:
    if not all(type(each) is float or getattr(each, "dtype", None) == np.float64 for each in operands):
        return False
    return int(np.prod(np.broadcast_shapes(*(np.shape(each) for each in operands)))) >= FEW


def _apply(name: str, *operands: Any) -> Any:
    found = _compiled(name)(*(jnp.asarray(each, np.float64) for each in operands))
    return fusion.materialize(found) if name in STORED and found.size > fusion.SMALL else found


@functools.cache
def _compiled(name: str) -> Any:
    """Traced once for all operations of the same shape; XLA puts it into what surrounds it."""
    import jax

    return jax.jit(FUNCTIONS[name])
