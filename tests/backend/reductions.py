"""A row whose module has programs compiled as plain JAX would: jaxlib's library for reductions crashes some of them."""

from __future__ import annotations

import sys
from typing import Any

from accel.backend import compile
from accel.rules.rule import RULES, add_rule

if sys.flags.isolated:  # in the worker, which imports this module with the row, before it compiles
    compile.need_plain_reductions = lambda nodes: False
    compile.rounded_as_numpy = lambda function, true: function


def same(x: Any) -> Any:
    return x


def _same(*, x: Any) -> Any:
    return x


RULES[same] = add_rule(same, _same, "x")
