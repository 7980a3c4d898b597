"""Devices: which platform is there, and how JAX's client for the CPU is started."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from accel.backend import devices
from accel.platform import config

STARTED = """
import os, threading
from accel.platform import config
from accel.backend import devices
config.set_current(config.Settings(threads={threads}))
before = set(os.listdir("/proc/self/task"))
devices.start({largest})
import jax
jax.jit(lambda x: x + 1)(1.0).block_until_ready()
names = [open(f"/proc/self/task/{{each}}/comm").read().strip() for each in os.listdir("/proc/self/task")]
print(devices.threads(), sum(name.startswith("tf_XLAEigen") for name in names), os.environ.get("NPROC"))
"""


def started(threads: int | None, largest: int, **environment: str) -> list[str]:
    """What a fresh process says of its threads: asked for, those that share a program's work, NPROC afterwards."""
    environ = {**{name: value for name, value in os.environ.items() if name != "NPROC"}, **environment}
    code = STARTED.format(threads=threads, largest=largest)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=True)
    return done.stdout.split()


def test_a_platform_that_is_not_there_is_named_with_those_that_are() -> None:
    devices.check_platform(None)
    devices.check_platform("cpu")
    if "tpu" not in devices.platforms():
        with pytest.raises(config.SettingError) as caught:
            devices.check_platform("tpu")
        assert "tpu" in str(caught.value) and "cpu" in str(caught.value)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at the threads in /proc")
@pytest.mark.parametrize(
    ("threads", "largest", "asked"),
    [(None, devices.SMALL_ARRAY, "1"), (None, devices.SMALL_ARRAY + 1, "None"), (1, 10**9, "1"), (3, 1, "3")],
)
def test_small_programs_get_one_thread_and_large_ones_all(threads: int | None, largest: int, asked: str) -> None:
    found = started(threads, largest)
    assert found[0] == asked
    assert asked == "None" or found[1] == asked
    assert found[2] == "None", "the environment is as it was"


def test_the_users_own_number_of_threads_stands() -> None:
    assert started(None, 1, NPROC="2")[2] == "2"


# -- beside a program that uses JAX itself -----------------------------------------------------------------------------

BESIDE = """
import os, sys
import numpy as np
{before}
import accel
from accel.backend import devices
from accel.policy import speed
from accel.platform.ledger import open_ledger

speed.SPEED_SAMPLES, speed.MAX_LOSS_S = 10**9, float("inf")

@accel.accelerate(name="wave")
def wave(x):
    return np.sin(x) * 2.0

updates = []
def compile_it():
    import jax
    plain = jax.config.update
    jax.config.update = lambda name, value: (updates.append(name), plain(name, value))
    for i in range(8):
        wave(np.arange(1000.0) + i)
    jax.config.update = plain
    assert open_ledger("wave").compiled_calls
{after}
"""


def beside(before: str, after: str, **environment: str) -> str:
    """What a fresh process prints that compiles in the foreground."""
    environ = {**os.environ, "QD_JAX_AOT": "0", "QD_JAX_CACHE_DIR": "off", **environment}
    code = BESIDE.format(before=before, after=after)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("before", ["import jax", "import jax; jax.numpy.ones(3)"])
def test_a_program_that_uses_jax_keeps_its_settings(before: str) -> None:
    assert beside(before, "compile_it(); print(updates, devices._program_uses_jax)") == "[] True"


def test_jax_is_configured_afterwards_as_it_would_be_without_accel() -> None:
    told = "print(sorted((name, str(value)) for name, value in jax.config.values.items()))"
    usual = subprocess.run([sys.executable, "-c", f"import jax\n{told}"], capture_output=True, text=True, check=True)
    after = f"""
devices.import_jax()  # which itself sets variables
names = sorted(os.environ)
compile_it()
assert updates == ["jax_cpu_enable_async_dispatch"] * 2 and sorted(os.environ) == names
import jax
{told}
assert jax.numpy.ones(3).dtype == "float32"
"""
    assert beside("", after) == usual.stdout.strip()


