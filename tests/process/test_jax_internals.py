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
    assert jax_internals.backends_are_initialized()
    jax_internals.leave_without_cleaning_up()
