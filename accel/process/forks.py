"""Forks of the program's process, in which JAX's threads are not.

Only the thread that forks goes on in a child; locks that others held stay locked there, and whoever waits for one of
the others, waits for ever. So a child uses JAX no more, and nothing of JAX ends in it: the client of a device waits at
its end for its threads, which crashed or hung every child of a program that accel had compiled something for.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

happened = False
"""Whether this process is such a child."""

PATIENCE_S = 30.0
"""Seconds that a fork waits for what it must not cut in two; then that is what it does."""

_CAN = hasattr(os, "register_at_fork")
_PYTHON_WARNS_LATE = sys.version_info >= (3, 12)


def in_child(function: Callable[[], None]) -> Callable[[], None]:
    """Have a function called in every child, before the program goes on there: a decorator.

    >>> @in_child
    ... def renew_lock() -> None: ...
    """
    if _CAN:
        os.register_at_fork(after_in_child=function)
    return function


@in_child
def _note() -> None:
    global happened
    happened = True


# -- what no fork cuts in two ------------------------------------------------------------------------------------------


class _Forking(threading.local):
    waited = False
    """Whether this thread's fork holds the lock."""


_lock = threading.RLock()
_forking = _Forking()


@contextmanager
def delayed() -> Iterator[None]:
    """What other threads' forks wait for, such as an import: in a child it would be half done for ever."""
    with _lock:
        yield


def _wait() -> None:
    _forking.waited = _lock.acquire(timeout=PATIENCE_S)


def _go_on() -> None:
    if _forking.waited:
        _forking.waited = False
        _lock.release()


@in_child
def _renew() -> None:
    global _lock
    if _forking.waited:
        _go_on()
    else:
        _lock = threading.RLock()


if _CAN:
    os.register_at_fork(before=_wait, after_in_parent=_go_on)


# -- what never ends in a child ----------------------------------------------------------------------------------------

_kept: list[weakref.ref[Any]] = []


def keep_in_children(objects: Iterable[Any]) -> None:
    """Let these objects end in this process as they would, but never in a child: not even when the child ends."""
    _kept.extend(weakref.ref(each) for each in objects)


@in_child
def _keep() -> None:
    """A reference from anything in Python would go when the interpreter ends, and the object with it."""
    for reference in _kept:
        kept = reference()
        if kept is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


# -- warnings ----------------------------------------------------------------------------------------------------------


class _WarningFilter:
    """What stands as the message in a warning filter: the warnings of a fork that are there because of JAX alone.

    Python gives its own after all that a fork calls, so the filter goes when it has been of use, or at the next fork.
    """

    jax = re.compile(r"os\.fork\(\) was called\. os\.fork\(\) is incompatible with multithreaded code, and JAX")
    python = re.compile(r"This process \(pid=\d+\) is multi-threaded, use of \w+\(\) may lead to deadlocks")

    def __init__(self, also_pythons: bool) -> None:
        self.also_pythons = also_pythons
        self._filter: Any = ("ignore", self, Warning, None, 0)

    @property
    def pattern(self) -> str:
        """For whoever prints the filters."""
        return f"{self.jax.pattern}|{self.python.pattern}" if self.also_pythons else self.jax.pattern

    def match(self, text: str) -> bool:
        """Whether it is one of them."""
        if self.also_pythons and self.python.match(text):
            self.leave()
            return True
        return self.jax.match(text) is not None

    def enter(self) -> None:
        """Become the first filter. Not by `warnings.filterwarnings`: then warnings shown once would be shown again."""
        _filters().insert(0, self._filter)

    def leave(self) -> None:
        """Be no filter any more."""
        if self._filter in _filters():
            _filters().remove(self._filter)


def _filters() -> list[Any]:
    return warnings.filters  # type: ignore[return-value]  # documented as the list that it is


_warning_filter: _WarningFilter | None = None
_is_quiet = False


def _hush() -> None:
    global _warning_filter
    if _warning_filter is not None:
        _warning_filter.leave()
    _warning_filter = _WarningFilter(also_pythons=all(_is_ours(thread) for thread in threading.enumerate()))
    _warning_filter.enter()


def _is_ours(thread: threading.Thread) -> bool:
    return thread is threading.current_thread() or thread.name.startswith("accel-")


def _speak() -> None:
    if _warning_filter is not None and not (_PYTHON_WARNS_LATE and _warning_filter.also_pythons):
        _warning_filter.leave()


def _speak_in_child() -> None:
    if _warning_filter is not None:
        _warning_filter.leave()


def suppress_fork_warnings() -> None:
    """From now on, a fork gives no warning of JAX's threads.

    For a process in which accel started JAX: a program that does not know of JAX gets no warning that it would not
    have had. To be called after JAX's start: what a fork calls first is what was registered last.
    """
    global _is_quiet
    if _CAN and not _is_quiet:
        _is_quiet = True
        os.register_at_fork(before=_hush, after_in_parent=_speak, after_in_child=_speak_in_child)
