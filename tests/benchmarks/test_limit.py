"""The step by hand against the miniature's own, branch by branch; its loops are plain Python where numba is missing."""

from __future__ import annotations

import copy
import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import harness, limit, limit_kernels, worlds
from benchmarks.harness import MINIATURE, REPOSITORY, BadInput
from benchmarks.limit_step import NAMES, State, Step

GRID = (13, 20)
LONG_STEP_S = 7200.0
"""With two sub-steps of the waves, and winds that carry parcels across the seam."""


@pytest.fixture(scope="module")
def planet():
    """The miniature on a small grid, whose modules are gone afterwards: other tests have a `pygcm` of their own."""
    before, path = set(sys.modules), list(sys.path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QD_USE_JAX", "0")
        yield worlds.build(MINIATURE, *GRID)
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if name.split(".")[0] in {"pygcm", "scripts"}:
            del sys.modules[name]


@pytest.fixture
def model(planet):
    """A planet of extremes: gales, ice that grows, melts and goes, water that freezes, air that rains."""
    rng = np.random.default_rng(7)
    model = copy.deepcopy(planet.atmosphere)
    model.u, model.v = (rng.uniform(-190.0, 190.0, GRID) for _ in range(2))
    model.T_s = rng.uniform(263.0, 279.0, GRID)
    model.h_ice = np.where(rng.random(GRID) < 0.5, rng.uniform(0.0, 0.05, GRID), 0.0)
    model.q *= rng.uniform(0.0, 3.0, GRID)
    model.cloud_cover = rng.uniform(-0.2, 1.2, GRID)
    return model


def step_both(planet, model, dt):
    """The model one step on, the state one step on, from the same start."""
    warmth, model.isr = limit.forcing(planet, 0.0)
    state = Step(model, dt)(State.of(model), warmth, planet.albedo, model.isr)
    model.time_step(warmth, dt, planet.albedo)
    return state


def largest_error(state, model):
    return max(harness.relative_error(getattr(state, name), getattr(model, name)) for name in NAMES)


@pytest.mark.parametrize("steps", [0, 5, 11, 23, 199])
@pytest.mark.parametrize("dt", [300.0, LONG_STEP_S])
def test_a_step_by_hand_is_the_miniatures(planet, model, steps, dt, capsys):
    model._step_counter = steps
    state = step_both(planet, model, dt)
    assert largest_error(state, model) < 1e-12
    assert state.steps == model._step_counter == steps + 1
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 * (steps == 199)
    assert len(set(said)) <= 1


def test_the_extremes_are_met(planet, model):
    """Else the test above would say little."""
    before = copy.deepcopy(model)
    step_both(planet, model, LONG_STEP_S)
    speed, sea = np.hypot(before.u, before.v), model.land_mask == 0
    assert np.any(speed > 150.0)
    assert np.any(sea & (before.h_ice == 0.0) & (model.h_ice > 0.0))
    assert np.any(sea & (before.h_ice > 0.0) & (model.h_ice == 0.0))
    assert np.any(sea & (before.h_ice > 0.0) & (model.h_ice > before.h_ice))
    assert np.any(model.P_cond > 0.0)
    assert np.any(model.E_flux == 0.0)


def test_diffusion_cleans_what_is_not_finite(planet, model):
    field = model.h.copy()
    field[0, 3], field[5, 0], field[6, 19], field[12, 4] = np.nan, np.nan, np.nan, np.nan
    step = Step(model, 300.0)
    with np.errstate(all="ignore"):
        expected = model._hyperdiffuse(field, model._k4_map(300.0, 0.004), 300.0)
    limit_kernels.diffuse(field, step._bands, limit_kernels.OPEN, field, 0.0)
    np.testing.assert_allclose(field, expected, rtol=1e-12)
    odd = np.array([np.nan, np.inf, -np.inf, -2.0])
    limit_kernels.clean_row(odd)
    np.testing.assert_array_equal(odd, np.nan_to_num([np.nan, np.inf, -np.inf, -2.0]))


# --- the command ------------------------------------------------------------------------------------------------------


def test_without_numba_it_says_so(monkeypatch):
    monkeypatch.setattr(limit.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match="needs numba, which is not installed: pip install numba"):
        limit.main([])


def test_nothing_is_timed_that_is_wrong(monkeypatch, capsys):
    class Wrong:
        def __init__(self, grid):
            pass

        def compare(self):
            return {"accel": 0.0, "limit": float("nan")}

    monkeypatch.setattr(limit.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(limit, "Ways", Wrong)
    monkeypatch.setattr(limit, "until_compiled", lambda ways: None)
    monkeypatch.delattr(limit, "measure")
    assert limit.main([]) == 1
    assert "limit by nan" in capsys.readouterr().out


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
def test_the_command(tmp_path):
    out = tmp_path / "limit.json"
    command = [sys.executable, "-m", "benchmarks.limit", "--quick", "--out", str(out)]  # on less accel gains nothing
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(out.read_text())
    assert max(found["errors"].values()) <= limit.TOLERANCE
    assert all(value > 0.0 for way in found["ms"].values() for value in way.values())
