"""Verifying: compares a replay's outputs with the result and the side effects of NumPy's own call.

Monte Carlo arithmetic decides what a difference beyond the tolerance is: rounding, a recorded comparison close to its
threshold, or a mismatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from accel.dispatch.replay import Attempt, Variant, as_scalar
from accel.ir.tape import Node, fill, needed_by
from accel.ir.views import seen_through
from accel.lower.operations import evaluate
from accel.record.inputs import MISSING
from accel.record.outputs import FromSlot, Leaf, Literal, Made, Number, Shared
from accel.reports.ledger import Difference
from accel.rules.columns import Rounding, fact

ABSOLUTE = 1e-3
"""Errors are relative to the value's magnitude, or to this share of the field's largest one if that is larger."""


EXPLAINED_FACTOR, MAX_EXPLAINED = 2.0, 1e3
"""Once rounding has explained an error of a field, later errors of the field are taken for rounding too. They may be
this many times as large as that one, but at most this many times the tolerance."""


class Verdict(StrEnum):
    """What a comparison with NumPy shows. WITHIN: no difference beyond the tolerance."""

    WITHIN = "within the tolerance"
    ROUNDING = "no more than rounding makes it"
    THRESHOLD = "near a threshold"
    MISMATCH = "mismatch"


# -- before NumPy's own call ------------------------------------------------------------------------------------------


class Snapshot:
    """The inputs before NumPy's own call. They show what it changes and the replay does not; `judge` needs them too."""

    def __init__(self, variant: Variant, values: list[Any]) -> None:
        trace = variant.trace
        self.values = list(values)
        for slot in trace.array_slots:
            self.values[slot] = values[slot].copy()
        changed = {slot for slot, _ in trace.outputs.changed}
        self._kept = [slot for slot in trace.array_slots if slot not in changed]
        self._written = {(id(values[write.owner]), write.name) for write in trace.outputs.writes}
        self._parts = {slot: dict(_parts(values[slot])) for slot in {*trace.objects, *_containers(values)}}

    def differences(self, variant: Variant, values: list[Any]) -> Iterator[Difference]:
        """What the call changed and the replay does not: contents of arrays, attributes, and items of containers."""
        what = "was changed in place by NumPy, not by the replay"
        for slot in self._kept:
            if values[slot].tobytes() != self.values[slot].tobytes():
                yield Difference(variant.trace.inputs.name(slot), "", what, np.inf)
        for slot, before in self._parts.items():
            now = _parts(values[slot])
            for key in sorted(before.keys() | now.keys(), key=str):
                if (id(values[slot]), key) not in self._written and not _same(
                    before.get(key, MISSING), now.get(key, MISSING)
                ):
                    name = _part_name(variant, slot, key, is_item=type(values[slot]) in (dict, list))
                    yield Difference(name, "", "was set by NumPy, not by the replay", np.inf)


def _containers(values: list[Any]) -> list[int]:
    """Slots of lists and dicts. Namespaces are left out: those of objects are compared as objects, modules' are not."""
    namespaces = {id(getattr(value, "__dict__", None)) for value in values}
    return [
        slot
        for slot, value in enumerate(values)
        if type(value) is list or (type(value) is dict and id(value) not in namespaces and "__builtins__" not in value)
        if slot > 1
    ]


def _parts(value: Any) -> dict[Any, Any]:
    """The items of a container, or the attributes of an object."""
    if type(value) is list:
        return dict(enumerate(value))
    return value if type(value) is dict else getattr(value, "__dict__", {})


def _same(left: Any, right: Any) -> bool:
    """Whether both are the same object, or equal strings or numbers: the identity of those does not matter."""
    if left is right:
        return True
    return (
        type(left) is type(right) and isinstance(left, (str, int, float, complex, np.generic)) and _equal(left, right)
    )


def _part_name(variant: Variant, slot: int, key: Any, *, is_item: bool) -> str:
    return variant.trace.inputs.name(slot) + (f"[{key!r}]" if is_item else f".{key}")


# -- after it ---------------------------------------------------------------------------------------------------------


