"""Loops by data: one program for any number of iterations where that is proved, and a path for each where it is not."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import accel
from accel.dispatch.target import Target
from accel.ir.loop import body_of
from accel.platform.ledger import open_ledger
from accel.rules.evaluation import evaluate
from tests.compiler.loops.runs import loops_of, traces_of
from tests.compiler.merge.runs import Merged, Replayed, State, assert_agrees, assert_same

pytestmark = pytest.mark.usefixtures("foreground")


def newton(x: Any, tol: float) -> Any:
    def f(z: Any) -> Any:
        return z**3 - 2.0 * z - 5.0

    while np.max(np.abs(f(x))) > tol:
        x = x - f(x) / (3.0 * x**2 - 2.0)
    return x


def conjugate_gradients(matrix: Any, b: Any, tol: float) -> Any:
    x = np.zeros_like(b)
    r = b - matrix @ x
    p = r.copy()
    rs = r @ r
    count = 0
    while np.sqrt(rs) > tol and count < 200:
        along = matrix @ p
        alpha = rs / (p @ along)
        x += alpha * p
        r -= alpha * along
        new = r @ r
        p = r + (new / rs) * p
        rs = new
        count += 1
    return x, count


def bisection(low: float, high: float, x: Any, tol: float) -> Any:
    def f(z: Any) -> Any:
        return float(np.sum(np.cos(z * x)))

    low, high = float(low), float(high)
    at_low = f(low)
    while high - low > tol:
        middle = 0.5 * (low + high)
        at_middle = f(middle)
        if at_low * at_middle <= 0.0:
            high = middle
        else:
            low, at_low = middle, at_middle
    return 0.5 * (low + high)


def adaptive(y: Any, end: Any, tol: float) -> Any:
    """Heun's method with Euler's inside; a step whose error is too large is made again, smaller."""
    y, t, h = y.copy(), 0.0 * np.sum(y), 0.4 + 0.0 * np.sum(y)
    while t < end:
        slope = -y * y + np.sin(y)
        euler = y + h * slope
        heun = y + 0.5 * h * (slope - euler * euler + np.sin(euler))
        error = np.max(np.abs(heun - euler))
        if error < tol:
            t, y = t + h, heun
        h = h * np.minimum(2.0, np.maximum(0.3, 0.9 * np.sqrt(tol / (error + 1e-30))))
    return y


def jacobi(u: Any, f: Any, tol: float) -> Any:
    u, new = u.copy(), u.copy()
    for k in range(500):  # noqa: B007
        new[1:-1] = 0.5 * (u[:-2] + u[2:] - f[1:-1])
        change = np.max(np.abs(new - u))
        u, new = new, u
        if change < tol:
            break
    return u, k


def power_iteration(matrix: Any, tol: float) -> Any:
    v = np.ones(len(matrix))
    value, before = 1.0, 0.0
    while abs(value - before) > tol:
        w = matrix @ v
        before, value = value, float(np.sqrt(w @ w))
        v = w / value
    return value, v


def in_loops(x: Any, tol: float) -> Any:
    while np.max(x) > tol:
        y = x
        while np.sum(y) > 1.0:
            y = y * 0.7
        x = x - 0.3 * y
    return x


def in_place(o: Any, tol: float) -> Any:
    while np.max(np.abs(o.u)) > tol:
        o.u = o.u * 0.5 + 0.001 * o.v
        o.w[1:] += o.u[:-1]
    return o.u.sum()


def _spd(seed: int, size: int = 6) -> Any:
    matrix = np.random.default_rng(seed).random((size, size))
    return matrix @ matrix.T + size * np.eye(size)


def _state(seed: int) -> State:
    generator = np.random.default_rng(seed)
    return State(u=10.0 * generator.random(5), v=generator.random(5), w=np.zeros(5))


PROGRAMS: list[tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]] = [
    (newton, lambda k: (np.linspace(2.0, 3.0 + k, 5), 10.0 ** -(2.0 + k))),
    (conjugate_gradients, lambda k: (_spd(k), np.arange(6.0) + k, 10.0 ** -(1.0 + k))),
    (bisection, lambda k: (0.0, 3.0, np.ones(4) * (1.1 + 0.01 * k), 10.0 ** -(5.0 + k))),
    (adaptive, lambda k: (np.linspace(1.0, 2.0 + 0.1 * k, 4), 3.0 + k, 1e-3)),
    (jacobi, lambda k: (np.arange(7.0) ** 2, np.ones(7), 10.0 ** -(1.0 + k))),
    (power_iteration, lambda k: (_spd(k), 10.0 ** -(2.0 + k))),
    (in_loops, lambda k: (np.arange(6.0) + k, 0.3 / (k + 1))),
    (in_place, lambda k: (_state(k), 0.5 / (k + 1))),
]


@pytest.mark.parametrize(("function", "call"), PROGRAMS, ids=[function.__name__ for function, _ in PROGRAMS])
def test_one_program_answers_calls_of_many_numbers_of_rounds(
    function: Callable[..., Any], call: Callable[[int], tuple[Any, ...]]
) -> None:
    (trace,) = traces_of(function, [call(3)])
    assert loops_of(trace) >= 1
    program = Replayed(trace)
    taken = 0
    for k in range(7):
        mine, theirs = call(k), call(k)
        is_taken, result = program.run(mine)
        if is_taken:
            taken += 1
            assert_same(result, function(*theirs))
            assert_same(mine, theirs)
    assert taken >= 5


@pytest.mark.parametrize("function", [function for function, _ in PROGRAMS[:2]])
def test_the_number_of_rounds_that_was_recorded_does_not_show(function: Callable[..., Any]) -> None:
    from accel.backend.job import key_of_path

    call = next(call for each, call in PROGRAMS if each is function)
    keys = {key_of_path(trace) for trace in traces_of(function, [call(k) for k in (2, 3, 4, 5)])}
    assert len(keys) == 1


@pytest.mark.parametrize(("function", "call"), PROGRAMS, ids=[function.__name__ for function, _ in PROGRAMS])
def test_numpy_computes_the_same_rounds(function: Callable[..., Any], call: Callable[[int], tuple[Any, ...]]) -> None:
    """As comparisons do, to judge a difference."""
    (trace,) = traces_of(function, [call(3)])
    values, _ = trace.inputs.fetch(call(3), {})
    known: dict[int, Any] = {}
    for node in trace.tape.nodes:
        known[node.index] = (
            values[node.args[0]] if node.is_input else evaluate(node, lambda operand: known[operand.index])
        )
    for outcome in trace.tape.outcomes:
        assert known[outcome.node.index] == outcome.expected


def capped(u: Any, f: Any, tol: float) -> Any:
    """At most eight iterations, with a statement behind the condition; some have another branch."""
    u = u.copy()
    for k in range(8):  # noqa: B007
        before = u.copy()
        u[1:-1] = 0.5 * (before[:-2] + before[2:] - f[1:-1])
        if u[1] > 4.0:
            u *= 0.9
        change = np.max(np.abs(u - before))
        if change < tol:
            break
        u[0] += 0.25
    u -= u.mean()
    return u, k, change


ENDS = [(0.1, 0.0), (0.1, 0.3), (1.0, 0.0), (1.0, 0.4), (2.0, 0.0)]
CAPPED: list[tuple[Any, ...]] = [(np.arange(7.0) ** 2 * s, np.ones(7), tol) for s, tol in ENDS]


@pytest.mark.parametrize("at", range(len(CAPPED)))
def test_iterations_up_to_the_end_of_a_range_are_a_loop(at: int) -> None:
    """One path makes all iterations of the range, another one breaks: neither program takes the other's calls."""
    (trace,) = traces_of(capped, copy.deepcopy(CAPPED[at : at + 1]))
    assert loops_of(trace) == 1
    program = Replayed(trace)
    assert program.run(copy.deepcopy(CAPPED[at]))[0]
    assert assert_agrees(capped, program, copy.deepcopy(CAPPED)) < len(CAPPED)


