"""Resident arrays: arrays whose values are on a device with a memory of its own, and need not be handed to it.

An iteration of an outlined loop takes, for the most part, arrays that the one before has made. While nothing but such
iterations runs (see accel.entry.lift.between), these arrays of the program have their identity, shape and dtype alone.
Their values stay where they were computed: an array is *behind* then. All of them are brought up to date before
anything else may look. Nobody looks at most of them: the next iteration replaces them.

Only arrays that own their memory are ever behind. So another array has part of that memory only if it is a view of one
that is, and its chain of bases says so.
"""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.platform import background

Array = np.ndarray[Any, Any]


def room(shape: tuple[int, ...], dtype: Any) -> Array:
    """Memory of an array that is behind, to be filled later."""
    return np.empty(shape, dtype)


@dataclass(slots=True, eq=False)
class Resident:
    """Device copy of one array. of: the array. buffer: its values on the device.

    is_behind: whether the array's own memory lacks these values. iteration: the last one that made or took it. fetched:
    counts that the values have been fetched.
    """

    of: weakref.ref[Array]
    buffer: Any
    iteration: int
    is_behind: bool = False
    fetched: Callable[[], object] | None = None


class Residents:
    """All resident arrays of this process.

    possible: whether a program has run on a device with a memory of its own. is_open: arrays may be behind at present.
    is_held: some may be, or were and are just being brought up to date. closed_by: why that was last done, in words.
    iteration: counts the iterations. kept: bytes of arrays that the program has kept since they may be. iterated:
    arrays that the loop reads itself, which may not be behind. closes: called when all are up to date, and again where
    a signal's handler comes in between.
    """

    # a signal's handler may run anywhere, and has all of them forgotten: what is gone through is a list made at once
    def __init__(self) -> None:
        self.possible = False
        self.is_open = False
        self.is_held = False
        self.closed_by = ""
        self.kept = 0
        self.iteration = 0
        self.iterated: tuple[weakref.ref[Array], ...] = ()
        self.closes: Callable[[], object] | None = None
        self._known: dict[int, Resident] = {}

    # -- what a launch takes ------------------------------------------------------------------------------------------

    def hand(self, arrays: Sequence[Any], device: Any) -> list[Any]:
        """The arrays on the device. Raises what JAX does."""
        import jax

        found = [self._buffer_of(array, device) for array in arrays]
        absent = [position for position, buffer in enumerate(found) if buffer is None]
        for position in absent:
            self.refresh(arrays[position])
        # where the CPU plays the device, JAX would read the program's memory, which may get other values
        given = [arrays[each].copy() if device.platform == "cpu" else arrays[each] for each in absent]
        copies = jax.device_put(given, device)
        for position, buffer in zip(absent, copies, strict=True):
            found[position] = buffer
            if not _owner(arrays[position])[1]:  # mapped or shared memory: others may write to it at any time
                continue
            self._known[id(arrays[position])] = Resident(weakref.ref(arrays[position]), buffer, self.iteration)
        return found

    def there(self, arrays: Sequence[Any], device: Any) -> list[int]:
        """The positions of those arrays that the device has already."""
        return [position for position, array in enumerate(arrays) if self._buffer_of(array, device) is not None]

    def _buffer_of(self, array: Any, device: Any) -> Any:
        known = self._known.get(id(array))
        form = array.shape, array.dtype, {device}
        if known is None or known.of() is not array:
            return None
        if (known.buffer.shape, known.buffer.dtype, known.buffer.devices()) != form:
            return None
        known.iteration = self.iteration
        return known.buffer

    def refresh(self, array: Any) -> None:
        """Bring an array up to date that is about to be read on the host: it may be a view of one that is behind."""
        owner, is_numpys = _owner(array)
        known = self._known.get(id(owner))
        if known is not None and known.of() is owner:
            self._fetch([known])
        if not is_numpys:  # as far as NumPy knows: it may be a view by way of something else
            self._fetch([each for each in list(self._known.values()) if _overlap(each, array)])

    # -- what a run leaves on the device ------------------------------------------------------------------------------

    def note(self, array: Array, buffer: Any, fetched: Callable[[], object]) -> Callable[[], object]:
        """Return a call, to be made later, that marks an array as behind its values in the buffer.

        It is one call of C code.
        """
        # what else is known of this memory is no longer so
        for key, known in list(self._known.items()):
            if not known.is_behind and key != id(array) and _overlap(known, array):
                self._known.pop(key, None)
        known = Resident(weakref.ref(array), buffer, self.iteration, True, fetched)
        return functools.partial(operator.setitem, self._known, id(array), known)

    def is_iterated(self, array: Array) -> bool:
        """Whether the loop reads this memory itself."""
        arrays = [each() for each in self.iterated]
        return any(each is not None and np.may_share_memory(each, array) for each in arrays)

    def end_iteration(self) -> None:
        """Fetch what the program has kept, and no iteration has taken: else the device's memory would fill."""
        kept = [each for each in list(self._known.values()) if each.is_behind and each.iteration < self.iteration]
        self._fetch(kept)
        self.kept += sum(array.nbytes for each in kept if (array := each.of()) is not None)
        gone = [key for key, each in list(self._known.items()) if each.of() is None or each in kept]
        for key in gone:
            self._known.pop(key, None)  # a signal handler that came in between has had all of them fetched

    # -- the end ------------------------------------------------------------------------------------------------------

    def bring_up_to_date(self, why: str = "something else ran") -> None:
        """Give all arrays their values, and forget what the device has: something else than an iteration may run now.

        why: what that is, for the report. It may be interrupted at any place, and called again.
        """
        if self.is_open:
            self.closed_by = why
        if self.is_open or self._known:
            self.is_open = False
            self._fetch(list(self._known.values()))
            self._known.clear()
            self.iterated = ()
        if self.closes is not None:
            self.closes()
        self.kept = 0
        self.is_held = False

    def _fetch(self, wanted: Iterable[Resident]) -> None:
        """Copy values from the device to the arrays that are behind."""
        import jax

        behind = [(array, each) for each in wanted if each.is_behind and (array := each.of()) is not None]
        if not behind:
            return
        for (array, each), values in zip(behind, jax.device_get([each.buffer for _, each in behind]), strict=True):
            if each.is_behind:  # else a signal handler came in between: all is fetched, and it may have changed arrays
                np.copyto(array, values)
                each.is_behind = False
                if each.fetched is not None:
                    each.fetched()


def _owner(array: Array) -> tuple[Array, bool]:
    """The array that an array is a view of, and whether NumPy holds its memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array, bool(array.base is None and array.flags.owndata)


def _overlap(known: Resident, array: Any) -> bool:
    other = known.of()
    return other is not None and bool(np.may_share_memory(other, array))


def filled(into: Sequence[Array], made: Sequence[Any], others: Sequence[Any]) -> list[Array]:
    """Fill arrays with values from the device. Returns those of the others."""
    import jax

    values: list[Array] = jax.device_get([*made, *others])
    for array, each in zip(into, values[: len(made)], strict=True):
        np.copyto(array, each)
    return values[len(made) :]


current = Residents()

background.threads.is_held = lambda: current.is_held
