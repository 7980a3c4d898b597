"""Comparing one replay's outputs with the result and the side effects of NumPy's own call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from accel.compiler.lower.written import Written
from accel.dispatch.comparing.changes import Changes
from accel.dispatch.comparing.errors import Tolerance, Verdict, relative_errors
from accel.dispatch.comparing.monte_carlo import NumpyValue, explanation
from accel.dispatch.comparing.snapshot import Snapshot, equal
from accel.dispatch.comparing.texts import ShownTexts
from accel.dispatch.replay import StagedOutputs
from accel.dispatch.replay.build import as_scalar, chain_of
from accel.ir.views import seen_through
from accel.platform.ledger import Difference
from accel.record.objects.own_attributes import own_attribute, own_names
from accel.record.state.inputs import MISSING
from accel.record.state.leaves import (
    COMPOSITE,
    FixedValue,
    FromSlot,
    Leaf,
    NewArray,
    NewContainer,
    NewObject,
    NewSet,
    Number,
    SharedLeaf,
)

EXPLAINED_FACTOR, MAX_EXPLAINED = 2.0, 1e3
"""Once rounding has explained an error of a field, later errors of the field are taken for rounding too. They may be
this many times as large as that one, but at most this many times the tolerance."""


class Comparison:
    """A comparison of a run with NumPy's call.

    differences: one for each field that is not equal bit by bit, the worst first. points: the number of array elements
    and numbers that were compared. snapshot: of the inputs, taken before the call that returned `result`. texts: what
    both of them show.
    """

    def __init__(
        self,
        staged: StagedOutputs,
        result: object,
        snapshot: Snapshot,
        tolerance: Tolerance,
        texts: ShownTexts | None = None,
    ) -> None:
        self.points = 0
        self.differences: list[Difference] = []
        self._staged, self._snapshot, self._texts = staged, snapshot, texts
        self._tolerance, self._rtol = tolerance, tolerance.rtol
        # which objects are one: by the replay's object, NumPy's, and the other way round; each with a name for messages
        self._numpys: dict[Any, tuple[int, str]] = {}
        self._replays: dict[int, tuple[Any, str]] = {}
        self._seen: list[NumpyValue] = []
        self._compared: set[int] = set()  # leaves of what is in several places, which may contain itself
        self._run(result)
        self.differences.sort(key=lambda difference: -difference.error)

    @property
    def error(self) -> float:
        """The largest relative error; infinite if anything but a floating-point value differs."""
        return self.differences[0].error if self.differences else 0.0

    @property
    def beyond(self) -> list[Difference]:
        """The differences beyond the tolerance."""
        return [difference for difference in self.differences if not difference.error <= self._rtol]

    @property
    def last_digit(self) -> Difference | None:
        """Numbers in the text that differ by one in the last digit that is shown."""
        return None if self._texts is None else self._texts.last_digit

    def judge(self, explained: dict[str, float]) -> Verdict:
        """The verdict on all differences.

        explained: by field, the largest error that earlier comparisons of the target allow to be taken for rounding.
        It saves explaining every difference, which takes as long as many calls. Errors that this comparison explains
        are added. They are capped: where cancellation leaves nothing but rounding, a large error says nothing about the
        next calls.
        """
        beyond = self.beyond
        if not beyond:
            return Verdict.WITHIN
        if any(not difference.points for difference in beyond):  # another type, object, shape or effect
            return Verdict.MISMATCH
        if all(difference.error <= explained.get(difference.field, 0.0) for difference in beyond):
            return Verdict.ROUNDING
        verdict = explanation(self._staged, self._snapshot, self._tolerance, self._seen, self._is_numpys_text)
        if verdict is Verdict.ROUNDING:
            for difference in beyond:
                allowed = min(EXPLAINED_FACTOR * difference.error, MAX_EXPLAINED * self._rtol)
                explained[difference.field] = max(explained.get(difference.field, 0.0), allowed)
        return verdict

    def _run(self, result: object) -> None:
        trace, values = self._staged.trace, self._staged.values
        outputs = trace.outputs
        self._template(outputs.result, result, "the result")
        changes = Changes(self._staged, self._snapshot)
        for template, now, name in changes.values():
            self._template(template, now, name)
        for name, what in changes.structure():
            self._structure(name, what)
        first = len(self._staged.made)
        for position, ((slot, _), array) in enumerate(zip(outputs.changed, self._staged.changed, strict=True), first):
            self._changed(array, values[slot], trace.inputs.name(slot), position)
        self.differences += self._snapshot.differences(values)
        if self._texts is not None:
            self.differences += self._texts.differences(self._rtol)
        for generator in self._staged.drawn.differ() if self._staged.drawn is not None else ():
            self._structure(f"the state of a {type(generator).__name__}", "NumPy draws otherwise than the replay")

    def _is_numpys_text(self, computed: list[Any]) -> bool:
        """Whether the tape, as NumPy computes it, shows what NumPy's call has shown."""
        if self._texts is None:
            return True
        outputs = self._staged.trace.outputs
        arrays, others = computed[: len(outputs.arrays)], computed[len(outputs.arrays) + len(outputs.changed) :]
        return self._texts.is_of_tape(arrays, others, self._snapshot.values)

    def _structure(self, name: str, what: str) -> None:
        self.differences.append(Difference(name, "", what, np.inf))

    def _is_of_kind(self, actual: object, kind: type, name: str) -> bool:
        """Whether a value is of the replay's type. If not, that is a difference."""
        if type(actual) is not kind:
            self._structure(name, f"NumPy gives a {_kind(actual)}, the replay a {kind.__name__}")
        return type(actual) is kind

    def _template(self, template: Any, actual: Any, name: str) -> None:
        if isinstance(template, Leaf):
            _LEAVES[type(template)](self, template, actual, name)
        elif type(template) is not type(actual) or len(template) != len(actual):
            self._structure(name, f"NumPy gives a {_kind(actual)}, the replay a {_kind(template)}")
        elif isinstance(template, dict):
            for key, part in template.items():
                if key not in actual:
                    self._structure(name, f"NumPy gives no {key!r}, the replay does")
                else:
                    self._template(part, actual[key], f"{name}[{key!r}]")
            if list(template) != list(actual):
                self._structure(name, "NumPy gives its keys in another order than the replay")
        else:
            for i, (part, value) in enumerate(zip(template, actual, strict=True)):
                self._template(part, value, f"{name}[{i}]")

    def _new_object(self, leaf: NewObject, actual: Any, name: str) -> None:
        if not self._is_of_kind(actual, leaf.kind, name):
            return
        for slot in self._staged.trace.objects:
            if actual is self._staged.values[slot]:
                self._structure(name, f"NumPy gives {self._slot(slot)} itself, the replay a new {_kind(actual)}")
        names = own_names(actual)
        if names != list(leaf.parts):
            self._structure(name, f"NumPy sets {', '.join(names)}, the replay {', '.join(leaf.parts)}")
            return
        for each, part in leaf.parts.items():
            self._template(part, own_attribute(actual, each), f"{name}.{each}")

    def _new_container(self, leaf: NewContainer, actual: Any, name: str) -> None:
        if not self._is_of_kind(actual, leaf.kind, name):
            return
        about = "maxlen" if leaf.kind is deque else "default_factory"
        self._template(leaf.about, getattr(actual, about, None), f"{name}.{about}")
        held: Any = actual
        self._template(leaf.parts, list(held) if leaf.kind is deque else dict(held), name)

    def _new_set(self, leaf: NewSet, actual: Any, name: str) -> None:
        if type(actual) is not set or set(map(_typed, actual)) != set(map(_typed, leaf.members)):
            self._structure(name, f"NumPy gives {actual!r}, the replay {leaf.members!r}")

    def _from_slot(self, leaf: FromSlot, actual: object, name: str) -> None:
        expected, chain = self._staged.values[leaf.slot], chain_of(self._staged, leaf)
        # `return x` must give the caller's own array, and `return x[1:]` a view of it: a later write to it would show
        if not leaf.chain and actual is not expected:
            self._structure(name, f"NumPy gives another object, the replay {self._slot(leaf.slot)} itself")
        elif chain and not (_is_empty(actual) or np.may_share_memory(expected, actual)):
            self._structure(name, f"NumPy gives a copy, the replay a view of {self._slot(leaf.slot)}")
        elif chain and not _is_same_view(seen_through(expected, chain), actual):
            self._structure(name, f"NumPy gives another part of {self._slot(leaf.slot)} than the replay")

    def _literal(self, leaf: FixedValue, actual: object, name: str) -> None:
        if type(actual) is not type(leaf.value) or not (actual is leaf.value or equal(actual, leaf.value)):
            self._structure(name, f"NumPy gives {actual!r}, the replay {leaf.value!r}")

    def _number(self, leaf: Number, actual: object, name: str) -> None:
        if self._is_of_kind(actual, leaf.kind, name):
            replayed = as_scalar(self._staged.numbers[leaf.index], leaf.kind)
            # positions count new arrays, then changed arrays, then numbers, as in `explanation`
            first = len(self._staged.made) + len(self._staged.changed)
            self._arrays(np.asarray(replayed), np.asarray(actual), name, first + leaf.index)

    def _made(self, leaf: NewArray, actual: object, name: str) -> None:
        chain = chain_of(self._staged, leaf)
        made = seen_through(self._staged.made[leaf.index], chain)
        if type(actual) is not np.ndarray:
            self._structure(name, f"NumPy gives a {_kind(actual)}, the replay an array")
            return
        # each leaf gets a view of its own, so views are compared by leaf, and arrays by index
        self._identity(("view", id(leaf)) if leaf.chain else ("made", leaf.index), actual, name)
        for slot in self._staged.trace.array_slots:
            value = self._staged.values[slot]
            ours, theirs = np.may_share_memory(made, value), np.may_share_memory(actual, value)
            if ours != theirs:
                shared, fresh = f"memory of {self._slot(slot)}", "memory of its own"
                what = (shared, fresh) if theirs else (fresh, shared)
                self._structure(name, f"NumPy gives {what[0]}, the replay {what[1]}")
        self._arrays(made, actual, name, leaf.index, chain)

    def _shared(self, leaf: SharedLeaf, actual: object, name: str) -> None:
        if isinstance(leaf.template, (*COMPOSITE, NewSet)) or not isinstance(leaf.template, Leaf):
            self._identity(("shared", id(leaf)), actual, name)
            if id(leaf) in self._compared:
                return
            self._compared.add(id(leaf))
        self._template(leaf.template, actual, name)

    def _identity(self, key: object, actual: object, name: str) -> None:
        """Note a difference if an object occurs twice in one of the two outputs, but not in the other."""
        # both ways: `return a, a` in one and `return a, a.copy()` in the other, and the reverse
        known, other = self._numpys.setdefault(key, (id(actual), name))
        if known != id(actual):
            self._structure(name, f"NumPy gives an object of its own, the replay the same as for {other}")
        before, other = self._replays.setdefault(id(actual), (key, name))
        if before != key:
            self._structure(name, f"NumPy gives the same object as for {other}, the replay another")

    def _arrays(self, replayed: Any, actual: Any, name: str, position: int, chain: tuple[Any, ...] = ()) -> None:
        self.points += actual.size
        if replayed.dtype != actual.dtype or replayed.shape != actual.shape:
            self._structure(
                name,
                f"NumPy gives {actual.dtype}{list(actual.shape)}, the replay {replayed.dtype}{list(replayed.shape)}",
            )
            return
        errors = relative_errors(replayed, actual)
        if errors is None:
            return
        self._seen.append(NumpyValue(position, chain, actual))
        worst = int(errors.argmax())
        at = tuple(int(i) for i in np.unravel_index(worst, actual.shape))
        what = f"NumPy {actual[at]!r}, replay {replayed[at]!r}"
        points = int(np.count_nonzero(~(errors <= self._rtol)))
        self.differences.append(Difference(name, str(list(at)) if at else "", what, float(errors[at]), points))

    def _changed(self, contents: Any, actual: Any, name: str, position: int) -> None:
        """New contents of an array, or of views of a vast one."""
        if not isinstance(contents, Written):
            self._arrays(contents, actual, name, position)
            return
        for place, content in zip(contents.places(actual), contents.contents, strict=True):
            key = ", ".join(map(_entry_text, place.key))
            self._arrays(content, np.asarray(place.read(actual)), f"{name}[{key}]", position, (place,))

    def _slot(self, slot: int) -> str:
        return self._staged.trace.inputs.name(slot)


