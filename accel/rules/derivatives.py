"""Derivatives: lowerings that choose a form which has them, where the fastest one has none.

Sorting and selecting go by integer keys (accel.rules.tables.statistics.sorting): what comes out of a key has no
derivative. Where derivatives are wanted, elements are gathered by their places instead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_wanted: ContextVar[bool] = ContextVar("derivatives wanted", default=False)


@contextlib.contextmanager
def wanted() -> Iterator[None]:
    """While a program is traced: choose forms that have derivatives."""
    token = _wanted.set(True)
    try:
        yield
    finally:
        _wanted.reset(token)


def are_wanted() -> bool:
    return _wanted.get()
