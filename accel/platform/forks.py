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

_JAX = re.compile(r"os\.fork\(\) was called\. os\.fork\(\) is incompatible with multithreaded code, and JAX")
_PYTHON = re.compile(r"This process \(pid=\d+\) is multi-threaded, use of \w+\(\) may lead to deadlocks")
_OF_JAX, _OF_PYTHON = (("ignore", pattern, Warning, None, 0) for pattern in (_JAX, _PYTHON))
"""Filters that hide JAX's and Python's warnings of a fork. They stay among the program's filters after it."""


def _hush() -> None:
    """Put the filters in front at each fork: the program may have set others meanwhile.

    `warnings.filterwarnings` would also show warnings again that are shown only once.
    """
    filters: list[Any] = warnings.filters  # type: ignore[assignment]  # it is a list, as documented
    filters[:] = [each for each in filters if each not in (_OF_JAX, _OF_PYTHON)]
    # where the program has threads too, Python's warning is deserved
    are_ours = all(map(_is_ours, threading.enumerate()))
    filters[:0] = [_OF_JAX, _OF_PYTHON] if are_ours else [_OF_JAX]


def _is_ours(thread: threading.Thread) -> bool:
    return thread is threading.current_thread() or thread.name.startswith("accel-")


_is_quiet = False


def suppress_fork_warnings() -> None:
    """Hide warnings about JAX's threads in forks from now on.

    For a process in which accel started JAX: the program gets no warning that it would not get without accel. Must be
    called after JAX was started, because a fork calls first what was registered last.
    """
    global _is_quiet
    if _CAN and not _is_quiet:
        _is_quiet = True
        os.register_at_fork(before=_hush)
