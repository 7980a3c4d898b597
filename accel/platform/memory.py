"""Memory: what the process has held and may still take, and arrays over memory that something else owns."""

from __future__ import annotations

import ctypes
import functools
import math
import mmap
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from jax import Array


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


@functools.lru_cache
def _memory_of(size: int) -> type[ctypes.Array[ctypes.c_char]]:
    return ctypes.c_char * size


def array_at(address: int, shape: tuple[int, ...], typestr: str, *, owner: Array) -> np.ndarray[Any, Any]:
    """The memory at an address as an ndarray, which keeps `owner` alive. typestr: the dtype's `str`, such as "<f8".

    Its base is a writable buffer and no ndarray: so NumPy allows `flags.writeable = True`, and `x[1:].base is x`.
    """
    import numpy as np

    memory: Any = _memory_of(math.prod(shape) * np.dtype(typestr).itemsize).from_address(address)
    memory.owner = owner
    return np.ndarray(shape, typestr, memory)
