"""Arrays of records (structured arrays, and recarrays): known by their fields.

Each field is an input of its own: the view of the array's memory that `array["x"]` gives. So reads, writes, and writes
in place are those of ordinary arrays, and two fields share no memory (see accel.ir.overlap). A record, or a slice of
records, is the same part of each field. Whatever else is done with such an array ends the tape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.record.objects.modules import Opaque
from accel.record.objects.proxy import OWN, find_in_class
from accel.record.state import inputs
from accel.record.state.recording import Recording
from accel.record.state.wrapper import unwrap
from accel.record.values.arrays import RecordedArray, RecordedScalar
from accel.record.values.wrapping import remember
from accel.rules.rule import Unsupported

_KINDS = (np.ndarray, np.recarray)
_OF_FORM = frozenset({"shape", "ndim", "size", "dtype", "itemsize", "nbytes"})
"""Attributes that follow from the array's form, which is guarded."""

_OWN = OWN | {"_fields_", "_parent_", "_key_", "_field_", "_ended"}


def is_records(value: Any, kind: type) -> bool:
    """Whether a value is an array of records that hold no Python objects."""
    return kind in _KINDS and value.dtype.names is not None and not value.dtype.hasobject


def enter_records(recording: Recording, value: Any, slot: int) -> tuple[inputs.Check | None, Any]:
    """The check of an array of records that comes in through a slot, and what stands for it."""
    check = inputs.satisfies(has_form, type(value), value.dtype, value.shape)
    seen = recording.registry.values.get(id(value))
    if seen is not None and seen._plain_ is value:
        recording.same.append((slot, seen._slot_))
        return check, seen
    return check, remember(recording, Records(recording, value, slot))


def has_form(value: Any, kind: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    """Whether a value is an array of this class, with records of this form."""
    return type(value) is kind and (value.shape, value.dtype) == (shape, dtype)


class Records(Opaque):
    """An array of records that comes from outside."""

    __slots__ = ("_fields_",)

    def __init__(self, recording: Recording, value: object, slot: int | None = None) -> None:
        super().__init__(recording, value, slot)
        object.__setattr__(self, "_fields_", {})

    def as_operand(self) -> Any:
        raise Unsupported("array.records", "an array of records is needed as an array")

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN:
            return object.__getattribute__(self, name)
        real = self._plain_
        if name in _OF_FORM and self._recording_.active:
            return getattr(real, name)
        if _is_field(real, name):
            return self[name]
        self._recording_.break_("array.records", f".{name} of an array of records", touched=True)
        return getattr(real, name)

    def __setattr__(self, name: str, value: object) -> None:
        if _is_field(self._plain_, name):
            self[name] = value
            return
        self._recording_.break_("array.records", f"assignment to .{name} of an array of records", touched=True)
        setattr(self._plain_, name, unwrap(value))

    def __getitem__(self, key: Any) -> Any:
        real = self._plain_
        if _names_field(self, key):
            return self._field_(key)
        if self._recording_.active and _is_basic(key) and real.ndim:
            return RecordsPart(self, real[unwrap(key)], key)  # raises where it is out of bounds, as NumPy does
        return self._ended(f"[{_told(key)}]", "__getitem__", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if _names_field(self, key):
            field = self._field_(key)
            # `array["x"] += 1` assigns what has been changed in place
            if not _is_same_view(field, value):
                field[...] = value
            return
        self._ended(f"[{_told(key)}] = ...", "__setitem__", key, value)

    def __len__(self) -> int:
        return len(self._plain_)

    def __iter__(self) -> Any:
        iter(self._plain_)  # raises for 0-d arrays as NumPy does
        return (self[position] for position in range(len(self._plain_)))

    def _field_(self, name: str) -> Any:
        """The view that `array[name]` gives: another one each time, of one input."""
        recording, slot = self._recording_, self._slot_
        assert slot is not None
        view = self._fields_.get(name)
        if view is None:
            view = self._fields_[name] = self._plain_[name]
        text = f"{recording.inputs.name(slot)}[{name!r}]"
        field = recording.enter(view, ("field", slot, name), text, inputs.item(slot, name))
        return field[...]

    def _ended(self, what: str, method: str, *args: Any) -> Any:
        """End the tape and do as NumPy does. method: of the array's."""
        self._recording_.break_("array.records", f"{what} of an array of records", touched=True)
        return getattr(type(self._plain_), method)(self._plain_, *unwrap(args))


class RecordsPart(Records):
    """A record of such an array, or a part of it: a view of its memory."""

    __slots__ = ("_key_", "_parent_")

    def __init__(self, parent: Records, value: object, key: Any) -> None:
        super().__init__(parent._recording_, value)
        object.__setattr__(self, "_parent_", parent)
        object.__setattr__(self, "_key_", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        # a number in a record is no view: it is stored in the field's array
        if _names_field(self, key) and not isinstance(self._plain_, np.ndarray) and np.ndim(unwrap(value)) == 0:
            self._parent_._field_(key)[self._key_] = value
            return
        super().__setitem__(key, value)

    def _field_(self, name: str) -> Any:
        return self._parent_._field_(name)[self._key_]


def _names_field(records: Records, key: Any) -> bool:
    """Whether a key names a field, and that is recorded."""
    return records._recording_.active and type(key) is str and key in records._plain_.dtype.names


def _is_field(real: Any, name: str) -> bool:
    """Whether `real.name` is a field: of recarrays and their records, where nothing else has the name."""
    if not isinstance(real, (np.recarray, np.record)) or name not in (real.dtype.names or ()):
        return False
    return find_in_class(type(real), name)[0] is None and name not in getattr(real, "__dict__", ())


def _is_basic(key: Any) -> bool:
    """Whether a key gives a view."""
    return all(map(_is_basic_entry, key if type(key) is tuple else (key,)))


def _is_basic_entry(entry: Any) -> bool:
    if issubclass(type(entry), RecordedScalar):
        return isinstance(unwrap(entry), (int, np.integer)) and not isinstance(unwrap(entry), bool)
    return entry is None or entry is Ellipsis or type(entry) in (int, slice) or isinstance(entry, np.integer)


def _is_same_view(field: Any, value: Any) -> bool:
    """Whether a value is all of a field itself."""
    if not (issubclass(type(field), RecordedArray) and issubclass(type(value), RecordedArray)):
        return False
    return field._storage is value._storage and _place(field._plain_) == _place(value._plain_)


def _place(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    """Address, strides, shape and dtype of a view."""
    return array.__array_interface__["data"], array.strides, array.shape, array.dtype


def _told(key: Any) -> str:
    return repr(key) if type(key) in (str, int) else type(key).__name__
