"""Precision as a run has it: tolerances, comparisons, branches, programs on disk, and what the report says."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

import accel
from accel.backend.compile import compile_job
from accel.backend.disk import cache
from accel.backend.job import describe, key_of, path_key_of
from accel.compiler.lower import Known
from accel.dispatch.comparing import policy
from accel.platform import config
from accel.platform.ledger import open_ledger
from accel.record import record
from accel.reports import summary

REDUCED = (config.FLOAT32, config.MIXED)


def smooth(x: Any) -> Any:
    y = x + 0.1 * (np.roll(x, 1, axis=0) - x) * np.sin(x)
    return y, float(y.sum())


def field(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(20, 30)) + 3.0


def called(function: Callable[..., Any], times: int = 8, **given: Any) -> Any:
    """The function accelerated under a name of its own, after some calls."""
    fast = accel.accelerate(function, name="target", **given)
    for seed in range(times):
        fast(field(seed))
    return fast


def reasons() -> list[str]:
    return [refusal.reason for refusal in open_ledger("target").refusals]


# -- tolerance ---------------------------------------------------------------------------------------------------------


def test_the_tolerance_follows_from_the_precision_unless_the_user_names_one() -> None:
    assert config.Settings().tolerance == 1e-9
    assert {config.Settings(precision=each).tolerance for each in REDUCED} == {1e-3}
    assert config.Settings(precision="float32", rtol=1e-5).tolerance == 1e-5
    assert config.from_environment({"QD_JAX_PRECISION": " Float32 "}).precision == "float32"
    with pytest.raises(config.SettingError, match="QD_JAX_PRECISION='half' cannot be used; expected: float64, float32"):
        config.from_environment({"QD_JAX_PRECISION": "half"})


@pytest.mark.parametrize("precision", REDUCED)
def test_comparisons_accept_what_the_precision_gives(foreground: None, precision: str) -> None:
    with config.override(precision=precision, mode="verify"):
        called(smooth)
    book = open_ledger("target")
    assert book.compiled_calls and not reasons()
    assert 1e-9 < book.max_rel_error < 1e-3  # type: ignore[operator]


@pytest.mark.parametrize("own", [True, False])
def test_a_tolerance_that_was_named_goes_first(foreground: None, own: bool) -> None:
    def shifted(x: Any) -> Any:
        return x * 1.1 + 0.3

    with config.override(precision="float32", rtol=None if own else 1e-12):
        fast = called(shifted, rtol=1e-12 if own else None)
        np.testing.assert_array_equal(fast(field()), shifted(field()))
    assert reasons() == ["verify.mismatch"]


def test_a_wrong_result_is_found_in_float32_too(foreground: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from accel.compiler.lower.precision import evaluation

    plain = evaluation._as
    monkeypatch.setattr(evaluation, "_as", lambda value, dtype: plain(value * 1.01 if value.ndim else value, dtype))
    with config.override(precision="float32"):
        fast = called(lambda x: np.sin(x) + 2.0)
        np.testing.assert_array_equal(fast(field()), np.sin(field()) + 2.0)
    assert reasons() == ["verify.mismatch"]


def test_cancellation_is_rounding(foreground: None) -> None:
    def residual(x: Any) -> Any:
        y = np.sin(x) * 1e4
        return np.roll(y, 1, axis=0) - (np.roll(y, 1, axis=0) + x)

    with config.override(precision="float32", mode="verify"):
        called(residual)
    assert not reasons()
    assert {str(each.verdict) for each in open_ledger("target").differences.values()} == {
        "no more than rounding makes it"
    }


def test_rounding_that_few_elements_make_large_is_rounding(foreground: None) -> None:
    """At the poles, points come from thousands of columns away: a unit of float32 is a part of a column."""
    rows, columns = np.mgrid[0:121, 0:240]
    scale = np.full((121, 240), 0.5)
    scale[[0, -1]] = 7e4

    def advected(x: Any, wind: Any) -> Any:
        where = [rows - 0.02 * wind[::-1], columns - wind * scale]
        return map_coordinates(x, where, order=1, mode="wrap", prefilter=False)

    with config.override(precision="float32", mode="verify"):
        fast = accel.accelerate(advected, name="target")
        for seed in range(12):
            random = np.random.default_rng(seed)
            fast(random.random((121, 240)), random.normal(size=(121, 240)))
    assert not reasons() and open_ledger("target").compiled_calls > 6


# -- branches ----------------------------------------------------------------------------------------------------------


def branching(x: Any) -> Any:
    y = x * 1.5
    if y.max() > 9.0:
        y = y - y.max()
    if y.min() < 0.0:
        return -y
    return y + int(np.floor(y.mean()))


@pytest.mark.parametrize("precision", REDUCED)
def test_outcomes_are_checked(foreground: None, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "FIRST_COMPARED", 0)
    with config.override(precision=precision):
        fast = accel.accelerate(branching, name="target")
        for seed in range(40):
            x = field(seed) * (1.0 + seed % 3)
            np.testing.assert_allclose(fast(x), branching(x), rtol=1e-4, atol=1e-4)
    assert open_ledger("target").compiled_calls > 10
    assert "verify.mismatch" not in reasons()


# -- programs ----------------------------------------------------------------------------------------------------------


def test_another_precision_is_another_program(foreground: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings may change while programs are there: none runs in a precision that is not in force."""
    monkeypatch.setattr(policy.Comparisons, "is_due", lambda *_: False)
    with config.override(precision="float32"):
        fast = called(smooth)
        single = fast(field(99))[0]
    plain = smooth(field(99))[0]
    assert np.abs(single - plain).max() > 1e-9
    for precision in ("float64", "float32"):
        with config.override(precision=precision):
            found = fast(field(99))[0]
        if precision == "float64":
            np.testing.assert_allclose(found, plain, rtol=1e-14)
        else:
            np.testing.assert_array_equal(found, single)
    assert open_ledger("target").compiled_calls > 5


