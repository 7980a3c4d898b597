"""States: the recorded values that recorded code can reach at a join, in an order that recordings share.

Those of loops, which are compared within one recording, are others: see accel.record.run.loops.state.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import Any

from accel.ir.tape import Node
from accel.record.objects.follow import Followed
from accel.record.objects.names.namespaces import SubstitutedGlobals
from accel.record.objects.names.variables import contents_of
from accel.record.state.inputs import MISSING
from accel.record.state.recording import Recording
from accel.record.values.arrays import RecordedArray, RecordedScalar


def held(recording: Recording, roots: list[Any]) -> tuple[list[Node], list[tuple[int, Node]]]:
    """The nodes that variables and written attributes lead to, and the inputs written to, each with its content."""
    written = [
        state.wrapped for state in recording.attributes.values() if state.written and state.wrapped is not MISSING
    ]
    nodes = [_node(value) for value in _reached([*roots, *written])]
    storages = [each for each in recording.storages if each.written and each.origin is not None]
    return nodes, [(each.origin.args[0], each.version) for each in storages if each.origin is not None]


def _node(value: Any) -> Node:
    node: Node = value._storage.version if issubclass(type(value), RecordedArray) else value.node()
    return node


def _reached(values: list[Any]) -> Iterator[Any]:
    """Yield recorded arrays and numbers, each time that they are come to."""
    waiting, seen = values[::-1], set[int]()
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if issubclass(kind, (RecordedScalar, RecordedArray)):
            yield value
            continue
        parts = _parts(value, kind)
        if parts and id(value) not in seen:
            seen.add(id(value))
            waiting += parts[::-1]


def _parts(value: Any, kind: type) -> list[Any]:
    if kind is dict:
        return [part for item in value.items() for part in item]
    if kind is list or issubclass(kind, tuple):
        return list(value)
    if kind is slice:
        return [value.start, value.stop, value.step]
    if issubclass(kind, Followed):
        return list(value._bound)
    if kind is FunctionType and isinstance(value.__globals__, SubstitutedGlobals):
        defaults = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        return [*map(contents_of, value.__closure__ or ()), *defaults]
    return []
