"""What a `functools.lru_cache` holds, seen without asking it: a question counts as a hit, and may run the function.

Python does not show the entries of a cache. Its garbage collector does: what the cache refers to is, in this order,
key, result and type of each entry (where the cache has a limit), the dict of entries, the function, and the mark that
it puts before keyword arguments in keys. `Cache` checks what it can of that, and is not there where it is otherwise.
"""

from __future__ import annotations

import functools
import gc
from typing import Any

from accel.record.state.inputs import MISSING

Wrapper = type(functools.lru_cache(lambda: None))
"""What the decorator makes."""


class Cache:
    """The entries of one cache. Raises LookupError where they are not found."""

    def __init__(self, function: Any) -> None:
        self.function = function
        parameters = function.cache_parameters()
        self._typed, self._limited = bool(parameters["typed"]), parameters["maxsize"] is not None
        held, wrapped = gc.get_referents(function), function.__wrapped__
        places = [at for at, each in enumerate(held) if each is wrapped]
        if not places or places[-1] + 1 >= len(held):
            raise LookupError
        self._entries, self._mark = held[places[-1] - 1], held[places[-1] + 1]
        size = function.cache_info().currsize
        if type(self._entries) is not dict or type(self._mark) is not object or len(self._entries) != size:
            raise LookupError

    def key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What these arguments are kept by."""
        if not (kwargs or self._typed) and len(args) == 1 and type(args[0]) in (int, str):
            return args[0]
        key = args
        if kwargs:
            key += (self._mark, *(part for item in kwargs.items() for part in item))
        if self._typed:
            key += (*map(type, args), *map(type, kwargs.values()))
        return key

    def result(self, key: Any) -> Any:
        """The result that is kept under a key, or MISSING."""
        entry = self._entries.get(key, MISSING)
        if entry is MISSING or not self._limited:
            return entry
        held = gc.get_referents(self.function)
        for at, kind in enumerate(held):
            if kind is type(entry) and at > 1 and type(held[at - 2]) is type(key) and held[at - 2] == key:
                return held[at - 1]
        return MISSING

    def result_for(self, owner: object, rest: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result that a method has for an object."""
        return self.result(self.key((owner, *rest), kwargs))
