"""Which numbers programs take for constant: none that they gain nothing by, so that a change of it costs no compile."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.compiler.lower import Known, lower
from accel.compiler.lower.arguments import ProgramArguments
from accel.compiler.lower.folding import Folding, foldable, not_worth_folding
from accel.compiler.lower.program import Fixed
from accel.ir.fingerprint import Indescribable
from accel.platform import config
from accel.platform.ledger import open_ledger
from accel.record import record


class World:
    def __init__(self) -> None:
        self.rate = 0.5
        self.weights = np.linspace(0.0, 1.0, 30)
        self.state = np.ones(30)
        self.width = 3


def left_open(program: Any) -> set[str]:
    """The names of the numbers that a program of the recording would take as inputs."""
    world = World()
    recorded = record(program, (world, np.linspace(1.0, 2.0, 30)), {}, max_nodes=1000)
    assert recorded.trace is not None, recorded.refusal
    trace = recorded.trace
    values, _ = trace.inputs.fetch((world, np.linspace(1.0, 2.0, 30)), {})
    weights = [slot for slot in trace.array_slots if "weights" in trace.inputs.name(slot)]
    known = Known({slot: values[slot] for slot in trace.scalar_slots}, {slot: values[slot] for slot in weights})
    return {trace.inputs.name(slot) for slot in not_worth_folding(trace, known, are_arrays_free=True)}


@pytest.mark.parametrize(
    ("program", "is_open"),
    [
        (lambda o, x: x * o.rate, True),
        (lambda o, x: x * math.exp(-o.rate * 2.0) + 1.0, True),
        (lambda o, x: np.where(x > o.rate, x, o.rate) + np.minimum(x, o.rate), True),
        (lambda o, x: x * o.weights * o.rate, True),
        (lambda o, x: x * (o.weights * o.rate), False),  # that product is computed once
        (lambda o, x: x * np.exp(o.weights**o.rate), False),
        (lambda o, x: x**o.rate, False),
        (lambda o, x: x * o.rate + np.full(30, o.rate), False),
        (lambda o, x: np.roll(x, o.width), False),
        (lambda o, x: x * o.width, False),  # integers are positions and sizes
    ],
)
def test_numbers_in_plain_arithmetic_with_what_changes_are_not_worth_folding(program: Any, is_open: bool) -> None:
    assert left_open(program) == ({"o.rate"} if is_open else set())


@pytest.mark.parametrize(
    ("program", "size", "is_open"),
    [
        (lambda w, x: x * w + 1.0, 600, True),
        (lambda w, x: np.where(x > w, x, w), 600, True),
        (lambda w, x: x * w + 1.0, 30, False),  # comparing it is as quick
        (lambda w, x: x * (w * 2.0), 600, False),
        (lambda w, x: x[1:] * w[1:], 600, False),
        (lambda w, x: x + w.sum(), 600, False),
    ],
)
def test_large_arrays_that_a_program_only_reads_are_handed_over(program: Any, size: int, is_open: bool) -> None:
    w, x = np.linspace(0.0, 1.0, size), np.linspace(1.0, 2.0, size)
    recorded = record(lambda x: program(w, x), (x,), {}, max_nodes=1000)
    assert recorded.trace is not None, recorded.refusal
    (slot,) = foldable(recorded.trace) & set(recorded.trace.array_slots)
    known = Known({}, {slot: w})
    assert not_worth_folding(recorded.trace, known, are_arrays_free=True) == ({slot} if is_open else set())
    assert not not_worth_folding(recorded.trace, known, are_arrays_free=False), "constants stay on a device"


class Tuned:
    def __init__(self) -> None:
        self.rate, self.bias, self.power = 0.5, 1.0, 2.0
        self.state = np.linspace(0.0, 1.0, 40)

    def step(self) -> Any:
        gain = math.sqrt(self.rate) if self.rate > 0.25 else self.rate
        # no more than 2, which does not overflow however often it is squared
        self.state = np.minimum(np.abs(self.state * gain + self.bias * np.cos(self.state)), 2.0) ** self.power
        return self.state.sum() * gain, gain


@given(st.lists(st.sampled_from(["rate", "bias", "power", ""]), min_size=12, max_size=12), st.randoms())
def test_what_changes_late_changes_in_the_program(changes: list[str], random: Any) -> None:
    plain, fast = Tuned(), Tuned()
    step = accel.accelerate(Tuned.step, name="tuned")
    with config.override(ahead_of_time=False, cache_dir=None):
        for name in (*[""] * 6, *changes):
            if name:
                value = random.uniform(0.3, 1.0)
                setattr(plain, name, value)
                setattr(fast, name, value)
            expected, (total, gain) = plain.step(), step(fast)
            assert (total, gain) == (pytest.approx(expected[0], rel=1e-9), expected[1])
            np.testing.assert_allclose(fast.state, plain.state, rtol=1e-9)


def test_a_number_that_changes_late_costs_no_compile(foreground: None) -> None:
    model = Tuned()
    step: Any = accel.accelerate(Tuned.step, name="tuned once")
    with config.override(ahead_of_time=False, cache_dir=None):
        for _ in range(6):
            step(model)
        book = open_ledger("tuned once")
        spent, calls = book.compile_s, book.compiled_calls
        assert calls > 0
        for rate in (0.6, 0.7, 0.7, 0.8):
            model.rate = model.bias = rate
            step(model)
        assert open_ledger("tuned once") is book  # which counts the last calls, too
        assert (book.compile_s, book.compiled_calls) == (spent, calls + 4)
        model.power = 1.5
        step(model)
        step(model)
        assert book.compile_s > spent, "an exponent is worth knowing"


@pytest.mark.parametrize(
    "program",
    [
        lambda x, n: x * (np.arange(30) ** n).sum(),
        lambda x, n: x * np.geomspace(n, 8 * n, 4).sum(),
        lambda x, n: np.choose(n, [x, 2 * x, 3 * x]),
        lambda x, n: x * np.ravel_multi_index((n, 1), (5, 4)),
    ],
)
def test_what_numpy_asks_of_numbers_can_be_asked_of_constants(program: Any, foreground: None) -> None:
    fast, x = accel.accelerate(program, name="constants"), np.linspace(0.0, 1.0, 30)
    for _ in range(8):
        np.testing.assert_allclose(fast(x, 2), program(x, 2), rtol=1e-12)
    assert open_ledger("constants").compiled_calls >= 3


@pytest.mark.parametrize(
    "named",
    [
        {"constant_values": 3.0},
        {"mode": "linear_ramp", "end_values": -2.0},
        {"mode": "mean", "stat_length": 2},
        {"mode": "reflect", "reflect_type": "odd"},
    ],
)
def test_constants_are_folded_with_all_arguments(named: dict[str, Any], foreground: None) -> None:
    """Also those that are in no signature: `np.pad` takes them as **kwargs."""

    def program(o: World, x: Any) -> Any:
        return np.pad(o.weights, 1, **named) * x

    name = f"a border by {named}"
    fast, world = accel.accelerate(program, name=name), World()
    for seed in range(6):
        x = np.arange(32.0) + seed
        np.testing.assert_array_equal(fast(world, x), program(world, x))
    assert open_ledger(name).compiled_calls
    assert not open_ledger(name).refusals


def test_constants_are_folded_without_what_only_the_lowering_is_given(foreground: None) -> None:
    places = np.arange(32) % 5

    def program(x: Any) -> Any:
        return np.bincount(places) * x

    fast = accel.accelerate(program, name="counts of a constant")
    for seed in range(6):
        x = np.arange(5.0) + seed
        np.testing.assert_array_equal(fast(x), program(x))
    assert open_ledger("counts of a constant").compiled_calls


def test_folding_a_number_that_is_returned_warns_no_second_time():
    def overflows(x: Any, big: float) -> Any:
        with np.errstate(all="ignore"):
            return x + 1.0, np.float64(big) * big

    args = np.arange(4.0), 1e300
    trace = record(overflows, args, {}, max_nodes=100).trace
    assert trace is not None
    values, _ = trace.inputs.fetch(args, {})
    (number,) = lower(trace, Known(dict(enumerate(values)))).numbers
    assert number == Fixed(np.inf)


def test_what_only_a_loops_table_holds_is_described_by_its_value() -> None:
    recorded: Any = record(lambda x, dt: x * float(dt), (np.ones(3), 2), {}, max_nodes=10)
    trace = recorded.trace
    number = next(node for node in trace.tape.nodes if node.host and not node.is_input)
    known = ProgramArguments(Folding(trace, Known(dict.fromkeys(trace.scalar_slots, 2))))
    assert known.described(number) == ("value", 2.0)
    with pytest.raises(Indescribable):
        ProgramArguments(Folding(trace, Known())).described(number)


def test_rows_of_constants_beside_a_row_that_changes(foreground: None) -> None:
    """A read that goes past the last write finds a constant that no operation of the program reads."""

    def work(world: World, x: Any) -> Any:
        rows = np.empty((2, 30))
        for place in range(2):
            rows[place] = np.exp(-place * world.weights)
            if place:
                rows[place] *= x
        return rows[0].copy() * x + rows[1]

    world = World()
    with config.override(ahead_of_time=False, cache_dir=None):
        fast = accel.accelerate(work, name="rows of constants")
        for i in range(12):
            x = np.linspace(1.0, 2.0 + i, 30)
            np.testing.assert_allclose(fast(world, x), work(world, x), rtol=1e-12)
    assert open_ledger("rows of constants").compiled_calls > 3
