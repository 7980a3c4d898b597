"""Code objects: a function's, and those of the functions and comprehensions in it."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType


def with_nested(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object, all those among its constants, and theirs."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from with_nested(constant)
