"""Memory: the allocator's settings, the memory in use, and arrays over memory that another object owns.

A compiled step allocates and frees megabytes of temporaries. The C library on Linux returns large blocks to the kernel
at once, and getting them back costs a page fault for every 4 KiB: 40 % of the time of PyGCM's whole steps (4.2 against
2.4 ms). So freed memory is kept by the process, up to a bound.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
"""Parameters of mallopt(3)."""

KEPT = 512 * 2**20
"""The most bytes of freed memory that are kept at the end of the heap."""

LARGEST = 64 * 2**20, 32 * 2**20
"""Blocks of fewer bytes come from the heap, larger ones from the kernel. The second value is for older versions of
glibc, which reject the first."""


@functools.cache
def keep_freed() -> bool:
    """Make the C library keep freed memory. Returns whether it does; only glibc can."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    accepted = any(mallopt(M_MMAP_THRESHOLD, size) for size in LARGEST)
    return bool(mallopt(M_TRIM_THRESHOLD, KEPT)) and accepted


def peak_mb() -> float | None:
    """The peak resident memory of this process, in MB; None if the system cannot tell.

    `getrusage` also counts the parent's memory before `exec`, so Linux's own high-water mark is preferred.
    """
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
        if found is not None:
            return int(found[1]) * 1024 / 1e6
        import resource
    except (OSError, ImportError):  # neither Linux nor any other Unix
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def addresses_left() -> int | None:
    """Bytes of address space that this process may still allocate; None without a limit (see `ulimit -v`)."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return None
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ImportError, ValueError):  # not Linux: the space in use is unknown
        return None
    return limit - pages * mmap.PAGESIZE


def array_at(
    address: int, shape: tuple[int, ...], typestr: str, *, owner: Any, writeable: bool
) -> np.ndarray[Any, Any]:
    """The memory at an address as an ndarray, which keeps `owner` alive. typestr: the dtype's `str`, such as "<f8"."""
    import numpy as np

    return np.asarray(_Described(address, shape, typestr, owner, writeable))


class _Described:
    """Describes memory by NumPy's array interface."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, address: int, shape: tuple[int, ...], typestr: str, owner: Any, writeable: bool) -> None:
        self._owner = owner
        self.__array_interface__ = {"data": (address, not writeable), "shape": shape, "typestr": typestr, "version": 3}
