"""Calls that go straight to NumPy: which, how many, and that they are counted and end where they have to."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import accel
from accel.backend import devices
from accel.backend.underway import queues
from accel.dispatch import compiling
from accel.dispatch.decorator import Accelerated
from accel.dispatch.numpy_calls import NumPyCalls
from accel.platform import clocks, config, gain, ledger, timeline
from accel.platform.ledger import open_ledger
from accel.platform.reasons import Refusal
from accel.policy import account, budget, rest
from accel.policy.call import THREAD, Call
from accel.policy.rest import MAX_REST, USUAL_LOOKS, WAITING_S, Rest
from tests.conftest import is_idle


@pytest.fixture
def real(books: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """accel's own limits, which other tests do without."""
    monkeypatch.setattr(rest, "MAX_REST", 1024)
    monkeypatch.setattr(rest, "SMALL_CALL_S", 3e-5)
    monkeypatch.setattr(account, "RELIABLE_CALL_S", 1e-3)
    monkeypatch.setattr(account, "recorded", account._Recorded())  # others' recordings say nothing of these
    with config.override(ahead_of_time=True, cache_dir=None), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
    is_idle(60.0)  # what is compiled would disturb other tests' times


class Clock:
    """A clock that only the program's own work moves, and looking at it: on the machine's, what others do counts, too.

    worked: seconds of the program's work. look_s: what each look takes.
    """

    look_s = 1e-9

    def __init__(self) -> None:
        self.now = time.perf_counter()
        self.worked = 0.0

    def work(self, seconds: float) -> None:
        self.now += seconds
        self.worked += seconds

    def __call__(self) -> float:
        self.now += self.look_s
        return self.now


@pytest.fixture
def clock(real: None) -> Iterator[Clock]:
    made = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clocks.time, "perf_counter", made)
        patch.setattr(clocks.time, "thread_time", made)
        yield made


def wrapped(kind: Rest) -> Callable[[], str]:
    """A wrapper of a target with this rest; its calls tell where they went."""
    target: Any = SimpleNamespace(rest=kind, streak=SimpleNamespace(left=0), is_calling_itself=False)
    target.function, target.answer = lambda: "numpy", lambda args, kwargs: "examined"
    return Accelerated(target.function, target)


def taken(kind: Rest, most: int = 2000) -> int:
    call = wrapped(kind)
    return next((count for count in range(most) if call() == "examined"), most)


@pytest.mark.parametrize(
    ("looked_s", "call_s", "calls"),
    [(1.1e-6, 1e-4, 1), (1.05e-5, 1e-4, 10), (0.5e-6, 1e-4, 0), (1.0, 1e-6, 1024), (1.0, 0, 0)],
)
def test_one_look_is_borne_out_by_the_calls_after_it(real: None, looked_s: float, call_s: float, calls: int) -> None:
    kind = Rest()
    kind.begin(looked_s, call_s)
    assert taken(kind) == calls
    assert kind.taken == calls and (kind.seconds > 0.0) == (calls > 0)
    assert kind.settle()[0] == calls and kind.settle() == (0, 0.0)


@pytest.mark.parametrize(
    ("looks", "calls"),
    [
        ((4e-4,), 5),
        ((4e-4, 4e-4, 4e-4), 5),
        ((4e-4, 1e-6, 4e-4, 4e-4), 5),
        ((4e-4, 4e-4, 4e-4, 3.05e-4), 30),
        ((9e-4, 3.05e-4, 9e-4, 4e-4), 30),
    ],
)
def test_a_long_look_counts_in_full_where_those_before_took_as_long(
    real: None, looks: tuple[float, ...], calls: int
) -> None:
    kind = Rest()
    for looked_s in looks:
        kind.begin(looked_s, 1e-3)
    assert taken(kind) == calls


def test_a_rest_is_short_while_a_program_is_compiled(real: None) -> None:
    for waits, calls in ((False, MAX_REST), (True, 50)):
        kind = Rest()
        for _ in range(USUAL_LOOKS + 1):
            kind.begin(1.0, WAITING_S / 50.5, waits=waits)
        assert taken(kind) == calls


