"""Several devices of one machine, played by XLA's virtual devices of the CPU: results are one device's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import jax
import pytest

from accel.backend import shards
from accel.platform import config
from tests.conftest import ROOT
from tests.xla_options import quick_flags

PROGRAM = """
import json, sys, threading, warnings
import numpy as np
import accel
from accel.platform import config
from accel.dispatch.comparing import policy
from accel.policy import speed
from accel.platform.ledger import open_ledger

speed.SPEED_SAMPLES, speed.MAX_LOSS_S = 10**9, float("inf")
policy.Comparisons.is_due = lambda *_: False
warnings.simplefilter("ignore")


class Model:
    def __init__(self, rows=64, columns=48):
        random = np.random.default_rng(0)
        self.u, self.q = random.normal(size=(rows, columns)), random.random((rows, columns))
        self.lat = np.linspace(-1.2, 1.2, rows)[:, None] * np.ones((1, columns))
        self.mask = self.q > 0.3
        self.t = 0.0

    def step(self, forcing, dt):
        self.t += dt
        x = self.u
        for _ in range(3):  # halos: rows from the neighbours, and around the poles
            x = x + 0.1 * (np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) - 3 * x) * np.cos(self.lat)
        x[0], x[-1] = x[1].mean(), x[-2].mean()
        y = x.copy()
        for i in range(1, len(y)):  # a recurrence over rows
            y[i] = 0.5 * y[i - 1] + y[i] * 0.5
        self.q[self.mask] += 0.01 * forcing[self.mask]
        if x.max() > 1e3:
            x = x * 0.5
        self.u = np.where(forcing > 0.5, x, y)
        flux = np.diff(x, axis=0, prepend=0.0)
        nan = x.copy()
        nan[3, 4] = np.nan
        return (
            self.u.mean(axis=1), float(self.u.sum()), np.cumsum(x, axis=0), flux, x.T @ y, np.sort(x, axis=0),
            nan.max(), nan.min(axis=0), np.nanmax(nan), int(np.argmax(x)), x[:, ::-1][5:9], np.median(x),
        )


def smooth(x):
    return x + 0.1 * (np.roll(x, 1, axis=0) - x) - 1e-3 * x.mean(axis=0)


