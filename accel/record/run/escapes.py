"""Escapes: recorded values that something outside holds on to after the recording ended.

Where nothing irreversible happened, the call is undone and run plainly instead; this is for the other case.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

from accel.record.state.wrapper import unwrap

DEPTH = 3
"""Tuples within tuples are replaced up to so many levels."""


def unwrap_everywhere(wrapper: object) -> None:
    """Put the plain value in a wrapper's place wherever a list, dict, set, attribute or closure holds it."""
    replace_everywhere(wrapper, unwrap(wrapper), DEPTH)


def replace_everywhere(old: object, new: object, depth: int) -> None:
    """Put `new` in the place of `old` in all lists, dicts, sets, attributes, closures, and tuples up to `depth`."""
    # The last resort: a replay is not wanted any more, and the program must not find a wrapper among its own objects.
    for holder in gc.get_referrers(old):
        kind = type(holder)
        if kind is list:
            holder[:] = _swapped(holder, old, new)
        elif kind is dict:
            for key, part in list(holder.items()):
                if part is old:
                    holder[key] = new
        elif kind is set:
            holder.discard(old)
            holder.add(new)
        # Tuples cannot be changed: a new one takes the place of the old one wherever that is held, and so on upwards.
        elif kind is tuple and depth:
            replace_everywhere(holder, tuple(_swapped(holder, old, new)), depth - 1)
        elif kind.__name__ == "cell" and holder.cell_contents is old:
            holder.cell_contents = new
        elif not isinstance(holder, type):
            _replace_attribute(holder, old, new)


def _swapped(parts: Iterable[Any], old: object, new: object) -> list[Any]:
    # a function of its own: a comprehension beside the loop above would hold `old` in a cell, which is a holder too
    return [new if part is old else part for part in parts]


def _replace_attribute(holder: object, old: object, new: object) -> None:
    names = [*getattr(holder, "__dict__", ()), *(slot for kind in type(holder).__mro__ for slot in _slots(kind))]
    for name in names:
        if getattr(holder, name, None) is old:
            object.__setattr__(holder, name, new)


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
