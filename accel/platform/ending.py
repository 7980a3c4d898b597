"""The end of the program's process: what accel lets go of, and threads that are in compiled code.

At its end Python walks through all objects several times. Some ten thousand nodes of recordings make that 0.4 s longer.
Released one by one beforehand, they take a tenth of it.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet

from accel.platform import forks
from accel.platform.clocks import time


class Holder(Protocol):
    """Holds many objects, and can do without them."""

    def let_go(self) -> None:
        """Drop them. Calls of the program's may still come: they run on NumPy."""


_holders: WeakSet[Holder] = WeakSet()


def let_go_at_exit(holder: Holder) -> None:
    """Have `holder.let_go()` called at the end of this process, unless the holder is gone by then."""
    _holders.add(holder)


class EndedError(Exception):
    """The process is ending: a thread other than the main one begins nothing that is compiled."""


class CompiledCode:
    """Blocks that run, load or make compiled code. The main thread waits for their end before Python's own end.

    Python ends a daemon thread where the thread next waits for the GIL. In the middle of XLA's code that aborts the
    process. The memory of a kernel may be freed while the kernel runs.
    """

    PATIENCE_S = 60.0
    """Longest wait, in seconds."""

    def __init__(self, *shorten: Callable[[], object]) -> None:
        """shorten: functions that make long blocks end early; a list that may grow until the process ends."""
        self.shorten = [*shorten]
        self._depths: dict[int, int] = {}
        self._ended_by: int | None = None

    def __enter__(self) -> None:
        """Begin a block. Raises EndedError."""
        own = threading.get_ident()
        # first it says that it is here, then it asks: `end` does the reverse
        self._depths[own] = self._depths.get(own, 0) + 1
        if self._ended_by not in (None, own):
            self.__exit__()
            raise EndedError("the process is ending")

    def __exit__(self, *exc: object) -> None:
        own = threading.get_ident()
        depth = self._depths.pop(own, 1) - 1
        if depth:
            self._depths[own] = depth

    def end(self) -> None:
        """Let other threads begin no block any more, and wait until they have left theirs."""
        own = self._ended_by = threading.get_ident()
        for each in self.shorten:
            with contextlib.suppress(Exception):
                each()
        patience = time.monotonic() + self.PATIENCE_S
        while set(self._depths) - {own} and time.monotonic() < patience:
            time.sleep(1e-3)

    def forget(self) -> None:
        """Start afresh in a forked child, which has none of the threads."""
        self._depths, self._ended_by = {}, None


compiled_code = CompiledCode()
"""The blocks of this process."""

forks.in_child(compiled_code.forget)


@atexit.register  # on importing accel, so that it runs after accel's other handlers, which may report on what goes here
def _let_go() -> None:
    if not _holders:
        return
    if not forks.happened:  # a child must not destroy what is JAX's
        for holder in tuple(_holders):
            with contextlib.suppress(Exception):
                holder.let_go()


atexit.register(compiled_code.end)  # once more after JAX is imported, whose own handler would come first