def test_calls_are_counted_as_they_are_taken_timed_or_not(real: None) -> None:
    kind = Rest()
    kind.begin(1.0, 1e-5)
    call = wrapped(kind)
    assert [call() for _ in range(4)] == ["numpy"] * 4
    assert kind.settle()[0] == 4
    assert call() == "numpy"
    with config.override(mode="verify"):
        assert call() == "examined"
    assert kind.settle()[0] == 1 and kind.ever[0] == 5


def test_there_is_no_rest_where_somebody_looks_at_every_call(real: None) -> None:
    kind = Rest()
    kind.allowed = False
    kind.begin(1.0, 1e-6)
    assert wrapped(kind)() == "examined"


def test_a_rest_ends_where_the_settings_change(real: None) -> None:
    kind = Rest()
    kind.begin(1.0, 1e-5)
    assert wrapped(kind)() == "numpy"
    with config.override(mode="verify"):
        assert wrapped(kind)() == "examined"
    assert wrapped(kind)() == "examined", "and does not go on afterwards"


def test_a_rest_ends_where_every_call_is_to_be_noted(real: None) -> None:
    kind = Rest()
    kind.begin(1.0, 1e-5)
    timeline.start()
    try:
        assert wrapped(kind)() == "examined"
    finally:
        timeline.reset()


def test_a_function_too_small_to_gain_is_not_recorded_and_says_so(real: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "SMALL_CALL_S", 10.0)  # however slow the machine
    fast: Any = accel.accelerate(lambda x: x + 1.0, name="tiny")
    for _ in range(3000):
        assert np.array_equal(fast(np.zeros(3)), np.ones(3))
    kind = fast._self_target
    assert not kind.paths
    assert {refusal.reason for refusal in open_ledger("tiny").refusals} == {"speed.small"}
    assert open_ledger("tiny").numpy_calls == open_ledger("tiny").calls == 3000, "those at rest among them"
    assert {each.target: each.calls for each in ledger.ledgers()} == {"tiny": 3000}


def test_a_function_that_launching_would_cost_more_than_it_saves_says_so(
    real: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "LAUNCH_S", 10.0)  # however slow the machine
    monkeypatch.setattr(gain, "COMPILE_GAIN_S", 0.25)
    monkeypatch.setattr(gain, "potential_gain", gain.PotentialGain())
    short: Any = accel.accelerate(lambda x: np.sin(np.exp(-x * x)) + np.cos(x), name="short")
    x = np.linspace(0.0, 1.0, 20_000)
    for _ in range(60):
        short(x)
    assert short._self_target.paths
    assert short._self_target.ledger.waits() == Refusal("speed.small")


def test_it_is_recorded_once_its_arrays_are_large(real: None) -> None:
    def double(x: Any) -> Any:
        return np.sin(x) * 2.0

    fast: Any = accel.accelerate(double, name="growing")
    for _ in range(50):
        fast(np.zeros(3))
    x = np.linspace(0.0, 1.0, 100_000)
    for _ in range(1100):
        assert np.array_equal(fast(x[:5]), np.sin(x[:5]) * 2.0)
        fast(x)
        if fast._self_target.paths:
            break
    assert fast._self_target.paths


def test_resting_calls_raise_what_the_function_raises(real: None) -> None:
    def picky(x: Any) -> Any:
        if x is None:
            raise ValueError("none")
        return x

    fast: Any = accel.accelerate(picky, name="picky")
    for _ in range(100):
        fast(1.0)
    assert not fast._self_target.account.rest.is_over
    with pytest.raises(ValueError, match=r"^none$"):
        fast(None)


def test_methods_rest_with_their_object(real: None) -> None:
    class Model:
        scale = 3.0

        @accel.accelerate
        def scaled(self, x: float) -> float:
            return self.scale * x

    model = Model()
    for number in range(300):
        assert model.scaled(number) == 3.0 * number


def test_no_program_is_asked_for_before_it_might_have_gained_something(
    real: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gain, "COMPILE_GAIN_S", 1e9)
    monkeypatch.setattr(account, "LAUNCH_S", 0.0)  # however fast the machine
    monkeypatch.setattr(gain, "potential_gain", gain.PotentialGain())

    def heavy(x: Any) -> Any:
        return np.sin(x) + np.cos(x) + np.tan(x)

    fast: Any = accel.accelerate(heavy, name="heavy")
    x = np.linspace(0.0, 1.0, 50_000)
    for _ in range(200):  # most go straight to NumPy
        fast(x)
    (path,) = fast._self_target.paths
    assert path.program.pending is None
    assert path.observed > compiling.OBSERVED


