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
from tests.xla_options import quick_flags

pytest.importorskip("jax")

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
    found = said("tests.transform.pure.planet", timeout=500, XLA_FLAGS=quick_flags())
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


def test_the_bundled_ocean_has_derivatives() -> None:
    _judge(
        said("tests.transform.pure.real_model", "miniature", "ocean.step", timeout=500, XLA_FLAGS=quick_flags()),
        ["ocean.step"],
    )


@pytest.mark.skipif(not CHECKOUTS, reason="QD_PYGCM_PATH names no checkout")
@pytest.mark.parametrize("checkout", CHECKOUTS)
def test_real_models_have_derivatives(checkout: str) -> None:
    _judge(said("tests.transform.pure.real_model", checkout, timeout=1200), ["time_step", "ocean.step"])


def _judge(found: dict[str, Any], names: list[str]) -> None:
    """Derivatives through one step are central differences; those through more, where differences converge: where those
    of two distances agree. For each step of a model's there is one such."""
    assert list(found) == names
    for name, each_count in found.items():
        assert not isinstance(each_count, str), each_count
        converged = [_agrees(each) for each in each_count]
        assert converged[0] and sum(converged) >= 2, (name, each_count)


def _agrees(found: dict[str, Any]) -> bool:
    """Whether differences converge. Fails where they do, to something else."""
    assert found["ok"]
    one, other = min(itertools.pairwise(found["differences"]), key=lambda pair: abs(pair[0] - pair[1]))
    if abs(one - other) >= 3e-5 * abs(other):
        return False
    np.testing.assert_allclose(found["slope"], other, rtol=1e-4, err_msg=str(found))
    return True
