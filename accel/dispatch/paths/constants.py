"""Constants: the inputs of one path that have not changed so far, so that its program may take them for constant.

What becomes of those that change, accel.dispatch.paths.refolding decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from accel.ir.bits import MOST_BYTES, same_value
from accel.ir.vast import is_vast

if TYPE_CHECKING:
    from accel.compiler.lower import Known, Lowerable

COMPARED_BYTES, COMPARED_CALLS = 1 << 16, 8
"""While a path waits for its program, arrays of more bytes are compared in its first calls only, then ever more rarely.
The number of first calls is the second figure."""

COMPARED_BYTES_S, DEAR_SHARE = 8e9, 0.25
"""Bytes compared a second, and the share of a call's NumPy time above which comparing an array is dear. A dear array
would have to save more than that as a constant. As an input, it is read by the program where it is."""


MAX_CHANGES = 3
"""Maximum number of times that constants of a path may become inputs. Then none of its inputs is folded."""


class PathConstants:
    """Constant and varying inputs of one path.

    candidates: slots that may be constant. values: by slot, the values that have not changed so far. varying: slots
    whose values have changed; they are never taken for constant again.
    """

    def __init__(self, candidates: frozenset[int]) -> None:
        self.candidates = candidates
        self.values: dict[int, Any] = {}
        self.varying: set[int] = set()
        self._not_worth: frozenset[int] = frozenset()
        self._changes = 0

    def compare(self, values: list[Any], *, looks_at_all: bool) -> None:
        """Compare the inputs of one more call. looks_at_all: at large arrays, too."""
        from accel.compiler.merge import ABSENT

        for slot in self.candidates - self.varying:
            value = values[slot]
            is_cheap = not isinstance(value, np.ndarray) or value.nbytes <= COMPARED_BYTES
            if value is ABSENT or not (looks_at_all or is_cheap):
                continue
            if is_vast(value):  # to compare it at each call would take longer than to compute with it
                self.rule_out((slot,))
            elif slot not in self.values:
                # a copy, because the program may write to its array
                self.values[slot] = value.copy() if isinstance(value, np.ndarray) else value
            elif not same_value(value, self.values[slot]):
                self.rule_out((slot,))

    def rule_out(self, slots: Iterable[int]) -> None:
        """Never take these for constant again."""
        for slot in tuple(slots):
            self.varying.add(slot)
            self.values.pop(slot, None)

    def note_changed(self, slots: Collection[int]) -> None:
        """Constants in these slots have changed: take them as inputs, and after MAX_CHANGES all others too."""
        self._changes += 1
        self.rule_out(slots if self._changes < MAX_CHANGES else {*slots, *self.values})

    def rule_out_dear(self, call_s: float) -> None:
        """Never take arrays for constant that are dear. call_s: seconds of a call on NumPy; 0 if none was timed."""
        if not call_s:
            return
        most = max(MOST_BYTES, DEAR_SHARE * COMPARED_BYTES_S * call_s)
        self.rule_out([slot for slot, value in self.values.items() if getattr(value, "nbytes", 0) > most])

    def inherit(self, other: PathConstants, slots: Sequence[int]) -> None:
        """Take over what is known of another path's inputs. slots: theirs here, by those there.

        Where the two take different values for constant, it is none.
        """
        self.rule_out(slots[slot] for slot in other.varying)
        for slot, value in other.values.items():
            place = slots[slot]
            if place not in self.candidates or place in self.varying:
                continue
            if not same_value(self.values.setdefault(place, value), value):
                self.rule_out((place,))

    def named(self, names: Collection[str], name_of: Callable[[int], str]) -> tuple[int, ...]:
        """The slots with one of these names that a program takes for constant, or may take."""
        return tuple(slot for slot in self.values.keys() - self._not_worth if name_of(slot) in names)

    def worth_folding(self, trace: Lowerable) -> Known:
        """Return the inputs that the next program is to treat as constants."""
        from accel.backend import devices
        from accel.compiler.lower.folding import not_worth_folding

        free = devices.is_cpu_alone()
        self._not_worth = frozenset(not_worth_folding(trace, as_known(self.values), are_arrays_free=free))
        return as_known({slot: value for slot, value in self.values.items() if slot not in self._not_worth})


def as_known(values: Mapping[int, Any]) -> Known:
    """Values by slot, as lowering takes them."""
    from accel.compiler.lower import Known

    arrays = {slot: value for slot, value in values.items() if isinstance(value, np.ndarray)}
    return Known({slot: value for slot, value in values.items() if slot not in arrays}, arrays)


def have_one_form(one: Any, other: Any) -> bool:
    """Whether two values are arrays that one program may take for constant, one after the other."""
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        return False
    return (one.shape, one.dtype) == (other.shape, other.dtype)
