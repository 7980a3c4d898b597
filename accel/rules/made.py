"""Objects of SciPy's that a call makes of arrays and asks afterwards: trees of points, interpolators, densities.

Asking one is a call on the host (accel.rules.hosted) of a function that makes the object of the same arguments and asks
it. The last object of each kind is kept, so that several questions make it once.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.rules.columns import RecordedAs
from accel.rules.rule import Rule, derived
from accel.rules.special import CallOnHost


@dataclass(frozen=True)
class Question:
    """A method or attribute of an object made of arguments, some of them by name.

    Called with the arguments of the object and those of the method.
    """

    kind: type
    name: str
    is_method: bool
    made_by: tuple[str, ...]
    asked_by: tuple[str, ...]

    def __call__(self, made: list[Any], asked: list[Any]) -> Any:
        value = getattr(self._object(made), self.name)
        return _call(value, asked, self.asked_by) if self.is_method else value

    def _object(self, made: list[Any]) -> Any:
        key = self.kind, self.made_by
        before = getattr(_last, "made", {}).get(key)
        if before is not None and _is_same(before[0], made):
            return before[1]
        found = _call(self.kind, made, self.made_by)
        _last.__dict__.setdefault("made", {})[key] = made, found
        return found


_last = threading.local()


def _call(function: Any, values: list[Any], names: tuple[str, ...]) -> Any:
    first = len(values) - len(names)
    return function(*values[:first], **dict(zip(names, values[first:], strict=True)))


def _is_same(before: Any, now: Any) -> bool:
    """Whether arguments are the same to the last bit."""
    if type(before) is not type(now):
        return False
    if isinstance(now, (list, tuple)):
        return len(before) == len(now) and all(map(_is_same, before, now))
    if isinstance(now, np.ndarray):
        return bool(before.dtype == now.dtype and before.shape == now.shape and before.tobytes() == now.tobytes())
    return bool(before == now)


@derived
def answer(question: Question) -> Rule:
    """The row of a question."""
    name = f"{question.kind.__module__}.{question.kind.__qualname__}.{question.name}"
    both = frozenset({"made", "asked"})
    recorded = RecordedAs(special=CallOnHost(), nested=True)
    return Rule(name, question, None, operands=("made", "asked"), sequences=both, recorded=recorded)
