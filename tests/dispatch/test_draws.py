"""Draws through dispatch: discarded runs, paths that part by a draw, comparisons, several paths, later runs."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel
from accel.dispatch.paths.stages import Stage
from accel.dispatch.replay import Variant, draws
from accel.dispatch.target import Target
from accel.platform import config
from accel.platform.ledger import open_ledger
from accel.record.values.draws.generators import KINDS
from tests.processes import Start, assert_found_again, starter

pytestmark = pytest.mark.usefixtures("foreground")


def field(i: int) -> Any:
    return np.random.default_rng(1000 + i).normal(size=12)


def target_of(fast: Any) -> Target:
    target: Target = fast._self_target
    return target


def play(function: Any, fast: Any, calls: int, seed: int = 7, kind: Any = np.random.PCG64) -> None:
    """A chain of calls on both, each from what the one before gave: results and states must agree after every call."""
    mine, theirs = (np.random.Generator(kind(seed)) for _ in range(2))
    x = y = field(0)
    for i in range(calls):
        x, y = function(x, mine), fast(y, theirs)
        np.testing.assert_allclose(y, x, rtol=1e-9, err_msg=f"call {i}")
        states = [KINDS[np.random.Generator].state(rng) for rng in (mine, theirs)]
        assert str(states[0]) == str(states[1]), f"call {i}"


def metropolis(x: Any, rng: Any) -> Any:
    """Accept by a branch on the device; both sides draw the same."""
    proposal = x + rng.normal(0.0, 0.5, size=x.shape)
    change = 0.5 * ((proposal * proposal).sum() - (x * x).sum())
    if rng.random() < np.exp(-change):
        return proposal
    return x * 1.0


def downhill(x: Any, rng: Any) -> Any:
    """Only where it must be decided a number is drawn: the sides draw unequally."""
    proposal = x + rng.normal(0.0, 0.5, size=x.shape)
    change = 0.5 * ((proposal * proposal).sum() - (x * x).sum())
    if change <= 0.0 or rng.random() < np.exp(-change):
        return proposal
    return x * 1.0


def rarely(x: Any, rng: Any) -> Any:
    """What is drawn decides what else is drawn, before launch."""
    if rng.random() < 0.3:
        x = x + rng.standard_normal(12)
    elif rng.random() < 0.5:
        return np.tanh(x)
    return 0.9 * np.sin(x) + 0.1 * rng.random()


def cooled(x: Any, rng: Any) -> Any:
    """Between two draws a loop whose number of iterations the data decide, and what was drawn."""
    x = 20.0 * x + rng.normal(size=12)
    rounds = 0
    while np.abs(x).max() > 0.5:
        x = 0.9 * x
        rounds += 1
    return x + 0.1 * rng.normal(size=12) + 0.01 * rounds


def drawn_as_often_as_halved(x: Any, rng: Any) -> Any:
    """Numbers of events at rates that a loop has computed: they are drawn before any program runs."""
    x = np.abs(x)
    while x.max() > 1.2:
        x = 0.5 * x
    return np.abs(np.sin(x)) + rng.poisson(x)


@pytest.mark.usefixtures("unchecked")
def test_a_call_that_draws_has_loops_by_data() -> None:
    fast = accel.accelerate(cooled, name="cooled")
    play(cooled, fast, 40)
    assert len(target_of(fast).paths) == 1
    assert open_ledger("cooled").compiled_calls >= 30


@pytest.mark.usefixtures("unchecked")
def test_a_loop_that_decides_what_is_drawn_stays_as_it_was_recorded() -> None:
    fast = accel.accelerate(drawn_as_often_as_halved, name="halved")
    play(drawn_as_often_as_halved, fast, 60)
    assert open_ledger("halved").compiled_calls >= 30


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937])
@pytest.mark.parametrize("function", [metropolis, downhill, rarely])
def test_chains_of_300_calls(function: Any, kind: Any) -> None:
    fast = accel.accelerate(function, name=function.__name__)
    play(function, fast, 300, kind=kind)
    assert open_ledger(function.__name__).compiled_calls >= 200


@pytest.mark.usefixtures("unchecked")
def test_sides_that_draw_alike_have_one_program() -> None:
    fast = accel.accelerate(metropolis, name="one")
    play(metropolis, fast, 60)
    joint = target_of(fast).paths.joint
    assert joint is not None and {path.stage for path in joint.paths} == {Stage.COMPILED}
    discarded = open_ledger("one").costs["discarded"]
    play(metropolis, fast, 60, seed=8)
    assert open_ledger("one").costs["discarded"] == discarded


def otherwise(x: Any, rng: Any) -> Any:
    if x.sum() > 0.0:
        return 0.5 * x + rng.normal(size=12)
    return 0.5 * x + rng.laplace(size=12)


@pytest.mark.usefixtures("unchecked")
def test_sides_that_draw_unequally_stay_apart() -> None:
    fast = accel.accelerate(otherwise, name="apart")
    play(otherwise, fast, 80)
    assert target_of(fast).paths.joint is None and len(target_of(fast).paths) == 2
    assert open_ledger("apart").compiled_calls > 50


@pytest.mark.usefixtures("unchecked")
def test_those_that_draw_alike_have_one_program_beside_another() -> None:
    fast = accel.accelerate(downhill, name="beside")
    play(downhill, fast, 120)
    joint = target_of(fast).paths.joint
    assert joint is not None and len(joint.paths) == 2 and len(target_of(fast).paths) == 3


@pytest.mark.usefixtures("unchecked")
def test_a_draw_that_decides_a_branch_needs_no_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(x: Any, rng: Any) -> Any:
        return np.tanh(x) + rng.random(12) if rng.random() < 0.5 else np.sin(x)

    fast = accel.accelerate(work, name="decided")
    play(work, fast, 40)
    launched, launch = [], Variant._launch

    def counted(self: Any, values: Any) -> Any:
        launched.append(self)
        return launch(self, values)

    monkeypatch.setattr(Variant, "_launch", counted)
    play(work, fast, 40, seed=9)
    assert len(launched) == 40 and len(set(launched)) == 2


@pytest.mark.parametrize("function", [metropolis, downhill, rarely])
def test_every_call_compared(function: Any) -> None:
    fast = accel.accelerate(function, name="verified", mode="verify")
    play(function, fast, 60)
    ledger = open_ledger("verified")
    assert ledger.compiled_calls > 30 and "verify.mismatch" not in {refusal.reason for refusal in ledger.refusals}


def test_a_call_that_draws_more_than_was_recorded_is_found() -> None:
    """What accel believes to draw nothing, draws."""
    drawn = []

    def work(x: Any, rng: Any) -> Any:
        return x * rng.random()

    fast = accel.accelerate(work, name="more")
    rng = np.random.default_rng(0)
    for i in range(8):
        fast(field(i), rng)
    path = next(iter(target_of(fast).paths))
    path.compared_at = path.replays = 0
    target_of(fast).function = lambda x, rng: (drawn.append(rng.random()), x * drawn[-1], rng.random())[1]
    fast(field(9), rng)
    assert "the state of a Generator" in next(
        refusal.detail for refusal in open_ledger("more").refusals if refusal.reason == "verify.mismatch"
    )


@pytest.mark.usefixtures("unchecked")
def test_an_interrupt_while_drawing_puts_the_state_back() -> None:
    def work(x: Any, rng: Any) -> Any:
        return x * rng.random() + rng.normal(size=12)

    fast = accel.accelerate(work, name="interrupted")
    rng = np.random.default_rng(0)
    for i in range(8):
        fast(field(i), rng)
    variant = next(iter(target_of(fast).paths)).program.variant
    make, before = variant._draws._make, rng.bit_generator.state

    def interrupting(values: Any) -> None:
        assert make is not None
        make(values)
        signal.raise_signal(signal.SIGINT)

    variant._draws._make = interrupting
    with pytest.raises(KeyboardInterrupt):
        fast(field(9), rng)
    assert rng.bit_generator.state == before
    variant._draws._make = make
    np.testing.assert_allclose(fast(field(9), rng), work(field(9), _restored(before)), rtol=1e-12)


def _restored(state: Any) -> Any:
    rng = np.random.default_rng()
    rng.bit_generator.state = state
    return rng


@pytest.mark.usefixtures("unchecked")
def test_a_constant_that_changes_puts_the_state_back() -> None:
    class Model:
        def __init__(self) -> None:
            self.table = np.arange(12.0)

        def step(self, x: Any, rng: Any) -> Any:
            return x * 0.5 + np.sin(self.table) * rng.random() + rng.normal(size=12)

    plain, model = Model(), Model()
    fast = accel.accelerate(Model.step, name="constant")
    mine, theirs = np.random.default_rng(0), np.random.default_rng(0)
    for i in range(14):
        if i in (7, 11):
            plain.table, model.table = plain.table + 1.0, model.table + 1.0
        np.testing.assert_allclose(fast(model, field(i), theirs), plain.step(field(i), mine), rtol=1e-12)
        assert mine.bit_generator.state == theirs.bit_generator.state
    assert open_ledger("constant").compiled_calls >= 6


def test_putting_back_twice_is_putting_back_once() -> None:
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    drawn = draws.Drawn([rng])
    rng.random(3)
    drawn.put_back()
    assert rng.bit_generator.state == before and [each is rng for each in drawn.differ()] == [True]
    rng.random(3)
    drawn.put_back()
    assert not drawn.differ()


# -- later runs --------------------------------------------------------------------------------------------------------

CHAIN = """
import numpy as np
import accel
from accel.policy import speed
from accel.platform.ledger import open_ledger