def test_loops_that_break_and_loops_that_use_up_their_range_are_one_program() -> None:
    program = Merged(list(traces_of(capped, copy.deepcopy(CAPPED[:2]))))
    assert loops_of(program.trace) == 1
    assert assert_agrees(capped, program, copy.deepcopy(CAPPED)) == 4  # the last one has an iteration of another kind


def test_an_iteration_on_an_unrecorded_way_is_not_the_end_of_a_range() -> None:
    program = Replayed(next(traces_of(capped, copy.deepcopy(CAPPED[:1]))))
    assert program.run(copy.deepcopy(CAPPED[2]))[0]
    assert not program.run(copy.deepcopy(CAPPED[4]))[0]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_short_ranges(count: int, caplog: pytest.LogCaptureFixture) -> None:
    def short(x: Any, tol: float) -> Any:
        for _ in range(count):
            x = x * 0.5
            if np.max(x) < tol:
                break
        return x

    calls = [(np.arange(4.0) + 1.0, tol) for tol in (0.0, 0.3, 0.6, 1.2, 4.0)]
    for trace in traces_of(short, calls):
        assert 0 < assert_agrees(short, Replayed(trace), copy.deepcopy(calls)) < len(calls)
    assert not [each for each in caplog.records if each.levelname == "WARNING"]


def inner_range(x: Any, tol: float) -> Any:
    while np.max(x) > 0.2:
        y = x
        for _ in range(5):
            y = y * 0.8
            if np.sum(y) < tol:
                break
        x = x * 0.7 - 0.01 * y
    return x


