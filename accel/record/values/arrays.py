"""Recorded values: a plain value, computed by NumPy, plus its place on the tape.

They are duck types: `__class__` answers as the plain value's would, so that `isinstance` decides the program's paths
as before. Subclasses would not do: C code takes their storage without asking. Their operators, indexing and attributes
are put on them by `accel.record.values.operators`, which stands above all that those need.
"""

from __future__ import annotations

import operator
import sys
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np

from accel.ir.tape import Node, Storage
from accel.ir.views import Chain, Reshape
from accel.record.state.inputs import MISSING
from accel.record.state.on_behalf import is_for_exception, on_behalf
from accel.record.state.pinned import is_of_table, pinned_whole
from accel.record.state.recording import Recording
from accel.record.state.wrapper import Wrapper, has_wrapper, isinstance_wrapper, unwrap
from accel.record.values.subclasses import as_numpy_number, number_of_class
from accel.rules import core, scalars
from accel.rules.rule import Unsupported

MOST_COUNTED = 10_000
"""Maximum operations examined to see whether a number is a loop's count. Guess."""


class RecordedValue(Wrapper):
    """The base of recorded arrays and scalars: operators, and the hooks by which C code would take the plain value."""

    __slots__ = ()

    @property
    def __class__(self) -> type:
        return type(self._plain_)

    @__class__.setter
    def __class__(self, value: object) -> None:
        raise TypeError("a recorded value's class cannot be set")

    def node(self) -> Node:
        """The node of the present value."""
        raise NotImplementedError

    # -- values forced by Python --------------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        result = bool(self._plain_)
        self._recording_.write_down(lambda: force_bool(self, result), None)
        return result

    def __index__(self) -> int:
        result = operator.index(self._plain_)
        self._recording_.write_down(lambda: self._recording_.writer.outcome(self.node(), result), None)
        return result

    def __int__(self) -> int:
        result = int(self._plain_)
        force(self, "an integer")
        return result

    def __float__(self) -> float:
        result = float(self._plain_)
        force(self, "a float")
        return result

    def __complex__(self) -> complex:
        result = complex(self._plain_)
        force(self, "a complex number")
        return result

    def __str__(self) -> str:
        return as_text(self, "str", "", str(self._plain_), sys._getframe(1))

    def __repr__(self) -> str:
        return as_text(self, "repr", "", repr(self._plain_), sys._getframe(1))

    def __bytes__(self) -> bytes:
        force(self, "bytes")
        return bytes(self._plain_)

    def __format__(self, spec: str) -> str:
        return as_text(self, "format", spec, format(self._plain_, spec), sys._getframe(1))

    def __reduce_ex__(self, protocol: object) -> Any:
        force(self, "a pickle or copy")
        return self._plain_.__reduce_ex__(protocol)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        force(self, "a plain array")
        if issubclass(type(self), RecordedArray):
            # The plain array is out of our sight from now on: whoever has it may write to it.
            self._recording_.storages.before_write(self._storage)  # type: ignore[attr-defined]
        return np.array(self._plain_, dtype=dtype, copy=copy)

    def __hash__(self) -> int:
        force(self, "a dictionary key")
        return hash(self._plain_)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __copy__(self) -> Any:
        return self.copy() if issubclass(type(self), RecordedArray) else self  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: object) -> Any:
        return self.__copy__()


class RecordedScalar(RecordedValue):
    """A Python number or NumPy scalar. Has no length, as they have none."""

    __slots__ = ("_node",)

    def __new__(cls, recording: Recording, value: object, node: Node) -> RecordedScalar:
        return object.__new__(RecordedNumPyScalar if isinstance(value, np.generic) else RecordedScalar)

    def __init__(self, recording: Recording, value: object, node: Node) -> None:
        self._recording_ = recording
        self._plain_ = value
        recording.registry.born(self)
        self._node = node

    def node(self) -> Node:
        return self._node

    def tie(self, node: Node) -> None:
        """Let another node stand for the number from now on (see accel.record.run.loops.trimming)."""
        self._node = node


class RecordedNumPyScalar(RecordedScalar):
    """A NumPy scalar, which has items where a Python number has none: `x[None]`, `x[...]`, `x[()]`."""

    __slots__ = ()


class _ArrayValue(RecordedValue):
    """The base of recorded arrays, with one layout, so that a selection can become an array in place."""

    __slots__ = ("_axis", "_chain", "_full", "_mask", "_parent", "_storage", "_views")


