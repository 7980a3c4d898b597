"""Constants that change now and then: the program goes on with the new ones, and is not compiled again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import accel
from accel.backend.underway.pending import PendingProgram
from accel.dispatch.compiling import Compiling
from accel.dispatch.paths import refolding
from accel.dispatch.paths.program import Program
from accel.platform import config
from accel.platform.ledger import open_ledger
from accel.policy import speed

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # where it is an error, calls stay on NumPy


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The operations of each program that was compiled. None is given up: it would have no constants to renew."""
    monkeypatch.setattr(speed.Speed, "evidence_of_slowness", lambda self: None)
    made: list[int] = []
    note = Compiling.note_compiled

    def counted(self: Compiling, program: Program) -> None:
        made.append(program.variant.executable.program.operations)
        note(self, program)

    monkeypatch.setattr(Compiling, "note_compiled", counted)
    return made


def at_once() -> Any:
    return config.override(ahead_of_time=False, cache_dir=None)


def weighted(model: Any, x: Any) -> Any:
    return np.exp(model.weights).cumsum() * x + model.weights[::-1]


def called(fast: Any, plain: Any, model: Any, times: int, seed: int = 0, size: int = 50) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(times):
        x = rng.standard_normal(size)
        np.testing.assert_allclose(fast(model, x), plain(model, x), rtol=1e-12, atol=1e-13)  # terms cancel


def test_what_follows_from_a_constant_is_computed_again(built: list[int]) -> None:
    model = SimpleNamespace(weights=np.linspace(0.0, 1.0, 50))
    fast = accel.accelerate(weighted)
    with at_once():
        called(fast, weighted, model, 12)
        model.weights[7] = 3.0  # in place
        called(fast, weighted, model, 72)
        model.weights = np.linspace(2.0, 1.0, 50)  # another array
        called(fast, weighted, model, 12)
    assert len(built) == 1


def test_a_constant_that_repeats_along_rows_may_change_to_any_other(built: list[int]) -> None:
    model = SimpleNamespace(weights=np.zeros((6, 8)))
    fast = accel.accelerate(weighted_field, name="weighted_field")
    with at_once():
        for weights in (np.repeat(np.arange(6.0), 8).reshape(6, 8), np.zeros((6, 8)), np.arange(48.0).reshape(6, 8)):
            model.weights = weights
            for seed in range(12):
                x = np.random.default_rng(seed).standard_normal((6, 8))
                np.testing.assert_allclose(fast(model, x), weighted_field(model, x), rtol=1e-12)
    assert len(built) == 1
    assert not open_ledger("weighted_field").refusals


def weighted_field(model: Any, x: Any) -> Any:
    return np.exp(model.weights) * x + np.roll(x, 1)


