"""Monte Carlo arithmetic: whether rounding, or a value close to a threshold, explains a difference from NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from accel.dispatch.comparing.errors import Tolerance, Verdict, parts_of, same, scale_of
from accel.dispatch.replay import StagedOutputs
from accel.ir.tape import Node, needed_by
from accel.ir.template import fill
from accel.ir.vast import is_vast
from accel.ir.views import seen_through
from accel.platform import interrupts
from accel.record.run.outputs import Outputs
from accel.rules.columns import Rounding, fact
from accel.rules.evaluation import evaluate

SEEDS = range(4)
"""The seeds of the runs with perturbed rounding by which a difference is judged."""

SEEDS_OF_REDUCED = range(16)
"""Seeds for programs that compute in less than float64, where most results differ. Two values that cancel move alike in
half of the runs, so with four seeds some of many such elements look insensitive."""

AMPLIFIED = 32.0
"""A difference may be this many times the effect of perturbed rounding. Chosen, not derived. Four runs see less than
the largest effect, and a compiled sum adds in another order, which none of these runs does."""


LEAST_SIGNS = 4096
"""The fewest random signs in a pool, so that small arrays and numbers, too, are moved independently."""

_BITS = {np.dtype(np.float64): np.int64, np.dtype(np.float32): np.int32, np.dtype(np.float16): np.int16}
"""Integers of the size of a float."""


MOST_EXPLAINED = 1 << 28
"""Maximum bytes of an array changed in place for a difference to be explained: each run of the tape holds copies."""


class NumpyValue(NamedTuple):
    """A value of NumPy's call that differs from the replay's.

    position: index among the trace's new arrays, changed arrays and numbers, in this order. chain: the view of it.
    """

    position: int
    chain: Any
    value: Any


class PerturbedInputs(Protocol):
    """A call's inputs as they were before it. values: of the slots."""

    values: list[Any]

    def complete(self) -> None:
        """Put all arrays into `values`."""


def explanation(
    staged: StagedOutputs,
    snapshot: PerturbedInputs,
    tolerance: Tolerance,
    seen: Sequence[NumpyValue] = (),
    is_numpys: Callable[[list[Any]], bool] = lambda computed: True,
) -> Verdict:
    """Judge a difference beyond the tolerance, by Monte Carlo arithmetic.

    Where cancellation leaves nothing of its operands but rounding, NumPy and XLA differ in rounding only, and the
    relative error says nothing. So NumPy runs the tape with each input and each rounded result moved by at most one
    unit in the last place. Where arithmetic is exact, inputs are moved that may differ, with their operands (see
    `_moving`). This shows how sensitive each element is (D. S. Parker, Monte Carlo Arithmetic, 1997).

    In a first pass all comparisons and step functions keep their answers. In a second pass two kinds are free: those
    that depend on a function whose last place may differ, and comparisons of operands within the tolerance of each
    other, which are answered at random. Neither pass explains a NaN or an infinity that is none in NumPy's call, or a
    sign (see `_within`).

    seen: values of NumPy's call that differ from the replay's. If the tape does not reproduce them, the recording is
    wrong, and explains nothing. is_numpys: the same for all that the tape computes.
    """
    if any(staged.values[slot].nbytes > MOST_EXPLAINED for slot, _ in staged.trace.outputs.changed):
        return Verdict.MISMATCH
    snapshot.complete()
    staged.complete(snapshot.values, vast=True)
    try:
        with np.errstate(all="ignore"):
            return _judged(staged, snapshot.values, tolerance, seen, is_numpys)
    except Exception as error:  # perturbed values may not be valid on this path: then nothing is explained
        interrupts.pass_on(error)
        return Verdict.MISMATCH


