"""Members divided among several devices of one machine, played by XLA's virtual devices of the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from accel.backend import devices
from accel.platform import config
from accel.transform.ensembles.division import devices_for
from tests.conftest import ROOT
from tests.xla_options import quick_flags

PROGRAM = """
import json, sys
import numpy as np
import accel
from accel.transform.ensembles import batch, paths
from tests.transform.ensembles.programs import Ocean

paths.WORTH = 0.0  # the program learns at once
chosen, taken = batch.devices_for, []
WIND = np.array([0.5, 0.1, 1.0])


def stir(state, member, rng):
    state["self.u"] += rng.normal(size=3)
    state["self.drag"] = 0.05 * member


def run(members, devices_for):
    batch.devices_for = devices_for
    ens = accel.ensemble(Ocean().step, WIND, members=members, perturb=stir)
    results = []
    for _ in range(9):
        ens.step()
        results.append(np.array(ens.result))
    state = {name: np.array(ens.state["self." + name]) for name in ("u", "h", "count", "speed", "drag")}
    return results, state, ens.alone


def counted(members):
    found = chosen(members)
    taken.append(len(found))
    return found


worst = {}
for members in (8, 12, 11):
    taken.clear()
    results, state, alone = run(members, counted)
    expected, expected_state, alone_too = run(members, lambda members: [])
    pairs = [*zip(results, expected), *((state[name], each) for name, each in expected_state.items())]
    assert all(one.shape == other.shape and one.dtype == other.dtype for one, other in pairs)
    assert alone == alone_too < 9 * members
    worst[members] = max(float(np.abs(one - other).max() / np.abs(other).max()) for one, other in pairs), max(taken)
print(json.dumps(worst))
"""


def test_members_on_eight_devices_are_those_of_one() -> None:
    pytest.importorskip("jax")
    environ = {
        **os.environ,
        "XLA_FLAGS": quick_flags(devices=8),
        "QD_JAX_CACHE_DIR": "off",
        "QD_JAX_QUIET": "1",
        "QD_JAX_DEVICES": "all",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environ, cwd=ROOT, timeout=200
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert {members: used for members, (_, used) in found.items()} == {"8": 8, "12": 6, "11": 0}
    assert max(error for error, _ in found.values()) < 1e-12


@pytest.mark.parametrize(("members", "used"), [(8, 4), (6, 3), (7, 0), (1, 0)])
def test_as_many_devices_as_divide_the_members(monkeypatch: pytest.MonkeyPatch, members: int, used: int) -> None:
    monkeypatch.setattr(devices, "all_devices", lambda chosen: [SimpleNamespace(process_index=0)] * 4)
    assert devices_for(members) == []  # nobody has asked for several
    with config.override(devices=4):
        assert len(devices_for(members)) == used
