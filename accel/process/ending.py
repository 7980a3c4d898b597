"""The end of the program's process: what accel lets go of, so that Python need not take it apart.

At its end Python walks through all objects several times. Some ten thousand nodes of recordings make that 0.4 s longer.
Released one by one beforehand, they take a tenth of it.
"""

from __future__ import annotations

import atexit
import contextlib
from typing import Protocol
from weakref import WeakSet


class Holder(Protocol):
    """Holds many objects, and can do without them."""

    def let_go(self) -> None:
        """Drop them. Calls of the program's may still come: they run on NumPy."""


_holders: WeakSet[Holder] = WeakSet()


def let_go_at_exit(holder: Holder) -> None:
    """Have `holder.let_go()` called at the end of this process, unless the holder is gone by then."""
    _holders.add(holder)


@atexit.register  # on importing accel, so that it runs after accel's other handlers, which may report on what goes here
def _let_go() -> None:
    if not _holders:
        return
    from accel.process import forks

    if not forks.happened:  # a child must not destroy what is JAX's
        with contextlib.suppress(Exception):
            for holder in tuple(_holders):
                holder.let_go()
