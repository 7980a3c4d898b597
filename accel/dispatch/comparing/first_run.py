"""The first run of a new program: in the worker, on copies of one call's inputs, compared with NumPy's results.

XLA and its libraries have faults: some programs crash their process, some never end, some give wrong numbers. In the
worker, none of that reaches the user's program. There, NumPy computes the recorded operations from the same inputs.
What a program of several paths gives is not compared.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from accel.backend import devices
from accel.backend.job import JobTrace
from accel.compiler.merge import ABSENT, MergedTrace
from accel.compiler.merge.trace import of_nobody
from accel.dispatch.comparing.errors import Tolerance, Verdict, relative_errors
from accel.dispatch.comparing.monte_carlo import computed_nodes, computed_values, explanation, run_tape
from accel.dispatch.replay import HostError, SideExit, StagedOutputs, Variant
from accel.dispatch.replay.variant import Computed
from accel.platform import interrupts
from accel.record import Trace
from accel.record.values.draws.generators import kind_of
from accel.rules.rule import Unsupported

if TYPE_CHECKING:
    from accel.backend.executable import Executable

MOST_BYTES = 1 << 26
"""Maximum bytes of inputs that are copied for a first run. The program waits for the copy: 0.16 s at this size, and
0.75 ms for 20 fields of 121 x 240 numbers."""

LEAST_S, CALLS_S = 30.0, 100.0
"""Maximum seconds of a first run: LEAST_S, and CALLS_S times the call's time on NumPy. Guesses: the worker has a low
priority, and a program that hangs never ends."""


@dataclass(slots=True)
class FirstRun:
    """Inputs and limits of a first run.

    values: of the slots, None where the program reads nothing. absent: slots that hold nothing in this call. of_some:
    indices of nodes that only some of several paths compute; None for one path. limit_s: maximum seconds that it may
    take. tolerance: the target's.
    """

    values: list[Any]
    absent: list[int]
    of_some: frozenset[int] | None
    limit_s: float
    tolerance: Tolerance

    def problem(
        self, executable: Executable, trace: JobTrace, limited: Callable[[float], AbstractContextManager[None]]
    ) -> str:
        """Return why the program must not be used, or "". limited: ends this process after a number of seconds.

        Raises Unsupported where there is too little memory to tell.
        """
        if self.of_some is None:
            variant = Variant(trace, executable)
        else:
            variant = _OfSeveral(of_nobody(trace, self.of_some), executable)
        values = [ABSENT if slot in self.absent else value for slot, value in enumerate(self.values)]
        with limited(self.limit_s):
            try:
                staged = variant.run(values)
            except HostError:  # it depends on the numbers of the call
                return ""
            except Exception as error:
                what = f"{type(error).__name__}: {error}".splitlines()[0]
                if isinstance(error, MemoryError) or devices.is_out_of_memory(error):
                    raise Unsupported("compile.unfinished", what) from error
                return what
        # the call takes another path, or nobody knows which one
        if not isinstance(staged, StagedOutputs):
            return ""
        self.values = list(staged.values)  # with what has been drawn
        return self._difference(staged, executable)

    def complete(self) -> None:
        """All arrays are complete; see `monte_carlo.Inputs`."""

    def _difference(self, staged: StagedOutputs, executable: Executable) -> str:
        staged.complete(self.values, vast=True)
        try:
            with np.errstate(all="ignore"):
                expected = run_tape(computed_nodes(staged.trace.outputs), self.values, lambda node, value, _: value)
        except Exception as why:  # NumPy cannot tell: the first replays are compared with whole calls
            interrupts.pass_on(why)
            return ""
        what, error = _worst(computed_values(staged), expected)
        if error <= self.tolerance.rtol:
            return ""
        verdict = explanation(staged, self, self.tolerance.of(executable))
        return "" if verdict is not Verdict.MISMATCH else f"{what}, relative error {error:.2g}"


class _OfSeveral(Variant):
    """The program of several paths, for a run of which nothing is used: nobody knows here which one it takes."""

    def _staged(self, run: Computed) -> SideExit:
        return SideExit(0)


def first_run(
    trace: Trace | MergedTrace, values: Sequence[Any], call_s: float, tolerance: Tolerance
) -> FirstRun | None:
    """The first run of a path's program on a call's inputs; None where they are too large, or cannot be copied.

    values: of the slots, before the call. call_s: seconds of a call on NumPy.
    """
    drawn = {draw.slot for draw in trace.draws}
    owners = {draw.owner for draw in trace.draws if draw.owner is not None}
    read = {node.args[0] for node in trace.tape.nodes if node.is_input}.union(trace.array_slots, trace.scalar_slots)
    slots = read.union(owners) - drawn
    if sum(values[slot].nbytes for slot in slots if isinstance(values[slot], np.ndarray)) > MOST_BYTES:
        return None
    copies: list[Any] = [None] * len(values)
    generators: dict[int, Any] = {}  # one that is in several slots stays one
    for slot in slots:
        value = values[slot]
        if type(value) is np.ndarray and not value.dtype.hasobject:
            copies[slot] = np.array(value)
        elif slot in owners and kind_of(value) is not None:
            copies[slot] = copy.deepcopy(value, generators)
        elif isinstance(value, np.generic) or type(value) in _NUMBERS:
            copies[slot] = value
        elif value is not ABSENT:
            return None
    of_some = trace.of_some if isinstance(trace, MergedTrace) else None
    absent = [slot for slot in slots if values[slot] is ABSENT]
    return FirstRun(copies, absent, of_some, LEAST_S + CALLS_S * call_s, tolerance)


_NUMBERS = (bool, int, float, complex)


def _worst(replayed: Sequence[Any], expected: Sequence[Any]) -> tuple[str, float]:
    """The largest relative error of all values, and what it is in words."""
    what, largest = "", 0.0
    for found, actual in zip(replayed, expected, strict=True):
        if found.shape != actual.shape:
            return f"NumPy gives shape {list(actual.shape)}, the program {list(found.shape)}", math.inf
        errors = relative_errors(found, actual)
        if errors is not None and errors.max() > largest:
            at = np.unravel_index(int(errors.argmax()), actual.shape)
            what, largest = f"NumPy {actual[at]!r}, the program {found[at]!r}", float(errors[at])
    return what, largest
