"""Functions that no compiled program can stand for, with the reason: each is a row, so that the report says why."""

from __future__ import annotations

import numpy as np

from accel.rules.rule import add_rule
from accel.rules.special import Unrecordable

DYNAMIC = "shape.dynamic"
OPAQUE = "call.opaque"
MISSING = "rule.missing"

_ROWS: tuple[tuple[str, str, str], ...] = (
    (DYNAMIC, "the order of the values is NumPy's own", "unique_all unique_counts unique_inverse unique_values"),
    (DYNAMIC, "how many zeros there are is not fixed", "trim_zeros"),
    (DYNAMIC, "the length depends on the leading coefficients", "poly polydiv roots"),
    (OPAQUE, "it calls a function of the program's for each element", "fromfunction frompyfunc mask_indices"),
    (OPAQUE, "it reads an iterator of the program's", "fromiter"),
    (MISSING, "the order within the parts is NumPy's own", "partition argpartition"),
)

_LINALG: tuple[tuple[str, str, str], ...] = (
    (MISSING, "whether the result is complex depends on values", "eig eigvals"),
    (MISSING, "the shape of the residuals depends on the rank", "lstsq"),
)


def _add(module: object, rows: tuple[tuple[str, str, str], ...]) -> None:
    for reason, why, names in rows:
        for name in names.split():
            add_rule(getattr(module, name), None, special=Unrecordable(reason, why))


_add(np, _ROWS)
_add(np.linalg, _LINALG)
