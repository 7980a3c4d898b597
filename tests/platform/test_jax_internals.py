"""What accel uses of JAX that is not public. A failure here: JAX changed, and accel's way round it is gone."""

from __future__ import annotations

import sys

import pytest

from accel.platform import jax_internals
from tests.processes import said_by

INITIALIZED = """
from accel.platform import jax_internals as internals
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
    from accel.platform import jax_internals
    jax_internals.leave_without_cleaning_up()
"""


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


def test_who_listens_to_jax_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monitoring = pytest.importorskip("jax.monitoring")
    pytest.importorskip("jax._src.monitoring")
    assert not jax_internals.has_listeners()

    def listen(*_: object, **__: object) -> None:
        """Hear nothing."""

    for register in ("register_event_listener", "register_event_duration_secs_listener"):
        getattr(monitoring, register)(listen)
        assert jax_internals.has_listeners(), register
        monitoring.clear_event_listeners()
    monkeypatch.setitem(sys.modules, "jax._src.monitoring", None)
    assert jax_internals.has_listeners()


def test_composite_operations_are_expanded() -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(3.0)
    for function in (lambda x: jax.numpy.nonzero(x, size=3), lambda x: jax.numpy.searchsorted(x, x)):
        for eqn in jax.make_jaxpr(function)(x).jaxpr.eqns:
            assert ("hi_primitive" in eqn.primitive.name) == (jax_internals.expanded(eqn) is not None)


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
