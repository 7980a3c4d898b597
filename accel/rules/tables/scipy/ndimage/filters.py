"""scipy.ndimage: its filters and interpolation by the table of accel.ndimage, where SciPy is there."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from accel.ir.tape import Node
from accel.ndimage.errors import NotCovered
from accel.ndimage.table import COVERED, lowering
from accel.rules.rule import Unsupported, add_rule

OPERANDS = frozenset({"input", "coordinates", "matrix", "offset", "weights"})
"""Parameters that take arrays; every other one is known while recording."""

SEVERAL = {"coordinates": "*coordinates"}
"""Operands that may come as one array or as several."""


def _jumps_at_edges(node: Node) -> bool | None:
    """Whether a coordinate's last place may decide between two elements, or one and none."""
    nearest, mode = node.kwargs.get("order") == 0, node.kwargs.get("mode", "constant")
    return True if nearest or mode in ("constant", "wrap") else None


def _is_real(*, input: Any, weights: Any = None, **rest: object) -> bool | None:
    """False for complex numbers, of which programs let SciPy make two filters; None: there is nothing to check."""
    return False if "c" in (input.dtype.kind, getattr(weights, "dtype", input.dtype).kind) else None


FACTS: dict[str, dict[str, Any]] = {"map_coordinates": {"jumps": _jumps_at_edges}}
"""Facts about single functions beyond what they have in common."""


def _whole(value: object) -> Any:
    """Arrays given in a list, as one."""
    from jax import numpy as jnp

    return jnp.stack([jnp.asarray(part) for part in value]) if isinstance(value, (list, tuple)) else value


def _lowered(name: str) -> Callable[..., Any]:
    def lower(**bound: object) -> Any:
        bound = {name: _whole(value) if name in OPERANDS else value for name, value in bound.items()}
        try:
            return lowering(name)(**bound)
        except (KeyError, NotCovered) as gap:
            raise Unsupported("rule.parameter", f"scipy.ndimage.{name}: {gap}") from gap

    return lower


def _add_rows() -> None:
    try:
        from scipy import ndimage
    except ImportError:
        return
    for name in sorted(COVERED):
        function = getattr(ndimage, name)
        parameters = inspect.signature(function).parameters
        operands = [SEVERAL.get(p, p) for p in parameters if p in OPERANDS]
        static = [p for p in parameters if p not in OPERANDS and p != "output"]
        names = f"{' '.join(operands)} | {' '.join(static)}"
        add_rule(function, _lowered(name), names, work=9.0, holds=_is_real, or_on_host=True, **FACTS.get(name, {}))


_add_rows()
