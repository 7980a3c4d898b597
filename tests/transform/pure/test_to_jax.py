"""`accel.to_jax`: leaves by where they live, state in and out, what is refused, and programs without accel."""

from __future__ import annotations

import copy
import importlib
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import accel
from accel.transform.pure import transforms
from tests.transform.ensembles.programs import TwoNames
from tests.transform.pure.functions import FIRST, Ocean, two_branches
from tests.xla_options import quick_flags

jax = pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def precise() -> Iterator[None]:
    with np.errstate(all="ignore"), jax.enable_x64(True):
        yield


def test_leaves_are_named_by_where_they_live() -> None:
    ocean = Ocean()
    pure = accel.to_jax(ocean.step, FIRST)
    assert set(pure.inputs) == {"forcing", "self.n", "self.h", "self.u", "self.params.k", "self.params.tau"}
    out = pure(pure.inputs)
    assert set(out["state"]) == {"self.n", "self.h", "self.u"}
    assert ocean.n == 0
    np.testing.assert_array_equal(ocean.h, np.ones(4))  # the example has left nothing behind
    returned = ocean.step(FIRST)
    np.testing.assert_allclose(out["result"], returned, rtol=1e-14)
    for name in ("n", "h", "u"):
        np.testing.assert_allclose(out["state"][f"self.{name}"], getattr(ocean, name), rtol=1e-14)


def test_steps_in_a_scan_are_steps_of_the_program() -> None:
    ocean, after = Ocean(), Ocean()
    after.n = 1
    pure = accel.to_jax(ocean.step, FIRST)
    # the other side of `self.n % 2 == 0` is known only once an example has taken it
    assert not bool(pure({"self.n": 1})["ok"])
    assert np.isnan(pure({"self.n": 1})["result"])

    def both(which: Any, forcing: Any) -> float:
        return float(which.step(forcing))

    pure = accel.to_jax(both, ocean, FIRST, examples=[(after, FIRST)])

    @jax.checkpoint
    def turn(carry: Any, _: Any) -> Any:
        out = pure(carry)
        return pure.next(carry, out), (out["result"], out["ok"])

    def run(k: Any) -> Any:
        carry, (sums, oks) = jax.lax.scan(turn, pure.next({"which.params.k": k}, {"state": {}}), None, length=6)
        return carry["which.u"].sum(), (sums, oks)

    (_, (sums, oks)), slope = jax.jit(jax.value_and_grad(run, has_aux=True))(0.3)
    assert bool(oks.all())
    np.testing.assert_allclose(sums, [ocean.step(FIRST) for _ in range(6)], rtol=1e-13)

    def at(k: float) -> float:
        model = Ocean()
        model.params.k = k
        return [model.step(FIRST) for _ in range(6)][-1]

    np.testing.assert_allclose(slope, (at(0.3 + 1e-5) - at(0.3 - 1e-5)) / 2e-5, rtol=1e-7)


