"""Bodies of lifted loops: which functions are one (see accel.lift)."""

from __future__ import annotations

from types import CodeType, FunctionType

_BODIES: dict[int, CodeType] = {}


def add_body(code: CodeType) -> None:
    """From now on, functions that run this code are bodies."""
    _BODIES[id(code)] = code


def is_body(function: object) -> bool:
    """Whether a value is the body of a lifted loop."""
    return type(function) is FunctionType and id(function.__code__) in _BODIES


def runs_body(code: CodeType) -> bool:
    """Whether a code object is the body of a lifted loop."""
    return id(code) in _BODIES