def test_what_the_worker_made_is_loaded_once_jax_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    prospects = gain.PotentialGain()
    monkeypatch.setattr(gain, "IMPORT_GAIN_S", 0.7)
    monkeypatch.setattr(gain, "potential_gain", prospects)
    monkeypatch.setattr(devices, "is_started", lambda: False)
    loaded: list[str] = []

    class Made:
        product_needs_jax = True

        def done(self) -> bool:
            return False

        def load_product(self) -> bool:
            loaded.append("yes")
            return True

    job = Made()
    monkeypatch.setattr(queues, "_under_way", {job})
    thread = threading.Thread(target=queues._load, args=(job,))
    thread.start()
    time.sleep(0.05)
    assert loaded == [] and not queues.busy(), "waiting is no work"
    prospects.add(0.8)
    thread.join(10.0)
    assert loaded == ["yes"]


def test_a_call_that_takes_long_ends_the_rest(real: None) -> None:
    def body(x: Any) -> Any:
        return np.sin(x) + np.cos(x) + np.tan(x)

    fast: Any = accel.accelerate(body, name="both")
    small, large = np.zeros(4), np.linspace(0.0, 1.0, 100_000)
    worked = time.thread_time()
    for _ in range(30):
        fast(small)
        fast(large)
    worked = time.thread_time() - worked
    assert fast._self_target.paths, "the large one is seen, however many small ones there are"
    book = open_ledger("both")
    assert book.calls == 60
    booked = book.numpy_total_s + book.costs.total() - book.costs["slowdown"]  # which is part of the calls on NumPy
    # others that use the processor take time between the calls, too; a call that they interrupt may stand for 15
    assert booked > 0.5 * worked, "all of it is in the books"


def test_targets_of_one_name_are_all_counted(real: None) -> None:
    def made(k: float) -> Any:
        @accel.accelerate(name="twin")
        def twin(x: Any) -> Any:
            return x + k

        return twin

    one, other = made(1.0), made(2.0)
    for _ in range(1500):
        one(1.0)
        other(1.0)
    assert open_ledger("twin").calls == open_ledger("twin").numpy_calls == 3000