def test_every_transform_of_jax() -> None:
    pure = accel.to_jax(two_branches, FIRST, 0.5, examples=[(-FIRST, 0.5)])

    def value(x: Any) -> Any:
        return pure({"x": x})["result"]

    slope = 0.5 * np.cos(FIRST)
    for way in (jax.grad(value), jax.jacfwd(value), jax.jacrev(value), jax.grad(jax.checkpoint(value))):
        np.testing.assert_allclose(jax.jit(way)(FIRST), slope, rtol=1e-13)
    np.testing.assert_allclose(jax.jvp(value, (FIRST,), (np.ones(4),))[1], slope.sum(), rtol=1e-13)
    np.testing.assert_allclose(jax.vjp(value, FIRST)[1](1.0)[0], slope, rtol=1e-13)
    np.testing.assert_allclose(jax.hessian(value)(FIRST), -0.5 * np.diag(np.sin(FIRST)), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(jax.vmap(value)(np.stack([FIRST, -FIRST])), [value(FIRST), value(-FIRST)], rtol=1e-13)


def test_each_combination_of_branches_needs_an_example() -> None:
    def branches(x: Any) -> Any:
        y = np.sin(x) if x[0] > 0 else np.cos(x)
        y = y * 2.0 if x[1] > 0 else y + 1.0
        return y.sum() if x[2] > 0 else y.max()

    signs = [np.array([a, b, c]) for a in (-1.0, 1.0) for b in (-1.0, 1.0) for c in (-1.0, 1.0)]
    pure = accel.to_jax(branches, signs[0], examples=[(x,) for x in signs[1:-1]])
    for x in signs[:-1]:
        out = pure({"x": x})
        assert bool(out["ok"])
        np.testing.assert_allclose(out["result"], branches(x), rtol=1e-14)
    assert not bool(pure({"x": signs[-1]})["ok"])


def test_what_was_not_recorded_is_nan_and_so_is_its_gradient() -> None:
    pure = accel.to_jax(two_branches, FIRST, 0.5)
    out = pure({"x": -FIRST})
    assert not bool(out["ok"])
    assert np.isnan(out["result"])
    assert np.isnan(jax.grad(lambda x: pure({"x": x})["result"])(-FIRST)).all()
    from jax.experimental import checkify

    error, _ = checkify.checkify(pure.checked)({"x": -FIRST})
    assert "not recorded" in str(error.get())
    error, _ = checkify.checkify(pure.checked)({"x": FIRST})
    assert error.get() is None


def test_wrt_leaves_constants() -> None:
    model = SimpleNamespace(k=2.0, field=np.arange(3.0))

    def total(x: Any, model: Any) -> Any:
        return (x * model.field * model.k).sum()

    assert set(accel.to_jax(total, FIRST[:3], model, wrt="model").inputs) == {"model.k", "model.field"}
    assert set(accel.to_jax(total, FIRST[:3], model, wrt=(0, "model.k")).inputs) == {"x", "model.k"}
    with pytest.raises(KeyError, match=r"reads no array or number 'modal'"):
        accel.to_jax(total, FIRST[:3], model, wrt="modal")
    pure = accel.to_jax(total, FIRST[:3], model)
    with pytest.raises(KeyError, match=r"has no leaf 'y'"):
        pure({"y": 1.0})
    with pytest.raises(TypeError, match=r"x is float64\[3\] in the example, not float64\[4\]"):
        pure({"x": FIRST})
    found = accel.grad(total, ("model", 0))(FIRST[:3], model)
    assert set(found[0]) == {"model.k", "model.field"}
    np.testing.assert_allclose(found[1], 2.0 * np.arange(3.0))


def test_precision_is_asked_for() -> None:
    pure = accel.to_jax(two_branches, FIRST, 0.5)
    with jax.enable_x64(False), pytest.raises(RuntimeError, match="jax_enable_x64"):
        pure()


class _Flagged:
    def __init__(self) -> None:
        self.u, self.v, self.first, self.log = np.ones(3), np.ones(3), True, [0.0]
        self.w = self.v

    def flag(self, x: Any) -> Any:
        self.first = False
        return self.u * x if self.first else x

    def reads_flag(self, x: Any) -> Any:
        y = self.u * x if self.first else x
        self.first = False
        return y

    def appends(self, x: Any) -> None:
        self.log.append(float(x.sum()))

    def aliases(self, x: Any) -> None:
        self.v = self.u
        self.u += x

    def moves_on(self, x: Any) -> None:
        self.w, self.v = self.v, self.w + x

    def swaps(self, x: Any) -> None:
        self.u, self.v = self.v, self.u + x


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (_Flagged().reads_flag, "pure.static"),
        (_Flagged().appends, "pure.state"),
        (_Flagged().aliases, "pure.alias"),
        (_Flagged().moves_on, "pure.alias"),
        (lambda x: "text", "pure.result"),
        (lambda x: np.random.default_rng(1).normal() * x, "effect.random"),
        (lambda x: x.sum(), "pure.example"),
    ],
)
def test_what_has_no_pure_form_is_refused(function: Any, reason: str) -> None:
    examples = [(np.ones(4),)] if reason == "pure.example" else []
    with pytest.raises(accel.Refused, match=rf"has no pure form  \[{reason}\]"):
        accel.to_jax(function, np.ones(3), examples=examples)


def _many(rounds: Any, x: Any) -> Any:
    for _ in range(200):
        x = rounds(x)
    return x


