"""What accel uses of JAX that is not public. A failure here: JAX changed, and accel's way round it is gone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from accel.process import jax_internals

INITIALIZED = """
from accel.process import jax_internals as internals
assert not internals.backends_are_initialized()
import jax
assert not internals.backends_are_initialized()
jax.devices()
assert internals.backends_are_initialized()
"""

CLEANED_UP = """
import atexit, sys
from jax._src import api, xla_bridge
import jax
jax.devices()
atexit.register(lambda: print(xla_bridge._default_backend is None))
atexit.unregister(api.clean_up)
atexit.register(api.clean_up)
if {leave}:
    from accel.process import jax_internals
    jax_internals.leave_without_cleaning_up()
"""


def said_by(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_whether_the_clients_are_started_is_known() -> None:
    assert said_by(INITIALIZED) == ""


@pytest.mark.parametrize("leave", [False, True])
def test_what_jax_does_at_the_end_can_be_left_out(leave: bool) -> None:
    assert said_by(CLEANED_UP.format(leave=leave)) == str(not leave)


def test_what_jax_does_not_tell_is_answered_with_care(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", None)
    monkeypatch.setitem(sys.modules, "jax._src.api", None)
    monkeypatch.setitem(sys.modules, "jax._src.interpreters.mlir", None)
    assert jax_internals.backends_are_initialized()
    jax_internals.leave_without_cleaning_up()
    assert jax_internals.thread_pools() == []


def test_the_threads_that_lower_are_known() -> None:
    pytest.importorskip("jax").devices()
    assert [type(each).__name__ for each in jax_internals.thread_pools()] == ["ThreadPool"]


STREAM = """
import threading, numpy as np
from accel.backend import devices
np.random.seed(1)
expected = np.random.RandomState(1)
going, drawn = True, []
def draw():
    while going:
        drawn.append(np.random.rand())
thread = threading.Thread(target={target})
thread.start()
devices.import_jax()
going = False
thread.join()
print(np.random.rand is np.random.mtrand.rand, drawn == [expected.rand() for _ in drawn], len(drawn) > {least},
      np.random.rand() == expected.rand())
"""


@pytest.mark.parametrize(("target", "least"), [("lambda: None", -1), ("draw", 10)])
def test_importing_jax_leaves_numpys_stream_alone(target: str, least: int) -> None:
    """JAX draws from it; and another thread may, meanwhile."""
    assert said_by(STREAM.format(target=target, least=least)) == "True True True True"


EIGHT_BITS = """
import jax, numpy as np, jax.numpy as jnp
from accel.process import jax_internals
jax.config.update("jax_enable_x64", True)
x = np.full((300, 300), 3, np.uint8)
x[5, 7] = 200
y = np.random.default_rng(0).standard_normal((700, 700))
y[350, 350] = np.nan
careful = jax_internals.compiled_with_care
largest = careful(jax.jit(lambda x: jnp.max(x * 2 + 1, axis=1)).lower(x))(x)
total = careful(jax.jit(lambda x: (x * 2 + 1).astype("f8").sum(1)).lower(x))(x)
least = careful(jax.jit(lambda y: jnp.min(jnp.sin(y))).lower(y))(y)
print(int(largest[5]), float(total[5]), bool(jnp.isnan(least)))
"""


def test_reductions_of_a_program_compiled_with_care_are_right() -> None:
    assert said_by(EIGHT_BITS) == "145 2238.0 True"


class Lowered:
    """A program of a jaxlib that knows no such option, or fails otherwise."""

    def __init__(self, error: str) -> None:
        self.error = error

    def compile(self, compiler_options: object = None) -> str:
        if compiler_options:
            raise ValueError(self.error)
        return "compiled"


def test_a_jaxlib_without_the_option_compiles_without_it() -> None:
    assert jax_internals.compiled_with_care(Lowered("INVALID_ARGUMENT: No such compile option: 'x'")) == "compiled"
    with pytest.raises(ValueError, match="out of memory"):
        jax_internals.compiled_with_care(Lowered("out of memory"))
