"""Devices: which one of JAX's programs are compiled for, and how JAX's client for the CPU is started.

JAX is imported here, on first use.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Iterator
from typing import Any

from accel import config

FEW = 1 << 16
"""Elements of a program's largest array up to which one thread is as fast as all: waking another takes some 50 us."""

_NPROC = "NPROC"
"""The environment variable in which XLA looks for the number of its threads when its client is started."""

_lock = threading.Lock()
_started = False
_threads: int | None = None


def start(largest: int) -> None:
    """Start JAX's client for the CPU, at the process's first program, whose largest array has so many elements.

    It runs programs in the thread that asks for them: handing them to another and back takes as long as a small program
    (250 instead of 120 us for one at 121x240, 160 instead of 114 ms for PyGCM's step at 361x720). With
    `Settings.threads` unset it has one thread if the first program's arrays are small. Without effect where the
    process has used JAX before.
    """
    global _started, _threads
    import jax

    with _lock:
        if _started:
            return
        _started = True
        settings = config.current()
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        _threads = settings.threads or (1 if largest <= FEW and settings.platform in (None, "cpu") else None)
        with _variable(_NPROC, None if _threads is None else str(_threads)):
            jax.devices()


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
