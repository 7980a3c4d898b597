"""Wrappers stand for the program's values while a call is recorded; `unwrap` gives the plain values back."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accel.record.state.recording import Recording

LISTS = (list, deque)
DICTS = (dict, defaultdict, Counter, OrderedDict)
SETS = (set, frozenset)
"""Containers, by exact type, that may hold recorded values while a call is recorded."""


class Wrapper:
    """Base of everything that stands for a plain value while recording."""

    __slots__ = ("__weakref__", "_plain_", "_recording_")

    _plain_: Any
    _recording_: Recording

    def as_operand(self) -> Any:
        """The plain value to pass to NumPy, which must be guarded. Raises Unsupported if it is not."""
        return self._plain_


set_class: Callable[[Any, type], None] = object.__dict__["__class__"].__set__
"""Sets a wrapper's class, past the property by which it answers as the plain value would."""


def unwrap(value: Any) -> Any:
    """The value with every wrapper in it replaced by what it stands for."""
    if isinstance_wrapper(value):
        return value._plain_
    # Most values hold none; and a container must stay the very object then, since the program may compare it by `is`.
    if not has_wrapper(value):
        return value
    kind = type(value)
    if issubclass(kind, tuple):
        return rebuilt(value, map(unwrap, value))
    if kind is slice:
        return slice(unwrap(value.start), unwrap(value.stop), unwrap(value.step))
    if kind is frozenset:
        return frozenset(map(unwrap, value))
    made = value.copy()
    refill(made, unwrap)
    return made


def refill(value: Any, change: Callable[[Any], Any]) -> None:
    """Put `change(part)` in the place of each part of a list, deque, dict or set, and `unwrap(key)` of each key.

    Somebody may be looping over it, so that its length does not change on the way unless keys do.
    """
    kind = type(value)
    if kind in LISTS:
        for position, part in enumerate(list(value)):
            value[position] = change(part)
        return
    parts: Any = {unwrap(key): change(value[key]) for key in value} if kind in DICTS else set(map(change, value))
    if any(map(has_wrapper, value)):
        value.clear()
    if kind is Counter:
        dict.update(value, parts)  # its own adds
    else:
        value.update(parts)
    if kind is defaultdict:
        value.default_factory = unwrap(value.default_factory)


def rebuilt(value: tuple[Any, ...], parts: Iterable[Any]) -> Any:
    """The tuple or namedtuple with other parts; itself where they are its own."""
    parts = list(parts)
    # A namedtuple's class may count its instances or be compared by `is`: none is made without need.
    if all(new is old for new, old in zip(parts, value, strict=True)):
        return value
    kind = type(value)
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def isinstance_wrapper(value: object) -> bool:
    """Whether a value is a wrapper; `isinstance` would be misled by its `__class__`."""
    return issubclass(type(value), Wrapper)


def has_wrapper(value: Any) -> bool:
    """Whether there is a wrapper in a value, or in the containers that it is made of."""
    if isinstance_wrapper(value):
        return True
    kind = type(value)
    # Only containers whose iteration runs no code of the program's: a subclass of list may have an __iter__ of its own.
    if kind in (*LISTS, *SETS) or issubclass(kind, tuple):
        return any(map(has_wrapper, value))
    if kind in DICTS:
        is_wrapped = kind is defaultdict and isinstance_wrapper(value.default_factory)
        return is_wrapped or any(map(has_wrapper, value)) or any(map(has_wrapper, value.values()))
    return kind is slice and any(map(has_wrapper, (value.start, value.stop, value.step)))


class _OfReal(str):
    """A class's `__module__` or `__doc__`, which is text. Its instances have those of what they stand in for."""

    def __new__(cls, text: str, name: str) -> _OfReal:
        made = super().__new__(cls, text)
        made._name = name
        return made

    _name: str

    def __get__(self, instance: StandIn | None, owner: type) -> Any:
        return self if instance is None else getattr(instance._plain_, self._name)


class StandIn(Wrapper):
    """A stand-in with a call of its own; class, attributes, text, equality and hash are those of the real one."""

    __slots__ = ()

    def __init__(self, recording: Recording, real: Any) -> None:
        self._recording_, self._plain_ = recording, real

    def __init_subclass__(cls, **about: Any) -> None:
        """Python finds these two in the class, and asks `__getattr__` for what it does not find."""
        super().__init_subclass__(**about)
        cls.__module__ = _OfReal(cls.__module__, "__module__")
        cls.__doc__ = _OfReal(cls.__doc__ or "", "__doc__")

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._plain_)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain_, name)

    def __eq__(self, other: object) -> bool:
        return bool(self._plain_ == unwrap(other))

    def __hash__(self) -> int:
        return hash(self._plain_)

    def __repr__(self) -> str:
        return repr(self._plain_)

    def __subclasscheck__(self, kind: type[Any]) -> bool:
        return issubclass(unwrap(kind), self._plain_)