def errors(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert type(one) is type(other)
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype and one.shape == other.shape
        assert np.array_equal(np.isnan(one), np.isnan(other))
        scale = np.nanmax(np.abs(other))
        yield float(np.nanmax(np.abs(one - other)) / scale) if scale else 0.0


def compare(rows, columns, name):
    mine, theirs, step = Model(rows, columns), Model(rows, columns), accel.accelerate(Model.step, name=name)
    worst = 0.0
    for i in range(9):
        forcing = np.random.default_rng(i).random((rows, columns))
        worst = max(worst, *errors(step(mine, forcing, 0.5), theirs.step(forcing, 0.5)))
    worst = max(worst, *errors((mine.u, mine.q), (theirs.u, theirs.q)))
    assert mine.t == theirs.t and mine.u.flags.writeable
    (program,) = open_ledger(name).describe()
    return worst, program["devices"], program["undivided"], open_ledger(name).compiled_calls
"""


def said(code: str, *, devices: str, virtual: int = 8, **environment: str) -> Any:
    """What a process with virtual devices prints, as JSON."""
    environ = {
        **os.environ,
        "XLA_FLAGS": quick_flags(virtual),
        "QD_JAX_AOT": "0",
        "QD_JAX_CACHE_DIR": "off",
        "QD_JAX_QUIET": "1",
        "QD_JAX_DEVICES": devices,
        **environment,
    }
    command = [sys.executable, "-c", PROGRAM + code]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


REFUSING = """
from accel.backend import compile
built = compile._built
def refusing(program, arguments, options):
    if arguments[0] and len(arguments[0][0].sharding.device_set) > 1:
        raise RuntimeError("UNIMPLEMENTED: no")
    return built(program, arguments, options)
compile._built = refusing
step, x = accel.accelerate(lambda x: smooth(x) * 2.0, name="refused"), np.random.default_rng(1).random((16, 9))
worst = max(float(np.abs(step(x) - smooth(x) * 2.0).max()) for _ in range(8))
(undivided,) = open_ledger("refused").describe()
compile._built = built
from accel.backend import divided
whole = divided._results
divided._results = lambda made, *given: [each + 1e-3 * bool(made.shards) for each in whole(made, *given)]
step = accel.accelerate(lambda x: smooth(x) * 3.0, name="wrong")
worst = max(worst, *(float(np.abs(step(x) - smooth(x) * 3.0).max()) for _ in range(8)))
(wrong,) = open_ledger("wrong").describe()
refused = wrong["undivided"], worst, undivided["devices"], undivided["undivided"], open_ledger("refused").compiled_calls
"""


def test_results_are_one_devices_and_what_cannot_be_divided_runs_on_one() -> None:
    code = """
@accel.accelerate(name="vector")
def vector(x):
    return np.sin(x) + x[::-1]

for i in range(6):
    assert np.allclose(vector(np.arange(9.0) + i), vector.__wrapped__(np.arange(9.0) + i), rtol=1e-12)
found = {str(rows): compare(rows, columns, f"step{rows}") for rows, columns in ((16, 40), (12, 48), (11, 13))}
(program,) = open_ledger("vector").describe()
report = accel.report(full=True)

# two threads, each with a program of its own
results = {}
def play(k):
    step = accel.accelerate(lambda x: smooth(x) + float(k), name=f"thread{k}")
    x = np.random.default_rng(k).random((16, 9))
    results[k] = max(float(np.abs(step(x) - smooth(x) - k).max()) for _ in range(40))
threads = [threading.Thread(target=play, args=(k,)) for k in range(2)]
[each.start() for each in threads], [each.join() for each in threads]
"""
    code += REFUSING + 'print(json.dumps([found, program["devices"], program["undivided"], report, results, refused]))'
    found, devices, undivided, report, results, refused = said(code, devices="all")
    for rows, number in (("16", 8), ("12", 8), ("11", 1)):
        worst, used, why, calls = found[rows]
        assert worst <= 1e-12 and used == number and calls > 3, (rows, found[rows])
        assert (why is None) is (number > 1)
    assert found["11"][2] == "neither 11 rows nor 13 columns can be divided among up to 8 devices"
    assert (devices, undivided) == (1, "it takes no array of two axes")
    assert "device: 8 x cpu" in report
    assert "note: vector runs on one device: it takes no array of two axes" in report
    assert set(results) == {"0", "1"} and max(results.values()) <= 1e-12
    assert refused.pop(0).startswith("XLA divides it wrongly: on made-up numbers its results differ by ")
    assert refused[1:3] == [1, "RuntimeError: UNIMPLEMENTED: no"] and refused[0] <= 1e-12 and refused[3] > 3


def test_in_float32_and_in_the_background(tmp_path: Any) -> None:
    code = """
from accel.backend.underway.pending import PendingProgram
from accel.backend.underway.queues import compile_in_background
from accel.dispatch.replay import Variant
from accel.compiler.lower import Known
from accel.record import record

x = np.random.default_rng(0).random((12, 5))
trace = record(smooth, (x,), {}, max_nodes=1000).trace
values, _ = trace.inputs.fetch((x,), {})
pending = compile_in_background(PendingProgram((trace, Known(), values)))
made = pending.result(100)
found, expected = Variant(trace, made).run(values).made[0], smooth(x)
print(json.dumps([len(made.shards.devices), pending.unkept, float(np.abs(found - expected).max())]))
"""
    given = {"QD_JAX_AOT": "1", "QD_JAX_PRECISION": "float32", "QD_JAX_CACHE_DIR": str(tmp_path / "cache")}
    devices, unkept, error = said(code, devices="2", virtual=2, **given)
    assert devices == 2 and 1e-9 < error < 1e-6
    assert "several devices" in unkept


def test_more_devices_than_there_are_is_an_error() -> None:
    code = (
        "try:\n    accel.accelerate(Model.step)\nexcept accel.SettingError as error:\n    print(json.dumps(str(error)))"
    )
    message = said(code, devices="9", virtual=2)
    assert message == "QD_JAX_DEVICES=9 cannot be used; expected: up to 2, or all"
    assert config.from_environment({"QD_JAX_DEVICES": "All"}).devices == "all"
    for text in ("0", "-1", "half"):
        with pytest.raises(config.SettingError, match="a whole number from 1, or all"):
            config.from_environment({"QD_JAX_DEVICES": text})


def test_the_axis_is_divided_that_most_devices_divide() -> None:
    devices = list(range(4))
    assert shards.division(devices, [(9,), (), (5,)]) == "it takes no array of two axes"
    assert shards.division(devices, [(0, 3)]) == "it takes no array of two axes"
    message = "neither 7 rows nor 5 columns can be divided among up to 4 devices"
    assert shards.division(devices, [(7, 5), (8, 4)]) == message
    axes = []
    for shapes in ([(8, 12)], [(2881, 5760)], [(9, 8), (4, 7), (3, 9, 8)]):
        divided = shards.division(jax.devices() * 4, shapes)
        assert isinstance(divided, shards.Shards)
        axes.append((divided.axis, divided.length, len(divided.devices)))
    assert axes == [(shards.ROWS, 8, 4), (shards.COLUMNS, 5760, 4), (shards.COLUMNS, 8, 4)]
