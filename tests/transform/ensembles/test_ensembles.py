"""`accel.ensemble`: every member is what it would be alone, or the step is refused with a reason."""

from __future__ import annotations

import copy
import importlib.util
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import accel
from accel.platform import processors
from accel.transform.ensembles import batch, paths
from accel.transform.ensembles.division import number_of_groups
from tests.transform.ensembles.programs import (
    HELD,
    SHARED,
    Grows,
    Holding,
    Locked,
    Ocean,
    Rare,
    Refused,
    Stores,
    Swapping,
    TwoNames,
    Ways,
)

pytest.importorskip("jax")

WIND = np.array([0.5, 0.1, 1.0])


@pytest.fixture(params=["alone", "learning"])
def worth(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Members on unknown ways are stepped by NumPy for good, or the program learns at once. So are all members
    computed together, or two at a time, in as many threads as divide them."""
    monkeypatch.setattr(paths, "WORTH", {"alone": 1e9, "learning": 0.0}[request.param])
    if request.param == "learning":
        monkeypatch.setattr(batch, "TOGETHER", 6)
        monkeypatch.setattr(processors, "usable", lambda: 4)
    return str(request.param)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def stir(state: Any, member: int, rng: np.random.Generator) -> None:
    state["self.u"] += rng.normal(size=3)
    state["self.drag"] = 0.05 * member


def apart(model: Any, members: int, perturb: Callable[[Any, int], None]) -> list[Any]:
    """Copies of a model, each perturbed by itself."""
    found = [copy.deepcopy(model) for _ in range(members)]
    for member, each in enumerate(found):
        perturb(each, member)
    return found


def same(state: Any, models: list[Any], *names: str) -> None:
    for name in names:
        wanted = np.array([getattr(each, name) for each in models])
        found = state[f"self.{name}"]
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14, err_msg=name)


def stirred(model: Ocean, member: int) -> None:
    model.u += np.random.default_rng([0, member]).normal(size=3)
    model.drag = 0.05 * member


@pytest.mark.parametrize(
    ("members", "chunk", "groups"), [(8, 8, 1), (8, 2, 4), (6, 2, 3), (7, 2, 1), (1, 1, 1), (2, 1, 2)]
)
def test_groups_are_of_one_size(monkeypatch: pytest.MonkeyPatch, members: int, chunk: int, groups: int) -> None:
    monkeypatch.setattr(processors, "usable", lambda: 4)
    assert number_of_groups(members, chunk) == groups


def test_members_are_what_they_are_alone(worth: str) -> None:
    ocean = Ocean()
    models = apart(ocean, 6, stirred)
    ens = accel.ensemble(ocean.step, WIND, members=6, perturb=stir)
    for _ in range(9):
        returned = [each.step(WIND) for each in models]
        ens.step()
        same(ens.state, models, "u", "h", "count", "speed", "drag")
        np.testing.assert_allclose(ens.result, returned, rtol=1e-12)
    assert ens.steps == 9
    assert 0 < ens.alone < 54
    if worth == "alone":
        assert ens.alone >= 18  # all of them, in every third step
    else:
        before = ens.alone
        ens.step(6)
        assert ens.alone == before
    assert (ocean.count, ocean.drag, ocean.u.tolist()) == (0, 0.1, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(ens.mean("self.u"), ens.state["self.u"].mean(0), rtol=1e-14)
    np.testing.assert_allclose(ens.spread("self.u"), ens.state["self.u"].std(0, ddof=1), rtol=1e-12)
    assert ens.spread("self.count") == 0.0
    assert ens.mean("wind").tolist() == WIND.tolist()


def test_a_way_without_a_program_does_not_keep_others_from_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members on ways that are learned go on together; those on the way that no program has with them do not."""
    monkeypatch.setattr(paths, "WORTH", 0.0)
    monkeypatch.setattr("accel.compiler.merge.trace.SMALL", 0)
    monkeypatch.setattr("accel.compiler.merge.trace.MOST_GROWTH", 1.2)

    def perturb(state: Any, member: int, rng: Any) -> None:
        state["self.kind"] = float(member)

    model = Ways()
    models = apart(model, 5, lambda each, member: setattr(each, "kind", float(member)))
    ens = accel.ensemble(model.step, members=5, perturb=perturb)
    counts = []
    for step in range(5):
        if step == 3:  # back among the others
            ens.state["self.kind"] = [0.0, 1.0, 3.0, 3.0, 1.0]
            for each, kind in zip(models, (0.0, 1.0, 3.0, 3.0, 1.0), strict=True):
                each.kind = kind
        before = ens.alone
        ens.step()
        counts.append(ens.alone - before)
        for each in models:
            each.step()
        same(ens.state, models, "u", "kind")
    assert counts == [3, 1, 1, 0, 0]


def test_a_member_is_written_back() -> None:
    ocean = Ocean()
    models = apart(ocean, 4, stirred)
    ens = accel.ensemble(ocean.step, WIND, members=4, perturb=stir)
    ens.step(4)
    for each in models:
        for _ in range(4):
            each.step(WIND)
    ens.write_back(2)
    assert type(ocean.count) is int
    assert vars(ocean).keys() == vars(models[2]).keys()
    for name, value in vars(models[2]).items():
        np.testing.assert_allclose(getattr(ocean, name), value, rtol=1e-12)
    ocean.step(WIND)  # the program's objects are its own again
    assert ens.state["self.count"].tolist() == [4, 4, 4, 4]
    with pytest.raises(IndexError, match="no member 4 among 4"):
        ens.write_back(4)


def test_state_is_read_and_set_by_name() -> None:
    ens = accel.ensemble(Ocean().step, WIND, members=3)
    assert set(ens.state) == {"self.count", "self.h", "self.u", "self.drag", "wind"}
    assert ens.state["self.drag"].tolist() == [0.1, 0.1, 0.1]
    ens.state["self.drag"] = [0.0, 0.1, 0.2]
    ens.state["wind"] = 2 * WIND
    ens.state["self.count"] = 2
    model = Ocean()
    model.drag, model.count = 0.2, 2
    returned = model.step(2 * WIND)
    ens.step()
    np.testing.assert_allclose(ens.state["self.u"][2], model.u, rtol=1e-13)
    np.testing.assert_allclose(ens.result[2], returned, rtol=1e-13)
    ens.state["self.u"][0] = np.nan  # a copy
    assert np.isfinite(ens.state["self.u"]).all()
    with pytest.raises(KeyError, match=r"has no state 'self\.v'"):
        ens.state["self.v"]
    with pytest.raises(TypeError, match=r"self\.u is float64\[3, 3\], not float64\[3, 4\]"):
        ens.state["self.u"] = np.ones((3, 4))
    with pytest.raises(TypeError, match=r"self\.count is int64"):
        ens.state["self.count"] = 0.5
    with pytest.raises(TypeError, match="loses no names"):
        del ens.state["self.u"]
    with pytest.raises(KeyError, match="there is no state 'u'"):
        accel.ensemble(Ocean().step, WIND, members=2, perturb=lambda state, member, rng: state["u"])
    with pytest.raises(ValueError, match="at least one member"):
        accel.ensemble(Ocean().step, WIND, members=0)


def test_state_in_tuples_dicts_and_objects_below(worth: str) -> None:
    def perturb(state: Any, member: int, rng: Any) -> None:
        state["self.pair[0]"] = 1.0 + member

    model = Swapping()
    models = apart(model, 4, lambda each, member: setattr(each, "pair", (1.0 + member, each.pair[1])))
    ens = accel.ensemble(model.step, members=4, perturb=perturb)
    for _ in range(4):
        returned = [each.step() for each in models]
        ens.step()
        np.testing.assert_allclose(ens.state["self.pair[0]"], [each.pair[0] for each in models], rtol=1e-13)
        np.testing.assert_allclose(ens.state["self.pair[1]"], [each.pair[1] for each in models], rtol=1e-13)
        np.testing.assert_allclose(ens.state["self.fields['b']"], [each.fields["b"] for each in models], rtol=1e-13)
        np.testing.assert_allclose(ens.state["self.below.k"], [each.below.k for each in models], rtol=1e-13)
        np.testing.assert_allclose(ens.result["x"], [each["x"] for each in returned], rtol=1e-13)
        assert ens.result["both"][1] is None  # an object of the program's: what it holds is in the state
    ens.write_back(1)
    assert type(model.pair) is tuple
    np.testing.assert_allclose(model.pair[1], models[1].pair[1], rtol=1e-13)
    np.testing.assert_array_equal(model.fields["b"], ens.state["self.fields['b']"][1])


def test_arrays_that_are_arguments_are_state() -> None:
    def relax(u: Any, dt: float, k: float = 1.0) -> Any:
        u -= dt * k * u
        return u.max()

    u = np.array([1.0, 2.0])

    def perturb(state: Any, member: int, rng: Any) -> None:
        state["u"] *= member
        state["dt"] = 0.1 * member

    ens = accel.ensemble(relax, u, 0.1, members=3, perturb=perturb)
    ens.step(3)
    np.testing.assert_allclose(ens.state["u"], [m * u * (1 - 0.1 * m) ** 3 for m in range(3)], rtol=1e-13)
    assert u.tolist() == [1.0, 2.0]
    ens.write_back(2)
    np.testing.assert_array_equal(u, ens.state["u"][2])
    with pytest.raises(accel.Refused, match=r"\[ensemble.place\]"):
        ens.state["relax's default 0"] = [1.0, 2.0, 3.0]


@pytest.mark.parametrize("name", ["rebinds", "writes", "shifts"])
def test_members_see_arrays_that_are_held_twice_as_the_program_does(name: str) -> None:
    def lift(model: Holding, member: int) -> None:
        if name == "writes":
            model.u += 0.5 * member
        else:
            model.u = model.u + 0.5 * member

    model = Holding()
    models = apart(model, 2, lift)
    ens = accel.ensemble(getattr(model, name), members=2, perturb=_lifted)
    for _ in range(4):
        for each in models:
            getattr(each, name)()
        ens.step()
        same(ens.state, models, "u")
    if name == "shifts":
        same(ens.state, models, "begin")


@pytest.mark.parametrize(("name", "reason"), [("both", "pure.alias"), ("overlaps", "alias.overlap")])
def test_what_would_be_another_array_for_each_member_is_refused(name: str, reason: str) -> None:
    with pytest.raises(accel.Refused, match=rf"\[{reason}\]"):
        accel.ensemble(getattr(Holding(), name), members=2, perturb=_lifted).step(4)


def _lifted(state: Any, member: int, rng: Any) -> None:
    state["self.u"] += 0.5 * member


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (Refused().draws, "effect.random"),
        (Refused().prints, "effect.print"),
        (Refused().flags, "pure.static"),
        (Refused().appends, "pure.state"),
        (Refused().changes_a_global, "ensemble.place"),
        (Refused().reads_past_itself, "ensemble.place"),
        (Refused().returns_text, "pure.result"),
        (Locked().step, "ensemble.copy"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_what_cannot_be_an_ensemble_is_refused(function: Any, reason: str) -> None:
    with pytest.raises(accel.Refused, match=rf"\[{reason}\]"):
        accel.ensemble(function, members=2)
    np.testing.assert_array_equal(SHARED["k"], np.ones(3))
    np.testing.assert_array_equal(HELD, np.ones(3))


@pytest.mark.parametrize(
    ("name", "reason"), [("objects", "pure.alias"), ("arrays", "pure.alias"), ("flags", "pure.static")]
)
def test_what_only_several_paths_together_show_is_refused(name: str, reason: str, worth: str) -> None:
    """Each path by itself is one of members: what another one holds by another name, or has stored, it does not see."""

    def perturb(state: Any, member: int, rng: Any) -> None:
        if name == "flags":
            state["self.u"] += member

    ens = accel.ensemble(getattr(TwoNames(), name), members=4, perturb=perturb)
    with pytest.raises(accel.Refused, match=rf"\[{reason}\]"):
        ens.step(4)
    assert ens.steps == (0 if name == "flags" else 1)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_constants_that_some_members_store_are_theirs(side: float, worth: str) -> None:
    """Whichever path is recorded first."""

    def perturb(state: Any, member: int, rng: Any) -> None:
        state["self.u"] *= (-1.0) ** member

    model = Stores(side)
    models = apart(model, 4, lambda each, member: setattr(each, "u", each.u * (-1.0) ** member))
    ens = accel.ensemble(model.step, members=4, perturb=perturb)
    for _ in range(4):
        ens.step()
        for each in models:
            each.step()
        same(ens.state, models, "u", "n", "h", "q")
    with pytest.raises(accel.Refused, match=r"\[pure.static\]"):
        accel.ensemble(model.step_to_none, members=4, perturb=perturb).step()


@pytest.mark.parametrize(
    ("name", "n"), [("remainder", 2**40), ("power", 70), ("shift", 62), ("largest", -(2**63)), ("compare", 2**53 + 1)]
)
def test_integers_of_members_do_not_wrap_around(name: str, n: int, worth: str) -> None:
    def perturb(state: Any, member: int, rng: Any) -> None:
        state["self.n"] = n if member else 5

    model = Grows()
    models = apart(model, 2, lambda each, member: setattr(each, "n", n if member else 5))
    ens = accel.ensemble(getattr(model, name), members=2, perturb=perturb)
    ens.step()
    for each in models:
        getattr(each, name)()
    same(ens.state, models, "q")


def _fast(state: Any, member: int, rng: Any) -> None:
    state["self.u"] += member


@pytest.mark.parametrize(
    ("name", "reason"),
    [("draws", "effect.random"), ("flags", "pure.static"), ("appends", "pure.state"), ("grows", "pure.result")]
    + [("makes", "pure.state")],
)
def test_what_only_one_member_does_is_refused_when_it_does_it(name: str, reason: str) -> None:
    ens = accel.ensemble(getattr(Rare(), name), members=3, perturb=_fast)
    ens.step(2)
    before = ens.state["self.u"]
    with pytest.raises(accel.Refused, match=rf"\[{reason}\]") as caught:
        ens.step()
    if name not in ("grows", "makes"):
        assert caught.value.__notes__ == ["in step 3 of member 2"]
        with pytest.raises(RuntimeError, match="the ensemble has ended with step 2"):
            ens.step()
    np.testing.assert_array_equal(ens.state["self.u"], before)
    assert ens.steps == 2


def test_a_members_own_exception_is_raised() -> None:
    ens = accel.ensemble(Rare().raises, members=3, perturb=_fast)
    ens.step(2)
    with pytest.raises((ArithmeticError, accel.Refused), match=r"too fast|ArithmeticError") as caught:
        ens.step()
    assert caught.value.__notes__ == ["in step 3 of member 2"]
    assert ens.state["self.u"][:, 0].tolist() == [3.0, 4.0, 5.0]


def test_text_is_shown_once_for_each_member(capsys: pytest.CaptureFixture[str], worth: str) -> None:
    ens = accel.ensemble(Rare().prints, members=3, perturb=_fast)
    ens.step(5)
    assert capsys.readouterr().out.split() == ["6.0", "6.0", "7.0", "6.0", "7.0", "8.0"]
    assert ens.state["self.u"][:, 0].tolist() == [6.0, 7.0, 8.0]


def test_a_wrong_program_is_found(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    ocean = Ocean()
    models = apart(ocean, 3, stirred)
    run = batch.Batch.run

    def wrong(self: Any, *given: Any) -> Any:
        found = run(self, *given)
        found.state["self.u"] = np.asarray(found.state["self.u"]) * (1.0 + 1e-6)
        return found

    monkeypatch.setattr(batch.Batch, "run", wrong)
    ens = accel.ensemble(ocean.step, WIND, members=3, perturb=stir)
    with caplog.at_level("WARNING", logger="accel"):
        for _ in range(3):
            ens.step()
            for each in models:
                each.step(WIND)
            same(ens.state, models, "u", "h", "count")
    assert "verify.mismatch" in caplog.text
    assert "self.u" in caplog.text


@dataclass(frozen=True)
class Weather:
    u: Any
    hours: float


class Frozen:
    def __init__(self) -> None:
        self.now = Weather(np.ones(3), 0.0)

    def step(self) -> None:
        self.now = Weather(self.now.u * 1.5, self.now.hours + 0.5)


def test_what_the_program_replaces_as_a_whole_is_replaced() -> None:
    model = Frozen()
    before = model.now
    ens = accel.ensemble(model.step, members=2)
    ens.state["self.now.hours"] = [1.0, 2.0]
    ens.step(2)
    ens.write_back(1)
    assert (model.now.hours, model.now.u.tolist()) == (3.0, [2.25, 2.25, 2.25])
    assert (before.hours, before.u.tolist()) == (0.0, [1.0, 1.0, 1.0])


GAIN = 2.0


def _amplify(u: Any) -> None:
    u *= GAIN * float(os.getenv("ACCEL_TEST_FACTOR", "1"))


def test_settings_and_global_names_that_change_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    ens = accel.ensemble(_amplify, np.array([1.0, 3.0]), members=2)
    ens.state["u"] = [[1.0, 3.0], [2.0, 6.0]]
    ens.step()
    monkeypatch.setitem(globals(), "GAIN", 0.5)
    ens.step()
    assert ens.state["u"].tolist() == [[1.0, 3.0], [2.0, 6.0]]
    monkeypatch.setenv("ACCEL_TEST_FACTOR", "10")
    ens.step()
    assert ens.state["u"].tolist() == [[5.0, 15.0], [10.0, 30.0]]


def test_an_accelerated_function_and_one_without_state() -> None:
    @accel.accelerate
    def half(u: Any, k: float) -> Any:
        return u * k if u[0] > 1.0 else u + k

    ens = accel.ensemble(half, np.array([1.0, 3.0]), 0.5, members=2)
    ens.state["u"] = [[1.0, 3.0], [2.0, 6.0]]
    ens.step(2)
    assert ens.result.tolist() == [[1.5, 3.5], [1.0, 3.0]]


def test_members_may_be_one_or_all_the_same() -> None:
    model = Ocean()
    for members in (1, 3):
        ens = accel.ensemble(model.step, WIND, members=members)
        ens.step(4)
        alone = copy.deepcopy(model)
        for _ in range(4):
            alone.step(WIND)
        same(ens.state, [alone] * members, "u", "h", "count", "speed")
        np.testing.assert_array_equal(ens.spread("self.u"), np.zeros(3))


def test_state_for_xarray() -> None:
    ens = accel.ensemble(Ocean().step, WIND, members=3, perturb=stir)
    ens.step()
    if importlib.util.find_spec("xarray") is None:
        with pytest.raises(ImportError):
            ens.to_xarray()
        return
    found = ens.to_xarray(dims={(3,): ("x",), "self.speed": ("place",)})
    assert found["self.u"].dims == ("member", "x")
    assert found["self.speed"].dims == ("member", "place")
    assert found["self.count"].dims == ("member",)
    assert found.attrs == {"steps": 1}
    np.testing.assert_array_equal(found["self.u"].sel(member=2), ens.state["self.u"][2])
    assert ens.to_xarray(names=["self.h"])["self.h"].dims == ("member", "self.h_0")
    with pytest.raises(ValueError, match=r"self\.u has 1 axes, not a, b"):
        ens.to_xarray(dims={"self.u": ("a", "b")})
