"""A device with a memory of its own, played by the CPU: what goes there and back is counted, explicit, and may fail."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import accel
from accel.backend import compile, devices, executable
from accel.backend.disk.cache import size_text
from accel.dispatch.comparing import policy
from accel.dispatch.replay.variant import Variant
from accel.platform import config, tuning
from accel.platform.ledger import open_ledger
from accel.platform.reasons import source_line


@pytest.fixture(autouse=True)
def alone(foreground: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No comparisons: each replay stands."""
    monkeypatch.setattr(policy.Comparisons, "is_due", lambda *_: False)


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU as a device with a memory of its own."""
    monkeypatch.setattr(devices, "plays_apart", True)


@pytest.fixture
def moved(remote: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Bytes that launches really put and get, by direction."""
    import jax

    found: Counter[str] = Counter()
    put, get, run = jax.device_put, jax.device_get, executable.Executable.run

    def counted_put(values: Any, *args: Any, **kwargs: Any) -> Any:
        found["handed"] += sum(np.asarray(each).nbytes for each in jax.tree.leaves(values))
        return put(values, *args, **kwargs)

    def counted_get(values: Any) -> Any:
        found["fetched"] += sum(each.nbytes for each in jax.tree.leaves(values))
        return get(values)

    def counting(self: Any, *args: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jax, "device_put", counted_put)
            return run(self, *args)

    monkeypatch.setattr(executable.Executable, "run", counting)
    monkeypatch.setattr(jax, "device_get", counted_get)
    yield found


class Model:
    def __init__(self) -> None:
        self.u = np.random.default_rng(0).normal(size=(30, 40))
        self.mask = np.ones((30, 40), bool)
        self.n = 0

    def step(self, forcing: Any, dt: float) -> Any:
        self.n += 1
        self.u = self.u + dt * np.where(self.mask, forcing, 0.0)
        self.mask[0] = self.u[0] > 0.5
        if self.u.max() > 1e9:
            self.u *= 0.5
        return self.u.mean(axis=0), float(self.u.sum())


def steps(model: Any, count: int = 10, step: Any = Model.step) -> list[Any]:
    return [step(model, np.full((30, 40), 0.1 * i), 0.5 + i) for i in range(count)]


def accelerated() -> Any:
    return accel.accelerate(Model.step, name="step")


def figures() -> dict[str, Any]:
    (function,) = json.loads(accel.report("json"))["functions"]
    return function  # type: ignore[no-any-return]


def assert_as_plain(count: int = 10) -> None:
    mine, theirs = Model(), Model()
    for found, expected in zip(steps(mine, count, accelerated()), steps(theirs, count), strict=True):
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        assert found[0].flags.writeable and type(found[1]) is float
    np.testing.assert_allclose(mine.u, theirs.u, rtol=1e-12)
    np.testing.assert_array_equal(mine.mask, theirs.mask)
    assert mine.n == theirs.n
    mine.u += 1.0  # arrays that a replay gave are the program's own


def test_counts_are_what_is_moved(moved: Counter[str]) -> None:
    assert_as_plain()
    transfers = figures()["transfers"]
    assert transfers["launches"] == open_ledger("step").compiled_calls > 4
    assert sum(transfers["handed"].values()) == moved["handed"] > 0
    assert sum(transfers["fetched"].values()) == moved["fetched"] > 0
    totals = json.loads(accel.report("json"))["totals"]
    assert (totals["handed_bytes"], totals["fetched_bytes"]) == (moved["handed"], moved["fetched"])


def test_fields_have_the_names_that_the_program_gives_them(remote: None) -> None:
    assert_as_plain()
    transfers = figures()["transfers"]
    launches = transfers["launches"]
    assert transfers["handed"]["self.u"] == launches * 30 * 40 * 8
    assert transfers["handed"]["self.mask"] == transfers["fetched"]["self.mask"] == launches * 30 * 40
    assert transfers["fetched"]["self.u"] == launches * 30 * 40 * 8
    assert transfers["fetched"]["the result[0]"] == launches * 40 * 8
    assert list(transfers["handed"].values()) == sorted(transfers["handed"].values(), reverse=True)


