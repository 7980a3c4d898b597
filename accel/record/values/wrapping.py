"""The recorded form of a plain value: a new wrapper, or the one that the object has already."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.ir.tape import Node, Storage
from accel.ir.views import Broadcast
from accel.record.state.recording import Recording
from accel.record.state.storages import recordable
from accel.record.values.arrays import RecordedArray, RecordedScalar, RecordedValue
from accel.record.values.subclasses import NUMBERS
from accel.rules import core
from accel.rules.rule import Unsupported


def new_array(recording: Recording, value: np.ndarray[Any, Any], node: Node) -> Any:
    """A recorded array with a storage of its own."""
    if type(value) is not np.ndarray or not recordable(value):
        raise Unsupported("array.unknown", f"an array of type {type(value).__name__}, dtype {value.dtype}")
    if value.flags.writeable:
        return remember(recording, RecordedArray(recording, value, Storage(value, node), ()))
    # NumPy gave a view of an array of its own, as np.imag of real numbers and np.broadcast_to of a number do
    own = Storage(value.copy(), node)
    return remember(recording, RecordedArray(recording, value, own, (Broadcast(value.shape),)))


def remember(recording: Recording, wrapper: Any) -> Any:
    """Make `wrapper` the only one of its plain object. Arrays are not held on to: the program drops most at once."""
    if issubclass(type(wrapper), RecordedValue):
        recording.registry.arrays[id(wrapper._plain_)] = wrapper
    else:
        recording.registry.values[id(wrapper._plain_)] = recording.registry.keep_alive(wrapper)
    return wrapper


def known(recording: Recording, value: object) -> Any:
    """The wrapper that a plain object already has, or None."""
    wrapper = (recording.registry.arrays if isinstance(value, np.ndarray) else recording.registry.values).get(id(value))
    return wrapper if wrapper is not None and wrapper._plain_ is value else None


def wrap(recording: Recording, value: object, node: Node) -> Any:
    """The recorded form of a result: arrays, numbers, and nested tuples and lists of them."""
    if isinstance(value, np.ndarray):
        seen = known(recording, value)
        return new_array(recording, value, node) if seen is None else seen
    # There is no object but True that `is True`, so a Python bool cannot be a wrapper: its value becomes an outcome.
    if isinstance(value, bool):  # `is True` must work on it
        recording.branch(node, value)
        return value
    if isinstance(value, (np.bool_, np.number, *NUMBERS)):
        return RecordedScalar(recording, value, node)
    if isinstance(value, (tuple, list)):
        parts = [
            wrap(recording, part, recording.writer.node(core.PICK, (node, i), {}, part, host=node.host))
            for i, part in enumerate(value)
        ]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if value is None:
        return None
    raise Unsupported("rule.missing", f"a result of type {type(value).__name__}")