class Comparison:
    """A comparison of an attempt with NumPy's call.

    differences: one for each field that is not equal bit by bit, the worst first. points: the number of array elements
    and numbers that were compared. snapshot: of the inputs, taken before the call that returned `result`.
    """

    def __init__(self, variant: Variant, attempt: Attempt, result: Any, snapshot: Snapshot, rtol: float) -> None:
        self.points = 0
        self.differences: list[Difference] = []
        self._variant, self._attempt, self._snapshot, self._rtol = variant, attempt, snapshot, rtol
        self._names: dict[Any, tuple[int, str]] = {}
        self._objects: dict[int, tuple[Any, str]] = {}
        self._seen: list[_NumpyValue] = []
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
        verdict = explanation(self._variant, self._attempt, self._snapshot, self._rtol, self._seen)
        if verdict is Verdict.ROUNDING:
            for difference in beyond:
                allowed = min(EXPLAINED_FACTOR * difference.error, MAX_EXPLAINED * self._rtol)
                explained[difference.field] = max(explained.get(difference.field, 0.0), allowed)
        return verdict

    def _run(self, result: Any) -> None:
        variant, values = self._variant, self._attempt.values
        outputs = variant.trace.outputs
        self._template(outputs.result, result, "the result")
        for write in outputs.writes:
            owner = values[write.owner]
            now = _parts(owner).get(write.name, MISSING) if write.is_item else getattr(owner, write.name, MISSING)
            self._template(write.value, now, _part_name(variant, write.owner, write.name, is_item=write.is_item))
        first = len(self._attempt.made)
        for place, ((slot, _), array) in enumerate(zip(outputs.changed, self._attempt.changed, strict=True), first):
            self._arrays(array, values[slot], variant.trace.inputs.name(slot), place)
        self.differences += self._snapshot.differences(variant, values)

    def _structure(self, name: str, what: str) -> None:
        self.differences.append(Difference(name, "", what, np.inf))

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
        else:
            for i, (part, value) in enumerate(zip(template, actual, strict=True)):
                self._template(part, value, f"{name}[{i}]")

    def _from_slot(self, leaf: FromSlot, actual: Any, name: str) -> None:
        expected = self._attempt.values[leaf.slot]
        if not leaf.chain and actual is not expected:
            self._structure(name, f"NumPy gives another object, the replay {self._slot(leaf.slot)} itself")
        elif leaf.chain and not np.may_share_memory(expected, actual):
            self._structure(name, f"NumPy gives a copy, the replay a view of {self._slot(leaf.slot)}")

    def _literal(self, leaf: Literal, actual: Any, name: str) -> None:
        if type(actual) is not type(leaf.value) or not (actual is leaf.value or _equal(actual, leaf.value)):
            self._structure(name, f"NumPy gives {actual!r}, the replay {leaf.value!r}")

    def _number(self, leaf: Number, actual: Any, name: str) -> None:
        if type(actual) is not leaf.kind:
            self._structure(name, f"NumPy gives a {_kind(actual)}, the replay a {leaf.kind.__name__}")
        else:
            replayed = as_scalar(self._attempt.numbers[leaf.index], leaf.kind)
            first = len(self._attempt.made) + len(self._attempt.changed)
            self._arrays(np.asarray(replayed), np.asarray(actual), name, first + leaf.index)

    def _made(self, leaf: Made, actual: Any, name: str) -> None:
        made = seen_through(self._attempt.made[leaf.index], leaf.chain)
        if type(actual) is not np.ndarray:
            self._structure(name, f"NumPy gives a {_kind(actual)}, the replay an array")
            return
        # each leaf gets a view of its own, so views are compared by leaf, and arrays by index
        self._identity(("view", id(leaf)) if leaf.chain else ("made", leaf.index), actual, name)
        for slot in self._variant.trace.array_slots:
            value = self._attempt.values[slot]
            ours, theirs = np.may_share_memory(made, value), np.may_share_memory(actual, value)
            if ours != theirs:
                shared, fresh = f"memory of {self._slot(slot)}", "memory of its own"
                what = (shared, fresh) if theirs else (fresh, shared)
                self._structure(name, f"NumPy gives {what[0]}, the replay {what[1]}")
        self._arrays(made, actual, name, leaf.index, leaf.chain)

    def _shared(self, leaf: Shared, actual: Any, name: str) -> None:
        if not isinstance(leaf.template, Leaf):
            self._identity(("shared", id(leaf)), actual, name)
        self._template(leaf.template, actual, name)

    def _identity(self, key: Any, actual: Any, name: str) -> None:
        """Check that an object which occurs twice in one of the two outputs occurs twice in the other as well."""
        known, other = self._names.setdefault(key, (id(actual), name))
        if known != id(actual):
            self._structure(name, f"NumPy gives an array of its own, the replay the same as for {other}")
        before, other = self._objects.setdefault(id(actual), (key, name))
        if before != key:
            self._structure(name, f"NumPy gives the same array as for {other}, the replay another")

    def _arrays(self, replayed: Any, actual: Any, name: str, place: int, chain: Any = ()) -> None:
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
        self._seen.append(_NumpyValue(place, chain, actual))
        worst = int(errors.argmax())
        at = tuple(int(i) for i in np.unravel_index(worst, actual.shape))
        what = f"NumPy {actual[at]!r}, replay {replayed[at]!r}"
        points = int(np.count_nonzero(~(errors <= self._rtol)))
        self.differences.append(Difference(name, str(list(at)) if at else "", what, float(errors[at]), points))

    def _slot(self, slot: int) -> str:
        return self._variant.trace.inputs.name(slot)


