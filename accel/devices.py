"""Devices: which one of JAX's programs are compiled for, and how JAX's client for the CPU is started.

JAX is imported here, on first use.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

from accel import config

FEW = 1 << 16
"""Elements of a program's largest array up to which one thread is as fast as all: waking another takes some 50 us."""

_NPROC = "NPROC"
"""The environment variable in which XLA looks for the number of its threads when its client is started."""

_lock = threading.Lock()
_started = False
_planned = False
_threads: int | None = None


def start(largest: int) -> None:
    """Start JAX's client for the CPU, at the process's first program, whose largest array has so many elements.

    It runs programs in the thread that asks for them: handing them to another and back takes as long as a small program
    (250 instead of 120 us for one at 121x240, 160 instead of 114 ms for PyGCM's step at 361x720). With
    `Settings.threads` unset it has one thread if the first program's arrays are small. Without effect where the
    process has used JAX before.
    """
    global _started
    import jax

    with _lock:
        if _started:
            return
        _started = True
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        _plan(largest)
        with _variable(_NPROC, None if _threads is None else str(_threads)):
            jax.devices()


def plan(largest: int) -> int | None:
    """How many threads XLA is to have on the CPU, decided by the first program's largest array; None: all."""
    with _lock:
        _plan(largest)
        return _threads


def _plan(largest: int) -> None:
    global _planned, _threads
    if not _planned:
        settings = config.current()
        _threads = settings.threads or (1 if largest <= FEW and settings.platform in (None, "cpu") else None)
        _planned = True


def prepare() -> None:
    """Import JAX, and what loading a program needs."""
    import jax  # noqa: F401
    from jax.experimental import serialize_executable  # noqa: F401


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
    """The JAX device to run on: the platform's first, or the best there is."""
    import jax

    check_platform(platform)
    return jax.devices(platform)[0] if platform else jax.devices()[0]


def check_platform(platform: str | None) -> None:
    """Raise SettingError where JAX has no such platform, naming those that it has."""
    if platform in (None, "cpu"):  # always there, and not to be started yet
        return
    import jax

    try:
        jax.devices(platform)
    except RuntimeError:
        raise config.SettingError("QD_JAX_PLATFORM", platform, ", ".join(platforms())) from None


def platforms() -> list[str]:
    """The platforms that JAX has here."""
    import jax

    found = []
    for name in ("cpu", "gpu", "tpu"):
        try:
            jax.devices(name)
        except RuntimeError:
            continue
        found.append(name)
    return found