def _three_ways(x: Any) -> Any:
    if x[0] > 1.0:
        return _many(np.sin, x)
    return _many(np.cos, x) if x[0] > 0.0 else _many(np.tanh, x)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: accel.to_jax(lambda: np.zeros(3)), "pure.inputs"),
        (lambda: accel.to_jax(lambda x, k: x * math.gcd(int(k), 10), FIRST, 4.0)(), "pure.host"),
        (lambda: accel.grad(lambda x: float(np.spacing(x).sum()))(FIRST), "pure.derivative"),
        (lambda: accel.to_jax(_three_ways, FIRST, examples=[(2 * FIRST,), (-FIRST,)]), "pure.paths"),
    ],
)
def test_what_jax_cannot_compute_is_refused(make: Any, reason: str) -> None:
    with pytest.raises(accel.Refused, match=rf"\[{reason}\]"):
        make()


def test_a_function_has_so_many_paths_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transforms, "MOST_PATHS", 1)
    reason = "pure.unrecorded"
    with pytest.raises(accel.Refused, match=rf"\[{reason}\]"):
        accel.vmap(lambda x: x + 1.0 if x > 0 else -x)(np.array([1.0, -1.0]))


def test_a_path_that_stores_a_constant_stores_it() -> None:
    class Kept:
        n = 2

    def step(kept: Any, x: Any) -> None:
        kept.n = int(x[0]) if x[0] > 0.0 else 0

    kept, below = Kept(), Kept()
    kept.n = below.n = 2
    for first, second in ((FIRST, -FIRST), (-FIRST, FIRST)):
        pure = accel.to_jax(step, kept, first, examples=[(below, second)])
        found = [int(pure({"x": x})["state"]["kept.n"]) for x in (FIRST, -FIRST)]
        assert found == [int(FIRST[0]), 0]
    assert int(accel.to_jax(step, kept, -FIRST)()["state"]["kept.n"]) == 0


def test_swapped_arrays_are_swapped() -> None:
    model = _Flagged()
    model.v = np.zeros(3)
    out = accel.to_jax(model.swaps, np.ones(3))()
    np.testing.assert_array_equal(out["state"]["self.u"], np.zeros(3))
    np.testing.assert_array_equal(out["state"]["self.v"], np.full(3, 2.0))


def test_what_the_function_raises_is_no_result() -> None:
    with pytest.raises(accel.Refused, match=r"ZeroDivisionError"):
        accel.to_jax(lambda x: 1.0 / 0 * x, FIRST)


_BASIN = """
import numpy as np


class Basin:
    def __init__(self):
        self.h, self.n, self.drag = np.array([0.5, 1.5, 1.0, 0.2]), 0, 0.3

    def step(self, rain):
        self.n += 1
        self.h += 0.1 * rain
        dry = self.h < 0.4
        self.h[dry] = 0.4
        if self.n % 2 == 0:
            self.h = self.h + self.drag * (np.roll(self.h, 1) - self.h)
        left = self.h.max()
        while left > 0.7:
            left = left * (1.0 - self.drag)
        return float(self.h.sum() + left)
"""
"""A model's source, which is deleted once the model is recorded."""

_ELSEWHERE = """
import importlib, sys

sys.path.insert(0, sys.argv[1])
for name in ("accel", "basin", "tests"):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        assert error.name == name, error
    else:
        sys.exit(f"{name} can be imported")

import jax, numpy as np
from jax import export

jax.config.update("jax_enable_x64", True)
step = export.deserialize(open("step", "rb").read())
first = dict(np.load("leaves.npz"))


def after_four(drag):
    leaves, total = {**first, "self.drag": drag}, 0.0
    for _ in range(4):
        out = step.call(leaves)
        leaves, total = {**leaves, **out["state"]}, total + out["result"]
        assert bool(out["ok"])
    return total


def total(drag):
    return step.call({**first, "self.drag": drag})["result"]


print(repr(float(after_four(0.3))), repr(float(jax.grad(total)(0.3))))
assert not {name.partition(".")[0] for name in sys.modules} & {"accel", "basin", "tests", "wrapt"}
"""


def _only_jax(folder: Path) -> Path:
    """A folder for Python's path that has jaxlib and what JAX imports, and nothing else."""
    folder.mkdir()
    for name in ("jax", "jaxlib", "ml_dtypes", "numpy", "opt_einsum", "scipy", "flatbuffers"):
        package = Path(str(importlib.import_module(name).__file__)).parent
        for each in (package, package.with_name(f"{name}.libs")):
            if each.exists():
                (folder / each.name).symlink_to(each)
    return folder


