"""The base of stand-ins: what recorded code has in the place of a function, a method or a type."""

from __future__ import annotations

from typing import Any

from accel.record.wrapper import Wrapper, unwrap


class StandIn(Wrapper):
    """Is called in its own way; all else (its class, attributes, text, equality and hash) is that of the real one."""

    __slots__ = ()

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
