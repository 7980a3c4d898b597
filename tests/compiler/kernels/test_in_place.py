"""Loops whose iterations write to arrays that they hand on: where that is done in place, and what it gives."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from accel.backend import segmented
from accel.compiler.kernels.nested import Scan, While
from accel.compiler.kernels.segments import Kernel, Segmented
from tests.compiler.kernels.merging import all_in_kernels
from tests.compiler.kernels.test_segments import WIDE, built
from tests.helpers import SEED, examples

pytest.importorskip("llvmlite")

ROWS = np.stack([WIDE, WIDE + 1.0, WIDE * 2.0, WIDE - 3.0, WIDE * 0.5])


def changed(program: Segmented) -> list[int]:
    """The arguments that the body of the program's loop writes to."""
    loops = [each for each in program.segments if isinstance(each, (Scan, While))]
    return [number for loop in loops for number in loop.programs[-1].changed]


def test_a_loop_writes_what_it_keeps_in_place() -> None:
    from jax import lax

    def kept(x: Any, history: Any) -> Any:
        def step(number: Any, state: Any) -> Any:
            after = state[0] * 0.5 + 1.0
            return after, lax.dynamic_update_slice(state[1], after[None], (number, 0, 0))

        return list(lax.fori_loop(0, len(history), step, (x, history)))

    made = built(kept, WIDE, ROWS)
    assert len(changed(made)) == 1
    again = segmented.loaded(pickle.loads(pickle.dumps(segmented.without_xla(made))), [])
    last, expected = WIDE, np.empty_like(ROWS)
    for number in range(len(ROWS)):
        expected[number] = last = last * 0.5 + 1.0
    given = ROWS.copy()
    for program in (made, again, made):
        found, history = program([WIDE, given], [], {})[0]
        np.testing.assert_array_equal(found, last)
        np.testing.assert_array_equal(history, expected)
        np.testing.assert_array_equal(given, ROWS)
        history[...] = np.nan


def test_a_loop_that_reads_what_it_has_written_over_is_left_to_xla() -> None:
    from jax import lax

    def kept(x: Any, history: Any) -> Any:
        def step(number: Any, state: Any) -> Any:
            after = lax.dynamic_update_slice(state[0], x[None] * 0.5, (number, 0, 0))
            return after, state[0]

        return list(lax.fori_loop(0, len(history), step, (history, history)))

    with pytest.raises(segmented.NotWorthwhile, match="1 would be XLA's: scan"):
        built(kept, WIDE, np.stack([WIDE] * 8))


def test_rows_written_one_after_the_other_have_one_memory() -> None:
    """Each write to rows at indices that an array holds copied the whole array."""
    from jax import lax

    def written(x: Any, places: Any) -> Any:
        y = x * 2.0
        for number in range(3):
            y = lax.dynamic_update_slice(y, y[number : number + 1] + 1.0, (places[number], 0))
        return [y, y.sum(axis=1)]

    made, places = built(written, WIDE, np.array([4, 0, 299])), [4, 0, 299]
    (kernel,) = made.segments
    assert isinstance(kernel, Kernel)
    assert kernel.size.room < WIDE.nbytes
    y = WIDE * 2.0
    for number, place in enumerate(places):
        y[place] = y[number] + 1.0
    np.testing.assert_array_equal(made([WIDE, np.array(places)], [], {})[0][0], y)


# -- random bodies -----------------------------------------------------------------------------------------------------

Step = Callable[[Any, list[Any], Any], list[Any]]
"""What it writes with (see `Writes`), the state and the iteration's number: the state after it."""


def start_of(at: int, count: int, length: int) -> int:
    """Where a block begins that is read or written at an index, as JAX moves it."""
    return min(max(at + length * (at < 0), 0), length - count)


class Writes:
    """Reads and writes rows, by NumPy or by JAX."""

    def __init__(self, numpy: bool) -> None:
        self.is_numpy = numpy

    def row(self, array: Any, at: Any, count: int) -> Any:
        from jax import lax

        if self.is_numpy:
            at = start_of(int(at), count, len(array))
            return array[at : at + count].copy()
        return lax.dynamic_slice(array, (at, 0, 0), (count, *array.shape[1:]))

    def written(self, array: Any, rows: Any, at: Any) -> Any:
        from jax import lax

        if self.is_numpy:
            at, array = start_of(int(at), len(rows), len(array)), array.copy()
            array[at : at + len(rows)] = rows
            return array
        return lax.dynamic_update_slice(array, rows, (at, 0, 0))


