"""Functions that XLA:CPU computes with up to 500 wrong units in the last place, made of others that it computes well.

Measured against long doubles: `sinh` and `cosh` 496 units at 600, where the exponent is shifted before it is rounded;
`log1p` 127 and `atanh` 129 units at 0.41, by a rational approximation. In float32 `sinh` and `cosh` 25. As below: 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

Hide = Callable[[Any], Any]
"""Returns a value so that XLA cannot see how it was computed."""


def _log1p(x: Any, hide: Hide) -> Any:
    """By the logarithm of the sum as it was rounded, times the share of `x` that is left in the sum."""
    from jax import numpy as jnp

    total = hide(1.0 + x)
    rest = total - 1.0
    return jnp.where(rest == 0.0, x, jnp.where(total == np.inf, x, jnp.log(total) * (x / rest)))


def _atanh(x: Any, hide: Hide) -> Any:
    from jax import numpy as jnp

    size = jnp.abs(x)
    return jnp.copysign(0.5 * _log1p(2.0 * size / hide(1.0 - size), hide), x)


def _large(size: Any) -> Any:
    """Half of the exponential, by two steps as it may overflow."""
    from jax import numpy as jnp

    root = jnp.exp(0.5 * size)
    return (0.5 * root) * root


def _cosh(x: Any, hide: Hide) -> Any:
    from jax import numpy as jnp

    size = jnp.abs(x)
    raised = jnp.exp(size)
    return jnp.where(jnp.isinf(raised), _large(size), 0.5 * raised + 0.5 / raised)


def _sinh(x: Any, hide: Hide) -> Any:
    from jax import numpy as jnp

    size = jnp.abs(x)
    raised = jnp.expm1(size)
    return jnp.copysign(jnp.where(jnp.isinf(raised), _large(size), 0.5 * (raised + raised / (raised + 1.0))), x)


BOTH = frozenset([np.dtype(np.float64), np.dtype(np.float32)])
DOUBLE = frozenset([np.dtype(np.float64)])
TABLE: Mapping[str, tuple[frozenset[Any], Callable[[Any, Hide], Any]]] = MappingProxyType(
    {"log1p": (DOUBLE, _log1p), "atanh": (DOUBLE, _atanh), "cosh": (BOTH, _cosh), "sinh": (BOTH, _sinh)}
)
"""By primitive: the dtypes in which XLA's own is not good enough, and the function of the operand."""


def accurate(name: str, x: Any, hide: Hide) -> Any:
    """The result of a primitive for the operand `x`; None where XLA's own stands."""
    dtypes, function = TABLE.get(name, (frozenset[Any](), None))
    return function(x, hide) if function is not None and x.dtype in dtypes else None
