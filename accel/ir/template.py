"""Templates: the arguments of an operation, in tuples, lists, dictionaries and slices, with *leaves* in them.

What a leaf is depends on who asks: nodes for the tape, numbers and keys too for the loop passes, outputs for the
commit. All that walks a template stands here, so that each walk meets the same leaves in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

Kinds = type | tuple[type, ...]
"""Which types are leaves."""

_SINGLE = frozenset({str, int, float, bool, type(None), type(...), np.dtype})
"""Types of most static values: they hold no others."""


def leaves(template: object, kinds: Kinds) -> list[Any]:
    """The leaves of a template, in order."""
    found: list[Any] = []
    _collect(template, kinds, found)
    return found


def _collect(template: object, kinds: Kinds, found: list[Any]) -> None:
    if isinstance(template, kinds):
        found.append(template)
    elif isinstance(template, (tuple, list)):
        for part in template:
            _collect(part, kinds, found)
    elif isinstance(template, dict):
        for part in template.values():
            _collect(part, kinds, found)
    elif isinstance(template, slice):
        for part in (template.start, template.stop, template.step):
            _collect(part, kinds, found)


def fill(template: Any, value_of: Callable[[Any], Any], kinds: Kinds) -> Any:
    """The template with `value_of(leaf)` in the place of each leaf, asked for in the order of `leaves`."""
    if isinstance(template, kinds):
        return value_of(template)
    kind = type(template)
    if kind in _SINGLE:
        return template
    if kind is tuple or kind is list:
        return kind([fill(part, value_of, kinds) for part in template])
    if isinstance(template, tuple):  # a namedtuple
        return kind(*[fill(part, value_of, kinds) for part in template])
    if kind is dict:
        return {key: fill(part, value_of, kinds) for key, part in template.items()}
    if kind is slice:
        return slice(*[fill(part, value_of, kinds) for part in (template.start, template.stop, template.step)])
    return template


def form(template: Any, form_of: Callable[[Any], Hashable], kinds: Kinds) -> Any:
    """A hashable key: equal where structure and static values are, and where `form_of` of the leaves is."""
    if isinstance(template, kinds):
        return form_of(template)
    kind = type(template)
    if kind in _SINGLE:
        return (kind, repr(template) if kind is float else template)
    if isinstance(template, (tuple, list)):
        return (kind, *[form(part, form_of, kinds) for part in template])
    if kind is dict:
        return tuple([(key, form(part, form_of, kinds)) for key, part in template.items()])
    if kind is slice:
        return (slice, *[form(part, form_of, kinds) for part in (template.start, template.stop, template.step)])
    return frozen_static(template)


def frozen_static(value: object) -> Any:
    """A hashable key of a static value that tells 1, 1.0 and True, and 0.0 and -0.0, apart."""
    if isinstance(value, (float, complex, np.generic)):
        return (type(value), repr(value))
    try:
        hash(value)
    except TypeError:
        return object()  # equal to nothing: it might change
    return (type(value), value)