def line_of(text: str) -> str:
    """`file:line` of the line of `Model.step` that begins so."""
    lines, first = inspect.getsourcelines(Model.step)
    (found,) = [first + i for i, line in enumerate(lines) if line.strip().startswith(text)]
    return source_line(__file__, found)


def test_each_field_has_the_line_that_asked_for_it(remote: None) -> None:
    assert_as_plain()
    lines = figures()["transfers"]["lines"]
    assert lines["handed"]["self.u"] == lines["handed"]["self.mask"] == [line_of("self.u = self.u")]
    assert lines["handed"]["forcing"] == [line_of("self.u = self.u")]
    assert lines["fetched"]["self.mask"] == [line_of("self.mask[0]")]
    assert lines["fetched"]["self.u"] == [line_of("self.u = self.u")]
    assert lines["fetched"]["the result[0]"] == [line_of("return self.u.mean")]
    assert f"self.u {size_text(figures()['transfers']['handed']['self.u'])} ({line_of('self.u = self.u')})" in " ".join(
        accel.report(transfers=True).split()
    )


def test_the_text_says_what_a_step_moves(remote: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from accel.platform.ledger import current_run

    assert_as_plain()
    assert "per step" not in accel.report(transfers=True)  # nobody has said what a step is
    monkeypatch.setattr(type(current_run()), "pace", "step")
    function = figures()
    there, back = (sum(function["transfers"][way].values()) / function["calls"] for way in ("handed", "fetched"))
    assert f"{size_text(there)} there and {size_text(back)} back per step" in accel.report(transfers=True)


def test_runs_that_are_discarded_count_what_they_were_given(moved: Counter[str]) -> None:
    @accel.accelerate(name="branch")
    def branch(x: Any) -> Any:
        y = x * 2.0
        return y + 1.0 if y.max() > 3.0 else y - 1.0

    for i in range(14):
        x = np.full(50, 2.0 if i % 5 == 4 else 1.0)
        np.testing.assert_allclose(branch(x), x * 2.0 + (1.0 if i % 5 == 4 else -1.0))
    transfers = figures()["transfers"]
    assert sum(transfers["handed"].values()) == moved["handed"]
    assert sum(transfers["fetched"].values()) == moved["fetched"]
    assert transfers["launches"] > open_ledger("branch").compiled_calls - 1 > 2


@pytest.mark.parametrize("renewed", [True, False])
def test_constants_that_change_are_counted_and_launches_go_on(
    renewed: bool, moved: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model's constants change once a day: its program goes on with others."""
    if not renewed:  # where lowering decides anew, the program gets a launchable of its own
        monkeypatch.setattr(Variant, "renew", lambda *_: False)

    class Weighted:
        weights, offset = np.linspace(0.0, 1.0, 50), np.linspace(1.0, 2.0, 500)

        def step(self, x: Any) -> Any:
            return np.exp(self.weights).cumsum() * x + self.offset.sum()

    import jax

    put, placed = jax.device_put, []

    def counted_put(values: Any, *args: Any, **kwargs: Any) -> Any:  # launches have one of their own
        placed.extend(np.asarray(each).nbytes for each in jax.tree.leaves(values))
        return put(values, *args, **kwargs)

    monkeypatch.setattr(jax, "device_put", counted_put)
    model, step = Weighted(), accel.accelerate(Weighted.step, name="weighted")
    for i in range(60):
        if i in (20, 40):
            model.weights = model.weights + 1.0
        x = np.full(50, 1.0 + i)
        np.testing.assert_allclose(step(model, x), Weighted.step(model, x), rtol=1e-12)
    transfers = figures()["transfers"]
    assert transfers["launches"] >= open_ledger("weighted").compiled_calls > 50
    assert sum(transfers["handed"].values()) == moved["handed"]
    assert sum(transfers["fetched"].values()) == moved["fetched"]
    assert transfers["constants"] == sum(placed) > 3 * 50 * 8, "what depends on the weights, three times"


def test_the_text_says_it_where_something_is_copied_or_on_request(moved: Counter[str]) -> None:
    assert_as_plain()
    assert "bytes moved" not in accel.report(full=True)  # the platform is the CPU
    text = accel.report(transfers=True)
    assert "bytes moved to the device and back" in text and "self.u" in text
    from accel.platform.ledger import current_run

    current_run().platform = "gpu"
    assert "bytes moved to the device and back" in accel.report(full=True)


def test_counting_begins_again(remote: None) -> None:
    from accel.reports.reporting import reset_report

    assert_as_plain()
    reset_report()
    assert figures()["transfers"]["launches"] == 0 and not sum(figures()["transfers"]["handed"].values())


# -- explicit copies alone ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_remote", [True, False])
def test_launches_work_where_other_copies_are_forbidden(is_remote: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    import jax

    monkeypatch.setattr(devices, "plays_apart", is_remote)
    with jax.transfer_guard("disallow"):
        assert_as_plain()
        book = open_ledger("step")
        assert book.compiled_calls > 4 and not book.refusals
        with pytest.raises(Exception, match="Disallowed host-to-device"):  # the program's own guard stays
            jax.jit(lambda x: x + 1)(np.ones(3))


def test_comparisons_time_their_copies_there_too(remote: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import jax

    monkeypatch.setattr(policy.Comparisons, "is_due", lambda *_: True)
    with jax.transfer_guard("disallow"):
        assert_as_plain()
    assert open_ledger("step").comparisons > 2 and open_ledger("step").copy_s


# -- memory ------------------------------------------------------------------------------------------------------------

FULL = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 79456894976 bytes."


def test_too_little_memory_for_a_run_leaves_it_to_numpy(remote: None, monkeypatch: pytest.MonkeyPatch) -> None:
    run, calls = executable.Executable.run, []

    def full(self: Any, *args: Any) -> Any:
        calls.append(args)
        if len(calls) > 2:
            raise RuntimeError(FULL)
        return run(self, *args)

    monkeypatch.setattr(executable.Executable, "run", full)
    assert_as_plain()
    assert len(calls) == 3, "it is not tried again and again"
    (refusal,) = open_ledger("step").refusals
    assert refusal.reason == "device.memory" and "79456894976" in refusal.why + refusal.detail


def test_too_little_memory_for_the_results_leaves_nothing_half_done(
    remote: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that computes while the program goes on says so only when results are asked for."""

    def full(self: Any, arrays: Any) -> Any:
        raise RuntimeError(FULL)

    monkeypatch.setattr(executable.Executable, "fetched", full)
    assert_as_plain()
    assert {refusal.reason for refusal in open_ledger("step").refusals} == {"device.memory"}


def test_too_little_memory_for_constants_or_for_compiling(remote: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any) -> Any:
        raise RuntimeError(FULL)

    monkeypatch.setattr(compile, "_built", full)
    assert_as_plain()
    assert {refusal.reason for refusal in open_ledger("step").refusals} == {"device.memory"}


def test_other_errors_are_no_lack_of_memory() -> None:
    assert not devices.is_out_of_memory(RuntimeError("INTERNAL: RESOURCE_EXHAUSTED"))
    assert not devices.is_out_of_memory(MemoryError("RESOURCE_EXHAUSTED"))


@pytest.mark.parametrize(("users", "seen"), [(None, "false"), ("true", "true")])
def test_memory_of_a_gpu_is_not_taken_at_once(users: str | None, seen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    jax = devices.import_jax()
    name = "XLA_PYTHON_CLIENT_PREALLOCATE"
    monkeypatch.delenv(name, raising=False)
    if users is not None:
        monkeypatch.setenv(name, users)
    with config.override(tune=True), tuning.for_start_of(jax, None):
        assert os.environ[name] == seen
    assert os.environ.get(name) == users
