"""Settings of the whole process that accel changes: all of them are here. docs/settings.md lists them.

`QD_JAX_TUNE=0` leaves each of them alone. Any number of threads may hold one at the same time. If the program
changes it meanwhile, the program's value stays.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from accel.platform import config, forks

SWITCH_S = 1e-4
"""The thread switch interval, in seconds, while a thread compiles."""

ALLOCATIONS = 50_000
"""The garbage collector's first threshold while accel records and compiles."""

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
"""Parameters of mallopt(3)."""

KEPT = 512 * 2**20
"""The most bytes of freed memory that are kept at the end of the heap."""

LARGEST = 64 * 2**20, 32 * 2**20
"""Blocks of fewer bytes come from the heap, larger ones from the kernel. The second value is for older versions of
glibc, which reject the first."""

USUAL = 128 * 2**10
"""The default of both of glibc's thresholds."""

_ASYNC = "jax_cpu_enable_async_dispatch"
_NPROC = "NPROC"
_PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"


_lock = threading.RLock()  # a signal handler may come here while its thread is here


class _Setting:
    """One of Python's settings: it has accel's value while at least one thread holds it."""

    def __init__(self, read: Callable[[], Any], write: Callable[[Any], None], ours: Callable[[Any], Any]) -> None:
        """ours: computes accel's value from the program's."""
        self._read, self._write, self._wanted = read, write, ours
        self._holders: dict[object, int] = {}
        self._usual: Any = None
        self._ours: Any = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold accel's value for a block, unless the user wants settings left alone."""
        if not config.current().tune:
            yield
            return
        holder = object()
        try:
            self._take(holder)
            yield
        finally:
            self._give_back(holder)

    def _take(self, holder: object) -> None:
        with _lock:
            if not self._holders:
                self._usual = self._read()
                self._ours = self._wanted(self._usual)
                self._holders[holder] = threading.get_ident()
                self._write(self._ours)
                self._ours = self._read()  # the interval is kept in whole microseconds
            else:
                self._holders[holder] = threading.get_ident()

    def _give_back(self, holder: object) -> None:
        with _lock:
            if self._holders.pop(holder, None) is not None and not self._holders:
                self._restore()

    def _restore(self) -> None:
        """Restore the program's value, unless the program has changed the setting meanwhile."""
        if self._read() == self._ours:
            self._write(self._usual)

    def leave_to(self, thread: int) -> None:
        """In a forked child: release what other threads held, which do not exist there."""
        others = [holder for holder, its in self._holders.items() if its != thread]
        for holder in others:
            self._give_back(holder)


_turns = _Setting(sys.getswitchinterval, sys.setswitchinterval, lambda usual: min(usual, SWITCH_S))
_garbage = _Setting(
    gc.get_threshold,
    lambda threshold: gc.set_threshold(*threshold),
    lambda usual: (max(usual[0], ALLOCATIONS), *usual[1:]) if usual[0] else usual,
)


def short_switch_interval() -> AbstractContextManager[None]:
    """Shorten the thread switch interval for a block."""
    return _turns.held()


@contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Make garbage collections rare for a block, or as a decorator. If collection is off, it stays off."""
    with _garbage.held():
        yield


# -- memory -----------------------------------------------------------------------------------------------------------

_keeps_freed = False


def keeps_freed() -> bool:
    """Whether the C library keeps freed memory because accel has told it to."""
    return _keeps_freed


def keep_freed() -> bool:
    """Make the C library keep freed memory. Returns whether it does; only glibc can."""
    global _keeps_freed
    if not _keeps_freed and config.current().tune:
        _keeps_freed = _tell_malloc(LARGEST, KEPT)
    return _keeps_freed


def give_back_freed() -> None:
    """Make the C library return freed memory to the kernel again."""
    global _keeps_freed
    if _keeps_freed:
        _keeps_freed = not _tell_malloc((USUAL,), USUAL)


def _tell_malloc(largest: tuple[int, ...], kept: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    told = any(mallopt(M_MMAP_THRESHOLD, size) for size in largest)
    return bool(mallopt(M_TRIM_THRESHOLD, kept)) and told


# -- JAX's start ------------------------------------------------------------------------------------------------------


@contextmanager
def for_start_of(jax: Any, threads: int | None) -> Iterator[None]:
    """JAX's settings as accel wants them for JAX's clients, which read them when they are started."""
    if not config.current().tune:
        yield
        return
    usual = jax.config.read(_ASYNC)
    try:
        jax.config.update(_ASYNC, False)
        with _variable(_NPROC, None if threads is None else str(threads)), _variable(_PREALLOCATE, "false"):
            yield
    finally:
        jax.config.update(_ASYNC, usual)


@contextmanager
def _variable(name: str, value: str | None) -> Iterator[None]:
    """An environment variable set for a while, unless the user has set it, or `value` is None."""
    if value is None or name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


@forks.in_child
def _in_child() -> None:
    global _lock
    _lock = threading.RLock()
    for setting in (_turns, _garbage):
        setting.leave_to(threading.get_ident())