@pytest.fixture
def always_refolded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a constant changes, it stays one."""
    monkeypatch.setattr(refolding, "REFOLD_SHARE", 1e9)


def with_two(model: Any, x: Any) -> Any:
    return np.exp(model.weights).cumsum() * x + np.sqrt(model.other) * model.weights - model.other[::-1]


def changed_in_turns(fast: Any, model: Any) -> None:
    for round in range(6):
        name = ("weights", "other")[round % 2]
        setattr(model, name, np.random.default_rng(round).random(50))
        called(fast, with_two, model, 3, seed=round)


def test_constants_are_renewed_without_lowering_again(built: list[int], always_refolded: None) -> None:
    model = SimpleNamespace(weights=np.linspace(0.0, 1.0, 50), other=np.linspace(1.0, 2.0, 50))
    fast = accel.accelerate(with_two)
    with at_once():
        called(fast, with_two, model, 12)
        changed_in_turns(fast, model)
    assert len(built) == 1


def test_nor_is_a_program_lowered_that_another_process_has_compiled(
    in_background: Any, built: list[int], always_refolded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = SimpleNamespace(weights=np.linspace(0.0, 1.0, 50), other=np.linspace(1.0, 2.0, 50))
    called(accel.accelerate(with_two, name="earlier"), with_two, model, 30)
    monkeypatch.setattr("accel.backend.compile.lower", lambda *args, **kwargs: pytest.fail("it is lowered"))
    fast: Any = accel.accelerate(with_two, name="later")
    called(fast, with_two, model, 30)
    (path,) = fast._self_target.paths
    assert path.program.found_on_disk
    executable = path.program.variant.executable
    changed_in_turns(fast, model)
    renewed = path.program.variant.executable
    assert renewed is not executable and renewed.compiled is executable.compiled


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), min_size=1, max_size=6))
def test_whatever_changes_the_result_is_numpys(always_refolded: None, changes: list[tuple[str, int]]) -> None:
    """Constants that are written into the program, decide something, repeat themselves, or are just read."""
    model = SimpleNamespace(a=np.linspace(0.0, 1.0, 50), b=np.linspace(1.0, 2.0, 5), c=np.arange(50))
    kinds = [
        lambda size: np.linspace(0.0, 1.0, size),
        lambda size: np.zeros(size),
        lambda size: np.full(size, 2.0),
        lambda size: np.where(np.arange(size) % 2, 1.0, 3.0),
        lambda size: np.linspace(5.0, 1.0, size),
        lambda size: np.full(size, -0.0),
    ]
    fast = accel.accelerate(read_in_many_ways)
    with at_once():
        called(fast, read_in_many_ways, model, 8)
        for name, kind in changes:
            if name == "c":
                model.c = np.roll(model.c, kind + 1)
            else:
                setattr(model, name, kinds[kind](getattr(model, name).size))
            called(fast, read_in_many_ways, model, 3, seed=kind)


def read_in_many_ways(model: Any, x: Any) -> Any:
    y = np.cumsum(model.a) * x + model.b.sum() + model.a.max()
    for weight in range(3):
        y = y + np.exp(model.b[weight]) * x[model.c]
    return y + x[int(model.c[3])] * np.copysign(1.0, model.a)


def test_what_changes_often_becomes_an_input(built: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refolding, "REFOLD_SHARE", 0.0)
    model = SimpleNamespace(weights=np.linspace(0.0, 1.0, 50))
    fast = accel.accelerate(weighted)
    with at_once():
        for round in range(12):
            model.weights[round] += 1.0
            called(fast, weighted, model, 6, seed=round)
    assert len(built) == 2
    assert built[0] < built[1], "the second one computes what the first took for constant"


def test_an_array_of_another_shape_is_another_program(built: list[int]) -> None:
    model = SimpleNamespace(weights=np.linspace(0.0, 1.0, 50), scale=np.ones(30))

    def scaled(model: Any, x: Any) -> Any:
        return model.weights * x + model.scale.sum() * np.exp(model.scale).max()

    fast = accel.accelerate(scaled)
    with at_once():
        called(fast, scaled, model, 12)
        model.scale = np.ones(40)
        called(fast, scaled, model, 12)


def test_a_constant_that_decides_a_branch_takes_another_path() -> None:
    model = SimpleNamespace(weights=np.linspace(0.0, 1.0, 50))

    def branching(model: Any, x: Any) -> Any:
        return np.sin(x) * model.weights if model.weights.sum() > 10.0 else np.cos(x) - model.weights

    fast = accel.accelerate(branching)
    with at_once():
        called(fast, branching, model, 12)
        model.weights *= 0.1
        called(fast, branching, model, 12)
        model.weights *= 10.0
        called(fast, branching, model, 12)


def test_a_constant_that_says_where_to_read_is_no_argument() -> None:
    """Positions are part of the program: others are another program."""
    model = SimpleNamespace(rows=np.arange(20), table=np.linspace(0.0, 1.0, 50))

    def looked_up(model: Any, x: Any) -> Any:
        first = int(model.rows[3])
        return model.table[first : first + 10].sum() * x + x[model.rows].mean()

    fast = accel.accelerate(looked_up)
    with at_once():
        called(fast, looked_up, model, 12)
        model.rows[:] = model.rows[::-1].copy()
        called(fast, looked_up, model, 12)


def grown(model: Any, x: Any) -> Any:
    """A cache that is renewed once what it was made of has changed: the next call finds both as before."""
    if float(np.abs(model.leaves - model.seen).max()) > 0.1:
        model.canopy = np.exp(-model.leaves)
        model.seen = model.leaves.copy()
    return np.sin(x) * model.canopy + np.cos(x)


def canopy() -> Any:
    return SimpleNamespace(leaves=np.zeros(20_000), seen=np.zeros(20_000), canopy=np.ones(20_000))


@pytest.mark.usefixtures("books", "in_background")
def test_a_branch_that_constants_decide_otherwise_for_once_drops_no_program(
    built: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    fast: Any = accel.accelerate(grown, name="grown")
    model, plain = canopy(), canopy()
    rng = np.random.default_rng(0)
    stages = []
    for call in range(120):
        if call % 30 == 29:
            model.leaves = model.leaves + 1.0
            plain.leaves = plain.leaves + 1.0
        x = rng.standard_normal(20_000)
        np.testing.assert_allclose(fast(model, x), grown(plain, x), rtol=1e-12, atol=1e-13)
        assert vars(model).keys() == vars(plain).keys()
        np.testing.assert_allclose(model.canopy, plain.canopy, rtol=1e-12)
        stages.append(any(path.has_program for path in fast._self_target.paths.with_program))
    first = stages.index(True)
    assert all(stages[first:]), "there was a program at all times from the first on"
    assert len(fast._self_target.paths) == 2, "each side of the branch is one path"
    assert not open_ledger("grown").refusals


class Late:
    """Programs that are compiled, and are not said to be done before `released`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.released = True
        is_done = PendingProgram.done
        monkeypatch.setattr(PendingProgram, "done", lambda pending: self.released and is_done(pending))


