"""Integers in keys that data decide: values of one program, not paths of their own."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from accel.record import record
from accel.rules import core
from tests.record.conftest import Check, Checked


def paths_of(checked: Checked) -> int:
    """The paths that were recorded."""
    return len(checked.function._self_target.paths)


def rules_of(function: Any, *args: Any) -> list[Any]:
    recorded = record(function, args, {}, max_nodes=10**5)
    assert recorded.refusal is None
    return [node.rule for node in recorded.trace.tape.nodes]


def table(i: int) -> Any:
    return np.arange(24.0).reshape(4, 6) + 0.5 * i


# -- programs as people write them ------------------------------------------------------------------------------------


def forward(observed: Any, transition: Any, emission: Any, start: Any) -> Any:
    alpha = start * emission[:, observed[0]]
    for t in range(1, len(observed)):
        alpha = (alpha @ transition) * emission[:, observed[t]]
        alpha = alpha / alpha.sum()
    return alpha


def viterbi(observed: Any, transition: Any, emission: Any, start: Any) -> Any:
    steps, states = len(observed), len(start)
    best = np.zeros((steps, states))
    back = np.zeros((steps, states), int)
    best[0] = np.log(start) + np.log(emission[:, observed[0]])
    for t in range(1, steps):
        for s in range(states):
            scores = best[t - 1] + np.log(transition[:, s])
            back[t, s] = scores.argmax()
            best[t, s] = scores[back[t, s]] + np.log(emission[s, observed[t]])
    path = np.zeros(steps, int)
    path[-1] = best[-1].argmax()
    for t in range(steps - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    return path, best


@pytest.mark.parametrize("function", [forward, viterbi], ids=lambda each: each.__name__)
@pytest.mark.parametrize("length", [5, 24])
def test_a_hidden_markov_model(check: Check, function: Any, length: int) -> None:
    rng = np.random.default_rng(1)
    model = [rng.dirichlet(np.ones(n), 3) for n in (3, 4)]

    def make(i: int) -> Any:
        return np.random.default_rng(i).integers(0, 4, length), *model, np.full(3, 1 / 3)

    assert paths_of(check(function, make)) == 1


class Learner:
    def __init__(self) -> None:
        self.q = np.zeros((6, 3))
        self.state = 0
        self.visits = np.zeros(6, np.int64)

    def step(self, action: int, reward: float, state: int) -> float:
        target = reward + 0.9 * self.q[state].max()
        self.q[self.state, action] += 0.1 * (target - self.q[self.state, action])
        self.visits[self.state] += 1
        self.state = state
        return float(self.q[state, action])

    def greedy(self, x: Any) -> int:
        k = int(self.q[self.state].argmax())
        self.q[self.state][k] *= 0.5
        return k + int(x[k] > 0)


def test_a_table_of_state_and_action(check: Check) -> None:
    def worlds() -> Any:
        learner = Learner()
        rng = np.random.default_rng(3)
        return lambda i: (learner, int(rng.integers(3)), float(rng.normal()), int(rng.integers(6)))

    checked = check(lambda learner, *args: learner.step(*args), worlds=worlds, calls=40)
    assert paths_of(checked) == 1


def test_an_index_that_the_device_computes(check: Check) -> None:
    def worlds() -> Any:
        learner = Learner()
        learner.q += np.random.default_rng(0).random((6, 3))
        return lambda i: (learner, np.random.default_rng(i).normal(size=3))

    def step(learner: Any, x: Any) -> Any:
        return learner.greedy(x)

    assert paths_of(check(step, worlds=worlds, calls=20)) == 1


class History:
    def __init__(self, size: int) -> None:
        self.log = np.zeros(size)
        self.rows = np.zeros((size, 3))
        self.n = 0
        self.i = 2

    def note(self, x: Any) -> None:
        self.log[self.n] = x.mean()
        self.n += 1

    def push(self, x: Any) -> Any:
        k = self.n % len(self.log)
        self.rows[k, :] = x
        self.log[k] += 1.0
        self.n += 1
        return self.rows[(self.n - 1) % len(self.log)].sum()

    def smooth(self, x: Any) -> Any:
        i = self.i
        self.i = 2 + (self.i + 3) % 9
        x[i - 1 : i + 2] *= 0.5
        return x[i - 1 : i + 2].mean() + x[i]


def test_a_history_is_one_path(check: Check) -> None:
    def worlds() -> Any:
        history = History(50)
        return lambda i: (history, np.arange(4.0) + i)

    checked = check(lambda history, x: history.note(x), worlds=worlds, calls=50)
    assert paths_of(checked) == 1 and checked.ledger.compiled_calls >= 45


def test_a_history_that_is_full_raises(check: Check) -> None:
    def worlds() -> Any:
        history = History(7)
        return lambda i: (history, np.arange(4.0) + i)

    checked = check(lambda history, x: history.note(x), worlds=worlds, calls=9, replays=3)
    full = History(7)
    full.n = 7
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 7"):
        checked.function(full, np.ones(4))
    assert full.n == 7 and not full.log.any()


def test_a_ring(check: Check) -> None:
    def worlds() -> Any:
        history = History(5)
        return lambda i: (history, np.arange(3.0) * i)

    assert paths_of(check(lambda history, x: history.push(x), worlds=worlds, calls=17)) == 1


def test_a_window_that_moves(check: Check) -> None:
    def worlds() -> Any:
        history = History(5)
        return lambda i: (history, np.arange(13.0) + i)

    assert paths_of(check(lambda history, x: history.smooth(x), worlds=worlds, calls=17)) == 1


@pytest.mark.parametrize(
    "key",
    [
        lambda i, n: slice(i, i + n),
        lambda i, n: slice(i - n, i),
        lambda i, n: slice(n * i - 8, n * (i + 1) - 8),
        lambda i, n: slice(2 * i - 5, i + n - 3 + i),
        lambda i, n: slice(i - 1, i + 2, 1),
        lambda i, n: slice(-(1 - i), i + 2),
    ],
)
@pytest.mark.parametrize("on_device", [False, True])
def test_slices_of_fixed_length(check: Check, key: Any, on_device: bool) -> None:
    def window(x: Any, where: Any, i: int, n: int) -> Any:
        part = x[key(int(where.max()) if on_device else i, n)]
        part += 1.0
        return part * 2.0, x.sum()

    def make(i: int) -> Any:
        return np.arange(20.0), np.array([1, 4 + i % 3]), 4 + i % 3, 3

    checked = check(window, make)
    assert paths_of(checked) == 1
    assert core.READ_AT in rules_of(window, *make(0))


@pytest.mark.parametrize("two", [False, True])
def test_a_window_that_the_ends_clamp(check: Check, two: bool) -> None:
    """Away from the ends it is one path, as it keeps its length; at each end its length is another."""

    def window(x: Any, i: Any) -> Any:
        k = int(i[0] * 2.0)
        w = x[1, max(k - 6, 0) : min(k + 3, x.shape[1]) if two else k + 3]
        return w.sum(), np.arange(len(w)) * w

    ends = {9: 2, 10: 2, 11: 39}

    def make(i: int) -> Any:
        return np.random.default_rng(i).random((3, 40)), np.array([ends.get(i, 8 + 3 * i) / 2.0])

    checked = check(window, make, calls=12, replays=5)
    assert paths_of(checked) <= 3


def test_rows_of_changing_length_keep_their_bounds(check: Check) -> None:
    def rows(start: Any, x: Any) -> Any:
        return [x[start[i] : start[i + 1]].sum() for i in range(3)]

    assert core.READ_AT not in rules_of(rows, np.array([0, 2, 5, 6]), np.arange(9.0))
    check(rows, lambda i: (np.array([0, 2, 5, 6]), np.arange(9.0) + i))


def test_a_program_survives_pickling() -> None:
    """It is compiled in a process of its own."""

    def pick(a: Any, i: int) -> Any:
        return a[i, None, 1:3] + a[None, i : i + 2, None, i].sum(), a[..., None, i] * 2.0, a[i, i]

    recorded = record(pick, (table(0), 1), {}, max_nodes=1000)
    assert recorded.refusal is None
    tape = pickle.loads(pickle.dumps(recorded.trace.tape))
    reads = [pair for pair in zip(recorded.trace.tape.nodes, tape.nodes, strict=True) if pair[0].rule is core.READ_AT]
    assert len(reads) == 4
    for node, twin in reads:
        before, after = node.args[1], twin.args[1]
        assert twin.rule is core.READ_AT and before == after
        assert (before.sizes, before.given) == (after.sizes, after.given)
        assert before.at((4, 6), (1, 1)) == after.at((4, 6), (1, 1))


# -- views ------------------------------------------------------------------------------------------------------------


def test_views_see_later_writes_and_write_through(check: Check) -> None:
    def mixed(a: Any, i: int, j: int) -> Any:
        row, other = a[i], a[j]
        column = a[:, i]
        row += 1.0
        other *= 2.0
        a[i, j] = -1.0
        column[1:3] -= row[:2]
        a[j, ::2] = 7.0
        a[::2, j][1:] += other[0]
        return row.sum(), other + row, column.copy(), a[i][None, ::-1] * 1.0

    def make(k: int) -> Any:
        return table(k), k % 4, (k * k) % 4  # the same row in some calls, another in others

    assert paths_of(check(mixed, make, calls=16)) == 1


@pytest.mark.parametrize("first", [(1, 1), (1, 2)])
def test_positions_that_meet_or_not(check: Check, first: tuple[int, int]) -> None:
    def swap(a: Any, i: int, j: int) -> Any:
        a[i, :], kept = a[j, :] + 0.5, a[i, :].copy()
        a[j] = kept
        a[i : i + 2] += a[j : j + 2]
        a[j : j + 2] = a[i : i + 2]
        return a[i] @ a[j]

    def make(k: int) -> Any:
        return (table(k), *(first if k < 5 else ((k % 3), (k * k + 1) % 3)))

    check(swap, make, calls=14)


def test_overlapping_windows(check: Check) -> None:
    def shift(x: Any, i: int, j: int) -> None:
        x[i : i + 4] = x[j : j + 4]
        x[i + 1 : i + 5] += x[j : j + 4]
        np.add(x[i : i + 3], x[j : j + 3], out=x[i + 1 : i + 4])
        x[j] = x[i] + x[i + 3]

    check(shift, lambda k: (np.arange(16.0) + k, 2 + k % 5, 2 + (3 * k) % 5), calls=16)


def test_a_view_that_leaves_the_call(check: Check) -> None:
    def row(a: Any, i: int) -> Any:
        a[i] += 1.0
        return a[i], a[i, 1:], (a * 2.0)[i]

    assert paths_of(check(row, lambda k: (table(k), k % 4))) == 1


def test_an_array_of_one_element_that_leaves_the_call(check: Check) -> None:
    def element(a: Any, i: int) -> Any:
        return a[i, ..., 2], a[i][..., i], (a + 1.0)[i, i, ...], a[i, i]

    assert paths_of(check(element, lambda k: (table(k), k % 4))) == 1


def test_a_view_that_is_kept(check: Check) -> None:
    def worlds() -> Any:
        held = Held()

        def make(i: int) -> Any:
            held.k = i % 4
            return held, np.array([0, i % 3, 5])

        return make

    def keep(held: Any, where: Any) -> Any:
        fresh = held.a * 2.0
        held.row = fresh[where[1]][1:]
        held.part = held.a[held.k : held.k + 1, 2]
        return fresh, [held.row, fresh[where[1] - 3]]

    check(keep, worlds=worlds, calls=14)


def test_views_that_leave_are_compared(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    from accel.dispatch.comparing import policy

    monkeypatch.setattr(policy, "FIRST_COMPARED", 100)
    checked = check(lambda a, i, j: (a[i], (a + 1.0)[j - 3]), lambda k: (table(k), k % 4, k % 3))
    assert checked.ledger.comparisons >= 4 and not checked.refusals


def test_elements_are_numbers(check: Check) -> None:
    def some(a: Any, whole: Any, i: int, j: int) -> Any:
        return a[i, j], a[i][j], whole[j], a[i, j].item(), a.item(i, j), whole.item(j)

    checked = check(some, lambda k: (table(k), np.arange(6, dtype=np.int16) * k, k % 4, k % 6))
    assert paths_of(checked) == 1


def test_axes_of_length_0_and_1(check: Check) -> None:
    def odd(empty: Any, single: Any, i: int) -> Any:
        empty[i] = 1.0
        single[i - i] += i
        single[:, i] *= 2.0
        return empty[i] * 1, empty[i : i + 1] + 1, single[i - i, i], single[i // 9] * 1.0

    def make(k: int) -> Any:
        return np.ones((4, 0)), np.ones((1, 6)), k % 4

    assert paths_of(check(odd, make)) == 1


def test_new_axes_strides_and_nothing(check: Check) -> None:
    def odd(a: Any, i: int, j: int) -> Any:
        a[None, i, ::-2] = [[1.0, 2.0, 3.0]]
        a[2:2, j] = 9.0
        a[..., j] += 1.0
        return a[i, None, 1:3] * 1, a[1:, j, None] * 1, a[i, 4:1:-1] * 1, a[i, 3:3] * 1, a[..., j] * 1, a[i, ...] * 1

    assert paths_of(check(odd, lambda k: (table(k), k % 4, k % 6))) == 1


# -- bounds -----------------------------------------------------------------------------------------------------------


def test_negative_indices_count_from_the_end(check: Check) -> None:
    def pick(a: Any, where: Any, i: int) -> Any:
        a[i] += 1.0
        return a[i] * 2.0, a[where[0], i], a[:, where[1]] + 0.0

    checked = check(pick, lambda k: (table(k), np.array([k % 8 - 4, -(k % 7)]), k % 8 - 4), calls=16)
    assert paths_of(checked) == 1


@pytest.mark.parametrize("bad", [4, -5, 10**6, -(10**6), 2**70])
def test_out_of_bounds_raises_as_numpy_does(check: Check, bad: int) -> None:
    def write(a: Any, i: int) -> Any:
        a[0] += 1.0
        a[i] = 0.0
        return a.sum()

    check(write, lambda k: (table(k), bad if k in (7, 9) else k % 4), calls=12, replays=4)


@pytest.mark.parametrize("bad", [4, -5, 10**6, 2**63 - 1])
def test_out_of_bounds_on_the_device(check: Check, bad: int) -> None:
    def write(a: Any, where: Any) -> Any:
        a[0] += 1.0
        a[where[1]] = 0.0
        return a[where.max() - 1 : where.max() + 1].sum()

    check(write, lambda k: (table(k), np.array([1, bad if k in (7, 9) else 1 + k % 3])), calls=12, replays=4)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("size", [100, 128, 200, 300])
def test_small_dtypes_near_their_limits(check: Check, dtype: str, size: int) -> None:
    info = np.iinfo(dtype)
    numbers = [info.max, min(info.max, size - 1), min(info.max, size), max(info.min, -size), max(info.min, -size - 1)]

    def pick(x: Any, where: Any) -> Any:
        k = where[0]
        x[k] = 7.0
        return x[where[1]] + x[k]

    def make(k: int) -> Any:
        chosen = 3 + k if k < 5 else numbers[(k - 5) % 5]
        return np.arange(float(size)), np.array([chosen, chosen], dtype)

    check(pick, make, calls=12, replays=2)


def test_windows_at_the_ends(check: Check) -> None:
    def around(x: Any, i: int) -> Any:
        return x[i - 1 : i + 2].sum(), x[i - 1 : i + 2].shape

    order = [4, 5, 6, 7, 8, 0, 1, 9, 10, 2, 0, 9, 3, 10, 8]
    checked = check(around, lambda k: (np.arange(10.0), order[k]), calls=len(order), replays=2)
    assert paths_of(checked) <= 4


def test_small_integers_that_wrap(check: Check) -> None:
    def around(x: Any, where: Any) -> Any:
        i = where[0]
        with np.errstate(over="ignore"):
            return x[i - np.int8(1) : i + np.int8(2)] * 1.0

    order = [50, 51, 60, 70, 80, 125, 126, 127, -128, 1, 0, 99]
    check(around, lambda k: (np.arange(300.0), np.array([order[k]], np.int8)), calls=len(order), replays=2)


def test_a_truth_is_a_mask_and_no_index(check: Check) -> None:
    def masked(x: Any, flags: Any) -> Any:
        return x[flags[0]] * 1.0

    check(masked, lambda k: (np.arange(5.0), np.array([k % 2 == 0])), reason="shape.dynamic")


def test_an_index_that_is_no_integer_raises(check: Check) -> None:
    def pick(x: Any, i: Any) -> Any:
        return x[i]

    checked = check(pick, lambda k: (np.arange(5.0), k % 5 if k < 6 else float(k)), replays=1)
    assert paths_of(checked)


# -- beside index arrays and masks ------------------------------------------------------------------------------------


def test_positions_beside_index_arrays(check: Check) -> None:
    def mixed(a: Any, rows: Any, i: int, cube: Any) -> Any:
        a[i, rows] = 1.0
        a[rows[:2], i] += 2.0
        return a[i, [0, 2]], a[rows[0], rows], cube[i, :, rows[:2]], a[i, a[0] > 2].sum()

    def make(k: int) -> Any:
        rows = np.random.default_rng(k).permutation(4)[:3]
        return table(k), rows, k % 4, np.arange(4 * 6 * 5.0).reshape(4, 6, 5)

    assert paths_of(check(mixed, make)) == 1


def test_lists_of_positions(check: Check) -> None:
    def swap(a: Any, i: int, where: Any) -> Any:
        j = where[0]
        a[[i, j]] = a[[j, i]]
        a[:, [i, 5]] += 1.0
        return a[[i, -1, j]], a[[[i], [j]], [0, i]]

    assert paths_of(check(swap, lambda k: (table(k), k % 4, np.array([(k + 1) % 4 - 4])))) == 1
    checked = check(swap, lambda k: (table(k), k % 4, np.array([(k + (k != 7)) % 4])), replays=3)
    assert paths_of(checked) == 1  # the same row twice: which one stays is NumPy's to say
    check(lambda a, i: a[[i, 0]], lambda k: (table(k), 4 if k == 7 else k % 4), replays=3)


def test_an_integer_without_axes(check: Check) -> None:
    def pick(a: Any, where: Any) -> Any:
        i = where.max(keepdims=True).reshape(())
        a[i] += 1.0
        return a[i], a[i + 0 : i + 2] * 1.0

    check(pick, lambda k: (table(k), np.array([k % 3, 0])), calls=9)


def test_a_mask_behind_a_position(check: Check) -> None:
    def clear(a: Any, i: int) -> Any:
        a[i, a[i] > 5.0] = 0.0
        return a[i][a[i] < 9.0].sum()

    assert paths_of(check(clear, lambda k: (table(k), k % 4))) == 1


# -- numbers that the path fixes --------------------------------------------------------------------------------------


def test_a_number_that_is_forced_is_a_constant(check: Check) -> None:
    def branchy(a: Any, n: int) -> Any:
        total = 0.0
        for i in range(n):
            total = total + a[i].sum() + a[n].sum()
        return total

    assert core.READ_AT not in rules_of(branchy, table(0), 2)
    check(branchy, lambda k: (table(k), 1 + k // 6), calls=14, replays=4)


def test_a_number_that_is_forced_in_between(check: Check) -> None:
    def between(a: Any, i: int) -> Any:
        row = a[i]
        row += 1.0
        x = np.zeros(i + 1) + row[0]
        a[i] = row * 2.0
        row -= 1.0
        return x, a[i].sum(), row * 1.0

    check(between, lambda k: (table(k), k // 6), calls=14, replays=4)


class Held:
    def __init__(self) -> None:
        self.a = table(0)
        self.k = 1
        self.index = np.array([0, 3, 2])

    def take(self, x: Any) -> Any:
        self.a[self.k] += x
        return self.a[self.k, self.index[1]] + self.a[self.index[2]].sum()


def test_an_index_that_changes_late(check: Check) -> None:
    def worlds() -> Any:
        held = Held()

        def make(i: int) -> Any:
            if i >= 10:
                held.k = i % 4
            if i >= 15:
                held.index[1] = i % 6
            return held, np.arange(6.0)

        return make

    checked = check(lambda held, x: held.take(x), worlds=worlds, calls=22, replays=9)
    assert paths_of(checked) == 1


def test_an_index_that_never_changes_is_static(check: Check) -> None:
    def worlds() -> Any:
        held = Held()
        return lambda i: (held, np.arange(6.0))

    checked = check(lambda held, x: held.take(x), worlds=worlds)
    (path,) = checked.function._self_target.paths
    program = path.program.variant.executable.program
    assert not program.outcomes and not any(program.scalars.values())


def pick_rows(a: Any, held: Any) -> Any:
    kept, total = [], np.zeros(6)
    for k in range(len(held.index)):
        row = a[held.index[k]]
        total = np.sin(total + row) * 0.5 + np.cos(row) * a[held.index[k], 2:5].sum()
        kept.append(row.copy())
        held.a[held.index[k]] += total
    return kept, total


@pytest.mark.parametrize("late", [False, True])
def test_loops_over_positions(check: Check, late: bool) -> None:
    def worlds() -> Any:
        held = Held()
        held.index = np.random.default_rng(0).integers(-4, 4, 30)

        def make(i: int) -> Any:
            if late and i > 6:
                held.index = np.random.default_rng(i).integers(-4, 4, 30)
            return table(i), held

        return make

    assert paths_of(check(pick_rows, worlds=worlds, calls=12, replays=5)) == 1


def test_loops_that_write_at_positions(check: Check) -> None:
    def learn(q: Any, states: Any, actions: Any, rewards: Any) -> Any:
        for t in range(len(states) - 1):
            s, a = states[t], actions[t]
            q[s, a] += 0.5 * (rewards[t] + 0.9 * q[states[t + 1]].max() - q[s, a])
        return q.sum(axis=0)

    def make(i: int) -> Any:
        rng = np.random.default_rng(i)
        return rng.random((40, 12)), rng.integers(-40, 40, 31), rng.integers(0, 12, 30), rng.random(30)

    assert paths_of(check(learn, make)) == 1


def test_loops_over_numbers_of_the_host(check: Check) -> None:
    def worlds() -> Any:
        history = History(64)

        def make(i: int) -> Any:
            if i == 7:
                history.n = 3
            return history, np.arange(4.0) + i

        return make

    def several(history: Any, x: Any) -> Any:
        for k in range(7):
            history.note(np.sin(x * k) + history.log[history.n - 1])
            x[k % 4 - 2] += history.log[history.n - 1 : history.n + 1].sum()
        return history.log[history.n - 3 : history.n].copy()

    check(several, worlds=worlds, calls=12)


def test_a_raise_half_way_leaves_nothing(check: Check) -> None:
    def twice(a: Any, i: int, j: int) -> None:
        a[i] = 1.0
        a[j] = 2.0

    def make(k: int) -> Any:
        return table(k), k % 4, 4 if k == 8 else (k + 1) % 4

    check(twice, make, calls=10, replays=3)
