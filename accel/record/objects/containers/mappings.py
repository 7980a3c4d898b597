"""Dicts from outside, defaultdicts and Counters among them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from accel.record.objects.containers.container import is_bare_key, is_simple_key
from accel.record.objects.containers.keyed import KeyedProxy
from accel.record.objects.proxy import find_in_class
from accel.record.state import inputs
from accel.record.state.changes import AttributeState, Emptied, Item
from accel.record.state.inputs import MISSING
from accel.record.state.wrapper import Wrapper, unwrap


class DictProxy(KeyedProxy):
    """A dict from outside."""

    __slots__ = ()

    copied = dict

    def as_container(self) -> Any:
        return dict(self.items())

    def change(self, template: Callable[[Any], Any]) -> Emptied | None:
        """The change that a replay makes before it sets and deletes single items."""
        return Emptied(self._slot_) if self._emptied and self._slot_ is not None else None

    @property
    def _comparable(self) -> type:
        return dict

    # -- keys ---------------------------------------------------------------------------------------------------------

    def _known_keys(self) -> Iterable[Any]:
        own = id(self._plain_)
        return [key[1].key for key in self._recording_.attributes if key[0] == own and isinstance(key[1], Item)]

    def _guard_length(self) -> None:
        self._guard_keys()

    def _guard_keys(self) -> None:
        """Let replays check all keys, in order."""
        recording, slot = self._recording_, self._slot_
        # A loop hands keys to recorded code, which may read attributes of them that no guard holds.
        if not all(map(is_bare_key, self._plain_)):
            recording.break_("call.opaque", "a loop over a dict with objects for keys")
        self._fix_all()
        if recording.active and slot is not None and not self._emptied:
            recording.inputs.narrow(slot, inputs.has_keys(tuple(self._base)))

    def _state(self, key: object) -> AttributeState | None:
        """The state of an item that this call has set or deleted; None for other items."""
        if not is_simple_key(key):
            return None
        state: AttributeState | None = self._recording_.attributes.get((id(self._plain_), Item(key)))
        held = MISSING if state is None else self._plain_.get(key, MISSING)
        if state is not None and held is not state.held:
            self._recording_.break_unseen("a container was changed from outside the recorded code")
            return None
        return state

    def __contains__(self, key: object) -> bool:
        return self._has(self._key(key))

    def _has(self, key: Any) -> bool:
        """Whether there is such an item. key: a plain one, here and below."""
        known = key in self._plain_
        if self._recording_.active and self._state(key) is None:
            self._guard_membership(key, known)
        return known

    def __iter__(self) -> Iterator[Any]:
        self._guard_keys()
        return iter(self._plain_)

    def __reversed__(self) -> Iterator[Any]:
        self._guard_keys()
        return iter(reversed(self._plain_))

    def keys(self) -> Any:
        self._guard_keys()
        return self._plain_.keys()

    # -- reading ------------------------------------------------------------------------------------------------------

    def __getitem__(self, key: object) -> Any:
        key = self._key(key)
        return self._item(key) if self._has(key) else self._missing(key)

    def _item(self, key: Any) -> Any:
        """An item that is there."""
        recording, slot, value = self._recording_, self._slot_, self._plain_[key]
        state = self._state(key) if recording.active else None
        if state is not None or not recording.active:
            return value if state is None else state.wrapped
        if slot is None or not is_simple_key(key):
            recording.break_("call.opaque", f"an element of a {type(self._plain_).__name__} by {type(key).__name__}")
            return value
        self._fix(key)
        name = f"{recording.inputs.name(slot)}[{key!r}]"
        fetch = inputs.item if type(self._plain_) is dict else inputs.item_that_is_there
        return recording.enter(value, ("item", slot, Item(key)), name, fetch(slot, key))

    def _missing(self, key: Any) -> Any:
        """Give `d[key]` for a key that is missing, or raise."""
        self._raise_missing(key)

    def get(self, key: object, default: object = None) -> Any:
        key = self._key(key)
        return self._item(key) if self._has(key) else default

    def values(self) -> Any:
        return DictView(self, lambda key: self[key], self._plain_.values())

    def items(self) -> Any:
        return DictView(self, lambda key: (key, self[key]), self._plain_.items())

    def copy(self) -> Any:
        return dict(self.items())

    def __or__(self, other: Any) -> Any:
        if isinstance(other, dict) and find_in_class(type(unwrap(other)), "__ror__")[0] is not dict:
            return self._merge(other)  # Python asks a subclass with its own way first
        return dict(self.items()) | dict(other.items()) if isinstance(other, dict) else NotImplemented

    def _merge(self, other: Any) -> Any:
        """Let Python merge the two: the tape ends here."""
        self._give_up("is merged")
        return self._plain_ | unwrap(other)

    # -- changing -----------------------------------------------------------------------------------------------------

    def _records(self, key: object) -> bool:
        """Whether a change of an item is recorded. Where it can not be, the tape ends."""
        if self._recording_.active and (self._slot_ is None or not is_simple_key(key)):
            self._give_up(f"is changed by a key of type {type(key).__name__}")
        return self._recording_.active

    def __setitem__(self, key: object, value: object) -> None:
        self._set(self._key(key), value)

    def _set(self, key: Any, value: object) -> None:
        recording, real = self._recording_, self._plain_
        held = self._stored(value)
        if not self._records(key):
            real[key] = held
            return
        place = id(real), Item(key)
        is_there, before = self._has(key), recording.attributes.get(place)
        if not is_there:
            self._begin_change()
            # New items come last, in the order in which they were set.
            recording.attributes.pop(place, None)
        elif self._before is None:
            old = real[key]
            recording.journal.add(lambda: operator.setitem(real, key, old))
        real[key] = held
        # 1 and 1.0 are one key: the first that was set is the one that stays.
        state = AttributeState(self, before.name if is_there and before is not None else Item(key), value, True, held)
        # Deleted and set again it stands at the end.
        state.is_anew = before is not None and (before.is_anew or not is_there)
        recording.attributes[place] = state

    def __delitem__(self, key: object) -> None:
        self._delete(self._key(key))

    def _delete(self, key: Any) -> None:
        if not self._records(key):
            del self._plain_[key]
        elif not self._has(key):
            self._raise_missing(key)
        else:
            self._begin_change()
            del self._plain_[key]
            state = AttributeState(self, Item(key), MISSING, True, MISSING)
            self._recording_.attributes[id(self._plain_), Item(key)] = state

    def pop(self, key: object, *default: Any) -> Any:
        key = self._key(key)
        if not self._records(key):
            return self._plain_.pop(key, *default)
        if not self._has(key):
            return self._plain_.pop(key, *default) if default else self._raise_missing(key)
        value = self._item(key)
        self._delete(key)
        return value

    def setdefault(self, key: object, default: object = None) -> Any:
        key = self._key(key)
        if self._has(key):
            return self._item(key)
        self._set(key, default)
        return default

    def update(self, other: Any = (), /, **items: Any) -> None:
        pairs = other.items() if hasattr(other, "keys") else other
        for key, value in [*pairs, *items.items()]:
            self[key] = value

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def clear(self) -> None:
        if self._recording_.active and self._slot_ is not None:
            self._begin_change()
            self._forget_items()
            self._emptied = True
        self._plain_.clear()


class DefaultDictProxy(DictProxy):
    """A defaultdict from outside: its factory is followed."""

    __slots__ = ()

    @property
    def default_factory(self) -> Any:
        recording, slot, factory = self._recording_, self._slot_, self._plain_.default_factory
        if not recording.active or slot is None:
            return factory
        name = f"{recording.inputs.name(slot)}.default_factory"
        return recording.enter(factory, ("factory", slot), name, inputs.attribute(slot, "default_factory"))

    def _missing(self, key: Any) -> Any:
        factory = self.default_factory
        if factory is None or not self._recording_.active:
            return super()._missing(key)
        value = factory()
        self._set(key, value)
        return value

    copy = DictProxy._copy_plain
    __or__ = DictProxy._merge


class OrderedDictProxy(DictProxy):
    """An OrderedDict from outside. What gives it another order ends the tape."""

    __slots__ = ()

    def __eq__(self, other: object) -> Any:
        self._give_up("is compared")
        return self._plain_ == unwrap(other)

    __hash__ = None  # type: ignore[assignment]

    copy = DictProxy._copy_plain
    __or__ = DictProxy._merge


class CounterProxy(DictProxy):
    """A Counter from outside. What adds another one up ends the tape."""

    __slots__ = ()

    def _missing(self, key: Any) -> Any:
        return 0

    def update(self, *others: Any, **items: Any) -> None:
        self.__getattr__("update")(*others, **items)

    def _delete(self, key: Any) -> None:
        if not self._recording_.active or self._has(key):  # a key that is not there is no error
            super()._delete(key)

    copy = DictProxy._copy_plain
    __or__ = DictProxy._merge

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        self._give_up("is merged")
        self._plain_ |= unwrap(other)
        return self

    def __iadd__(self, other: Any) -> Any:
        self._give_up("is added to")
        self._plain_ += unwrap(other)
        return self


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
        return map(self._part, reversed(self._source))

    def __len__(self) -> int:
        return len(self._source)

    def __contains__(self, value: object) -> bool:
        return value in list(self)

    def _operated(self, function: Callable[[Any, Any], Any], other: Any) -> Any:
        self._source._give_up("has items that are compared")
        return function(self._plain_, unwrap(other))


def _compared(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: self._operated(function, other)


for _name in "eq ne le lt ge gt and or xor sub".split():
    setattr(DictView, f"__{_name}__", _compared(getattr(operator, f"__{_name}__")))
