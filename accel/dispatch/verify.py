"""Verifying: a replay's outputs against what NumPy's own call returned and left behind.

A difference beyond the tolerance is judged by Monte Carlo arithmetic: is it no more than rounding makes it, is it
confined to points where a recorded comparison lay close to its threshold, or is it a mismatch?
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
from accel.rules.rule import Rounding, fact

ABSOLUTE = 1e-3
"""Relative errors are taken of values down to this share of the field's largest magnitude; below it, of that."""


AS_LARGE, LARGEST = 2.0, 1e3
"""How many times as large as one that rounding explained, and as the tolerance, another error of the field may be."""


class Verdict(StrEnum):
    """What a comparison found. WITHIN: nothing beyond the tolerance."""

    WITHIN = "within the tolerance"
    ROUNDING = "no more than rounding makes it"
    THRESHOLD = "near a threshold"
    MISMATCH = "mismatch"


# -- before NumPy's own call ------------------------------------------------------------------------------------------


class Snapshot:
    """The inputs before NumPy's own call: for seeing what it changed that the replay does not, and for `judge`."""

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
        """What the call changed and the replay does not: arrays in place, attributes and items by assignment."""
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
    """Slots of lists and dicts, but not of the namespaces of objects, which are compared as such, and of modules."""
    namespaces = {id(getattr(value, "__dict__", None)) for value in values}
    return [
        slot
        for slot, value in enumerate(values)
        if type(value) is list or (type(value) is dict and id(value) not in namespaces and "__builtins__" not in value)
        if slot > 1
    ]


def _parts(value: Any) -> dict[Any, Any]:
    """What an object or container holds."""
    if type(value) is list:
        return dict(enumerate(value))
    return value if type(value) is dict else getattr(value, "__dict__", {})


def _same(left: Any, right: Any) -> bool:
    """The same object; or equal text or numbers, which have no identity to speak of."""
    if left is right:
        return True
    return (
        type(left) is type(right) and isinstance(left, (str, int, float, complex, np.generic)) and _equal(left, right)
    )


def _part_name(variant: Variant, slot: int, key: Any, *, is_item: bool) -> str:
    return variant.trace.inputs.name(slot) + (f"[{key!r}]" if is_item else f".{key}")


# -- after it ---------------------------------------------------------------------------------------------------------


class Comparison:
    """An attempt against NumPy's outputs. differences: one per field that is not equal bit by bit, the worst first.

    points: array elements and numbers that were compared. snapshot: taken before the call that gave `result`.
    """

    def __init__(self, variant: Variant, attempt: Attempt, result: Any, snapshot: Snapshot, rtol: float) -> None:
        self.points = 0
        self.differences: list[Difference] = []
        self._variant, self._attempt, self._snapshot, self._rtol = variant, attempt, snapshot, rtol
        self._names: dict[Any, tuple[int, str]] = {}
        self._objects: dict[int, tuple[Any, str]] = {}
        self._seen: list[_Seen] = []
        self._run(result)
        self.differences.sort(key=lambda difference: -difference.error)

    @property
    def error(self) -> float:
        """The largest relative error; infinite where something else than a floating-point value differs."""
        return self.differences[0].error if self.differences else 0.0

    @property
    def beyond(self) -> list[Difference]:
        """The differences beyond the tolerance."""
        return [difference for difference in self.differences if not difference.error <= self._rtol]

    def judge(self, explained: dict[str, float]) -> Verdict:
        """What the differences are.

        explained: the largest error of each field that earlier comparisons of the target allow to be taken for
        rounding, since explaining takes as long as many calls; what this one explains is entered. Only small errors
        are: where cancellation leaves nothing but rounding, a large one says nothing of the calls to come.
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
                allowed = min(AS_LARGE * difference.error, LARGEST * self._rtol)
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
        # a view is made anew for each leaf
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
        """The same object twice must be so in both worlds."""
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
        self._seen.append(_Seen(place, chain, actual))
        worst = int(errors.argmax())
        at = tuple(int(i) for i in np.unravel_index(worst, actual.shape))
        what = f"NumPy {actual[at]!r}, replay {replayed[at]!r}"
        points = int(np.count_nonzero(~(errors <= self._rtol)))
        self.differences.append(Difference(name, str(list(at)) if at else "", what, float(errors[at]), points))

    def _slot(self, slot: int) -> str:
        return self._variant.trace.inputs.name(slot)


class _Seen(NamedTuple):
    """What NumPy's call gave where the replay gave something else.

    place: among the new arrays, the changed ones and the numbers of the trace. chain: what view of that.
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
    """The relative error of each element; None where all are equal. Infinite where NaN, infinity or an integer differs.

    Relative to the value, or to 1e-3 of the array's largest magnitude where the value is smaller.
    """
    if actual.dtype.kind not in "fc":
        differs = np.asarray(replayed != actual)
        return np.where(differs, np.inf, 0.0) if differs.any() else None
    with np.errstate(all="ignore"):
        equal = (replayed == actual) | (np.isnan(replayed) & np.isnan(actual))
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