def test_replays_wait_where_jax_runs_programs_in_another_thread() -> None:
    """Arguments may be changed right after a call, and results read."""
    after = """
@accel.accelerate(name="long")
def long(x, y):
    for _ in range(10):
        y = np.sin(y) + x
    x += 1.0
    return y, float(y.sum())

def once(i, function):
    x, y = np.arange(50_000.0) + i, np.full(50_000, 0.25 * i)
    result, total = function(x, y)
    found = result.copy(), total, x.copy()
    y[:] = -5.0
    x[:] = 7.0
    assert np.array_equal(result, found[0])
    return found

for i in range(24):
    for found, expected in zip(once(i, long), once(i, long.__wrapped__)):
        assert np.allclose(found, expected, rtol=1e-9)
assert open_ledger("long").compiled_calls > 12
print(jax.config.read("jax_cpu_enable_async_dispatch"), devices._program_uses_jax)
"""
    assert beside("import jax; jax.numpy.ones(3)", after) == "True True"


# -- settings that cannot be used --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "value", "possible"),
    [
        ("QD_JAX_PLATFORM", "tpu", "cpu"),
        ("QD_JAX_RTOL", "small", "a number"),
        ("QD_JAX_THREADS", "0", "a whole number"),
    ],
)
@pytest.mark.parametrize("chosen", ["accel.accelerate(lambda x: x)", "accel.install()", "accel.accelerate(name='f')"])
def test_a_wrong_setting_is_told_where_functions_are_chosen(
    variable: str, value: str, possible: str, chosen: str
) -> None:
    if value == "tpu" and "tpu" in devices.platforms():
        pytest.skip("there is one")
    code = f"""
import accel, sys
assert "jax" not in sys.modules
try:
    {chosen}
except accel.SettingError as error:
    print(error)
"""
    environ = {**os.environ, variable: value}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ)
    assert done.returncode == 0, done.stderr
    assert variable in done.stdout and repr(value) in done.stdout and possible in done.stdout


def test_a_platform_is_of_no_importance_where_nothing_is_compiled() -> None:
    code = "import accel, sys; accel.accelerate(lambda x: x); accel.install(); print('jax' in sys.modules)"
    for environment in (
        {"QD_JAX_PLATFORM": "tpu", "QD_USE_JAX": "0"},
        {"QD_JAX_PLATFORM": "tpu", "QD_JAX_MODE": "off"},
    ):
        environ = {**os.environ, **environment}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=True)
        assert done.stdout.strip() == "False"


def test_a_platform_that_is_gone_leaves_functions_on_numpy() -> None:
    after = """
from accel.platform import config
with config.override(platform="tpu"):
    for i in range(12):
        assert np.array_equal(wave(np.arange(4.0) + i), np.sin(np.arange(4.0) + i) * 2.0)
print({each.reason for each in open_ledger("wave").refusals})
"""
    if "tpu" not in devices.platforms():
        assert beside("", after) == str({"device.missing"})


# -- memory ------------------------------------------------------------------------------------------------------------

LIMITED = """
import resource
left = lambda megabytes: resource.setrlimit(resource.RLIMIT_AS, (megabytes * 2**20, resource.RLIM_INFINITY))
left({first})
for i in range(10):
    assert np.array_equal(wave(np.arange(10.0) + i), wave.__wrapped__(np.arange(10.0) + i))
book = open_ledger("wave")
print(sorted(each.reason for each in book.refusals), "jax" in sys.modules, book.compiled_calls > 0)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the limit is not enforced, or not there")
@pytest.mark.parametrize("megabytes", [450, 600, 800, 1000, 1200])
@pytest.mark.parametrize("aot", ["0", "1"])
def test_with_little_memory_jax_is_not_started(megabytes: int, aot: str) -> None:
    found = beside("", LIMITED.format(first=megabytes), QD_JAX_AOT=aot)
    assert found == str(["environment.memory"]) + " False False"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the limit is not enforced, or not there")
def test_with_enough_memory_it_is_until_there_is_too_little() -> None:
    after = (
        LIMITED.format(first=devices.ROOM // 2**20 + 72 * (os.cpu_count() or 1) + 512)
        + """
left(400 + int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() // 2**20)
more = accel.accelerate(lambda x: x * 2.0 + 1.0, name="more")
for i in range(8):
    assert np.array_equal(more(np.arange(3.0)), np.arange(3.0) * 2.0 + 1.0)
print([each.reason for each in open_ledger("more").refusals])
for i in range(8):
    wave(np.arange(10.0) + i)
print(book.compiled_calls > 12)
"""
    )
    assert beside("", after).split("\n") == ["[] True True", "['environment.memory']", "True"]
