"""Enumerations as recorded code sees them: their members never change.

Whatever another metaclass does runs unseen, and ends the tape.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterator
from typing import Any

from accel.record.objects.proxy import Proxy
from accel.record.state.wrapper import unwrap
from accel.record.values.arrays import as_static


class EnumMembers(Proxy):
    """A class as a container of its members."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        if self._recording_.active and is_enumeration(self._plain_):
            return iter([getattr(self, name) for name in self._plain_._member_names_])
        return iter(_by_metaclass(self, iter))

    def __bool__(self) -> bool:
        return bool(self._plain_)

    def __len__(self) -> int:
        return len(self._plain_) if is_enumeration(self._plain_) else _by_metaclass(self, len)

    def __contains__(self, value: object) -> bool:
        if is_enumeration(self._plain_) and isinstance(unwrap(value), self._plain_):
            return unwrap(value) in self._plain_
        return bool(_by_metaclass(self, operator.contains, unwrap(value)))

    def __getitem__(self, key: Any) -> Any:
        found = self._plain_.__members__.get(key) if is_enumeration(self._plain_) and type(key) is str else None
        return _by_metaclass(self, operator.getitem, unwrap(key)) if found is None else getattr(self, key)


def is_enumeration(kind: type) -> bool:
    """Whether a class is an Enum, of Python's own metaclass."""
    return type(kind) is enum.EnumMeta


def member_of(proxy: Any, value: Any) -> Any:
    """`Kind(value)`: the member with a value that the path fixes; None where there is no such member."""
    recording, kind = proxy._recording_, proxy._plain_
    plain = unwrap(value)
    if not recording.active or not is_enumeration(kind) or type(plain) not in (int, str):
        return None
    found = kind._value2member_map_.get(plain)
    if found is None:
        return None
    recording.write_down(lambda: as_static(value), plain)
    return getattr(proxy, found.name)


def _by_metaclass(proxy: Any, operation: Callable[..., Any], *args: Any) -> Any:
    proxy._recording_.break_("call.opaque", f"the metaclass of {proxy._plain_.__name__}", touched=True)
    return operation(proxy._plain_, *args)
