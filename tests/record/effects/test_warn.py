"""`warnings.warn`: replays give the same warnings, in the name of the same lines."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import accel
from accel.platform import config
from accel.platform.ledger import open_ledger
from accel.record.objects.sinks.streams import TextObserver
from accel.record.state.opaque import WARNINGS


@pytest.mark.parametrize("module", WARNINGS)
def test_text_that_the_module_writes_is_not_the_programs(module: str) -> None:
    noted: list[str] = []
    written: list[str] = []
    observer = TextObserver(written.append, noted.append)
    exec("observer('a warning')", {"__name__": module, "observer": observer})
    observer("a result")
    assert (noted, written) == (["a result"], ["a warning", "a result"])


def helper(x: Any, limit: float) -> Any:
    if x.sum() > limit:
        warnings.warn(f"large: {x.sum():.3f}", RuntimeWarning, stacklevel=2)
    return x * 2


def by_a_helper(x: Any) -> Any:
    return helper(x, 20.0) + 1


def here(x: Any) -> Any:
    warnings.warn("here", stacklevel=1)
    return x + 1


def under_a_filter(x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("never", stacklevel=2)
    return x + 1


def told(function: Any, x: Any) -> Any:
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        result = function(x)
    return result.tolist(), [(str(each.message), each.category, each.filename, each.lineno) for each in log]


@pytest.mark.parametrize(("program", "is_compiled"), [(by_a_helper, True), (here, True), (under_a_filter, False)])
def test_warnings_are_numpys(program: Any, is_compiled: bool, books: None) -> None:
    with config.override(ahead_of_time=False, cache_dir=None):
        fast = accel.accelerate(program, name=program.__name__)
        for i in range(16):
            x = np.arange(5.0) + i
            assert told(fast, x) == told(program, x)
    assert (open_ledger(program.__name__).compiled_calls > 5) is is_compiled


def test_a_filter_that_makes_errors_is_asked_in_each_call(books: None) -> None:
    def program(x: Any) -> Any:
        try:
            warnings.warn("careful", DeprecationWarning, stacklevel=1)
        except DeprecationWarning:
            return -x
        return x

    with config.override(ahead_of_time=False, cache_dir=None):
        fast = accel.accelerate(program, name="careful")
        for i in range(16):
            with warnings.catch_warnings():
                warnings.simplefilter("error" if i % 5 == 4 else "ignore")
                assert fast(np.ones(3)).tolist() == program(np.ones(3)).tolist()
    assert open_ledger("careful").compiled_calls > 2


def test_the_caller_of_a_compiled_call_is_named(books: None) -> None:
    def program(x: Any) -> Any:
        warnings.warn("who calls?", stacklevel=2)
        return x + 1

    with config.override(ahead_of_time=False, cache_dir=None):
        fast = accel.accelerate(program, name="caller")
        for _ in range(12):
            found = told(fast, np.ones(3))[1]
    assert open_ledger("caller").compiled_calls > 3
    assert found[0][2] == __file__


def test_filters_that_a_call_leaves_are_left_in_each_call(books: None) -> None:
    def program(x: Any) -> Any:
        warnings.simplefilter("ignore")
        return x + 1.0

    with config.override(ahead_of_time=False, cache_dir=None):
        fast = accel.accelerate(program, name="leaves_filters")
        for i in range(8):
            with warnings.catch_warnings(record=True) as log:
                warnings.simplefilter("always")
                assert fast(np.ones(3) + i).tolist() == [2.0 + i] * 3
                warnings.warn("not to be seen", stacklevel=1)
            assert log == []
    assert open_ledger("leaves_filters").compiled_calls == 0