class RecordedArray(_ArrayValue):
    """An ndarray: the very object, its storage, and the chain of views from the storage to it."""

    __slots__ = ()

    def __init__(self, recording: Recording, value: np.ndarray[Any, Any], storage: Storage, chain: Chain) -> None:
        self._recording_ = recording
        self._plain_ = value
        recording.registry.born(self)
        self._storage = storage
        self._chain = chain

    def node(self) -> Node:
        writer = self._recording_.writer
        node = writer.read_view(self._storage, self._chain)
        writer.note_order(node, self._plain_)
        return node

    def __len__(self) -> int:
        return len(self._plain_)

    def __iter__(self) -> Iterator[Any]:
        iter(self._plain_)  # raises for 0-d arrays as NumPy does
        return (self[i] for i in range(len(self._plain_)))  # type: ignore[index]

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __setattr__(self, name: str, value: object) -> None:
        if name in ("_recording_", "_plain_", "_storage", "_chain"):
            object.__setattr__(self, name, value)
        elif name in ("real", "imag") and self._plain_.dtype.kind == "c":
            getattr(self, name)[...] = value
        elif name == "flat" and np.ndim(unwrap(value)) == 0:
            self[...] = value  # type: ignore[index]
        elif name == "shape" and self._recording_.active and self._storage.origin is None:
            self._set_shape(value)
        else:
            self._recording_.break_("rule.missing", f"assignment to an array's .{name}", touched=True)
            setattr(self._plain_, name, unwrap(value))

    def _set_shape(self, shape: Any) -> None:
        """Look at an array that the call has made in another shape; its storage keeps the one that it had."""
        real, storage, before = self._plain_, self._storage, self._plain_.shape
        as_made = real.view()
        setattr(real, "shape", unwrap(shape))  # noqa: B010  # raises where it would have to copy
        if storage.base is real:
            storage.base = as_made
        self._recording_.write_down(lambda: as_static(shape), None)
        object.__setattr__(self, "_chain", (*self._chain, Reshape(real.shape, before)))


class CompressedArray(_ArrayValue):
    """`x[mask]`: the real, compressed array, and on tape the full array with its mask.

    full: node of shape (n, *rest); mask: bool node of shape (n,). Element i of the compressed axis is the i-th
    row of `full` where `mask` holds. parent: the selection that this one is a view of, or None; views: those of this
    one, each with its key. Where its length has to be fixed, it becomes a `RecordedArray`
    (accel.record.values.settling).
    """

    __slots__ = ()

    def __init__(self, recording: Recording, value: np.ndarray[Any, Any], full: Node, mask: Node) -> None:
        self._recording_ = recording
        self._plain_ = value
        recording.registry.born(self)
        self._full = full
        self._mask = mask
        self._parent: CompressedArray | None = None
        self._views: list[tuple[CompressedArray, tuple[Any, ...]]] = []

    @property
    def _is_shared(self) -> bool:
        """Whether there are views of it, or it is one."""
        return self._parent is not None or bool(self._views)

    def node(self) -> Node:
        """The node of the selection as an array of the length that it has now."""
        self.settle()  # type: ignore[attr-defined]
        return RecordedArray.node(self)  # type: ignore[arg-type]  # which it is now

    def __len__(self) -> int:
        return operator.index(self.count())  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[Any]:
        self._recording_.write_down(self.settle, None)  # type: ignore[attr-defined]
        return iter(self) if issubclass(type(self), RecordedArray) else iter(self._plain_)

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
            return
        self._recording_.write_down(self.settle, None)  # type: ignore[attr-defined]
        setattr(self if issubclass(type(self), RecordedArray) else self._plain_, name, value)

    def __setitem__(self, key: object, value: object) -> None:
        self._recording_.write_down(self.settle, None)  # type: ignore[attr-defined]
        if issubclass(type(self), RecordedArray):
            self[key] = value
        else:
            on_behalf(operator.setitem, (self._plain_, unwrap(key), unwrap(value)))


# -- forcing ----------------------------------------------------------------------------------------------------------

_NEEDED_AS = "a value computed from an array is needed as {}"  # why a recording ends there


def force(value: RecordedValue, needed_as: str) -> None:
    """Something needs the plain value: an outcome where the host knows it, else the end of the tape."""

    def write() -> None:
        if not _note_known(value):
            raise Unsupported("path.exception" if is_for_exception() else "value.forced", _NEEDED_AS.format(needed_as))

    value._recording_.write_down(write, None)