def _judged(
    staged: StagedOutputs,
    values: list[Any],
    tolerance: Tolerance,
    seen: Sequence[NumpyValue],
    is_numpys: Callable[[list[Any]], bool],
) -> Verdict:
    """Judge a difference by runs of the tape. values: of the slots. Raises what NumPy raises for perturbed values."""
    rtol, unit, exact = tolerance
    nodes, replayed = computed_nodes(staged.trace.outputs), computed_values(staged)
    answers: dict[int, Any] = {}

    def keep(node: Node, value: object, operands: list[Any]) -> Any:
        if _jumps(node, value):
            answers[node.index] = value
        return value

    # once as it is, to keep its answers and as the centre of the spread
    base = run_tape(nodes, values, keep)
    if not is_numpys(base):
        return Verdict.MISMATCH
    free = _free(nodes) if exact else answers
    moving = _moving(nodes) if exact else None
    certain = {index: answer for index, answer in answers.items() if index not in free}
    # what agrees without being moved needs no further runs: mostly a few values are left, and what they depend on
    seen = [each for each in seen if not _matches_tape(each, base[each.position], (base[each.position],), rtol)]
    differ = [not _within(value, its, (its,), rtol) for value, its in zip(replayed, base, strict=True)]
    left = [place for place, differs in enumerate(differ) if differs or any(each.position == place for each in seen)]
    nodes = [nodes[place] for place in left]
    for verdict, kept, near in ((Verdict.ROUNDING, answers, 0.0), (Verdict.THRESHOLD, certain, rtol)):
        moved: list[list[Any]] = []
        # each run can only widen the spread: what a few of them explain, all of them do
        for seed in SEEDS if unit is None else SEEDS_OF_REDUCED:
            moved.append(run_tape(nodes, values, _Rounding(seed, kept, near, unit, moving)))
            spread = dict(zip(left, zip(*moved, strict=True), strict=True))
            # does the tape do what NumPy's call did? If not, its spread says nothing about that call
            reproduced = all(_matches_tape(each, base[each.position], spread[each.position], rtol) for each in seen)
            if reproduced and all(_within(replayed[at], base[at], others, rtol) for at, others in spread.items()):
                return verdict
        if not reproduced:
            break
    return Verdict.MISMATCH


def computed_nodes(outputs: Outputs) -> list[Node]:
    """The nodes of all that a program computes: new arrays, changed arrays, and numbers."""
    return [*outputs.arrays, *(node for _, node in outputs.changed), *outputs.numbers]


def computed_values(staged: StagedOutputs) -> list[NDArray[Any]]:
    """Return the values that a completed run gives for these nodes."""
    return [np.asarray(value) for value in (*staged.made, *staged.changed, *staged.numbers)]


def _jumps(node: Node, value: object) -> bool:
    """Whether a tiny change of an operand may change the value by a whole step: `floor`, comparisons, integers."""
    steps = fact(node.rule.numerics.rounding, node) is Rounding.EXACT and bool(fact(node.rule.numerics.jumps, node))
    return steps or (hasattr(value, "dtype") and value.dtype.kind in "biu")


def _free(nodes: list[Node]) -> set[int]:
    """Indices of all nodes that depend on a function or a sum whose last place NumPy and XLA may give otherwise."""
    free: set[int] = set()
    for node in needed_by(nodes):
        if _may_differ(node) or any(operand.index in free for operand in node.operands()):
            free.add(node.index)
    return free


def _moving(nodes: list[Node]) -> set[int]:
    """Indices of the nodes whose last place shows how far NumPy and XLA may be apart, where arithmetic is exact.

    They are the results that may differ, and their operands: what cancels inside a sum shows in these alone.
    """
    differ = [node for node in needed_by(nodes) if _may_differ(node)]
    return {each.index for node in differ for each in (node, *node.operands())}


def _may_differ(node: Node) -> bool:
    """Whether the last place may: of complex products too, in which NumPy fuses."""
    kind, rounding = np.dtype(node.dtype).kind, fact(node.rule.numerics.rounding, node)
    return not node.is_input and (
        (kind in "fc" and rounding is Rounding.FREE) or (kind == "c" and rounding is Rounding.ROUNDED)
    )


