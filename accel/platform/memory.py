"""Memory: what the process has held and may still take, and arrays over memory that something else owns."""

from __future__ import annotations

import mmap
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from jax import Array
    from numpy.typing import NDArray


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
    address: int, shape: tuple[int, ...], typestr: str, *, owner: Array | NDArray[Any], writeable: bool
) -> np.ndarray[Any, Any]:
    """The memory at an address as an ndarray, which keeps `owner` alive. typestr: the dtype's `str`, such as "<f8"."""
    import numpy as np

    # a view: NumPy makes an array writable again only if its base is a writable array
    return np.asarray(_Described(address, shape, typestr, owner, writeable)).view()


class _Described:
    """Describes memory by NumPy's array interface."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(
        self, address: int, shape: tuple[int, ...], typestr: str, owner: Array | NDArray[Any], writeable: bool
    ) -> None:
        self._owner = owner
        self.__array_interface__ = {"data": (address, not writeable), "shape": shape, "typestr": typestr, "version": 3}
