"""dataclasses.replace: a new object whose `__init__` is followed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from accel.record.objects.computed import guard_class
from accel.record.objects.objects import ObjectProxy, construct
from accel.record.state.opaque import call_opaque
from accel.record.state.recording import Recording
from accel.record.state.standin import StandIn
from accel.record.state.wrapper import unwrap


class Replace(StandIn):
    """dataclasses.replace in recorded code."""

    __slots__ = ()

    def __init__(self, recording: Recording, function: Callable[..., Any]) -> None:
        self._recording_, self._plain_ = recording, function

    def __call__(self, /, *args: Any, **changes: Any) -> Any:
        recording, kind = self._recording_, type(unwrap(args[0])) if args else object
        if not recording.active or len(args) != 1 or not issubclass(type(args[0]), ObjectProxy) or not _is_plain(kind):
            return call_opaque(recording, self._plain_, args, changes)
        guard_class(recording, kind, _FIELDS, getattr(kind, _FIELDS))
        # Those that are given first, the others behind them, as Python passes them on.
        others = [name for name in getattr(kind, _FIELDS) if name not in changes and name in _names(kind)]
        return construct(recording, kind, (), {**changes, **{name: getattr(args[0], name) for name in others}})


_FIELDS = "__dataclass_fields__"


def _names(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def _is_plain(kind: type) -> bool:
    """Whether a class is a dataclass all of whose fields `__init__` takes, and keeps."""
    if not dataclasses.is_dataclass(kind):
        return False
    kinds = {repr(field._field_type) for field in getattr(kind, _FIELDS).values()}
    return "_FIELD_INITVAR" not in kinds and all(field.init for field in dataclasses.fields(kind))
