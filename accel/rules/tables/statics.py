"""Functions whose answers depend on types and shapes alone: guards hold those, so the answer is a plain value."""

from __future__ import annotations

import numpy as np

from accel.rules.rule import add_rule
from accel.rules.special import Static

for _function in (
    np.isscalar,
    np.ndim,
    np.shape,
    np.size,
    np.result_type,
    np.can_cast,
    np.promote_types,
    np.common_type,
    np.issubdtype,
    np.isrealobj,
    np.iscomplexobj,
    np.iterable,
    np.isfortran,
    np.mintypecode,
    np.isdtype,
):
    add_rule(_function, None, special=Static())

for _valued in (np.broadcast_shapes, np.min_scalar_type):  # values decide too, which become outcomes
    add_rule(_valued, None, special=Static(by_value=True))