def test_keys_on_disk_contain_the_precision(tmp_path: Path) -> None:
    recorded = record(smooth, (field(),), {}, max_nodes=1000)
    values, _ = recorded.trace.inputs.fetch((field(),), {})
    keys, programs = set(), set()
    for precision in config.PRECISIONS:
        with config.override(precision=precision, cache_dir=tmp_path / "cache"):
            job = describe(recorded.trace, Known(), values, None)
            keys.add(key_of(path_key_of(job), job))
            # as the worker does, whatever its own settings were before
        with config.override(cache_dir=tmp_path / "cache"), config.override(**job.settings):
            programs.add(compile_job(job, lambda seconds: contextlib.nullcontext()).key)
    assert len(keys) == len(programs) == 3
    assert len([path for path in (tmp_path / "cache").rglob("*") if path.suffix == cache.SUFFIX]) == 3


def test_a_program_on_disk_computes_the_same(foreground: None, tmp_path: Path) -> None:
    found = []
    with config.override(precision="mixed", cache_dir=tmp_path / "cache"):
        for _ in range(2):
            fast = called(smooth)
            found.append(fast(field(99))[0])
            programs = open_ledger("target").describe()  # type: ignore[misc]
    assert programs[0]["found_on_disk"]
    np.testing.assert_array_equal(*found)


# -- the report --------------------------------------------------------------------------------------------------------


def test_the_report_says_it(foreground: None, caplog: pytest.LogCaptureFixture) -> None:
    with config.override(precision="float32"), caplog.at_level(logging.INFO, "accel"):
        called(smooth)
    assert json.loads(accel.report("json"))["precision"] == "float32"
    assert "; precision: float32" in accel.report(full=True)
    assert " compiled in float32" in summary.summary_line()


def test_of_float64_the_report_says_nothing(foreground: None) -> None:
    called(smooth)
    assert json.loads(accel.report("json"))["precision"] == "float64"
    assert "float64" not in accel.report(full=True) + summary.summary_line()
    assert replace(config.current()).precision == "float64"
