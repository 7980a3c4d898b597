"""Progress bars of tqdm: a library's code that runs between two iterations, and looks at nothing of the program's.

A bar goes through an iterable, counts, and writes text to a stream. This module looks for anything but plain values
that a program may have put into it. Private interfaces of tqdm that are used: the attributes of a bar that hold its
stream, lock, clock and iterable, and its generator's variables of these; the names of colours; and the monitor, a
thread that redraws bars that have stood still.
"""

from __future__ import annotations

import io
import re
import sys
import threading
from types import FunctionType, GeneratorType
from typing import Any

_PLAIN = frozenset({bool, int, float, str, type(None)})
_STREAMS = frozenset({io.StringIO, io.BytesIO, io.FileIO})
_MODULES = frozenset({"tqdm.std", "tqdm.asyncio", "tqdm.utils", "builtins"})
"""A bar in a notebook is a widget, and whoever follows it is told of each step."""

_GIVEN = "iterable"
"""The attribute; others whose names begin so belong to `async for`."""

_TAKEN = {"iterable": _GIVEN, "time": "_time"}
"""Variables of the generator of a bar, and the attributes that it took them from."""

_LOCKS = frozenset({"tqdm", "_thread", "multiprocessing"})
"""Packages of locks that bars may take."""

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


def bar_of(iterable: object) -> Any:
    """The bar that an iterable is, or whose elements a generator gives; None for others."""
    if type(iterable) is GeneratorType and iterable.gi_code.co_name == "__iter__" and iterable.gi_frame is not None:
        names = iterable.gi_frame.f_locals
        bar: Any = names.get("self")
        is_its_own = _is_bar(bar) and type(bar).__iter__.__code__ is iterable.gi_code
        return bar if is_its_own and _is_as_it_began(bar, names) else None
    return iterable if _is_bar(iterable) else None


def _is_as_it_began(bar: Any, names: dict[str, Any]) -> bool:
    """Whether a bar still has what its generator took when it began. names: the generator's variables."""
    return all(names[name] is vars(bar).get(of) for name, of in _TAKEN.items() if name in names)


def gone_through(bar: Any) -> list[Any] | None:
    """The one iterable that a bar goes through; None if it may run code of the program's."""
    return [vars(bar).get(_GIVEN)] if _is_plain(bar) else None


def monitors() -> set[int | None]:
    """The identifiers of the threads that watch over bars, and no others than plain ones."""
    kind: Any = getattr(sys.modules.get("tqdm._monitor"), "TMonitor", None)
    if kind is None:
        return set()
    found: list[Any] = [each for each in threading.enumerate() if type(each) is kind]
    return {each.ident for each in found if all(_is_bar(bar) and _is_plain(bar) for bar in each.get_instances())}


def _is_bar(value: object) -> bool:
    kind: Any = getattr(sys.modules.get("tqdm.std"), "tqdm", None)
    return (
        kind is not None and isinstance(value, kind) and {each.__module__ for each in type(value).__mro__} <= _MODULES
    )


def _is_plain(bar: object) -> bool:
    """Whether all that a bar has is plain or the library's own, but for what it goes through."""
    mine = (value for each in type(bar).__mro__ if each is not object for value in vars(each).values())
    return (
        all(map(_is_librarys, filter(_is_function, mine)))
        and all(_is_harmless(value) for name, value in vars(bar).items() if not name.startswith(_GIVEN))
        and type(getattr(bar, "_lock", None)).__module__.partition(".")[0] in _LOCKS
        and not _warns(bar)
    )


def _warns(bar: Any) -> bool:
    """Whether a bar has something to warn of when it is shown: the program may show warnings itself."""
    colour, count = vars(bar).get("colour"), vars(bar).get("n", 0)
    known = sys.modules["tqdm.std"].Bar.COLOURS
    return count < 0 or not (colour is None or colour.upper() in known or _COLOUR.fullmatch(colour))


def _is_function(value: object) -> bool:
    return type(value) is FunctionType


def _is_librarys(value: Any) -> bool:
    """Whether a function, or an object's class, is defined in the library."""
    module = value.__globals__.get("__name__") if _is_function(value) else type(value).__module__
    return str(module).partition(".")[0] == "tqdm"


def _is_harmless(value: Any) -> bool:
    if type(value) in _PLAIN or type(value) is type(len):
        return True
    if _is_librarys(value):
        inner = {} if _is_function(value) else getattr(value, "__dict__", {})
        return all(map(_is_harmless, inner.values()))
    return _is_stream(value)


def _is_stream(value: Any) -> bool:
    """Whether writing to a stream runs no Python."""
    if type(value) is io.TextIOWrapper:
        return _is_stream(value.buffer)
    if type(value) in (io.BufferedWriter, io.BufferedRandom):
        return _is_stream(value.raw)
    return type(value) in _STREAMS
