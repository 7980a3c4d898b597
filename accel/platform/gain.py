"""Potential gain: what programs could have saved so far, had they been there from the start. It decides what is begun.

    0.03 s   programs on disk are loaded: they were worth compiling once  (LOAD_GAIN_S)
    0.15 s   programs are compiled, by the worker, outside this process   (COMPILE_GAIN_S)
    0.7 s    JAX is imported here, to load what XLA has compiled there    (IMPORT_GAIN_S)
    1.5 s    in place of the 0.15 s, where there is no other processor for the worker (ONE_PROCESSOR_GAIN_S)

A run is expected to last as long again as it has lasted so far, which is the best guess without further knowledge.
Importing JAX costs the program more than a second, and another quarter at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue

from accel.platform import processors

LOAD_GAIN_S = 0.03
COMPILE_GAIN_S = 0.15
IMPORT_GAIN_S = 0.7
ONE_PROCESSOR_GAIN_S = 1.5


class PotentialGain:
    """Seconds that programs could have saved, over all targets."""

    def __init__(self) -> None:
        self.seconds = 0.0
        # not an Event: what a signal handler raises inside its `set` may leave its lock taken for good
        self._enough: SimpleQueue[None] = SimpleQueue()
        self._is_enough = False
        self._whatever_it_costs = False

    def add(self, seconds: float) -> None:
        """Add what a program could have saved for a call."""
        self.seconds += max(0.0, seconds)
        if self.seconds >= IMPORT_GAIN_S and not self._is_enough:
            self._wake()

    def is_worth_starting(self, *, on_disk: Callable[[], bool]) -> bool:
        """Whether the first program is to be compiled or, where there are some on disk, looked for.

        on_disk: whether there are some. That takes longer than a short call, so it is asked only where it decides.
        """
        return not self.wanting_s or (self.seconds >= LOAD_GAIN_S and on_disk())

    @property
    def wanting_s(self) -> float:
        """Seconds that programs have still to miss before the first of them is compiled, as a worker has to start."""
        compile_s = COMPILE_GAIN_S if processors.usable() > 1 else max(COMPILE_GAIN_S, ONE_PROCESSOR_GAIN_S)
        return 0.0 if self._whatever_it_costs else max(0.0, compile_s - self.seconds)

    def wait_for_import(self) -> None:
        """Wait until it is worth importing JAX, or until `stop_waiting`."""
        if self.seconds < IMPORT_GAIN_S:
            self._enough.get()
            self._enough.put(None)  # whoever else waits is told, too

    def stop_waiting(self) -> None:
        """Let nobody wait any more, now or later: programs are wanted whatever they cost, or the process ends."""
        self._whatever_it_costs = True
        self._wake()

    def _wake(self) -> None:
        self._enough.put(None)  # first: if it is interrupted, it is done again
        self._is_enough = True


potential_gain = PotentialGain()
"""This process's."""
