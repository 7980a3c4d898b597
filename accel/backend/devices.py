"""Devices: which one of JAX's programs are compiled for, and how JAX's client for the CPU is started.

JAX is imported here, on first use.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

from accel import config
from accel.process import forks, interrupts, jax_internals, memory

FEW = 1 << 16
"""Elements of a program's largest array up to which one thread is as fast as all: waking another takes some 50 us."""

_NPROC = "NPROC"
"""The environment variable in which XLA looks for the number of its threads when its client is started."""

_ASYNC = "jax_cpu_enable_async_dispatch"
"""JAX's setting that has programs on the CPU run by another thread. It is read when the client is started."""

ROOM, ROOM_PER_CPU = 2 * 2**30, 72 * 2**20
"""Bytes of address space that JAX's import, its clients, their threads and a large compile take, and those of the
threads that each processor beyond two adds: stacks and places to allocate from, hardly any of it ever used.

Measured: 1,160 MB for a first small program and 1,480 MB for one of 3,000 operations on two processors. With less, any
of XLA's threads may lack its stack: it crashes, aborts, waits for ever, or says so, depending on which.
"""

ROOM_STARTED = 2**29
"""The same once JAX is started: a compile."""

_LOOKED_S = 1.0
"""Seconds for which an answer stands that a process with limited memory got before JAX was started."""

_lock = threading.Lock()
_started = False
_room = (-math.inf, True)
_planned = False
_threads: int | None = None
_program_uses_jax: bool | None = None
_jax: Any = None


@forks.in_child
def _in_child() -> None:
    """What another thread was doing it does not do here."""
    global _lock
    _lock = threading.Lock()
    jax_internals.leave_without_cleaning_up()


def has_room() -> bool:
    """Whether this process's limit on its memory, if any, leaves JAX as much as it needs."""
    global _room
    if _started:
        return _leaves(ROOM_STARTED)
    now = time.perf_counter()
    if now - _room[0] > _LOOKED_S:
        _room = now, _leaves(ROOM + ROOM_PER_CPU * max(0, (os.cpu_count() or 1) - 2))
    return _room[1]


def is_started() -> bool:
    """Whether JAX's clients are there."""
    return _started


def _leaves(wanted: int) -> bool:
    left = memory.addresses_left()
    return left is None or left >= wanted


def import_jax() -> Any:
    """JAX, and what loading a program needs. Whoever imports JAX for accel does so by this."""
    global _jax, _program_uses_jax
    if _jax is not None:
        return _jax
    if _program_uses_jax is None:
        _program_uses_jax = "jax" in sys.modules
    with interrupts.Deferral(), forks.delayed():
        import jax
        from jax.experimental import serialize_executable  # noqa: F401
    _jax = jax
    return jax


def start(largest: int) -> None:
    """Start JAX's clients, at the process's first program, whose largest array has so many elements.

    The one for the CPU runs programs in the thread that asks for them: handing them to another and back takes as long
    as a small program (250 instead of 120 us for one at 121x240, 160 instead of 114 ms for PyGCM's step at 361x720).
    With `Settings.threads` unset it has one thread if the first program's arrays are small.
    A program that had imported JAX before accel did gets its clients as it would have without accel.
    """
    global _started
    with _lock:
        if _started:
            return
        import_jax()
        with interrupts.Deferral(), forks.delayed():
            if _program_uses_jax or jax_internals.backends_are_initialized():
                forks.keep_in_children(_clients())
            else:
                _start_clients(largest)
        _started = True


def _start_clients(largest: int) -> None:
    """Start them for accel, and leave JAX's settings, and what forks say, as they would be without it."""
    jax = import_jax()
    usual = jax.config.read(_ASYNC)
    _plan(largest)
    try:
        jax.config.update(_ASYNC, False)
        with _variable(_NPROC, None if _threads is None else str(_threads)):
            forks.keep_in_children(_clients())
    finally:
        jax.config.update(_ASYNC, usual)
    forks.suppress_fork_warnings()


def _clients() -> list[Any]:
    """JAX's clients, one for each platform that there is, started if they were not."""
    jax = import_jax()
    found = [jax.devices()]
    for name in config.PLATFORMS:
        try:
            found.append(jax.devices(name))
        except RuntimeError:
            continue
    return [devices[0].client for devices in found]


def plan(largest: int, advised: int | None = None) -> int | None:
    """How many threads XLA is to have on the CPU, decided by the first program's largest array; None: all.

    advised: what earlier runs used for that program, 0 for all; None where there were none.
    """
    with _lock:
        _plan(largest, advised)
        return _threads


def _plan(largest: int, advised: int | None = None) -> None:
    global _planned, _threads
    if not _planned:
        settings = config.current()
        few = largest <= FEW and settings.platform in (None, "cpu")
        usual = (1 if few else None) if advised is None else advised or None
        _threads = settings.threads or usual
        _planned = True


@functools.cache
def is_cpu_alone() -> bool:
    """Whether programs are for the CPU, as far as can be told without starting JAX: asked for, or all there is."""
    chosen = config.current().platform or os.environ.get("JAX_PLATFORMS", "").lower()
    if chosen:
        return chosen == "cpu"
    return find_spec("jax_plugins") is None and find_spec("libtpu") is None and not entry_points(group="jax_plugins")


def threads() -> int | None:
    """How many threads XLA was asked to use on the CPU, for which it compiles too. None: as many as it likes."""
    return _threads


@contextlib.contextmanager
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


@functools.cache
def device(platform: str | None) -> Any:
    """The JAX device to run on: the platform's first, or the best there is. Raises SettingError."""
    import jax

    check_platform(platform)
    return jax.devices(platform)[0] if platform else jax.devices()[0]


def check(settings: config.Settings) -> None:
    """Raise SettingError where the settings ask for a platform that is not there, and anything is to be compiled."""
    if settings.enabled and settings.mode != "off":
        check_platform(settings.platform)


def check_platform(platform: str | None) -> None:
    """Raise SettingError where JAX has no such platform, naming those that it has."""
    if platform in (None, "cpu"):  # always there, and not to be started yet
        return
    if not _is_there(platform):
        possible = ", ".join(platforms()) or "none: JAX can be started on no platform here"
        raise config.SettingError(config.VARIABLES["platform"], platform, possible)


def platforms() -> list[str]:
    """The platforms that JAX has here."""
    return [name for name in config.PLATFORMS if _is_there(name)]


def _is_there(platform: str | None) -> bool:
    jax = import_jax()
    try:
        start(0)
        return bool(jax.devices(platform))
    except RuntimeError:
        return False
