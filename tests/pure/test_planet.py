"""Derivatives through many steps of planets, the bundled one and real ones, and the example that uses them."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT

pytest.importorskip("jax")

QUICK = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
"""Compiling takes most of the time."""

CHECKOUTS = [each for each in os.environ.get("QD_PYGCM_PATH", "").split(os.pathsep) if each]


def said(module: str, *arguments: str, timeout: float, **environment: str) -> dict[str, Any]:
    """The JSON in the last line that a module prints."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("QD_")}
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**inherited, **environment, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_planet_has_derivatives_and_is_fitted() -> None:
    pytest.importorskip("optax")
    found = said("tests.pure.planet", timeout=500, **QUICK)
    assert [steps for steps, _, _ in found["slopes"]] == [1, 1, 10, 10, 48, 48]
    for steps, slope, difference in found["slopes"]:
        np.testing.assert_allclose(slope, difference, rtol=1e-4, err_msg=str(steps))
    for value, wanted in found["values"]:
        np.testing.assert_allclose(value, wanted, rtol=1e-10)
    fitted, truth, first, last = found["fit"]
    assert abs(fitted - truth) < 0.15 * abs(0.9 * truth - truth)
    assert last < 0.05 * first
    before, after, first, last = found["recovery"]
    assert after < 0.5 * before
    assert last < 0.2 * first


@pytest.mark.skipif(not CHECKOUTS, reason="QD_PYGCM_PATH names no checkout")
@pytest.mark.parametrize("checkout", CHECKOUTS)
def test_real_models_have_derivatives(checkout: str) -> None:
    """Where central differences converge: those of two distances agree."""
    found = said("tests.pure.real_model", checkout, timeout=1200)
    assert "refused" not in found, found["refused"]
    for each in found["found"]:
        assert each["ok"]
        pairs = list(itertools.pairwise(each["differences"]))
        nearest = min(pairs, key=lambda pair: abs(pair[0] - pair[1]))
        if each["steps"] == 1 or abs(nearest[0] - nearest[1]) < 3e-5 * abs(nearest[1]):
            np.testing.assert_allclose(each["slope"], nearest[1], rtol=1e-4, err_msg=str(each))
