"""Devices: chooses the JAX device that programs are compiled for, imports JAX, and starts its clients on first use."""

from __future__ import annotations

import atexit
import functools
import math
import os
import sys
import threading
from collections.abc import Sequence
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any, NamedTuple

from accel.platform import config, ending, forks, interrupts, jax_internals, memory, tuning
from accel.platform.clocks import time

SMALL_ARRAY = 1 << 16
"""Maximum elements of a program's usual array at which one thread is as fast as all: waking another takes 50 us."""

ROOM, ROOM_PER_CPU = 2 * 2**30, 72 * 2**20
"""Bytes of address space that a large compile needs on two processors, with JAX's import, its clients and their
threads; and bytes for each further processor. The latter are thread stacks and allocation arenas, hardly any of it ever
touched.

Measured on two processors: 1,160 MB for a first small program, 1,480 MB for one of 3,000 operations. With less, some
thread of XLA's may get no stack: depending on the thread it crashes, aborts, hangs, or raises an error.
"""

ROOM_STARTED = 2**29
"""Bytes of address space that a compile needs once JAX is started."""


class Host(NamedTuple):
    """Stands for the CPU where a program is kernels alone, and JAX need not be imported."""

    platform: str = "cpu"
    device_kind: str = "cpu"


HOST = Host()

plays_apart = False
"""Whether the CPU plays a device with a memory of its own, as it does in tests and benchmarks.

All code that tells such devices apart asks here. That includes code about programs compiled elsewhere or found on disk:
those for the CPU itself would run as the CPU's own.
"""

_LOOKED_S = 1.0
"""Seconds for which the result of `has_room` is cached before JAX is started."""

_lock = threading.Lock()
_started = False
_room = (-math.inf, True)
_planned = False
_threads: int | None = None
_program_uses_jax: bool | None = None
_jax: Any = None


@forks.in_child
def _in_child() -> None:
    """Replace the lock, which another thread may have held, and leave JAX alone at exit."""
    global _lock
    _lock = threading.Lock()
    jax_internals.leave_without_cleaning_up()


def has_room() -> bool:
    """Whether the limit on this process's address space, if any, leaves enough for JAX."""
    global _room
    if _started:
        return _leaves(ROOM_STARTED)
    now = time.perf_counter()
    if now - _room[0] > _LOOKED_S:
        _room = now, _leaves(ROOM + ROOM_PER_CPU * max(0, (os.cpu_count() or 1) - 2))
    return _room[1]


def is_started() -> bool:
    """Whether accel has started JAX's clients."""
    return _started


def _leaves(wanted: int) -> bool:
    left = memory.addresses_left()
    return left is None or left >= wanted


def import_jax() -> Any:
    """Import JAX, and what loading a program needs; returns JAX. All of accel imports JAX by this function."""
    global _jax, _program_uses_jax
    if _jax is not None:
        return _jax
    if _program_uses_jax is None:
        # asked before accel's own import: a program that uses JAX itself keeps JAX's usual settings
        _program_uses_jax = "jax" in sys.modules
    with interrupts.Deferral():  # a fork that waited for these would run their second half without the first
        jax_internals.import_what_locks_in_forks()
    forks.wait_first()
    with interrupts.Deferral(), forks.delayed(), jax_internals.numpys_stream_kept(), jax_internals.quiet_logs():
        import jax
        from jax.experimental import serialize_executable  # noqa: F401
    _jax = jax
    # before JAX's own handler: it lets go of the clients
    atexit.register(ending.compiled_code.end)
    return jax


def start(usual: int) -> None:
    """Start JAX's clients for the process's first program. usual: elements that its arrays usually have.

    The CPU's client runs programs in the calling thread: handing them to another thread takes as long as a small
    program. Measured: 250 instead of 120 us for one at 121x240, 160 instead of 114 ms for PyGCM's step at 361x720. The
    client uses one thread if `Settings.threads` is unset and the first program's arrays are small. If the user's
    program imported JAX first, the clients are started as they would be without accel.
    """
    global _started
    with _lock:
        if _started:
            return
        import_jax()
        with interrupts.Deferral(), forks.delayed():
            if _program_uses_jax or jax_internals.backends_are_initialized():
                _keep_in_children()
            else:
                _start_clients(usual)
        _started = True


def _start_clients(usual: int) -> None:
    """Start the clients with accel's settings, then restore JAX's. From then on, forks give no warning about JAX."""
    _plan_threads(usual)
    with tuning.for_start_of(import_jax(), _threads), jax_internals.quiet_logs():
        _keep_in_children()
    forks.suppress_fork_warnings()


def _keep_in_children() -> None:
    forks.keep_in_children([*_clients(), *jax_internals.thread_pools()])


