"""Standard streams that replays may write to, because writing to them only shows text; and IPython's tee on them."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any

from accel.record.state.opaque import WARNINGS


def handed_on_to(write: object) -> Any:
    """The method that IPython's tee hands a text on to; None for any other function.

    While a cell runs, IPython 9 puts this `write` on the standard streams. It hands each text on, and keeps it in the
    history of the notebook. It is known by its code, which is a constant of that of `InteractiveShell._tee`.
    """
    if type(write) is not FunctionType:
        return None
    shell = getattr(sys.modules.get("IPython.core.interactiveshell"), "InteractiveShell", None)
    maker = getattr(getattr(shell, "_tee", None), "__wrapped__", None)
    if type(maker) is not FunctionType or not any(write.__code__ is each for each in maker.__code__.co_consts):
        return None
    held = dict(zip(write.__code__.co_freevars, write.__closure__ or (), strict=True))
    try:
        return held["original_write"].cell_contents
    except (KeyError, ValueError):  # another version's, or it is not set
        return None


_BUFFERS = (io.BufferedWriter, io.BufferedRandom)
_ENDS = (io.FileIO, io.BytesIO)
_FOR_READERS = frozenset({"_pytest", "ipykernel"})
"""Packages that put streams of their own in the place of the standard ones, to show the text elsewhere."""

_OWN = frozenset({"write", "flush", "encoding", "errors"})


class TextObserver:
    """Replaces a stream's `write` or a logger's `handle` while a call is compared with NumPy; passes all text on."""

    def __init__(self, real: Callable[[Any], Any], note: Callable[[Any], None]) -> None:
        self._real, self._note = real, note
        self._thread = threading.get_ident()

    def __call__(self, what: Any) -> Any:
        # `warnings` writes what a replay does not
        try:
            if self._thread == threading.get_ident() and sys._getframe(1).f_globals.get("__name__") not in WARNINGS:
                self._note(what)
        except Exception:  # the program's own call must not fail
            pass
        return self._real(what)


def own_names(value: Any) -> set[str]:
    """The names of what an object has of its own, but for what stands before its methods and hands all on."""
    return {name for name, each in getattr(value, "__dict__", {}).items() if type(each) is not TextObserver}


def is_plain(stream: Any) -> bool:
    """Whether a stream is one of Python's own down to the file, or of a package that only shows the text elsewhere.

    A stream of the program's own may do anything with a text: look at the arrays, or at the clock.
    """
    kind = type(stream)
    replaced = _OWN & own_names(stream)
    if replaced and not all(_hands_on(stream, name) for name in replaced):
        return False
    if kind.__module__.partition(".")[0] in _FOR_READERS:
        return True
    if kind is io.StringIO:
        return True
    if kind is not io.TextIOWrapper:
        return False
    buffer = stream.buffer  # under `python -u` the file itself
    return type(buffer.raw if type(buffer) in _BUFFERS else buffer) in _ENDS


def _hands_on(stream: Any, name: str) -> bool:
    """Whether an attribute of a stream is IPython's tee, or the stream's own method, which IPython leaves there.

    The tee of a cell that another cell runs hands on to that one's.
    """
    write = vars(stream)[name]
    while (real := handed_on_to(write)) is not None:
        write = real
    kind = type(stream)
    is_method = type(write) in (MethodType, BuiltinMethodType)
    return type(write) is TextObserver or (is_method and write == getattr(kind, name).__get__(stream, kind))


def is_standard(stream: Any) -> bool:
    """Whether it is standard output or standard error, as these are now, and plain."""
    return (stream is sys.stdout or stream is sys.stderr) and is_plain(stream)