class _NumpyValue(NamedTuple):
    """A value of NumPy's call that differs from the replay's.

    place: index among the trace's new arrays, changed arrays and numbers, in this order. chain: the view of it.
    """

    place: int
    chain: Any
    value: Any


_LEAVES: dict[type, Callable[[Comparison, Any, Any, str], None]] = {
    FromSlot: Comparison._from_slot,
    Literal: Comparison._literal,
    Number: Comparison._number,
    Made: Comparison._made,
    Shared: Comparison._shared,
}


def _kind(value: Any) -> str:
    return "missing value" if value is MISSING else type(value).__name__


def _equal(left: Any, right: Any) -> bool:
    return bool(left == right) or (left != left and right != right)


def relative_errors(replayed: Any, actual: Any) -> Any:
    """The relative error of each element, as an array of the same shape; None if all elements are equal.

    The error is infinite where a NaN, an infinity, or a value that is not floating-point differs. It is relative to the
    value, or to `ABSOLUTE` times the array's largest magnitude if the value is smaller. Subnormal numbers are equal:
    XLA flushes them to 0.
    """
    if actual.dtype.kind not in "fc":
        differs = np.asarray(replayed != actual)
        return np.where(differs, np.inf, 0.0) if differs.any() else None
    with np.errstate(all="ignore"):
        tiny = np.finfo(actual.dtype).tiny
        equal = (replayed == actual) | (np.isnan(replayed) & np.isnan(actual))
        equal |= (np.abs(replayed) < tiny) & (np.abs(actual) < tiny)
        if equal.all():
            return None
        magnitude = np.abs(actual)
        finite = np.isfinite(magnitude)
        scale = _scale(magnitude, finite)
        error = np.where(equal, 0.0, np.abs(replayed - actual) / np.where(scale > 0, scale, 1.0))
    return np.where(np.isnan(error) | (~finite & ~equal), np.inf, error)


def _scale(magnitude: Any, finite: Any) -> Any:
    largest = float(magnitude.max(initial=0.0, where=finite))
    return np.maximum(magnitude, ABSOLUTE * largest)


# -- explaining a difference ------------------------------------------------------------------------------------------

SEEDS = range(4)
"""The seeds of the runs with perturbed rounding by which a difference is judged."""

AMPLIFIED = 32.0
"""A difference may be this many times the effect of perturbed rounding."""


def explanation(
    variant: Variant, attempt: Attempt, snapshot: Snapshot, rtol: float, seen: Sequence[_NumpyValue] = ()
) -> Verdict:
    """The verdict on a difference beyond the tolerance, by Monte Carlo arithmetic.

    Where cancellation leaves nothing of its operands but rounding, NumPy and XLA differ in rounding only, and the
    relative error says nothing. So NumPy runs the tape with each input and each rounded result moved by at most one
    unit in the last place. This shows how sensitive each element is (D. S. Parker, Monte Carlo Arithmetic, 1997). In a
    first round all comparisons and step functions keep their answers. In a second they are free, and comparisons of
    operands within the tolerance of each other are answered at random.

    seen: values of NumPy's call that differ from the replay's. If the tape does not reproduce them, the recording is
    wrong, and explains nothing.
    """
    outputs = variant.trace.outputs
    nodes = [*outputs.arrays, *(node for _, node in outputs.changed), *outputs.numbers]
    replayed = [np.asarray(value) for value in (*attempt.made, *attempt.changed, *attempt.numbers)]
    answers: dict[int, Any] = {}

    def keep(node: Node, value: Any, operands: list[Any]) -> Any:
        if _jumps(node, value):
            answers[node.index] = value
        return value

    try:
        with np.errstate(all="ignore"):
            base = _run_tape(nodes, snapshot.values, keep)
            for verdict, kept, near in ((Verdict.ROUNDING, answers, 0.0), (Verdict.THRESHOLD, {}, rtol)):
                moved = [_run_tape(nodes, snapshot.values, _Rounding(seed, kept, near)) for seed in SEEDS]
                spread = list(zip(base, zip(*moved, strict=True), strict=True))
                if not all(_matches_tape(each, *spread[each.place], rtol) for each in seen):
                    return Verdict.MISMATCH
                if all(_within(value, *each, rtol) for value, each in zip(replayed, spread, strict=True)):
                    return verdict
    except Exception:  # perturbed values may not be valid on this path: then nothing is explained
        pass
    return Verdict.MISMATCH


