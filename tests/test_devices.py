"""Devices: which platform is there, and how JAX's client for the CPU is started."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from accel import config, devices

STARTED = """
import os, threading
from accel import config, devices
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
    [(None, devices.FEW, "1"), (None, devices.FEW + 1, "None"), (1, 10**9, "1"), (3, 1, "3")],
)
def test_small_programs_get_one_thread_and_large_ones_all(threads: int | None, largest: int, asked: str) -> None:
    found = started(threads, largest)
    assert found[0] == asked
    assert asked == "None" or found[1] == asked
    assert found[2] == "None", "the environment is as it was"


def test_the_users_own_number_of_threads_stands() -> None:
    assert started(None, 1, NPROC="2")[2] == "2"
