"""Operations: Python's operators by the names of their special methods, each with the ufunc that does it for arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Operations = Mapping[str, tuple[Callable[..., Any], np.ufunc]]

BINARY: Operations = {
    "add": (operator.add, np.add),
    "sub": (operator.sub, np.subtract),
    "mul": (operator.mul, np.multiply),
    "truediv": (operator.truediv, np.true_divide),
    "floordiv": (operator.floordiv, np.floor_divide),
    "mod": (operator.mod, np.remainder),
    "pow": (operator.pow, np.power),
    "matmul": (operator.matmul, np.matmul),
    "and": (operator.and_, np.bitwise_and),
    "or": (operator.or_, np.bitwise_or),
    "xor": (operator.xor, np.bitwise_xor),
    "lshift": (operator.lshift, np.left_shift),
    "rshift": (operator.rshift, np.right_shift),
}

COMPARE: Operations = {
    "lt": (operator.lt, np.less),
    "le": (operator.le, np.less_equal),
    "eq": (operator.eq, np.equal),
    "ne": (operator.ne, np.not_equal),
    "gt": (operator.gt, np.greater),
    "ge": (operator.ge, np.greater_equal),
}

UNARY: Operations = {
    "neg": (operator.neg, np.negative),
    "abs": (abs, np.absolute),
    "invert": (operator.invert, np.invert),
}