def _jumps(node: Node, value: Any) -> bool:
    steps = fact(node.rule.numerics.rounding, node) is Rounding.EXACT and bool(fact(node.rule.numerics.jumps, node))
    return steps or (hasattr(value, "dtype") and value.dtype.kind in "biu")


def _run_tape(nodes: list[Node], values: list[Any], perturb: Callable[[Node, Any, list[Any]], Any]) -> list[Any]:
    """The nodes' values, computed by NumPy from the slots' values.

    perturb: applied to each node, its value and, if its rule `compares`, its operands; returns the value to go on with.
    Values
    that no later operation reads are freed.
    """
    results: dict[int, Any] = {}
    order = needed_by(nodes)
    last = {operand.index: node.index for node in order for operand in node.operands()}
    last.update((node.index, -1) for node in nodes)
    for node in order:
        value = values[node.args[0]] if node.is_input else evaluate(node, lambda operand: results[operand.index])
        operands = []
        if node.rule.numerics.compares:
            operands = [
                fill(part, lambda operand: results[operand.index]) for part in (*node.args, *node.kwargs.values())
            ]
        results[node.index] = perturb(node, value, operands)
        for operand in node.operands():
            if last[operand.index] == node.index:
                results.pop(operand.index, None)
    return [np.asarray(results[node.index]) for node in nodes]


class _Rounding:
    """Moves each rounded value by one unit in the last place, up or down at random.

    kept: by node, answers that stay as they are. near: comparisons of operands whose relative distance is smaller are
    answered at random; 0 for none.
    """

    def __init__(self, seed: int, kept: dict[int, Any], near: float) -> None:
        self._generator = np.random.default_rng(seed)
        self._kept, self._near = kept, near

    def __call__(self, node: Node, value: Any, operands: list[Any]) -> Any:
        if node.index in self._kept:
            return self._kept[node.index]
        if operands and self._near:
            return self._toss(value, *operands[:2])
        if fact(node.rule.numerics.rounding, node) is Rounding.EXACT:
            return value
        if not isinstance(value, (np.ndarray, np.inexact)) or value.dtype.kind not in "fc" or node.host:
            return value
        moved = np.empty_like(value)
        if value.dtype.kind == "c":
            moved.real, moved.imag = self._moved(value.real), self._moved(value.imag)
        else:
            moved[...] = self._moved(value)
        return moved if isinstance(value, np.ndarray) else moved[()]

    def _moved(self, value: Any) -> Any:
        up = self._generator.random(np.shape(value)) < 0.5
        return np.where(value == 0, value, np.nextafter(value, np.where(up, np.inf, -np.inf).astype(value.dtype)))

    def _toss(self, answer: Any, left: Any, right: Any) -> Any:
        """Answer comparisons of operands that are close at random, but not of equal ones.

        A value that was clipped to its threshold is equal to it in NumPy and in the replay.
        """
        gap = np.abs(np.subtract(left, right, dtype=float))
        magnitude = np.maximum(np.abs(left), np.abs(right))
        near = (gap > 0) & (gap <= self._near * _scale(np.asarray(magnitude, float), np.isfinite(magnitude)))
        tossed = np.where(near & (self._generator.random(np.shape(gap)) < 0.5), ~np.asarray(answer), answer)
        return tossed if isinstance(answer, np.ndarray) else type(answer)(tossed)


def _matches_tape(seen: _NumpyValue, value: Any, moved: tuple[Any, ...], rtol: float) -> bool:
    """Whether the tape reproduces the value of NumPy's call."""
    return _within(
        seen.value, seen_through(value, seen.chain), tuple(seen_through(each, seen.chain) for each in moved), rtol
    )


def _within(replay: Any, value: Any, moved: tuple[Any, ...], rtol: float) -> bool:
    """Whether every element of the replay is within the tolerance plus its sensitivity to rounding.

    The 95 % quantile of the sensitivity is added for all elements. A quantile, so that a few very sensitive elements do
    not loosen the bound for all others.
    """
    same = (replay == value) | ((replay != replay) & (value != value))
    if value.dtype.kind not in "fc":
        return bool((same | np.logical_or.reduce([other != value for other in moved])).all())
    sensitivity = np.maximum.reduce([np.nan_to_num(np.abs(other - value)) for other in moved])
    allowed = rtol * np.abs(value) + AMPLIFIED * (sensitivity + np.quantile(sensitivity, 0.95))
    return bool((same | (np.abs(replay - value) <= allowed)).all())