# -- what explains a difference ---------------------------------------------------------------------------------------

SEEDS = range(4)
"""Runs with perturbed rounding that a difference is judged by."""

AMPLIFIED = 32.0
"""How many times the effect of perturbed rounding a difference may be."""


def explanation(
    variant: Variant, attempt: Attempt, snapshot: Snapshot, rtol: float, seen: Sequence[_Seen] = ()
) -> Verdict:
    """What a difference beyond the tolerance is: by Monte Carlo arithmetic.

    Where a result is what cancellation leaves of its operands, NumPy and XLA differ by rounding alone, and the relative
    error says nothing. The tape, run by NumPy with each input and each rounded result moved by at most one unit in its
    last place, shows how sensitive each element is (D. S. Parker, Monte Carlo Arithmetic, 1997). In a first round all
    comparisons and steps keep their answers; in a second they are free, and comparisons of operands within the
    tolerance of each other are answered at random.

    seen: what NumPy's call gave. The tape explains nothing if it gives something else: it was written down wrong.
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
                if not all(_is_told(each, *spread[each.place], rtol) for each in seen):
                    return Verdict.MISMATCH
                if all(_within(value, *each, rtol) for value, each in zip(replayed, spread, strict=True)):
                    return verdict
    except Exception:  # perturbed values may leave the path: then nothing is explained
        pass
    return Verdict.MISMATCH


def _jumps(node: Node, value: Any) -> bool:
    steps = fact(node.rule.rounding, node) is Rounding.EXACT and bool(fact(node.rule.jumps, node))
    return steps or (hasattr(value, "dtype") and value.dtype.kind in "biu")


def _run_tape(nodes: list[Node], values: list[Any], perturb: Callable[[Node, Any, list[Any]], Any]) -> list[Any]:
    """The nodes' values, by NumPy, from the slots' values. What no later operation reads is not kept."""
    found: dict[int, Any] = {}
    order = needed_by(nodes)
    last = {operand.index: node.index for node in order for operand in node.operands()}
    last.update((node.index, -1) for node in nodes)
    for node in order:
        value = values[node.args[0]] if node.is_input else evaluate(node, lambda operand: found[operand.index])
        operands = []
        if node.rule.compares:
            operands = [
                fill(part, lambda operand: found[operand.index]) for part in (*node.args, *node.kwargs.values())
            ]
        found[node.index] = perturb(node, value, operands)
        for operand in node.operands():
            if last[operand.index] == node.index:
                found.pop(operand.index, None)
    return [np.asarray(found[node.index]) for node in nodes]


class _Rounding:
    """Moves what an operation rounded by one unit in its last place, up or down at random.

    kept: answers, by node, that stay. near: comparisons of operands that are closer than this are answered at random.
    """

    def __init__(self, seed: int, kept: dict[int, Any], near: float) -> None:
        self._generator = np.random.default_rng(seed)
        self._kept, self._near = kept, near

    def __call__(self, node: Node, value: Any, operands: list[Any]) -> Any:
        if node.index in self._kept:
            return self._kept[node.index]
        if operands and self._near:
            return self._toss(value, *operands[:2])
        if fact(node.rule.rounding, node) is Rounding.EXACT:
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
        """Equal operands are no toss: what is clipped to its threshold lies there in both worlds."""
        gap = np.abs(np.subtract(left, right, dtype=float))
        magnitude = np.maximum(np.abs(left), np.abs(right))
        near = (gap > 0) & (gap <= self._near * _scale(np.asarray(magnitude, float), np.isfinite(magnitude)))
        tossed = np.where(near & (self._generator.random(np.shape(gap)) < 0.5), ~np.asarray(answer), answer)
        return tossed if isinstance(answer, np.ndarray) else type(answer)(tossed)


def _is_told(seen: _Seen, value: Any, moved: tuple[Any, ...], rtol: float) -> bool:
    """Whether the tape's own value is what NumPy's call gave."""
    return _within(
        seen.value, seen_through(value, seen.chain), tuple(seen_through(each, seen.chain) for each in moved), rtol
    )


def _within(replay: Any, value: Any, moved: tuple[Any, ...], rtol: float) -> bool:
    """Elementwise; a twentieth of the elements may not set the scale for the others."""
    same = (replay == value) | ((replay != replay) & (value != value))
    if value.dtype.kind not in "fc":
        return bool((same | np.logical_or.reduce([other != value for other in moved])).all())
    sensitivity = np.maximum.reduce([np.nan_to_num(np.abs(other - value)) for other in moved])
    allowed = rtol * np.abs(value) + AMPLIFIED * (sensitivity + np.quantile(sensitivity, 0.95))
    return bool((same | (np.abs(replay - value) <= allowed)).all())