def test_an_exported_step_runs_where_neither_accel_nor_the_source_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, elsewhere = tmp_path / "source", tmp_path / "elsewhere"
    for folder in (source, elsewhere):
        folder.mkdir()
    (source / "basin.py").write_text(_BASIN)
    monkeypatch.syspath_prepend(str(source))
    Basin = importlib.import_module("basin").Basin
    rain, later = np.array([0.1, 2.0, 0.0, 0.3]), Basin()
    later.n = 1

    def step(self: Any, rain: Any) -> float:
        return float(self.step(rain))

    pure = accel.to_jax(step, Basin(), rain, examples=[(later, rain)])
    (elsewhere / "step").write_bytes(pure.export(vjp_order=1))
    np.savez(elsewhere / "leaves.npz", **pure.inputs)
    shutil.rmtree(source)
    sys.modules.pop("basin")
    only = _only_jax(tmp_path / "only")
    # isolated, and without the packages that are installed: accel may be one of them
    given = [sys.executable, "-I", "-S", "-c", _ELSEWHERE, str(only)]
    done = subprocess.run(given, capture_output=True, text=True, cwd=elsewhere, timeout=120)
    assert done.returncode == 0, done.stderr
    basin = Basin()
    wanted = sum(basin.step(rain) for _ in range(4))

    def first(drag: float) -> float:
        basin = Basin()
        basin.drag = drag
        return float(basin.step(rain))

    value, slope = map(float, done.stdout.split())
    np.testing.assert_allclose(value, wanted, rtol=1e-14)
    np.testing.assert_allclose(slope, (first(0.3 + 1e-5) - first(0.3 - 1e-5)) / 2e-5, rtol=1e-8)


_DIVIDED = """
import jax, numpy as np
import accel

jax.config.update("jax_enable_x64", True)


def warmed(field, rate):
    field = field + rate * (np.roll(field, 1, axis=0) - 2.0 * field + np.roll(field, -1, axis=0))
    return np.where(field > 1.0, 1.0 + np.log(np.maximum(field, 1.0)), field), (field**2).mean()


field = np.random.default_rng(0).normal(size=(16, 6))
pure = accel.to_jax(warmed, field, 0.1)
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("rows",))
rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rows"))
divided = jax.device_put(field, rows)


def mean(field):
    return pure({"field": field})["result"][1]


new, value = jax.jit(lambda field: pure({"field": field})["result"])(divided)
slope = jax.jit(jax.grad(mean))(divided)
expected, wanted = warmed(field, 0.1)
assert len(new.sharding.device_set) == len(slope.sharding.device_set) == 4
np.testing.assert_allclose(new, expected, rtol=1e-13, atol=1e-15)
np.testing.assert_allclose(value, wanted, rtol=1e-13)
np.testing.assert_allclose(slope, jax.grad(mean)(field), rtol=1e-12, atol=1e-15)
print("agree")
"""


def test_arrays_that_are_divided_among_devices(tmp_path: Path) -> None:
    environment = {**os.environ, "XLA_FLAGS": quick_flags(devices=4), "JAX_PLATFORMS": "cpu"}
    (tmp_path / "divided.py").write_text(_DIVIDED)
    given = [sys.executable, str(tmp_path / "divided.py")]
    done = subprocess.run(given, capture_output=True, text=True, env=environment, timeout=120)
    assert (done.returncode, done.stdout) == (0, "agree\n"), done.stderr


TOTAL = 0.0


def test_variables_outside_the_function_are_state_by_the_name_that_is_read() -> None:
    count = 0.0

    def step(x: Any) -> float:
        global TOTAL
        nonlocal count
        count += float(x.sum())
        TOTAL = TOTAL + count
        return TOTAL

    with jax.enable_x64(True):
        pure = accel.to_jax(step, np.ones(2))
        leaves, results = pure.inputs, []
        for _ in range(3):
            output = pure(leaves)
            results.append(float(output["result"]))
            leaves = pure.next(leaves, output)
    assert set(output["state"]) <= set(pure.inputs)
    assert results == [2.0, 6.0, 12.0]
    assert (count, TOTAL) == (0.0, 0.0)


@pytest.mark.parametrize("name", ["objects", "arrays"])
def test_what_paths_know_by_two_names_is_refused(name: str) -> None:
    examples = []
    model = TwoNames()
    for _ in range(2):
        examples.append((copy.deepcopy(model),))
        getattr(model, name)()
    with pytest.raises(accel.Refused, match=r"\[pure.alias\]"):
        accel.to_jax(getattr(TwoNames, name), *examples[0], examples=examples[1:])
