"""Objects of SciPy's that recorded code makes of arrays: see accel.rules.made."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from accel.ir.template import leaves
from accel.record.objects.objects import CONSTRUCTORS
from accel.record.state.on_behalf import on_behalf
from accel.record.state.recording import Recording
from accel.record.state.standin import StandIn
from accel.record.state.wrapper import Wrapper, unwrap
from accel.record.values.arrays import RecordedArray
from accel.record.values.calls.call import record_rule
from accel.rules.made import Question, answer
from accel.rules.tables.scipy.made import METHODS


def _public_name(kind: type) -> str:
    """The name under which users find a class of SciPy's that is known; else ""."""
    home: Any = getattr(kind, "__module__", None)
    if not (issubclass(type(home), str) and home.startswith("scipy.")):
        return ""
    for name in METHODS:
        module, _, own = name.rpartition(".")
        if own == kind.__name__ and getattr(sys.modules.get(module), own, None) is kind:
            return name
    return ""


def _contents(value: Any) -> list[Any]:
    """What recorded arrays hold now."""
    return [each.node() for each in leaves(value, Wrapper) if issubclass(type(each), RecordedArray)]


class Made(StandIn):
    """Such an object. Its methods and attributes are operations on the arguments that it was made of."""

    __slots__ = ("_args", "_kwargs", "_made_of", "_methods")

    def __init__(
        self, recording: Recording, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any], plain: Any = None
    ) -> None:
        """plain: the object, where it is there already."""
        self._recording_ = recording
        self._methods = METHODS[_public_name(kind)].split()
        self._args, self._kwargs = args, kwargs
        self._made_of = _contents((args, kwargs))
        self._plain_ = on_behalf(kind, unwrap(args), unwrap(kwargs)) if plain is None else plain

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._plain_, name)
        if name in self._methods:
            return lambda *args, **kwargs: self._ask(name, args, kwargs)
        if callable(value):
            self._recording_.break_("call.opaque", f"{type(self._plain_).__qualname__}.{name}")
            return value
        return self._written(Question(type(self._plain_), name, False, tuple(self._kwargs), ()), (), {}, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ask("__call__", args, kwargs)

    def _ask(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = on_behalf(getattr(self._plain_, name), unwrap(args), unwrap(kwargs))
        question = Question(type(self._plain_), name, True, tuple(self._kwargs), tuple(kwargs))
        return self._written(question, args, kwargs, result)

    def _written(self, question: Question, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        recording = self._recording_
        if recording.active and _contents((self._args, self._kwargs)) != self._made_of:
            # a tree of points looks at the memory that it was given, a spline does not
            recording.break_("call.opaque", f"{type(self._plain_).__qualname__} of an array that has changed since")
        bound = {
            "made": [*self._args, *self._kwargs.values()],
            "asked": [*args, *kwargs.values()],
        }
        return recording.write_down(lambda: record_rule(recording, answer(question), (), bound, result), result)


def is_tree(kind: type) -> bool:
    """Whether this is the class of a tree of points, which tells what it was made of."""
    return _public_name(kind) in ("scipy.spatial.cKDTree", "scipy.spatial.KDTree")


def arguments_of(tree: Any) -> dict[str, Any] | None:
    """What a tree of the program's may be made of again, beside its points; None where that gives another tree.

    It may have been made with options that it does not tell, or of points that have moved since.
    """
    options = {"leafsize": int(tree.leafsize)}
    if tree.boxsize is not None or not np.isfinite(tree.data).all():
        return None
    again = on_behalf(type(tree), (tree.data.copy(),), options)
    return options if np.array_equal(again.indices, tree.indices) and _splits(again) == _splits(tree) else None


def _splits(tree: Any) -> list[tuple[int, float]]:
    """Where a tree divides its points: axis and place of each of its planes."""
    from scipy.spatial import cKDTree

    found, nodes = [], [cKDTree.tree.__get__(tree)]  # a KDTree, which is one of these, shows nodes of its own
    while nodes:
        node = nodes.pop()
        if node is not None:
            found.append((node.split_dim, node.split))
            nodes += (node.lesser, node.greater)
    return found


CONSTRUCTORS.append((lambda kind: bool(_public_name(kind)), Made))