def _entry_text(entry: Any) -> str:
    """An entry of a key, as the user would write it."""
    if not isinstance(entry, slice):
        return str(entry)
    return ":".join("" if bound is None else str(bound) for bound in (entry.start, entry.stop))


def _is_empty(value: object) -> bool:
    """Whether a value is an array without elements, which shares no memory even as a view."""
    return isinstance(value, np.ndarray) and value.size == 0


def _is_same_view(ours: Any, theirs: Any) -> bool:
    """Whether two views of one array begin at the same element, and have the same shape."""
    begin = [view.__array_interface__["data"][0] for view in (ours, theirs)]
    return bool(ours.shape == theirs.shape and (begin[0] == begin[1] or ours.size == 0))


_LEAVES: dict[type, Callable[[Comparison, Any, Any, str], None]] = {
    FromSlot: Comparison._from_slot,
    FixedValue: Comparison._literal,
    Number: Comparison._number,
    NewArray: Comparison._made,
    NewObject: Comparison._new_object,
    NewContainer: Comparison._new_container,
    NewSet: Comparison._new_set,
    SharedLeaf: Comparison._shared,
}


def _typed(value: object) -> tuple[type, object]:
    return type(value), value


def _kind(value: object) -> str:
    return "missing value" if value is MISSING else type(value).__name__
