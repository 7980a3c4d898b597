"""`self.__dict__` in recorded code: looked up by name, as in `__getattr__`.

Whatever else is done with it ends the tape.
"""

from __future__ import annotations

from typing import Any

from accel.record.objects.own_attributes import guard_no_own, is_slot, own_attribute
from accel.record.objects.proxy import find_in_class
from accel.record.state.inputs import MISSING
from accel.record.state.standin import StandIn
from accel.record.state.wrapper import unwrap


class OwnNamespace(StandIn):
    """The namespace of an object of the program's. A name that its class computes is not looked up."""

    __slots__ = ("_proxy",)

    def __init__(self, proxy: Any) -> None:
        self._recording_, self._plain_, self._proxy = proxy._recording_, proxy._plain_.__dict__, proxy

    def __contains__(self, name: object) -> bool:
        return self._found(name) is not MISSING

    def __getitem__(self, name: str) -> Any:
        found = self._found(name)
        return self._plain_[unwrap(name)] if found is MISSING else found  # Python's own KeyError

    def get(self, name: str, default: Any = None) -> Any:
        found = self._found(name)
        return default if found is MISSING else found

    def _found(self, name: Any) -> Any:
        """What the object holds under a name, as an attribute; MISSING where it holds nothing, which replays check."""
        proxy, recording = self._proxy, self._recording_
        name = unwrap(name)
        if type(name) is not str or not recording.active:
            return self._else("a name that is none", name)
        if own_attribute(proxy._plain_, name) is MISSING:
            # what the call itself has deleted, or looked for before, is noted
            if (id(proxy._plain_), name) not in recording.attributes:
                guard_no_own(recording, proxy._slot_, name)
            return MISSING
        found = find_in_class(type(proxy._plain_), name)[1]
        # a data descriptor answers before the object does
        if hasattr(type(found), "__set__") or is_slot(found):
            return self._else(f"__dict__[{name!r}], which its class computes", name)
        return getattr(proxy, name)

    def _else(self, what: str, name: Any) -> Any:
        self._recording_.break_("code.unsupported", f"uses {what}")
        return self._plain_.get(name, MISSING)

    def __getattr__(self, name: str) -> Any:
        self._recording_.break_("code.unsupported", f"uses __dict__.{name}", touched=True)
        return getattr(self._plain_, name)


def _unlisted(name: str) -> Any:
    def method(self: OwnNamespace, *args: Any) -> Any:
        return OwnNamespace.__getattr__(self, name)(*map(unwrap, args))

    return method


for _name in ("__iter__", "__len__", "__setitem__", "__delitem__", "__or__", "__ior__", "__reversed__", "__repr__"):
    setattr(OwnNamespace, _name, _unlisted(_name))
