"""Programs of arrays, compiled once and replayed on other inputs, against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from accel.backend.compile import compile_trace
from accel.compiler.lower import Known
from accel.dispatch.replay import Variant
from accel.dispatch.replay.commit import commit
from accel.record import record

Program = Callable[..., Any]
Inputs = Callable[[int], tuple[Any, ...]]

OUTSIDE = frozenset({"rule.parameter", "array.unknown"})
"""Reasons that a random program may be refused for."""


def program_of(source: str, name: str) -> Program:
    """The function `case` that a source defines, with np as its only global."""
    namespace: dict[str, Any] = {"np": np, "__name__": name}
    exec(compile(source, f"<{name}>", "exec"), namespace)
    return namespace["case"]  # type: ignore[no-any-return]


def variant_of(program: Program, inputs: Inputs) -> Variant | None:
    """The program compiled, nothing taken for constant; None where it is outside of what can be recorded."""
    recorded = record(program, inputs(0), {}, max_nodes=20_000)
    if recorded.refusal is not None:
        assert recorded.refusal.reason in OUTSIDE, recorded.refusal
        return None
    values, _ = recorded.trace.inputs.fetch(inputs(0), {})
    return Variant(recorded.trace, compile_trace(recorded.trace, Known(), values))


def assert_replays_agree(
    variant: Variant | None, program: Program, inputs: Inputs, text: str = "", rtol: float = 1e-10
) -> None:
    """Replay on three inputs and compare results and arguments with those of plain calls."""
    assert variant is not None, text
    for seed in (0, 1, 2):
        mine, theirs = inputs(seed), inputs(seed)
        expected = program(*theirs)
        values, failed = variant.trace.inputs.fetch(mine, {})
        assert failed is None
        staged = variant.run(values)
        assert not isinstance(staged, tuple), text
        result = commit(staged)
        for got, wanted in zip(_arrays((result, mine)), _arrays((expected, theirs)), strict=True):
            assert got.dtype == wanted.dtype, text
            np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol / 100, err_msg=text)


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)
    else:
        yield np.asarray(value)