@pytest.mark.usefixtures("books", "in_background", "unchecked")
def test_a_program_goes_on_while_the_one_that_succeeds_it_is_compiled(
    built: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "SPEED_SAMPLES", 10**9)
    monkeypatch.setattr(refolding, "REFOLD_SHARE", 0.0)
    monkeypatch.setattr(refolding.Refolds, "cost_more", lambda self, seconds: False)
    late = Late(monkeypatch)
    model = SimpleNamespace(weights=np.linspace(0.0, 1.0, 50))
    fast: Any = accel.accelerate(weighted, name="weighted")
    called(fast, weighted, model, 12)
    assert len(built) == 1
    ledger, late.released = open_ledger("weighted"), False
    before, waits = ledger.compiled_calls, 3 * refolding.REFOLD_AFTER
    for round in range(waits):
        model.weights[round] += 1.0
        called(fast, weighted, model, 1, seed=round)
    assert ledger.compiled_calls == before + waits and len(built) == 1
    (path,) = fast._self_target.paths
    assert path.program.pending is not None
    late.released = True
    for round in range(waits):
        model.weights[round] += 1.0
        called(fast, weighted, model, 2, seed=round)
    assert path.program.pending is None and len(built) == 2
    assert built[0] < built[1], "the second one computes what the first took for constant"
    assert ledger.compiled_calls == before + 3 * waits


@pytest.mark.usefixtures("books", "in_background", "unchecked")
def test_paths_that_share_a_program_share_the_new_constants(built: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SPEED_SAMPLES", 10**9)
    model = SimpleNamespace(weights=np.linspace(0.0, 1.0, 20_000))

    def parted(model: Any, x: Any) -> Any:
        y = np.exp(model.weights) * x
        if x.sum() > 0.0:
            y = np.sin(y) + 1.0
        return y * 2.0

    fast: Any = accel.accelerate(parted)
    called(fast, parted, model, 80, size=20_000)
    before = len(built)
    model.weights[7] = 3.0
    called(fast, parted, model, 40, size=20_000)
    assert len(built) == before
    paths = fast._self_target.paths
    assert paths.joint.refolded
    taken = [path.constants.values for path in (paths.joint.whole, *paths)]
    assert not any(np.may_share_memory(value, model.weights) for values in taken for value in values.values())
