"""What the programs here decorate their functions with: accel, or on NumPy nothing at all."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def accelerate(function: Function) -> Function:
    """`accel.accelerate` where `benchmarks.started` has given the program the word `accel`; else do nothing.

    On NumPy accel is not even imported, so that the run which all others are held against is a plain one.
    """
    if sys.argv[1:2] != ["accel"]:
        return function
    import accel

    return accel.accelerate(function)