def test_a_range_inside_another_loop_comes_to_its_end() -> None:
    """Iterations whose inner range ends, and those that leave it by `break`."""
    (trace,) = traces_of(inner_range, [(np.full(6, 4.0), 0.1)])
    assert loops_of(trace) == 2
    calls = [(np.full(6, 4.0 + k), tol) for k in range(4) for tol in (0.1, 3.0)]
    assert assert_agrees(inner_range, Replayed(trace), copy.deepcopy(calls)) >= 4


def test_a_body_survives_pickling() -> None:
    (trace,) = traces_of(in_loops, [(np.arange(6.0), 0.1)])
    bodies = [body for node in trace.tape.nodes if (body := body_of(node)) is not None]
    assert bodies
    assert pickle.loads(pickle.dumps(bodies)) == bodies


# -- what is no proof -------------------------------------------------------------------------------------------------


def fifth_round(x: Any) -> Any:
    n = 0
    tests = []
    while np.max(x) > 0.1:
        x = x * 0.5
        n += 1
        tests.append(n == 5)
        if tests[-1]:
            x = x + 100.0
    return x


def flag_in_the_third(x: Any) -> Any:
    seen: list[int] = []
    while np.max(x) > 0.1:
        x = x * 0.5
        seen.append(1)
        if len(seen) == 4:
            x = x + 1.0
    return x


def a_name_of_the_last_round(x: Any) -> Any:
    kept = []
    while np.max(x) > 0.1:
        kept.append(x)
        x = x * 0.5
    return kept[-1] if kept else x


def over_a_list(x: Any) -> Any:
    for factor in [0.9, 0.8, 0.7, 0.6, 0.5, 3.0, 0.1]:
        x = x * factor
        if np.max(x) < 0.1:
            break
    return x


def zeros_that_take_turns_with_others(x: Any, y: Any) -> Any:
    z, w = x * 1.0, np.zeros(3)
    e = 0.1 * np.sum(y)
    while e > 0.01:
        w, z = z, w
        w = w + x
        if x[0] < 0.3:  # true of the zeros, whatever the arguments are
            x, z = z, 0.5 * x
        e = e * 0.6
    return x, z, w


def all_of_several(x: Any, y: Any) -> Any:
    while all([np.max(x) > 0.1, np.max(y) > 0.1]):
        x, y = x * 0.5, y * 0.4
    return x, y


def which_memory(x: Any) -> Any:
    y = x
    while np.max(y) > 0.1:
        if np.sum(y) > 3.0:
            y = y * 0.5
        else:
            y *= 0.5
    return y


def with_a_generator(x: Any) -> Any:
    while any(each > 0.1 for each in (np.max(x), np.min(x))):
        x = x * 0.5
    return x


def an_error_in_a_later_round(x: Any) -> Any:
    while np.max(x) > 0.01:
        x = x * 0.5
        y = 1.0 / float(np.max(x) - 0.0625)
    return x + y


def returns_from_within(x: Any) -> Any:
    while np.max(x) > 0.1:
        x = x * 0.5
        if np.sum(x) > 40.0:
            return -x
    else:
        x = x + 1.0
    return x


def the_caller_has_it_too(x: Any) -> Any:
    def inner(y: Any) -> Any:
        while np.max(y) > 0.1:
            if np.sum(y) < 2.0:
                y = y * 0.5
            else:
                y = y * 0.7
        return y

    first = x * 1.0
    second = inner(first)
    second += 1.0
    return first, second


def depends_on_the_round_before(x: Any, y: Any) -> Any:
    z = y
    while np.max(x) > 0.01:
        w = z
        z = x
        x = 0.5 * x + 0.01 * w
    return x, z


def globals_count(x: Any) -> Any:
    global ROUNDS
    while np.max(x) > 0.1:
        x = x * 0.5
        ROUNDS += 1
        if ROUNDS % 4 == 0:
            x = x * 0.9
    return x


def a_number_that_is_counted_is_plain_after_all(x: Any) -> Any:
    n, t = 0, 0.0
    while np.max(x) > 0.1:
        n += 1
        t += 0.1
        x = x * 0.5
    return [0] * n, [*{n: x}], range(n), f"{n} {t}", n, t


def a_search(x: Any) -> Any:
    x = np.sort(x)[::-1]
    i = 0
    while x[i] > 0.5:
        i += 1
    return i, x[i:]


def ranges_in_ranges(x: Any) -> Any:
    for k in range(10):
        for j in range(20):  # noqa: B007
            x = x * 0.9
            if np.max(x) < 0.5 / (k + 1):
                break
        if np.max(x) < 0.05:
            break
    return x, k, j