def as_text(value: RecordedValue, how: str, spec: str, text: str, frame: FrameType) -> str:
    """The text of a value, or a marker where nothing but sinks can see it (accel.record.state.shown).

    how: "format", "str" or "repr", by which `text` was made. frame: the one that asks.
    """
    recording = value._recording_

    def write() -> str:
        made = recording.marker(recording, value, how, spec, text, frame)
        if made is not None or _note_known(value):
            return text if made is None else made
        if is_for_exception():
            raise Unsupported("path.exception", _NEEDED_AS.format("the exception's text"))
        recording.break_for_text("value.forced", _NEEDED_AS.format("text"))
        return text

    return str(recording.write_down(write, text))


def _note_known(value: RecordedValue) -> bool:
    """Make a value that the host knows an outcome. Returns whether it does."""
    if not issubclass(type(value), RecordedScalar):
        return False
    writer, node = value._recording_.writer, value.node()
    is_known = node.host or writer.forced(node) is not MISSING or _is_counted(node)
    if is_known:
        writer.outcome(node, value._plain_)
    return is_known


def _is_counted(node: Node) -> bool:
    """Whether a number follows from plain numbers alone, which a loop by data counts: a path may fix it."""
    seen, stack = set[int](), [node]
    while stack:
        each = stack.pop()
        if each.index in seen or each.constant or each.host or each.rule is core.COUNTER:
            continue
        seen.add(each.index)
        if each.is_input or len(seen) > MOST_COUNTED or each.shape:
            return False
        stack += each.operands()
    return True


def force_bool(value: RecordedValue, result: bool) -> None:
    """Let the truth of a recorded value be an outcome."""
    recording = value._recording_
    if issubclass(type(value), CompressedArray):
        raise Unsupported("shape.dynamic", "the truth of an array that a mask selects")
    node = value.node()
    # `if x:` of a number or of an array with one element.
    if node.dtype != np.bool_ or node.shape:
        rule = scalars.host_rule(bool) if node.host else core.TRUTH
        node = recording.writer.node(rule, (node,), {}, result, host=node.host)
    recording.branch(node, result)


def as_static(value: Any) -> Any:
    """A plain value for a parameter that shapes the program: recorded numbers in it become outcomes."""
    if isinstance_wrapper(value):
        if issubclass(type(value), RecordedScalar):
            recording, node = value._recording_, value.node()
            # Floats from the device hardly ever recur bit for bit: a path that assumes one would not be taken again.
            # The elements of a table that the program holds do.
            if node.host or node.dtype is None or node.dtype.kind in "biu" or is_of_table(value):
                recording.writer.outcome(node, value._plain_)
                return value._plain_
            raise Unsupported("value.forced", "a number computed from an array is needed as a plain number")
        if issubclass(type(value), RecordedValue):
            return value._plain_ if value.node().constant else pinned_whole(value)
        return as_static(type(value).as_operand(value))
    kind = type(value)
    if kind in (tuple, list):
        return kind([as_static(part) for part in value])
    if kind is dict:
        return {key: as_static(part) for key, part in value.items()}
    if kind is slice:
        return slice(as_static(value.start), as_static(value.stop), as_static(value.step))
    base = number_of_class(kind)
    return value if base is None else getattr(base, f"__{base.__name__}__")(value)


def as_template(value: Any) -> Any:
    """The value with nodes in the place of recorded values; a plain array has no known origin and is refused."""
    if isinstance_wrapper(value):
        if issubclass(type(value), RecordedValue):
            if issubclass(type(value), RecordedScalar):
                # A number that the path fixes is a constant in what follows: XLA can fold it, and shapes may depend on
                # it.
                forced = value._recording_.writer.forced(value.node())
                if forced is not MISSING and type(forced) is type(value._plain_):
                    return forced
            return value.node()
        return as_template(type(value).as_operand(value))
    kind = type(value)
    if kind in (tuple, list, deque):  # to NumPy a deque is as good as a list
        return (tuple if kind is tuple else list)([as_template(part) for part in value])
    if kind is slice:
        return slice(as_template(value.start), as_template(value.stop), as_template(value.step))
    if isinstance(value, np.ndarray):
        raise Unsupported("array.unknown", "an array whose origin the recording did not see")

    if has_wrapper(value):
        raise Unsupported("call.opaque", f"a {kind.__name__} of recorded values")
    return as_numpy_number(value)
