"""Compiling in the background: what waits, in which order, and what an abandoned worker leaves behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from accel import compile as compiling


class Bench:
    """Stands in for the compiler: notes what it is given, and waits where it is told to."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.go_on = threading.Event()
        self.started = threading.Event()

    def compile(self, name: Any, known: Any, samples: Any, spanned: Any) -> Any:
        self.seen.append(name)
        if name == "slow":
            self.started.set()
            assert self.go_on.wait(20)
        if name == "broken":
            raise ValueError("no such operation")
        return name.upper()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench()
    monkeypatch.setattr(compiling, "compile_trace", made.compile)
    yield made
    made.go_on.set()
    compiling.abandon()


def submit(name: Any, worth: float, before: int = 0) -> Any:
    return compiling.in_background(name, None, None, worth=worth, before=before)  # type: ignore[arg-type]


def test_each_program_that_a_function_has_halves_the_worth_of_another(bench: Bench) -> None:
    submit("slow", 1.0)
    assert bench.started.wait(20)
    waiting = [submit("fifth", 8.0, before=4), submit("first", 1.0), submit("second", 8.0, before=1)]
    bench.go_on.set()
    for future in waiting:
        future.result(20)
    assert bench.seen == ["slow", "second", "first", "fifth"]


def test_what_saves_most_is_compiled_first(bench: Bench) -> None:
    first = submit("slow", 1.0)
    assert bench.started.wait(20)
    others = [submit(name, worth) for name, worth in (("small", 0.1), ("large", 9.0), ("middle", 1.0))]
    assert compiling.busy()
    bench.go_on.set()
    assert [future.result(20) for future in (first, *others)] == ["SLOW", "SMALL", "LARGE", "MIDDLE"]
    assert bench.seen == ["slow", "large", "middle", "small"]
    assert not compiling.busy()


def test_a_failure_is_the_futures_and_the_worker_goes_on(bench: Bench) -> None:
    broken, fine = submit("broken", 2.0), submit("fine", 1.0)
    assert fine.result(20) == "FINE"
    with pytest.raises(ValueError, match="no such operation"):
        broken.result(20)


def test_what_waited_behind_an_abandoned_compile_is_compiled(bench: Bench) -> None:
    stuck = submit("slow", 1.0)
    assert bench.started.wait(20)
    waiting = submit("waiting", 1.0)
    compiling.abandon()
    assert submit("next", 1.0).result(20) == "NEXT"
    assert waiting.result(20) == "WAITING"
    assert not stuck.done()
    bench.go_on.set()
    assert stuck.result(20) == "SLOW"
