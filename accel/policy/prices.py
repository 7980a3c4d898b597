"""Prices: seconds that investments take on this machine, by the number of operations, measured in this process.

And the law by which they are made, rent or buy: an investment is made once the calls that it would have served have
lost as much as it costs, or are certain to lose more. Whoever buys then never pays twice what hindsight would have.
"""

from __future__ import annotations

from accel.platform import processors

CERTAIN = 1.5
"""Loss that is certain to come, as a multiple of a price, from which the price is paid before anything is lost. The
price is an estimate, and so is the gain. Of a path that is recorded, the price is known: 1."""

IS_ALONE = processors.usable() < 2
"""Whether there is but one processor. The program and the compiler take turns then."""

BURDEN, ALONE = (0.5, 2.0) if IS_ALONE else (0.1, 1.0)
"""Share of a compile's seconds that the user's program loses by it. And these seconds as a multiple of those that the
compiler takes on a processor of its own, where it slows the program down a little."""

ENOUGH = 1000
"""Number of operations from which one measurement alone says what an operation takes. A fixed part that is guessed
wrong would make a few operations look dear."""

LEAST_S = 1e-5
"""The fewest seconds that are taken for an operation. Measured for recordings: 1.5e-4 to 3e-4. One may seem to have
taken no longer than its call, if that was a slow one."""


WORKER_S = 1.2 * ALONE
"""Seconds until the worker can compile: most of them import JAX."""

worker_s = WORKER_S
"""Seconds of that which are still to come, about: 0 once it has compiled."""


class Price:
    """Seconds of one kind of investment: fixed ones, and for each operation. They are guesses until it is measured."""

    def __init__(self, each_s: float, fixed_s: float = 0.0) -> None:
        self._each_s = each_s
        self._fixed_s = fixed_s

    def note(self, seconds: float, operations: int) -> None:
        """Note an investment that was made: the more operations it had, the more it tells."""
        if operations:
            measured_s = max(0.0, seconds - self._fixed_s) / operations
            self._each_s += min(1.0, operations / ENOUGH) * (measured_s - self._each_s)

    def of(self, operations: float) -> float:
        """Return the seconds that this investment is likely to take for that many operations."""
        return self._fixed_s + self._each_s * operations

    def operations_for(self, seconds: float) -> float:
        """Return how many operations such an investment is likely to have had that took so long."""
        return max(0.0, seconds - self._fixed_s) / max(self._each_s, LEAST_S)


recording = Price(1.5e-4, 0.004)
"""Recording a call, in the program's thread, for each operation."""

describing = Price(1.2e-4)
"""Describing a path to the process that compiles it, in the program's thread, with others that share its program."""

compiling = Price(7e-4 * ALONE, 0.02 * ALONE)
"""Compiling a path in the worker."""

loading = Price(4e-5, 0.002)
"""Finding and loading a path's program on disk, in the program's thread, in place of describing it."""


def program_s(record_s: float) -> tuple[float, float]:
    """Return the seconds of a program whose recording takes so long beyond its call: in the program's thread, and those
    of its compile in the worker."""
    operations = recording.operations_for(record_s)
    return record_s + describing.of(operations), compiling.of(operations)


def burden_s(compile_s: float) -> float:
    """Return the seconds that a compile in the worker costs the program."""
    return BURDEN * compile_s


def meanwhile_s(seconds: float) -> float:
    """Return the seconds of calls that the program makes until a program of its own is there that takes so long.

    Where the two take turns, it makes half as many.
    """
    return (seconds + worker_s) / ALONE


def are_paid(price_s: float, lost_s: float, certain_s: float = 0.0, *, is_recorded: bool = False) -> bool:
    """Whether an investment is worth its price. lost_s, certain_s: what calls have lost, and are certain to lose.

    is_recorded: whether it is the compile of a recorded path.
    """
    return lost_s >= price_s or certain_s >= (1.0 if is_recorded else CERTAIN) * price_s
