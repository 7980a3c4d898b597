"""Functions that no compiled program can stand for, with the reason: each is a row, so that the report says why."""

from __future__ import annotations

import numpy as np

from accel.rules.rule import add_rule
from accel.rules.special import Unrecordable

DYNAMIC = "shape.dynamic"
OPAQUE = "call.opaque"

_ROWS: tuple[tuple[str, str, str], ...] = (
    (DYNAMIC, "the order of the values is NumPy's own", "unique_all unique_counts unique_inverse unique_values"),
    (DYNAMIC, "how many zeros there are is not fixed", "trim_zeros"),
    (DYNAMIC, "the length depends on the leading coefficients", "poly polydiv roots"),
    (OPAQUE, "it calls a function of the program's for each element", "fromfunction frompyfunc mask_indices"),
    (OPAQUE, "it reads an iterator of the program's", "fromiter"),
)

def _add(module: object, rows: tuple[tuple[str, str, str], ...]) -> None:
    for reason, why, names in rows:
        for name in names.split():
            add_rule(getattr(module, name), None, special=Unrecordable(reason, why))


_add(np, _ROWS)