def random_step(seed: int) -> Step:
    """One iteration of three arrays: some are written to, read before or after that, swapped, or handed on twice."""
    random = np.random.default_rng(seed)
    actions = [
        (random.choice(["write", "write", "all", "swap", "twice", "old"]), *random.integers(0, 3, 4).tolist())
        for _ in range(random.integers(1, 5))
    ]

    def step(by: Writes, state: list[Any], number: Any) -> list[Any]:
        first = list(state)
        for action, one, other, shift, count in actions:
            if action == "write":
                rows = by.row(state[other], number + shift, count + 1) * 0.5 + 1.0
                state[one] = by.written(state[one], rows, number - shift + count)
            elif action == "all":
                state[one] = state[one] * 0.5 + state[other]
            elif action == "swap":
                state[one], state[other] = state[other], state[one]
            elif action == "twice":
                state[one] = state[other]
            else:
                state[one] = first[other]
        return state

    return step


@pytest.mark.parametrize("threads", [1, 3])
def test_random_bodies_give_what_numpy_gives(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segmented, "_WRITES", {})  # whatever they copy
    with all_in_kernels(threads):
        in_place = [tried(random_step(SEED + number)) for number in range(examples(30, 1000))]
    assert any(in_place)
    assert not all(in_place)


def tried(step: Step) -> bool:
    """Compare a loop with NumPy. Returns whether it writes in place."""
    from jax import lax

    def looped(*arrays: Any) -> Any:
        return list(lax.fori_loop(0, 7, lambda n, state: tuple(step(Writes(False), [*state], n)), arrays))

    start = [ROWS[:, :40, :24] * factor for factor in (1.0, 2.0, -1.0)]
    made = built(looped, *start)
    expected: Sequence[Any] = start
    for number in range(7):
        expected = step(Writes(True), [*expected], number)
    given = [each.copy() for each in start]
    for _ in range(2):
        for mine, theirs in zip(made(given, [], {})[0], expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(given, start)
    return any(changed(made))


# -- blocks and rows ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.bool_])
@pytest.mark.parametrize(
    ("shape", "block"), [((5, 6, 10), (1, 6, 10)), ((5, 6, 10), (2, 6, 3)), ((40,), (9,)), ((4, 20), (4, 7))]
)
def test_blocks_are_read_and_written_wherever_they_begin(shape: Any, block: Any, dtype: Any) -> None:
    from jax import lax

    around = (np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype)
    inner = (np.arange(np.prod(block)).reshape(block) % 3 + 1).astype(dtype)
    rank = range(len(shape))
    made = built(
        lambda x, y, at: [
            lax.dynamic_update_slice(x, y, [at[dim] for dim in rank]),
            lax.dynamic_slice(x, [at[dim] for dim in rank], block)[..., ::-1],
        ],
        around,
        inner,
        np.zeros(len(shape), np.int32),
    )
    assert [type(each) for each in made.segments] == [Kernel]
    for starts in np.stack(np.meshgrid(*[(-3, 0, 1, 2, 99)] * len(shape)), -1).reshape(-1, len(shape)).astype(np.int32):
        lows = [start_of(at, part, whole) for at, part, whole in zip(starts.tolist(), block, shape, strict=True)]
        box = tuple(slice(low, low + part) for low, part in zip(lows, block, strict=True))
        written = around.copy()
        written[box] = inner
        found = made([around, inner, starts], [], {})[0]
        np.testing.assert_array_equal(found[0], written)
        np.testing.assert_array_equal(found[1], around[box][..., ::-1])


@pytest.mark.parametrize("mode", ["clip", "drop"])
def test_rows_are_written_at_indices_that_an_array_holds(mode: str) -> None:
    rows = np.arange(96.0).reshape(4, 24)
    made = built(lambda x, at, y: [x.at[at].set(y, mode=mode)], np.zeros((5, 24)), np.zeros(4, int), rows)
    for places in ([0, 3, 3, 1], [-1, 9, 2, 4]):
        expected = np.zeros((5, 24))
        for place, row in zip(places, rows, strict=True):
            place += 5 * (place < 0)
            if place < 5 or mode == "clip":
                expected[min(place, 4)] = row
        np.testing.assert_array_equal(made([np.zeros((5, 24)), np.array(places), rows], [], {})[0][0], expected)
