"""scipy.spatial.distance: distances between all pairs of points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial import distance

from accel.rules.core import cast
from accel.rules.hosted import on_host
from accel.rules.lowering import Array, jnp
from accel.rules.rule import Unsupported, rule


def _chebyshev(a: Any, b: Any) -> Any:
    """SciPy's comparisons leave a difference out that is NaN."""
    apart = abs(a - b)
    return jnp.where(jnp.isnan(apart), 0.0, apart).max(-1)


def _cosine(a: Any, b: Any) -> Any:
    """Never negative, as SciPy's. Each length has a root of its own: the product of squares of 1e80 is infinite."""
    lengths = jnp.sqrt((a * a).sum(-1)) * jnp.sqrt((b * b).sum(-1))
    return 1.0 - jnp.clip((a * b).sum(-1) / lengths, -1.0, 1.0)


_METRICS: dict[str, Callable[[Any, Any], Any]] = {
    "euclidean": lambda a, b: jnp.sqrt(((a - b) ** 2).sum(-1)),
    "sqeuclidean": lambda a, b: ((a - b) ** 2).sum(-1),
    "cityblock": lambda a, b: abs(a - b).sum(-1),
    "chebyshev": _chebyshev,
    "cosine": _cosine,
}
"""Distances of points that stand in the last axis of both."""


def _metric(name: object) -> Callable[[Any, Any], Any]:
    found = _METRICS.get(name) if isinstance(name, str) else None
    if found is None:
        raise Unsupported("rule.parameter", f"a distance by {name!r}")
    return found


def _is_known(metric: object = "euclidean", **_: object) -> bool | None:
    """Whether it is written out here. None, which stays on NumPy, for a function of the program's."""
    return None if metric in _METRICS or not isinstance(metric, str) else False


def _points(x: Any) -> Any:
    if x.dtype.kind == "c" or not x.size:
        raise Unsupported("rule.parameter", "distances of complex numbers, or of nothing")
    return cast(x, np.dtype(float))


@rule(distance.cdist, "XA XB | metric", holds=_is_known, otherwise="another metric", or_on_host=True)
def cdist(*, XA: Array, XB: Array, metric: str = "euclidean") -> Any:
    return _metric(metric)(_points(XA)[:, None, :], _points(XB)[None, :, :])


@rule(distance.pdist, "X | metric", holds=_is_known, otherwise="another metric", or_on_host=True)
def pdist(*, X: Array, metric: str = "euclidean") -> Any:
    x = _points(X)
    first, second = np.triu_indices(x.shape[0], 1)
    return _metric(metric)(x[first], x[second])


on_host(
    distance,
    """
    jensenshannon: p q base
    mahalanobis: u v VI
    squareform: X
    """,
)