class Point:
    def __init__(self, u: Any) -> None:
        self.u = u


def another_object_in_each_round(x: Any) -> Any:
    point = Point(x * 1.0)
    first = point
    while np.max(point.u) > 0.1:
        point = Point(point.u * 0.5)
    first.u = first.u + 1.0
    return point.u, first.u


def memory_with_two_names(x: Any) -> Any:
    point = Point(x * 1.0)
    first = point.u
    while np.max(point.u) > 0.1:
        point.u *= 0.5
    return point.u, first


def a_list_whose_elements_change_places(x: Any) -> Any:
    pair = [x * 1.0, x * 2.0]
    while np.max(pair[0]) > 0.1:
        pair[0], pair[1] = pair[1] * 0.4, pair[0] * 0.6
    return pair


def views_that_move(x: Any) -> Any:
    y = x[1:]
    x = x.copy()
    z = x[1:]
    while np.max(z) > 0.1:
        x[:-1] = z * 0.5
        z = x[1:] * 0.9 if np.sum(z) > 3.0 else x[1:]
        x[-1] *= 0.5
    return x, z, y


def nothing_before_the_first_round(x: Any) -> Any:
    before = None
    while before is None or np.max(np.abs(x - before)) > 1e-3:
        before = x
        x = 0.5 * x + 0.1
    return x, before


def an_error_after_too_many_iterations(x: Any) -> Any:
    error, n = np.inf, 0
    while error > 1e-4:
        y = np.cos(x)
        error = np.max(np.abs(y - x))
        x = y
        n += 1
        if n > 20:
            raise RuntimeError(f"no end after {n} iterations")
    return x, n, error


ROUNDS = 0

HOSTILE: list[Callable[..., Any]] = [
    fifth_round,
    flag_in_the_third,
    a_name_of_the_last_round,
    over_a_list,
    all_of_several,
    which_memory,
    with_a_generator,
    an_error_in_a_later_round,
    returns_from_within,
    the_caller_has_it_too,
    depends_on_the_round_before,
    globals_count,
    a_number_that_is_counted_is_plain_after_all,
    a_search,
    ranges_in_ranges,
    another_object_in_each_round,
    memory_with_two_names,
    a_list_whose_elements_change_places,
    views_that_move,
    nothing_before_the_first_round,
    an_error_after_too_many_iterations,
    zeros_that_take_turns_with_others,
]


def _outcome(function: Callable[..., Any], call: Sequence[Any]) -> Any:
    try:
        return function(*call)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("function", HOSTILE, ids=[function.__name__ for function in HOSTILE])
def test_python_state_that_changes_from_round_to_round_is_not_lost(function: Callable[..., Any]) -> None:
    global ROUNDS
    fast = accel.accelerate(function, name=function.__name__)
    arrays = function.__code__.co_argcount
    generator = np.random.default_rng(3)
    calls = [
        tuple(np.abs(generator.normal(size=3)) * 2.0 ** generator.integers(-3, 7) for _ in range(arrays))
        for _ in range(40)
    ]
    for call in calls:
        twin = copy.deepcopy(call)
        ROUNDS, before = 7, ROUNDS
        expected, after = _outcome(function, twin), ROUNDS
        ROUNDS = 7
        assert_same(_outcome(fast, call), expected)
        assert_same(call, twin)
        assert after == ROUNDS
        ROUNDS = before


# -- in dispatch ------------------------------------------------------------------------------------------------------


def _target(fast: Any) -> Target:
    target: Target = fast._self_target
    return target


def test_calls_of_all_numbers_of_rounds_are_compiled() -> None:
    fast = accel.accelerate(newton, name="newton")
    generator = np.random.default_rng(5)
    calls = [(np.abs(generator.normal(size=5)) * 10.0 ** generator.integers(0, 6) + 2.0, 1e-9) for _ in range(60)]
    for call in calls:
        assert_same(fast(*call), newton(*call))
    assert len(_target(fast).paths) <= 4
    recorded, discarded = _target(fast).recordings.count, open_ledger("newton").costs["discarded"]
    for call in calls[:20]:
        assert_same(fast(*call), newton(*call))
    assert _target(fast).recordings.count == recorded
    assert open_ledger("newton").costs["discarded"] == discarded


def test_a_loop_without_an_end_in_a_discarded_run_ends() -> None:
    def function(x: Any, y: Any) -> Any:
        if np.sum(x) > 0.0:
            while np.max(y) > 0.1:
                y = y * np.minimum(0.5, np.sum(x) * 1e9)
        return y

    (trace,) = traces_of(function, [(np.ones(3), np.ones(3) * 9.0)])
    assert loops_of(trace) == 1
    is_taken, _ = Replayed(trace).run((-np.ones(3), np.ones(3)))
    assert not is_taken
