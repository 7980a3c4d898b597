"""Iterations: when a lifted loop goes back to the program's own statements for good."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from accel.entry.lift import iterations
from accel.entry.lift.iterations import COUNTED_S, LOOK_AFTER, Iterations


@pytest.mark.parametrize(
    ("final", "may_try_again", "keep_changing", "round_s", "goes_on"),
    [
        (False, False, False, 1e-3, True),
        (True, False, False, 1.0, False),
        (True, True, False, 2 * COUNTED_S, True),  # slower than NumPy so far: the second look is to come
        (True, True, False, COUNTED_S / 2, False),
        (False, False, False, 0.0, True),  # its program is to come
        (False, False, True, 1e-3, False),  # each iteration takes another path
    ],
)
def test_the_switch_of_a_loop_whose_program_is_given_up(
    final: bool,
    may_try_again: bool,
    keep_changing: bool,
    round_s: float,
    goes_on: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(iterations, "Holding", lambda switch, target: SimpleNamespace(run=print))
    monkeypatch.setattr(iterations.resident.current, "possible", False)
    monkeypatch.setattr(iterations.rest, "SMALL_CALL_S", 1e-4)
    turned_off: list[bool] = []
    switch: Any = SimpleNamespace(column=None, turn_off=lambda: turned_off.append(True))
    target = SimpleNamespace(
        parts=SimpleNamespace(),
        state=SimpleNamespace(mode="auto", final=final, may_try_again=may_try_again, may_rest=True),
        paths=SimpleNamespace(keep_changing=keep_changing),
    )

    def accelerated(body: Any) -> Any:
        return body()

    accelerated._self_target = target  # type: ignore[attr-defined]
    made = Iterations(switch, accelerated)
    made._left, made._since = 1, time.perf_counter() - LOOK_AFTER * round_s
    assert made(lambda: 7) == 7  # type: ignore[arg-type]
    assert turned_off == ([] if goes_on else [True])


def test_an_iteration_makes_no_object_to_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[Any] = []
    monkeypatch.setattr(
        iterations, "Holding", lambda switch, target: SimpleNamespace(run=lambda run, body: held.append(run))
    )
    monkeypatch.setattr(iterations.resident.current, "possible", True)
    target = SimpleNamespace(parts=SimpleNamespace())
    accelerated: Any = SimpleNamespace(_self_target=target)
    made = Iterations(SimpleNamespace(column=None), accelerated)  # type: ignore[arg-type]
    body: Any = lambda: None  # noqa: E731
    assert made._prepared(body)[0] is made._prepared(body)[0]
    made(body)
    assert held == [accelerated]