def test_all_that_accel_does_in_a_call_is_a_cost(real: None, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    @accel.accelerate(name="plain")
    def plain(x: Any) -> Any:
        clock.work(2e-6)
        return np.sum(x)

    examine = NumPyCalls.enter_rested

    def slowly(self: NumPyCalls) -> None:
        clock.now += 0.5
        examine(self)

    monkeypatch.setattr(NumPyCalls, "enter_rested", slowly)
    before = THREAD.counted_s
    plain(np.ones(50))
    book = open_ledger("plain")
    assert book.costs["guards"] == pytest.approx(0.5, rel=0.01)
    assert book.numpy_total_s == pytest.approx(2e-6, rel=0.05)
    assert THREAD.counted_s - before == pytest.approx(0.5, rel=0.01), "a call around it does not count it again"


@pytest.mark.parametrize("rests", [False, True])
def test_time_inside_another_target_is_counted_once(
    real: None, clock: Clock, rests: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if rests:
        monkeypatch.setattr(rest, "SHARE", 1e-5)

    @accel.accelerate(name="inner")
    def inner(x: Any) -> Any:
        clock.work(1e-7)
        return np.sum(x)

    @accel.accelerate(name="outer")
    def outer(x: Any) -> Any:
        clock.work(2e-6)
        return sum(inner(x) for _ in range(200))

    for _ in range(100):
        outer(np.ones(50))
    books = {each.target: each for each in ledger.ledgers()}
    assert sum(book.numpy_total_s for book in books.values()) == pytest.approx(clock.worked, rel=0.05)
    assert ("inner" in books and books["inner"].calls > 10_000) == rests, "part of outer where that is examined"


def test_calls_at_rest_count_for_what_waits_to_be_compiled(
    real: None, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.look_s = 1e-4
    monkeypatch.setattr(gain, "COMPILE_GAIN_S", 1e9)
    monkeypatch.setattr(account, "LAUNCH_S", 0.0)  # however fast the machine
    monkeypatch.setattr(gain, "potential_gain", gain.PotentialGain())

    def body(x: Any) -> Any:
        return np.sin(x) + np.cos(x) + np.tan(x) + np.exp(x)

    fast: Any = accel.accelerate(body, name="often")
    x = np.linspace(0.0, 1.0, 1_000)
    for _ in range(5000):
        fast(x)
    book, (path,) = open_ledger("often"), fast._self_target.paths
    assert path.waited_s > 0.5 * book.numpy_total_s
    assert gain.potential_gain.seconds > 0.05 * book.numpy_total_s


def test_a_recursive_function_may_go_nearly_as_deep_as_without_accel(real: None) -> None:
    @accel.accelerate
    def total(node: Any) -> Any:
        value, rest_of_it = node
        return value if rest_of_it is None else value + total(rest_of_it)

    node = None
    for _ in range(300):
        node = (1.0, node)
    for _ in range(5):
        assert total(node) == 300.0


def test_calls_at_rest_count_for_the_budget(real: None, clock: Clock) -> None:
    clock.look_s = 1e-4

    def body(x: Any) -> Any:
        return np.sin(x) + np.cos(x)

    fast: Any = accel.accelerate(body, name="counted")
    x = np.linspace(0.0, 1.0, 5_000)
    for _ in range(400):
        fast(x)
    account = fast._self_target.account
    assert account.rest.ever[0] > 50, "most calls rested"
    # a timed call stands for those after it as soon as it ends: the ledger has to be settled at the same time
    account.add_rested()
    book = open_ledger("counted")
    # the ledger also has the call that was recorded
    assert account.rest.ever[1] < account.total_s < 1.001 * book.numpy_total_s


@pytest.mark.parametrize(("works", "examined"), [(True, True), (False, False)])
def test_only_a_call_that_the_thread_itself_works_long_on_ends_the_rest(
    real: None, works: bool, examined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that waited for a processor is of the same kind as those before."""
    kind = Rest()
    kind.begin(1e-4, 1e-4)
    assert kind.takes_next_call()
    clock = iter([0.0, 1.0])
    monkeypatch.setattr(clocks.time, "perf_counter", lambda: next(clock))
    worked = iter([0.0, 1.0 if works else 1e-5])
    monkeypatch.setattr(clocks.time, "thread_time", lambda: next(worked))
    kind.call(lambda: None, (), {})
    assert kind.is_over == examined


@pytest.mark.parametrize(("gained_s", "rests"), [(0.0, True), (1.0, False)])
def test_a_target_with_a_program_rests_while_it_gains_less_than_its_looks_cost(
    real: None, gained_s: float, rests: bool
) -> None:
    fast: Any = accel.accelerate(lambda x: x + 1.0, name="at a loss")
    target, x = fast._self_target, np.zeros(4)
    book = open_ledger("at a loss")
    book.charge("guards", 0.5)
    book.gained_s = gained_s
    target.paths.__class__ = type("WithProgram", (type(target.paths),), {"with_program": [object()]})
    call = Call(target.function, (x,), {})
    call.began = time.perf_counter() - 1e-3
    target._numpy.whole(call)
    assert target.rest.is_over != rests


@pytest.mark.parametrize(("looked_s", "ends"), [(0.03, True), (0.5, False)])
def test_long_calls_end_no_rest_of_a_target_whose_looks_have_cost_too_much(
    real: None, looked_s: float, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Iterations of two kinds in turns would be examined at nearly each of them."""
    monkeypatch.setattr(budget, "TARGET_FIXED_S", 0.02)
    fast: Any = accel.accelerate(lambda x: x + 1.0, name="in turns")
    target = fast._self_target
    open_ledger("in turns").charge("guards", looked_s)
    target.account.total_s = 1.0
    target.account.begin_rest(1e-4, 1e-5)
    assert target.rest.takes_next_call()
    clock, worked = iter([0.0, 1.0]), iter([0.0, 1.0])
    monkeypatch.setattr(clocks.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(clocks.time, "thread_time", lambda: next(worked))
    target.rest.call(lambda: None, (), {})
    assert target.rest.is_over is ends
