"""Forks of the program's process.

A forked child has only the thread that forked. Locks that other threads held stay locked, and waiting for one of those
threads hangs. So accel does not use JAX in a child, and no object of JAX's is destroyed there. A device's client waits
for its threads when it is destroyed: without this module, every child of a program for which accel had compiled
anything crashed or hung at its end.
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
"""Whether this process is a forked child."""

PATIENCE_S = 30.0
"""The longest time, in seconds, that a fork waits for a `delayed` block to end. After that it forks all the same."""

_CAN = hasattr(os, "register_at_fork")
_PYTHON_WARNS_LATE = sys.version_info >= (3, 12)


def in_child(function: Callable[[], None]) -> Callable[[], None]:
    """Call a function in every forked child, before the program goes on there: a decorator.

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


# -- delaying forks ----------------------------------------------------------------------------------------------------


class _Forking(threading.local):
    is_under_way = False
    """Whether this thread's fork has waited for the lock."""
    waited = False
    """Whether this thread's fork holds the lock."""


_lock = threading.RLock()
_forking = _Forking()


@contextmanager
def delayed() -> Iterator[None]:
    """A block that other threads' forks wait for, such as an import. A child would have it half done for good."""
    with _lock:
        yield


def _wait() -> None:
    if not _forking.is_under_way:
        _forking.is_under_way = True
        _forking.waited = _lock.acquire(timeout=PATIENCE_S)


def _go_on() -> None:
    _forking.is_under_way = False
    if _forking.waited:
        _forking.waited = False
        _lock.release()


def wait_first() -> None:
    """Make forks wait for `delayed` blocks before they call what was registered so far.

    A fork calls first what was registered last, and that may take a lock. A block that needs it would not end.
    """
    if _CAN:
        os.register_at_fork(before=_wait)


@in_child
def _renew() -> None:
    global _lock
    _forking.is_under_way = False
    if _forking.waited:  # this thread, which goes on in the child, holds it
        _go_on()
    else:  # whoever holds it does not exist here
        _lock = threading.RLock()


if _CAN:
    os.register_at_fork(before=_wait, after_in_parent=_go_on)


# -- objects that are never destroyed in a child -----------------------------------------------------------------------

_kept: list[Callable[[], Any]] = []


def keep_in_children(objects: Iterable[Any]) -> None:
    """Never destroy these objects in a forked child, even when it ends. In this process they are destroyed as usual."""
    _kept.extend(map(_reference, objects))


def _reference(kept: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(kept)
    except TypeError:  # it cannot be referred to weakly: it lives as long as this module
        return lambda: kept


@in_child
def _keep() -> None:
    """Leak a reference to each object: any other reference is dropped when the interpreter ends."""
    for reference in _kept:
        kept = reference()
        if kept is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


# -- warnings ----------------------------------------------------------------------------------------------------------


class _WarningFilter:
    """A warning filter, and the pattern in it: it hides the warnings of a fork that are due to JAX alone.

    also_pythons: whether to hide Python's own warning of threads, too. Python gives it after all functions that a fork
    calls, so the filter is removed once it has matched, or at the next fork.
    """

    jax = re.compile(r"os\.fork\(\) was called\. os\.fork\(\) is incompatible with multithreaded code, and JAX")
    python = re.compile(r"This process \(pid=\d+\) is multi-threaded, use of \w+\(\) may lead to deadlocks")

    def __init__(self, also_pythons: bool) -> None:
        self.also_pythons = also_pythons
        self._filter: Any = ("ignore", self, Warning, None, 0)

    @property
    def pattern(self) -> str:
        """The pattern as text, for code that prints the filters."""
        return f"{self.jax.pattern}|{self.python.pattern}" if self.also_pythons else self.jax.pattern

    def match(self, text: str) -> bool:
        """Whether the warning is to be hidden. Called by the warnings module, as on a compiled pattern."""
        if self.also_pythons and self.python.match(text):
            self.leave()
            return True
        return self.jax.match(text) is not None

    def enter(self) -> None:
        """Insert the filter. `warnings.filterwarnings` would also show warnings again that are shown only once."""
        _filters().insert(0, self._filter)

    def leave(self) -> None:
        """Remove the filter."""
        if self._filter in _filters():
            _filters().remove(self._filter)


def _filters() -> list[Any]:
    return warnings.filters  # type: ignore[return-value]  # it is a list, as documented


_warning_filter: _WarningFilter | None = None
_is_quiet = False


def _hush() -> None:
    global _warning_filter
    if _warning_filter is not None:
        _warning_filter.leave()
    # where the program has threads too, Python's warning is deserved
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
    """Hide warnings about JAX's threads in forks from now on.

    For a process in which accel started JAX: the program gets no warning that it would not get without accel. Must be
    called after JAX was started, because a fork calls first what was registered last.
    """
    global _is_quiet
    if _CAN and not _is_quiet:
        _is_quiet = True
        os.register_at_fork(before=_hush, after_in_parent=_speak, after_in_child=_speak_in_child)
