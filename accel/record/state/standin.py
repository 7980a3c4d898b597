"""The base of stand-ins: what recorded code has in the place of a function, a method or a type."""

from __future__ import annotations

from typing import Any

from accel.record.state.wrapper import Wrapper, unwrap


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
    """Is called in its own way; all else (its class, attributes, text, equality and hash) is that of the real one."""

    __slots__ = ()

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
