"""Bodies of lifted loops: which functions are one, and what code was before lifting (see accel.entry.lift)."""

from __future__ import annotations

from types import CodeType, FunctionType

_BODIES: dict[int, CodeType] = {}

_CALLS: dict[int, CodeType] = {}

_WRITTEN: dict[int, tuple[CodeType, CodeType]] = {}
"""By the id of a function's lifted code: that code, and the code as the program has written it."""


def add_body(code: CodeType) -> None:
    """From now on, functions that run this code are bodies."""
    _BODIES[id(code)] = code


def add_call(code: CodeType) -> None:
    """From now on, frames of this code only call a body, though they bear the name of the program's function."""
    _CALLS[id(code)] = code


def calls_body(code: CodeType) -> bool:
    """Whether a code object is one that only calls a body."""
    return id(code) in _CALLS


def is_body(function: object) -> bool:
    """Whether a value is the body of a lifted loop."""
    return type(function) is FunctionType and id(function.__code__) in _BODIES


def runs_body(code: CodeType) -> bool:
    """Whether a code object is the body of a lifted loop."""
    return id(code) in _BODIES


def add_lifted(lifted: CodeType, written: CodeType) -> None:
    """From now on, `as_written` gives this code for the one in which loops of it are lifted."""
    if lifted.co_freevars == written.co_freevars:  # a function's closure serves both
        _WRITTEN[id(lifted)] = lifted, written


def as_written(code: CodeType) -> CodeType:
    """A function's code as the program has written it: its loops are loops, and its variables are no cells."""
    return _WRITTEN.get(id(code), (code, code))[1]
