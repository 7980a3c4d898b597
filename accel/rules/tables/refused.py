"""Functions that no compiled program can stand for, with the reason: each is a row, so that the report says why."""

from __future__ import annotations

import numpy as np

from accel.rules.rule import add_rule
from accel.rules.special import Unrecordable

DYNAMIC = "shape.dynamic"
OPAQUE = "call.opaque"

_ROWS: tuple[tuple[str, str, str], ...] = (
    (DYNAMIC, "how many zeros there are is not fixed, and it gives a view", "trim_zeros"),
    (OPAQUE, "it calls a function of the program's for each element", "fromfunction frompyfunc mask_indices"),
    (OPAQUE, "it reads an iterator of the program's", "fromiter"),
)


def _add(module: object, rows: tuple[tuple[str, str, str], ...]) -> None:
    for reason, why, names in rows:
        for name in names.split():
            add_rule(getattr(module, name), None, special=Unrecordable(reason, why))


_add(np, _ROWS)
