"""Filters of Python's `warnings`: what they make of a warning, as far as its category tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def makes_no_error(filters: Sequence[Any], category: type[Warning]) -> bool:
    """Whether no filter turns warnings of a category into errors.

    The first filter that applies decides. A filter for some messages, modules or lines alone does not settle the
    others, so the search goes on after it.
    """
    for action, message, kind, module, line in filters:
        if issubclass(category, kind):
            if action == "error":
                return False
            if message is None and module is None and not line:
                return True
    return True
