"""Refolding: what becomes of a program whose constants have changed.

It goes on with the new ones where it can. If that is not possible, or happens often, a new executable takes them as
inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from accel.dispatch.paths.building import compile_again
from accel.dispatch.paths.constants import have_one_form
from accel.platform.clocks import time

if TYPE_CHECKING:
    from accel.dispatch.paths.program import Program

REFOLD_SHARE, REFOLD_AFTER = 0.1, 4
"""Share of the time since a program is in use, and number of refolds, beyond which constants change often. Those
constants become inputs of the next program."""


class Refold(Enum):
    """Effect of changed constants on a program.

    GOES_ON: the program has the new constants. OTHER_WAY: with the new constants a branch takes another side; those of
    later calls may be as before. ANOTHER: only another program can take them.
    """

    GOES_ON = "goes on"
    OTHER_WAY = "other way"
    ANOTHER = "another"


class Refolds:
    """Number and time of foldings again of constants of the program in use."""

    def __init__(self) -> None:
        self._count = 0
        self._last_s, self._all_s = 0.0, 0.0
        self._since = time.perf_counter()

    def note(self, seconds: float) -> None:
        """Note one, in seconds. Without what only the first one takes."""
        self._count += 1
        self._last_s = seconds
        self._all_s += seconds

    @property
    def are_often(self) -> bool:
        """Whether the program had better read these constants at each launch."""
        share = self._all_s / max(time.perf_counter() - self._since, 1e-9)
        return self._count >= REFOLD_AFTER and share > REFOLD_SHARE

    def cost_more(self, numpy_s: float) -> bool:
        """Whether folding constants again costs more than a call on NumPy, which takes `numpy_s` seconds."""
        return self._last_s > numpy_s


def refold(program: Program, changed: Mapping[int, NDArray[Any]]) -> Refold:
    """Give a program these arrays, by slot, in place of constants, if it can take them and that pays.

    If others of them have changed than before, the next replays are compared with NumPy again.
    """
    known = program.variant.executable.program.known.arrays
    same_form = all(slot in known and have_one_form(array, known[slot]) for slot, array in changed.items())
    if not same_form or (program.refolds.cost_more(program.whole.numpy_call_s) and program.refolds.are_often):
        return Refold.ANOTHER
    from accel.compiler.lower import OtherWay

    started = time.perf_counter()
    copies = {slot: array.copy() for slot, array in changed.items()}  # the program may write to its arrays
    try:
        again = program.variant.executable.with_constants(copies)
    except OtherWay:
        return Refold.OTHER_WAY
    if again is None:
        return Refold.ANOTHER
    if not program.variant.renew(again, copies):
        program.use(again)
    varying, values = program.whole.constants.varying, program.whole.constants.values
    values.update((slot, copy) for slot, copy in copies.items() if slot not in varying)
    # what each of several paths takes for constant, their next program does
    for path, slots in program.placed:
        path.constants.values |= {at: values[slots[at]] for at in path.constants.values if slots[at] in changed}
    if not program.refolded.issuperset(copies):
        program.forget_replays()
    program.refolded.update(copies)
    program.refolds.note(time.perf_counter() - started)
    return Refold.GOES_ON


def replace(program: Program, changed: Collection[int]) -> bool:
    """Compile anew, with these constants as inputs. The executable in use goes on with new constants meanwhile.

    Returns whether a compile was started.
    """
    if program.whole.constants.values.keys().isdisjoint(changed) or not program.withdraw():
        return False
    _vary(program, changed)
    program.pending = compile_again(program, program.whole.numpy_call_s)
    return True


def respecialize(program: Program, changed: Collection[int]) -> None:
    """Drop the executable, because constants in these slots changed. The next one takes them as inputs."""
    _vary(program, changed)
    # one that is on its way has folded the same constants
    program.drop_program()


def _vary(program: Program, changed: Collection[int]) -> None:
    """Constants in these slots have changed: no further executable takes them for constant.

    Nor does one that its paths have with further ones.
    """
    program.whole.constants.note_changed(changed)
    for path, slots in program.placed:
        path.constants.rule_out([slot for slot in path.constants.values if slots[slot] in changed])
