"""Lists and dicts from outside: elements by path, shapes guarded."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from accel.record import inputs
from accel.record.arrays.arrays import as_static
from accel.record.inputs import MISSING
from accel.record.objects.proxy import Proxy
from accel.record.recording import AttributeState, Item
from accel.record.wrapper import Wrapper, unwrap


class ContainerProxy(Proxy):
    """A list or dict from outside."""

    __slots__ = ()

    def as_container(self) -> Any:
        """Its elements, entered."""
        raise NotImplementedError

    def as_operand(self) -> Any:
        return self.as_container()

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def __len__(self) -> int:
        self._guard_length()
        return len(self._plain_)

    def __bool__(self) -> bool:
        return len(self) > 0

    def _guard_length(self) -> None:
        recording, slot = self._recording_, self._slot_
        if recording.active and slot is not None:
            kind, length = type(self._plain_), len(self._plain_)
            recording.inputs.narrow(slot, inputs.has_length(kind, length))

    def __getitem__(self, key: object) -> Any:
        recording = self._recording_
        if not recording.active:
            return self._plain_[unwrap(key)]
        key = self._key(key)
        state = recording.attributes.get((id(self._plain_), Item(key))) if _is_simple_key(key) else None
        if state is not None and state.wrapped is not MISSING:
            if self._plain_[key] is not state.held:
                recording.break_unseen("a container was changed from outside the recorded code")
                return self._plain_[key]
            return state.wrapped
        return self._enter(key, self._plain_[key])

    def _enter(self, key: object, value: object) -> Any:
        recording, slot = self._recording_, self._slot_
        if slot is None or not _is_simple_key(key):
            recording.break_("call.opaque", f"an element of a {type(self._plain_).__name__} by {type(key).__name__}")
            return value
        name = f"{recording.inputs.name(slot)}[{key!r}]"
        return recording.enter(value, ("item", slot, Item(key)), name, inputs.item(slot, key))

    def __setitem__(self, key: object, value: object) -> None:
        recording, real = self._recording_, self._plain_
        key = self._key(key)
        existed = not isinstance(key, slice) and (key in real if isinstance(real, dict) else True)
        # A new key changes the container's length and order, which a plan of single writes does not express.
        if not existed or self._slot_ is None or type(key) not in (str, int):
            self._change("is given new elements")
            real[key] = recording.kept.unwrap_to_store(value)
            return
        before = real[key]
        self[key]  # it must be there on later calls too
        recording.journal.add(lambda: operator.setitem(real, key, before))
        real[key] = recording.kept.unwrap_to_store(value)
        if recording.active:
            recording.attributes[(id(real), Item(key))] = AttributeState(self, Item(key), value, True, real[key])

    def _key(self, key: object) -> Any:
        """The key as a plain value, indices of lists not negative."""
        key = self._recording_.write_down(lambda: as_static(key), unwrap(key))
        if isinstance(key, np.integer):
            key = int(key)
        if type(key) is int and key < 0 and isinstance(self._plain_, list):
            self._guard_length()
            key += len(self._plain_) if key >= -len(self._plain_) else 0
        return key

    def _change(self, how: str) -> None:
        """The container's shape changes: the tape ends here."""
        recording = self._recording_
        recording.break_("escape.object", f"a {type(self._plain_).__name__} of the program's {how}")
        if id(self._plain_) not in recording.changed:
            recording.changed[id(self._plain_)] = self._plain_
            self.journal()

    def journal(self) -> None:
        """Remember the container as it is, for undoing."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        # Any method that is not defined above (append, pop, sort, update): it may change the container.
        attribute, unwrap_part = getattr(self._plain_, name), self._recording_.kept.unwrap_to_store
        self._change(f"is asked for .{name}")
        return lambda *args, **kwargs: attribute(
            *map(unwrap_part, args), **{key: unwrap_part(kwargs[key]) for key in kwargs}
        )

    def __delitem__(self, key: object) -> None:
        self.__getattr__("__delitem__")(unwrap(key))

    def __iadd__(self, other: Any) -> Any:
        self.__getattr__("__iadd__")(list(other))
        return self

    def __contains__(self, value: object) -> bool:
        return any(value is part or value == part for part in self)

    def __eq__(self, other: Any) -> Any:
        if type(unwrap(other)) is not type(self._plain_):
            return self._plain_ == unwrap(other)
        theirs = other.as_container() if issubclass(type(other), ContainerProxy) else other
        return self.as_container() == theirs

    def __ne__(self, other: object) -> Any:
        return not self == other

    __hash__ = None  # type: ignore[assignment]


def _is_simple_key(key: object) -> bool:
    """Whether a key is of Python's own immutable types, which no code of the program's hashes or compares."""
    return type(key) in (str, int, bytes, type(None)) or (type(key) is tuple and all(map(_is_simple_key, key)))


def _is_bare_key(key: object) -> bool:
    """Whether a key says all of itself, and there is nothing more to be read of it."""
    return _is_simple_key(key) or isinstance(key, (float, complex, np.generic, enum.Enum, type))


class ListProxy(ContainerProxy):
    """A list from outside."""

    __slots__ = ()

    def as_container(self) -> Any:
        return list(self)

    def __getitem__(self, key: object) -> Any:
        key = self._key(key)
        if isinstance(key, slice):
            return [self[i] for i in range(*key.indices(len(self)))]
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[Any]:
        self._guard_length()
        # Python's own list iterator works by index as well, and so sees what is appended during the loop.
        i = 0
        while i < len(self._plain_):  # which may change meanwhile
            yield self[i]
            i += 1

    def __add__(self, other: object) -> Any:
        return list(self) + list(other) if isinstance(other, list) else NotImplemented

    def __radd__(self, other: object) -> Any:
        return list(other) + list(self) if isinstance(other, list) else NotImplemented

    def __mul__(self, other: object) -> Any:
        return list(self) * other if isinstance(other, (int, np.integer)) else NotImplemented

    __rmul__ = __mul__

    def __imul__(self, other: object) -> Any:
        self.__getattr__("__imul__")(unwrap(other))
        return self

    def copy(self) -> Any:
        return list(self)

    def index(self, value: object) -> int:
        return list(self).index(value)

    def journal(self) -> None:
        real, before = self._plain_, list(self._plain_)
        self._recording_.journal.add(lambda: operator.setitem(real, slice(None), before))


class DictProxy(ContainerProxy):
    """A dict from outside."""

    __slots__ = ()

    def as_container(self) -> Any:
        return dict(self.items())

    def _guard_keys(self) -> None:
        recording, slot = self._recording_, self._slot_
        # A loop hands keys to recorded code, which may read attributes of them that no guard holds.
        if not all(map(_is_bare_key, self._plain_)):
            recording.break_("call.opaque", "a loop over a dict with objects for keys")
        if recording.active and slot is not None:
            recording.inputs.narrow(slot, inputs.has_keys(tuple(self._plain_)))

    def _guard_length(self) -> None:
        self._guard_keys()

    def __contains__(self, key: object) -> bool:
        key = self._key(key)
        recording, slot = self._recording_, self._slot_
        if recording.active and slot is not None:
            known = key in self._plain_
            recording.inputs.narrow(slot, inputs.has_item(key, known))
        return key in self._plain_

    def __getitem__(self, key: object) -> Any:
        key = self._key(key)
        if key not in self:
            with self._recording_.foreseen():
                return self._plain_[key]
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[Any]:
        self._guard_keys()
        return iter(self._plain_)

    def get(self, key: object, default: object = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401

    def keys(self) -> Any:
        self._guard_keys()
        return self._plain_.keys()

    def values(self) -> Any:
        return DictView(self, lambda key: self[key], self._plain_.values())

    def items(self) -> Any:
        return DictView(self, lambda key: (key, self[key]), self._plain_.items())

    def copy(self) -> Any:
        return dict(self.items())

    def __reversed__(self) -> Iterator[Any]:
        return iter(list(self)[::-1])

    def __or__(self, other: object) -> Any:
        return dict(self.items()) | dict(other.items()) if isinstance(other, dict) else NotImplemented

    def __ior__(self, other: object) -> Any:
        self.__getattr__("__ior__")(other)
        return self

    def journal(self) -> None:
        real, before = self._plain_, dict(self._plain_)

        def restore() -> None:
            real.clear()
            real.update(before)

        self._recording_.journal.add(restore)


class DictView(Wrapper):
    """The values or items of a dict from outside, each entered when it is reached. real: Python's own view."""

    __slots__ = ("_part", "_source")

    def __init__(self, source: DictProxy, part: Callable[[Any], Any], real: object) -> None:
        self._recording_, self._plain_ = source._recording_, real
        self._source = source
        self._part = part

    def __iter__(self) -> Iterator[Any]:
        return map(self._part, self._source)

    def __reversed__(self) -> Iterator[Any]:
        return map(self._part, reversed(list(self._source)))

    def __len__(self) -> int:
        return len(self._source)

    def __contains__(self, value: object) -> bool:
        return value in list(self)
