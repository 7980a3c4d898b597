"""Random numbers that are drawn ahead, and by two threads: they are NumPy's, whatever the program does in between."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import accel
from accel import config
from accel.dispatch.replay import ahead, halves
from accel.dispatch.replay.draws import Draws
from accel.dispatch.replay.halves import Divisible, Halves, Rooms, Twins, divisible
from accel.process import processors, tasks
from accel.record.state.draw import Draw, Form
from accel.record.values.draws.generators import KINDS
from accel.reports.ledger import open_ledger

SIZES: tuple[Any, ...] = (9_000, (50, 80), 301)


@pytest.fixture(autouse=True)
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is worth drawing ahead, and the other thread has always begun in time."""
    call_back = tasks.Task.call_back

    def once_begun(self: Any) -> bool:
        until = time.perf_counter() + 30.0
        while "holder" not in self.__dict__ and time.perf_counter() < until:
            time.sleep(1e-4)
        return call_back(self)

    monkeypatch.setattr(tasks.Task, "call_back", once_begun)
    monkeypatch.setattr(processors, "usable", lambda: 2)
    monkeypatch.setattr(ahead, "LEAST_S", 0.0)
    monkeypatch.setattr(ahead, "PATIENCE", 1e9)
    monkeypatch.setattr(ahead, "WORTH", 1e9)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Of each time that something had been drawn ahead, whether it was taken."""
    noted: list[bool] = []
    collected = ahead.Ahead._collected

    def counted(self: Any, begun: Any, values: Any) -> Any:
        after = collected(self, begun, values)
        noted.append(after is not None)
        return after

    monkeypatch.setattr(ahead.Ahead, "_collected", counted)
    yield noted


PARAMETERS = {"weibull": (1.5,), "pareto": (2,), "power": (3.0,), "triangular": (0, 0.2, 1), "poisson": (3.0,)}


def draw(slot: int, method: str, size: Any) -> Draw:
    shape, dtype = size if type(size) is tuple else (size,), np.dtype(int if method == "poisson" else float)
    return Draw(slot, 0, method, PARAMETERS.get(method, ()), {"size": size}, Form(shape, dtype, None))


def draws_of(method: str, sizes: tuple[Any, ...] = SIZES) -> list[Draw]:
    return [draw(1 + i, method, size) for i, size in enumerate(sizes)]


def made(draws: Draws, generator: Any, count: int = len(SIZES)) -> list[Any]:
    """What the draws of one call give."""
    values = [generator] + [None] * count
    assert draws.make(values) is not None
    draws.note_run(1e-3)
    return values[1:]


def assert_draws_alike(draws: Draws, mine: Any, theirs: Any, method: str) -> None:
    """What a call draws by one generator is what NumPy draws by the other."""
    for size, array in zip(SIZES, made(draws, mine), strict=True):
        np.testing.assert_array_equal(array, getattr(theirs, method)(*PARAMETERS.get(method, ()), size=size))


def assert_alike(mine: Any, theirs: Any) -> None:
    kind = KINDS[type(mine)]
    assert str(kind.state(mine)) == str(kind.state(theirs))


@pytest.mark.parametrize("method", ["random", "standard_normal", "standard_exponential", "normal", "poisson"])
@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox])
def test_the_stream_is_numpys(method: str, bits: Any, taken: list[bool]) -> None:
    mine, theirs = (np.random.Generator(bits(5)) for _ in range(2))
    for each in (mine, theirs):
        each.integers(5, dtype=np.int32)  # which keeps half a number
    draws = Draws(draws_of(method))
    for _ in range(12):
        assert_draws_alike(draws, mine, theirs, method)
        assert_alike(mine, theirs)
    assert sum(taken) >= 6
    assert mine.integers(5, dtype=np.int32) == theirs.integers(5, dtype=np.int32)


def test_so_is_that_of_the_old_generators(taken: list[bool]) -> None:
    mine, theirs = (np.random.RandomState(5) for _ in range(2))
    draws = Draws(draws_of("standard_normal"))
    for _ in range(12):
        assert_draws_alike(draws, mine, theirs, "standard_normal")
        assert_alike(mine, theirs)
    assert sum(taken) >= 6


def test_a_program_that_draws_in_between_finds_its_generator(taken: list[bool]) -> None:
    mine, theirs = (np.random.default_rng(5) for _ in range(2))
    draws = Draws(draws_of("standard_normal"))
    for i in range(60):
        assert_draws_alike(draws, mine, theirs, "standard_normal")
        if i % 20 == 10:
            assert mine.random() == theirs.random()
        assert_alike(mine, theirs)
    assert sum(taken) >= 6


def test_where_the_program_always_draws_in_between_nothing_is_drawn_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "send", lambda work: pytest.fail("in vain"))
    generator, draws = np.random.default_rng(5), Draws(draws_of("standard_normal"))
    for _ in range(12):
        made(draws, generator)
        generator.random()


@pytest.mark.parametrize("how", ["one thread is asked for", "one processor", "on a device"])
def test_nothing_is_drawn_ahead(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "send", lambda work: pytest.fail("it was"))
    if how == "one processor":
        monkeypatch.setattr(processors, "usable", lambda: 1)
    draws = Draws(draws_of("standard_normal"), ahead=how != "on a device")
    generator = np.random.default_rng(5)
    with config.override(threads=1 if how == "one thread is asked for" else None):
        for _ in range(12):
            made(draws, generator)


def test_another_generator_of_another_kind_is_drawn_from(taken: list[bool]) -> None:
    draws = Draws(draws_of("standard_normal"))
    for bits in (np.random.PCG64, np.random.MT19937, np.random.PCG64DXSM):
        mine, theirs = (np.random.Generator(bits(5)) for _ in range(2))
        for _ in range(ahead.PAUSE + 12):
            for size, array in zip(SIZES, made(draws, mine), strict=True):
                np.testing.assert_array_equal(array, theirs.standard_normal(size))
            assert_alike(mine, theirs)
    assert sum(taken) >= 12


@pytest.mark.parametrize("fault", ["late", "raises", "not begun", "no thread"])
def test_without_the_other_thread_the_call_draws(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "late":
        monkeypatch.setattr(ahead, "PATIENCE", 0.0)
        monkeypatch.setattr(Halves, "draw_first", lambda self: time.sleep(0.02))
    elif fault == "raises":
        monkeypatch.setattr(Halves, "draw_first", lambda self: 1 / 0)
    elif fault == "not begun":
        monkeypatch.setattr(tasks.Task, "call_back", lambda self: True)
    else:
        monkeypatch.setattr(tasks, "send", lambda work: None)
    mine, theirs = (np.random.default_rng(5) for _ in range(2))
    draws = Draws(draws_of("standard_normal"))
    for _ in range(12):
        assert_draws_alike(draws, mine, theirs, "standard_normal")
        assert_alike(mine, theirs)


def test_an_interrupt_while_taking_puts_the_state_back(taken: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    mine, theirs = (np.random.default_rng(5) for _ in range(2))
    draws = Draws(draws_of("standard_normal"))
    for _ in range(8):
        made(draws, mine), made(Draws(draws_of("standard_normal")), theirs)
    assert taken[-1]
    with monkeypatch.context() as patches:
        join = Halves.join
        patches.setattr(Halves, "join", lambda *args: (join(*args), signal.raise_signal(signal.SIGINT)))
        with pytest.raises(KeyboardInterrupt):
            made(draws, mine)
    assert_alike(mine, theirs)
    np.testing.assert_array_equal(made(draws, mine)[0], theirs.standard_normal(SIZES[0]))


def test_a_forked_child_does_not_wait_for_the_thread(taken: list[bool]) -> None:
    """What was begun before the fork has no thread in the child."""
    mine, theirs = (np.random.default_rng(5) for _ in range(2))
    draws = Draws(draws_of("standard_normal"))
    for _ in range(8):
        made(draws, mine), made(Draws(draws_of("standard_normal")), theirs)
    assert taken[-1] and draws._ahead is not None and draws._ahead._begun is not None
    tasks._forget()  # as in a child
    np.testing.assert_array_equal(made(draws, mine)[0], theirs.standard_normal(SIZES[0]))
    assert not taken[-1]


# -- halves ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", list(halves.RATES))
@pytest.mark.parametrize("count", [200, 5_000, 19_000, 19_990])
def test_two_halves_are_one_stream(method: str, count: int) -> None:
    generator = np.random.default_rng(11)
    twins = Twins(generator, np.random.PCG64, generator.bit_generator.state)
    plan, rooms = divisible(draws_of(method, (20_000,))), Rooms(20_000)
    assert plan is not None
    for _ in range(30):
        drawn = Halves(plan, twins, generator.bit_generator.state, rooms.room(), count)
        drawn.draw_second()
        after = drawn.join(drawn.draw_first())
        ((slot, array),) = drawn.values()
        assert slot == 1
        np.testing.assert_array_equal(array, getattr(generator, method)(*PARAMETERS.get(method, ()), size=20_000))
        assert after == generator.bit_generator.state


def test_where_they_do_not_meet_the_second_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Halves, "_is_proved", lambda self, drawn, end: False)
    test_two_halves_are_one_stream("standard_normal", 5_000)


def test_they_meet_nearly_always(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    drawn_before = Halves._drawn_before
    monkeypatch.setattr(Halves, "_drawn_before", lambda *args: found.append(drawn_before(*args)) or found[-1])
    for method in halves.RATES:
        test_two_halves_are_one_stream(method, 10_000)
    assert len(found) == 30 * len(halves.RATES) and found.count(None) <= 1


def test_numbers_that_are_all_alike_are_drawn_by_one_thread() -> None:
    generator = np.random.default_rng(11)
    twins = Twins(generator, np.random.PCG64, generator.bit_generator.state)
    plan = divisible([Draw(1, 0, "normal", (1.0, 0.0, 20_000), {}, Form((20_000,), np.dtype(float), None))])
    assert plan is not None
    drawn = Halves(plan, twins, generator.bit_generator.state, Rooms(20_000).room(), 10_000)
    drawn.draw_second()
    after = drawn.join(drawn.draw_first())
    np.testing.assert_array_equal(drawn.values()[0][1], generator.normal(1.0, 0.0, 20_000))
    assert after == generator.bit_generator.state


def test_what_two_threads_cannot_draw() -> None:
    assert divisible(draws_of("standard_gamma")) is None
    numbers = [
        Draw(i, 0, "normal", (0.1 * i, 2), {"size": 9_000}, Form((9_000,), np.dtype(float), None)) for i in (1, 2)
    ]
    assert divisible(numbers) is None and divisible(numbers[:1]) is None
    array = Draw(1, 0, "normal", (np.zeros(50_000), 2.0, 50_000), {}, Form((50_000,), np.dtype(float), None))
    assert divisible([array]) is None
    assert divisible(draws_of("standard_normal", (9,))) is None
    assert divisible([draw(1, "random", 50_000), draw(2, "standard_normal", 50_000)]) is None
    narrow = Draw(1, 0, "random", (50_000, np.float32), {}, Form((50_000,), np.dtype(np.float32), None))
    assert divisible([narrow]) is None
    ziggurat = Draw(1, 0, "standard_exponential", (50_000,), {"method": "inv"}, Form((50_000,), np.dtype(float), None))
    assert divisible([ziggurat]) is None
    plain = divisible([Draw(1, 0, "random", (50_000,), {}, Form((50_000,), np.dtype(float), None))])
    assert plain == Divisible(0, "random", {}, ((1, (50_000,), 0, 50_000),), 50_000)


def test_a_room_that_is_held_is_given_to_nobody_else() -> None:
    rooms = Rooms(100)
    held = [rooms.room()[10:20] for _ in range(2 * Rooms.MOST)]
    addresses = {array.ctypes.data for array in held}
    assert len(addresses) == len(held)
    freed = held.pop(0).ctypes.data
    assert rooms.room()[10:20].ctypes.data == freed


# -- whole programs ----------------------------------------------------------------------------------------------------


def walk(x: Any, rng: Any) -> Any:
    z = rng.standard_normal(12_000)
    return 0.9 * np.sin(x) + 0.1 * z, z


@pytest.mark.usefixtures("foreground")
def test_a_program_gets_and_keeps_its_numbers(taken: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    from accel.dispatch.comparing.policy import Comparisons

    monkeypatch.setattr(Comparisons, "is_due", lambda self, path, mode: False)
    fast = accel.accelerate(walk, name="walk")
    mine, theirs = (np.random.default_rng(5) for _ in range(2))
    x = y = np.zeros(12_000)
    kept = []
    for _ in range(40):
        (x, z), (y, w) = walk(x, mine), fast(y, theirs)
        np.testing.assert_allclose(y, x, rtol=1e-9, atol=1e-12)
        assert_alike(mine, theirs)
        kept.append((z, w))
    assert all(np.array_equal(*pair) for pair in kept)
    assert open_ledger("walk").compiled_calls >= 20 and sum(taken) >= 10


@pytest.mark.usefixtures("foreground")
def test_every_call_compared(taken: list[bool]) -> None:
    fast = accel.accelerate(walk, name="verified", mode="verify")
    rng, x = np.random.default_rng(5), np.zeros(12_000)
    for _ in range(40):
        x, _ = fast(x, rng)
    assert "verify.mismatch" not in {refusal.reason for refusal in open_ledger("verified").refusals}
    assert sum(taken) >= 10


# -- the pace ----------------------------------------------------------------------------------------------------------


def paced(draw_s: float = 1.0, run_s: float = 1.5) -> ahead.Pace:
    pace = ahead.Pace()
    for _ in range(ahead.SEEN):
        pace.note_plain(draw_s, expected=True)
        pace.run_s.add(run_s)
    return pace


def test_drawing_ahead_that_loses_pauses_ever_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "WORTH", 0.9)
    pace, pauses = paced(), []
    assert pace.is_time()
    for _ in range(3):
        while pace.is_time():
            pace.note_ahead(1.6)
        pauses.append(0)
        while not pace.is_time():
            pace.note_plain(1.0, expected=True)
            pauses[-1] += 1
    assert pauses == [ahead.PAUSE, 2 * ahead.PAUSE, 4 * ahead.PAUSE]


def test_drawing_ahead_that_gains_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "WORTH", 0.9)
    pace = paced()
    for i in range(1000):
        pace.note_ahead(2.5 if i % 20 == 19 else 0.9)
        assert pace.is_time()


def test_small_draws_are_not_made_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "LEAST_S", 1e-4)
    assert not paced(draw_s=0.9e-4).is_time() and paced(draw_s=1.1e-4).is_time()
