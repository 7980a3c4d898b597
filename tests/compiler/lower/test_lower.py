"""Lowering and compiling: folding, checks per operation, and what the process's own JAX keeps."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

from accel.backend.compile import compile_trace
from accel.compiler.lower import Known, lower
from accel.compiler.lower.passes import arrange
from accel.dispatch.replay import StagedOutputs, Variant
from accel.dispatch.replay.commit import commit
from accel.record import record
from accel.rules.rule import Unsupported


class Grid:
    def __init__(self) -> None:
        self.lat = np.linspace(-1.2, 1.2, 12)


def metric(grid: Grid, field: Any) -> Any:
    return field / np.cos(grid.lat) ** 2 + np.sin(grid.lat)


def trace_of(function: Any, *args: Any) -> tuple[Any, list[Any]]:
    recorded = record(function, args, {}, max_nodes=1000)
    assert recorded.refusal is None, recorded.refusal
    values, failed = recorded.trace.inputs.fetch(args, {})
    assert failed is None
    return recorded.trace, values


def test_what_depends_on_constants_alone_is_folded() -> None:
    grid, field = Grid(), np.arange(12.0)
    trace, values = trace_of(metric, grid, field)
    plain = lower(trace, Known())
    slot = next(slot for slot in trace.array_slots if values[slot] is grid.lat)
    folded = lower(trace, Known(arrays={slot: grid.lat.copy()}))
    assert folded.operations < plain.operations
    assert slot not in folded.slots
    np.testing.assert_array_equal(folded.constants[0], np.cos(grid.lat) ** 2)


def test_a_rule_that_gives_another_dtype_is_refused_with_its_place() -> None:
    trace, _ = trace_of(lambda x: np.sum(x), np.arange(3.0))
    node = trace.outputs.numbers[0]
    node.rule = dataclasses.replace(node.rule, lower=lambda **bound: bound["a"].sum(dtype=np.float32))
    with jax.enable_x64(True), pytest.raises(Unsupported) as caught:
        jax.make_jaxpr(lower(trace, Known()).function)([np.arange(3.0)], [np.bool_(True)], {})
    assert caught.value.reason == "lower.mismatch"
    assert "NumPy gives float64[], JAX float32[]" in caught.value.detail
    assert "test_lower.py:" in caught.value.detail


def test_the_process_keeps_its_own_precision() -> None:
    before = jax.config.jax_enable_x64
    trace, values = trace_of(lambda x: x * 2.0, np.arange(3.0))
    variant = Variant(trace, compile_trace(trace, Known(), values))
    staged = variant.run(values)
    assert isinstance(staged, StagedOutputs)
    assert commit(staged).dtype == np.float64
    assert jax.config.jax_enable_x64 is before
    assert jax.numpy.arange(3.0).dtype == (np.float64 if before else np.float32)


def test_results_are_plain_writable_arrays_of_their_own() -> None:
    trace, values = trace_of(lambda x: (x, x + 1.0, x.copy(), np.zeros(4)), np.arange(4.0))
    variant = Variant(trace, compile_trace(trace, Known(), values))
    x = values[2] if isinstance(values[2], np.ndarray) else values[0][0]
    staged = variant.run(values)
    assert isinstance(staged, StagedOutputs)
    same, fresh, copied, zeros = commit(staged)
    assert same is x
    for array in (fresh, copied, zeros):
        assert type(array) is np.ndarray
        assert array.flags.writeable
        assert not np.may_share_memory(array, x)
        assert array.ctypes.data % 64 == 0
        array[0] = -5.0
    np.testing.assert_array_equal(x, np.arange(4.0))
    again = commit(variant.run(values))  # type: ignore[arg-type]
    np.testing.assert_array_equal(again[2], np.arange(4.0))
    np.testing.assert_array_equal(again[3], np.zeros(4))


def test_an_input_changed_after_the_call_leaves_results_alone() -> None:
    trace, values = trace_of(lambda x: x[::2] * 1.0, np.arange(64.0))
    variant = Variant(trace, compile_trace(trace, Known(), values))
    x = values[0][0]
    results = []
    for i in range(20):
        x[...] = i
        results.append(commit(variant.run(values)))  # type: ignore[arg-type]
        x[...] = -1.0
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result, np.full(32, float(i)))


def test_a_program_that_does_not_repeat_and_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrange, "MAX_OPERATIONS", 3)
    trace, _ = trace_of(metric, Grid(), np.arange(12.0))
    with pytest.raises(Unsupported) as caught:
        lower(trace, Known())
    assert caught.value.reason == "limit.compile"


# -- reads past writes ------------------------------------------------------------------------------------------------


def test_reads_see_writes_to_their_own_place_only() -> None:
    def work(bands: Any) -> Any:
        kept = bands[2] * 1.0
        bands[1] = bands[0] + 1.0
        bands[2, 1:] = bands[1, 1:] * bands[3, 1:]
        bands[-1] = bands[2] + bands[1]
        bands[0:2] = bands[2:4]
        return kept, bands[3] * 2.0, bands[:, 1] + bands[0, 0]

    expected, found = np.arange(20.0).reshape(4, 5), np.arange(20.0).reshape(4, 5)
    trace, values = trace_of(work, found.copy())
    variant = Variant(trace, compile_trace(trace, Known(), values))
    slots, failed = trace.inputs.fetch((found,), {})
    assert failed is None
    staged = variant.run(slots)
    assert isinstance(staged, StagedOutputs)
    results = commit(staged)
    for left, right in zip(work(expected), results, strict=True):
        np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(expected, found)