speed.SPEED_SAMPLES, speed.MAX_LOSS_S = 10**9, float("inf")  # on so few numbers a program is no faster than NumPy


@accel.accelerate(name="chain")
def chain(x, rng):
    proposal = x + rng.normal(0.0, 0.5, size=x.shape)
    change = 0.5 * ((proposal * proposal).sum() - (x * x).sum())
    if rng.random() < np.exp(-change):
        return proposal + np.random.rand()
    return x * 1.0 - rng.{last}(np.cumsum(x), 1.0).mean()


def body():
    np.random.seed(1)
    rng, x = np.random.default_rng(7), np.linspace(0.0, 1.0, 12)
    for _ in range(60):
        x = chain(x, rng)
    assert open_ledger("chain").compiled_calls > 20
    return {{"x": x, "next": rng.random(3), "legacy": np.random.rand(3)}}
"""


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starts processes over one cache folder."""
    return starter(tmp_path / "cache")


def test_a_later_run_finds_the_program(start: Start) -> None:
    text = CHAIN.format(last="normal")
    assert_found_again(start(text), start(text))
    start(CHAIN.format(last="laplace"))


def test_paths_that_draw_otherwise_have_other_keys(tmp_path: Path) -> None:
    def one(x: Any, rng: Any) -> Any:
        return x + rng.normal(size=12)

    def other(x: Any, rng: Any) -> Any:
        return x + rng.laplace(size=12)

    keys = []
    with config.override(cache_dir=tmp_path):
        for function in (one, other):
            fast = accel.accelerate(function, name="keys")
            rng = np.random.default_rng(0)
            for i in range(5):
                fast(field(i), rng)
            keys.append(next(iter(target_of(fast).paths)).key)
    assert None not in keys and keys[0] != keys[1]


@pytest.mark.usefixtures("unchecked")
def test_paths_with_one_program_are_found_together(in_background: Path) -> None:
    for name in ("first", "second"):
        fast = accel.accelerate(metropolis, name=name)
        play(metropolis, fast, 80)
        joint = target_of(fast).paths.joint
        assert joint is not None and joint.found_on_disk is (name == "second")
        assert open_ledger(name).compiled_calls > 60
