"""Watching recorded code by `sys.monitoring`, from Python 3.12 on: whose events arrive, and what is left behind."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

from accel.record import record
from accel.record.run.monitoring import TOOLS, Monitored, _tool
from accel.record.run.recorder import HOOKS
from accel.record.run.trace import Completed, Result
from accel.record.state.recording import Recording

if sys.version_info < (3, 12):
    pytest.skip("there is no sys.monitoring", allow_module_level=True)

X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)


def looks(x: Any) -> Any:
    """A branch by data, an exception that is handled, and a loop."""
    if x.sum() > 0.0:
        x = x + 1.0
    for k in range(3):
        x = x * 0.5 + k
    return x


def raises(x: Any) -> Any:
    try:
        return x[{}["missing"]]
    except KeyError:
        return x + 1.0


def meets(x: Any, meet: Any) -> Any:
    y = x * 2.0
    meet.wait(20)
    if y.sum() > 0.0:
        y = y + 1.0
    try:
        {}["missing"]
    except KeyError:
        y = y - 1.0
    return y


def of(function: Any, *args: Any) -> Result:
    return record(function, args, {}, max_nodes=1000)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No tool of accel's, and no events of the code that was recorded."""
    yield
    assert all(sys.monitoring.get_tool(each) is None for each in TOOLS)
    sys.monitoring.use_tool_id(TOOLS[0], "test")
    try:
        for function in (looks, raises, meets):
            assert sys.monitoring.get_local_events(TOOLS[0], function.__code__) == 0
        assert sys.monitoring.get_events(TOOLS[0]) == 0
    finally:
        sys.monitoring.free_tool_id(TOOLS[0])


def test_a_recording_is_a_tool_only_while_it_runs() -> None:
    seen = []

    class Probe(Monitored):
        def begin(self) -> bool:
            begun = super().begin()
            seen.append([each for each in TOOLS if sys.monitoring.get_tool(each) == "accel"])
            return begun

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accel.record.run.frames._TELLER", Probe)
        result = of(looks, X)
    assert isinstance(result, Completed) and result.refusal is None
    assert seen == [[TOOLS[0]]]


def test_the_next_number_is_taken_where_the_program_has_the_first() -> None:
    sys.monitoring.use_tool_id(TOOLS[0], "the program's")
    try:
        result = of(looks, X)
    finally:
        sys.monitoring.free_tool_id(TOOLS[0])
    assert isinstance(result, Completed) and result.refusal is None


def test_without_a_free_number_the_call_stays_on_numpy() -> None:
    for each in TOOLS:
        sys.monitoring.use_tool_id(each, "the program's")
    try:
        result = of(looks, X)
    finally:
        for each in TOOLS:
            sys.monitoring.free_tool_id(each)
    assert isinstance(result, Completed) and result.refusal is not None
    assert result.refusal.reason == "environment.traced"
    assert np.array_equal(result.result, looks(X))


def test_recordings_in_threads_are_told_of_their_own_frames() -> None:
    meet, found = threading.Barrier(3), {}
    threads = [
        threading.Thread(target=lambda n: found.__setitem__(n, of(meets, X + n, meet)), args=(n,)) for n in range(3)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    meet = threading.Barrier(1)
    for n in range(3):
        result = found[n]
        # the exception was seen: what it was handled by may be a gap of ours
        assert result.refusal is not None, n
        made = meets(X + n, meet) if result.__class__.__name__ == "Undone" else result.result
        assert np.array_equal(made, meets(X + n, meet))


def test_an_exception_in_recorded_code_is_seen() -> None:
    result = of(raises, X)
    assert result.refusal is not None and result.refusal.reason == "path.exception"


def test_exceptions_of_other_code_are_not_told() -> None:
    told = []

    class Probe(Monitored):
        def on_raise(self, frame: FrameType, error: BaseException) -> None:
            told.append((frame.f_code.co_name, type(error)))

    def elsewhere() -> None:
        with pytest.raises(ValueError, match="no number"):
            float("no number")

    class Nothing:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: None

    events = Probe(Recording("", "", ("", 0), HOOKS), Nothing())
    assert events.begin()
    try:
        events.follow(elsewhere.__code__)
        elsewhere()
    finally:
        events.end()
    assert told == []  # it runs with the program's own globals
    assert not _tool._active


def test_variables_of_a_frame_that_waits_are_given_values() -> None:
    """CPython's PyFrame_LocalsToFast (up to 3.12), or its `f_locals` that writes through (from 3.13 on)."""

    def outer() -> tuple[int, int]:
        a, b = 1, 2

        def inner() -> None:
            frame = sys._getframe(1)
            Monitored.assign(object.__new__(Monitored), frame, {"a": 10, "b": 20})

        inner()
        return a, (lambda: b)()

    assert outer() == (10, 20)