def _clients() -> list[Any]:
    """JAX's clients, one for each platform on this machine. Starts those that are not started."""
    jax = import_jax()
    found = [jax.devices()]
    for name in config.PLATFORMS:
        try:
            found.append(jax.devices(name))
        except RuntimeError:
            continue
    return [devices[0].client for devices in found]


def plan_threads(usual: int, advised: int | None = None) -> int | None:
    """Decide, once in a process, how many threads XLA gets on the CPU. Returns the number; None for all.

    usual: elements that the first program's arrays usually have. advised: what earlier runs used for that program, 0
    for all; None if there were none.
    """
    with _lock:
        _plan_threads(usual, advised)
        return _threads


def _plan_threads(usual: int, advised: int | None = None) -> None:
    global _planned, _threads
    if not _planned:
        chosen = config.current()
        # several devices wait for each other: on one thread for ever
        few = usual <= SMALL_ARRAY and chosen.platform in (None, "cpu") and chosen.devices == 1
        # earlier runs' number comes first: this program is on disk for that one. 0 stands for all
        default = (1 if few else None) if advised is None else advised or None
        _threads = chosen.threads or default
        _planned = True


def is_cpu_alone() -> bool:
    """Whether the CPU is chosen, or is the only platform, as far as can be told without starting JAX."""
    return not plays_apart and _is_cpu_alone(config.current().platform or os.environ.get("JAX_PLATFORMS", "").lower())


@functools.cache
def _is_cpu_alone(chosen: str) -> bool:
    if chosen:
        return chosen == "cpu"
    # an accelerator would come as a plugin of JAX's, or as libtpu
    return find_spec("jax_plugins") is None and find_spec("libtpu") is None and not entry_points(group="jax_plugins")


def threads() -> int | None:
    """The number of threads that XLA uses, and compiles for, on the CPU; None if it chooses itself."""
    return _threads


@functools.cache
def device(platform: str | None) -> Any:
    """The JAX device to run on: the platform's first, or JAX's default. Raises SettingError."""
    import jax

    check_platform(platform)
    # of several processes, each has its own
    return jax.local_devices(backend=platform)[0]


def all_devices(chosen: config.Settings) -> list[Any]:
    """The JAX devices among which programs divide their arrays. Raises SettingError if there are not as many."""
    import jax

    found: list[Any] = jax.devices(chosen.platform) if chosen.platform else jax.devices()
    wanted = len(found) if chosen.devices == config.ALL else int(chosen.devices)
    if wanted > len(found):
        raise config.SettingError(config.VARIABLES["devices"], wanted, f"up to {len(found)}, or {config.ALL}")
    return found[:wanted]


def own(found: Sequence[Any]) -> list[Any]:
    """Return those of the devices that belong to this process."""
    import jax

    return [each for each in found if each.process_index == jax.process_index()]


def shares_memory(device: Any) -> bool:
    """Whether a device has the host's memory, so that nothing is copied to it and back."""
    return bool(device.platform == "cpu") and not plays_apart


def is_out_of_memory(error: BaseException) -> bool:
    """Whether JAX has raised this because a device has too little memory left."""
    return isinstance(error, RuntimeError) and str(error).startswith("RESOURCE_EXHAUSTED")


def check(chosen: config.Settings) -> None:
    """Raise SettingError if accel is on, and the settings name a platform that does not exist here."""
    if chosen.enabled and chosen.mode != "off":
        check_platform(chosen.platform)
        if chosen.machines is not None and not forks.happened:
            _check_joined(chosen.machines)
        if chosen.devices != 1:
            start(0)
            all_devices(chosen)


def _check_joined(machines: str) -> None:
    """Raise SettingError if this process has not joined others before the program's first line."""
    from accel.backend.machines import crew  # here: few programs need it

    if crew.current is None:
        possible = "a program that `accel run` starts"
        raise config.SettingError(config.VARIABLES["machines"], machines, possible, "has no effect here")


def check_platform(platform: str | None) -> None:
    """Raise SettingError if JAX has no such platform here. The message names those that it has."""
    if platform in (None, "cpu"):  # always there, so JAX need not be started to check
        return
    if not _is_there(platform):
        possible = ", ".join(platforms()) or "none: JAX cannot be started on any platform here"
        problem = f"is not there: JAX sees no {platform.upper()}{_INSTALLED_BY.get(platform, '')}"
        raise config.SettingError(config.VARIABLES["platform"], platform, possible, problem)


_INSTALLED_BY = {"gpu": " (for NVIDIA's: pip install 'pygcm-accel[cuda]')", "tpu": " (pip install 'pygcm-accel[tpu]')"}
"""By platform, the installation that JAX needs to see its devices."""


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