def run_tape(nodes: list[Node], values: list[Any], perturb: Callable[[Node, Any, list[Any]], Any]) -> list[Any]:
    """The nodes' values, computed by NumPy from the slots' values.

    perturb: applied to each node, its value and, if its rule `compares`, its operands; returns the value to go on with.
    Values that no later operation reads are freed, as large programs would take too much memory otherwise.
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
                fill(part, lambda operand: results[operand.index], Node) for part in (*node.args, *node.kwargs.values())
            ]
        results[node.index] = perturb(node, value, operands)
        for operand in node.operands():
            if last[operand.index] == node.index:
                # None: an operand may occur twice among a node's
                results.pop(operand.index, None)
    return [np.asarray(results[node.index]) for node in nodes]


class _Rounding:
    """Moves each rounded value by one unit in the last place, up or down at random.

    kept: by node, answers that stay as they are. near: comparisons of operands whose relative distance is smaller are
    answered at random; 0 for none. unit: as of Tolerance. moving: indices of the nodes that are moved; None: all.
    """

    def __init__(
        self, seed: int, kept: dict[int, Any], near: float, unit: float | None, moving: set[int] | None = None
    ) -> None:
        self._generator = np.random.default_rng(seed)
        self._kept, self._near, self._unit, self._moving = kept, near, unit, moving
        self._pool: NDArray[np.int64] = np.empty(0, np.int64)

    def __call__(self, node: Node, value: Any, operands: list[Any]) -> Any:
        if node.index in self._kept:
            return self._kept[node.index]
        # the second pass: a comparison may go the other way
        if operands and self._near:
            return self._toss(value, *operands[:2])
        if self._moving is not None and node.index not in self._moving:
            return value
        if fact(node.rule.numerics.rounding, node) is Rounding.EXACT or is_vast(value):
            return value
        if not isinstance(value, (np.ndarray, np.inexact)) or value.dtype.kind not in "fc" or node.host:
            return value
        # a rounded floating-point value: real and imaginary parts are rounded separately
        if value.dtype.kind == "c":
            moved = np.empty_like(value)
            moved.real, moved.imag = self._moved(value.real), self._moved(value.imag)
        else:
            moved = self._moved(value)
        return moved if isinstance(value, np.ndarray) else moved[()]

    def _moved(self, value: Any) -> Any:
        signs = self._signs(np.shape(value))
        if self._unit is not None and value.dtype == np.float64:
            return value * (1.0 + self._unit * signs)
        moves = np.isfinite(value) & (value != 0)
        bits = _BITS.get(value.dtype)
        if bits is None:
            return np.where(moves, np.nextafter(value, np.inf * signs.astype(value.dtype)), value)
        # a float's neighbours are those of its bits, read as an integer: several times as fast as `np.nextafter`
        read = np.ascontiguousarray(value).view(bits).reshape(np.shape(value))
        moved = np.asarray(read + signs.astype(bits, copy=False)).view(value.dtype)
        np.copyto(moved, value, where=~moves)
        return moved

    def _signs(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Ones and minus ones at random: a part of a pool, from a random place on. Drawing takes far longer."""
        count = math.prod(shape)
        if len(self._pool) < max(2 * count, LEAST_SIGNS):
            drawn = np.frombuffer(self._generator.bytes(-(-max(2 * count, LEAST_SIGNS) // 8)), np.uint8)
            self._pool = 2 * np.unpackbits(drawn).astype(np.int64) - 1
        first = int(self._generator.integers(len(self._pool) - count + 1))
        return self._pool[first : first + count].reshape(shape)

    def _toss(self, answer: Any, left: Any, right: Any) -> Any:
        """Answer comparisons of operands that are close at random, but not of equal ones.

        A value that was clipped to its threshold is equal to it in NumPy and in the replay.
        """
        gap = np.abs(np.subtract(left, right, dtype=float))
        magnitude = np.maximum(np.abs(left), np.abs(right))
        near = (gap > 0) & (gap <= self._near * scale_of(np.asarray(magnitude, float), np.isfinite(magnitude)))
        tossed = np.where(near & (self._generator.random(np.shape(gap)) < 0.5), ~np.asarray(answer), answer)
        return tossed if isinstance(answer, np.ndarray) else type(answer)(tossed)


def _matches_tape(seen: NumpyValue, value: object, moved: tuple[Any, ...], rtol: float) -> bool:
    """Whether the tape reproduces the value of NumPy's call."""
    return _within(
        seen.value, seen_through(value, seen.chain), tuple(seen_through(each, seen.chain) for each in moved), rtol
    )


def _within(replay: NDArray[Any], value: Any, moved: tuple[Any, ...], rtol: float) -> bool:
    """Whether every element of the replay is within the tolerance plus its sensitivity to rounding.

    The 95 % quantile of the sensitivity is added for all elements. A quantile, so that a few very sensitive elements do
    not loosen the bound for all others. No sensitivity excuses a NaN or an infinity against another value, nor another
    sign where both values are larger than the effect of perturbed rounding.
    """
    equal = same(replay, value)
    if value.dtype.kind not in "fc":
        # an integer or a bool is excused where some perturbed run gives another one, too
        return bool((equal | np.logical_or.reduce([other != value for other in moved])).all())
    if equal.all():
        return True
    finite = np.isfinite(replay) & np.isfinite(value)
    if not (equal | finite).all():
        if value.dtype.kind != "c":
            return False
        parts = zip(*map(parts_of, (replay, value, *moved)), strict=True)
        return all(_within(part, its, tuple(others), rtol) for part, its, *others in parts)
    # a run that gives NaN or infinity does not show how far rounding moves an element: it counts for nothing
    moves = [np.abs(other - value) for other in moved]
    sensitivity = np.maximum.reduce([np.where(np.isfinite(move), move, 0.0) for move in moves])
    noise = sensitivity + np.quantile(sensitivity, 0.95)
    if _other_signs(replay.real, value.real, noise).any() or _other_signs(replay.imag, value.imag, noise).any():
        return False
    return bool((equal | (np.abs(replay - value) <= rtol * np.abs(value) + AMPLIFIED * noise)).all())


def _other_signs(replay: NDArray[Any], value: NDArray[Any], noise: NDArray[Any]) -> Any:
    """Mask of the elements beyond the noise in both, but of opposite sign."""
    return (np.sign(replay) * np.sign(value) < 0) & (np.minimum(np.abs(replay), np.abs(value)) > noise)
