"""State that rounds leave on a device with a memory of its own: nobody sees it out of date; what is moved is counted.

The CPU plays the device. Memory that is to be filled later holds NaN, so that whoever looks too early sees it.
"""

from __future__ import annotations

import gc
import io
import json
import signal
import sys
import threading
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import accel
from accel.backend import devices, resident
from accel.backend.underway import queues
from accel.catalogue import Catalogue, Row
from accel.dispatch.comparing import policy
from accel.dispatch.paths.known import KnownPaths
from accel.entry.lift.holding import Holding
from accel.platform import background, bars, config, observers
from accel.platform.ledger import open_ledger
from accel.policy.parts import Parts
from tests.conftest import is_idle
from tests.entry.lift.conftest import HEADER, World, assert_same

pytestmark = pytest.mark.usefixtures("foreground", "remote")

SHAPE = (6, 8)
NBYTES = 6 * 8 * 8
PATIENCE_S = 120.0
"""On a busy machine, starting the process that compiles takes long."""


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The CPU as a device with a memory of its own. No comparisons, so that each replay stands; nobody looks on."""
    deadline = time.monotonic() + PATIENCE_S
    while (queues.busy() or background.threads.are_running) and time.monotonic() < deadline:
        time.sleep(1e-3)
    room = resident.room

    def poisoned(shape: tuple[int, ...], dtype: Any) -> Any:
        made = room(shape, dtype)
        made[...] = np.nan if made.dtype.kind in "fc" else 1
        return made

    monkeypatch.setattr(devices, "plays_apart", True)
    monkeypatch.setattr(resident, "room", poisoned)
    monkeypatch.setattr(policy.Comparisons, "is_due", lambda *_: False)
    monkeypatch.setattr("accel.entry.lift.holding.observer", lambda: None)
    yield
    assert not resident.current.is_open and not resident.current._known
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    resident.current.possible = False


@pytest.fixture
def behind(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Counts rounds after which the loop has held state on the device."""
    found: Counter[str] = Counter()
    run = Holding.run

    def counting(self: Any, call: Any, body: Any) -> Any:
        result = run(self, call, body)
        found["held" if self._switch.holds else "not"] += 1
        return result

    monkeypatch.setattr(Holding, "run", counting)
    yield found


@pytest.fixture
def both(world: Callable[..., World]) -> Callable[[str], World]:
    """Gives a function that makes a world of the source of a function `main`, which follows a class `Model`."""
    return lambda source: world(HEADER + source)


def model_of(planet: ModuleType) -> Any:
    model = planet.Model()
    model.u = np.random.default_rng(0).normal(size=SHAPE)
    model.v = np.zeros(SHAPE)
    model.n = 0
    return model


STEP = (
    "        model.n += 1\n        model.v = model.v + 0.1 * np.sin(model.u)\n"
    "        model.u = model.u - 0.1 * model.v\n"
)


def state(model: Any) -> list[Any]:
    return [model.u, model.v, model.n]


# -- what is moved -----------------------------------------------------------------------------------------------------


def moved() -> dict[str, Any]:
    (function,) = (each for each in json.loads(accel.report("json"))["functions"] if each["transfers"]["launches"])
    return function["transfers"]  # type: ignore[no-any-return]


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Bytes that really go to the device and back, and how often rounds begin to hold state."""
    import jax

    found: Counter[str] = Counter()
    put, get, begin = jax.device_put, jax.device_get, Holding._open

    def counted_put(values: Any, *args: Any, **kwargs: Any) -> Any:
        found["there"] += sum(each.nbytes for each in jax.tree.leaves(values) if isinstance(each, np.ndarray))
        return put(values, *args, **kwargs)

    def counted_get(values: Any) -> Any:
        found["back"] += sum(each.nbytes for each in jax.tree.leaves(values))
        return get(values)

    def counted_begin(self: Any, body: Any) -> str | None:
        begun = begin(self, body)
        found["begun"] += begun is None
        return begun

    monkeypatch.setattr(jax, "device_put", counted_put)
    monkeypatch.setattr(jax, "device_get", counted_get)
    monkeypatch.setattr(Holding, "_open", counted_begin)
    return found


def test_a_steady_loop_moves_nothing_but_numbers(both: Any, behind: Counter[str], copies: Counter[str]) -> None:
    made = both("def main(model, rounds):\n    for i in rounds:\n" + STEP)

    def play(planet: ModuleType) -> Any:
        model = model_of(planet)
        planet.main(model, range(60))
        return state(model)

    made.check(play, times=2)
    found = moved()
    assert behind["held"] > 100 and found["launches"] > 100
    # of each run of the loop the first round with a program takes both arrays, and both are fetched once it has ended
    assert set(found["handed"]) == set(found["fetched"]) == {"main's model.u", "main's model.v"}
    assert max(*found["handed"].values(), *found["fetched"].values()) <= 4 * NBYTES
    assert sum(found["handed"].values()) + found["constants"] >= copies["there"] >= sum(found["handed"].values())
    assert sum(found["fetched"].values()) == copies["back"]


def test_it_needs_no_copies_but_what_the_program_looks_at(both: Any, copies: Counter[str], capsys: Any) -> None:
    """The acceptance of issue 20: implicit copies are forbidden, and the explicit ones are counted."""
    import jax

    made = both(
        "def main(model, rounds, history):\n    total = np.zeros(model.u.shape)\n    mask = model.u > 0\n"
        "    for i in rounds:\n"
        + STEP
        + "        total = total + model.v\n        mask[0] = model.u[0] > 0.5\n        history.append(model.v)\n"
        "        if i % 3 == 2:\n            print(f'{i} {model.u.mean():.3f}')\n"
        "    return total, mask\n"
    )

    def play(planet: ModuleType) -> Any:
        model, history = model_of(planet), []
        return planet.main(model, range(60), history), state(model), history, capsys.readouterr().out

    made.check(play)
    copies.clear()
    with jax.transfer_guard("disallow"):
        made.check(play, times=1)
    # the state there and back, whenever rounds begin to hold it: once, but for paths that have no program yet; each
    # of the arrays that the program keeps; and of each iteration a few numbers and outcomes
    once, numbers = 3 * NBYTES + NBYTES // 8, 60 * 8 * 8
    assert 0 < copies["begun"] <= 4
    assert copies["there"] <= copies["begun"] * once + numbers
    assert 50 * NBYTES <= copies["back"] <= 60 * NBYTES + copies["begun"] * once + numbers


# -- whoever may look --------------------------------------------------------------------------------------------------

ITERABLES = {
    "range": lambda model: range(12),
    "enumerate": lambda model: enumerate(range(12)),
    "list": lambda model: list(range(12)),
    "zip": lambda model: zip(range(12), [0.5] * 12),  # noqa: B905
    "array": lambda model: np.arange(12.0),
    "numbered array": lambda model: enumerate(np.arange(12.0)),
}

LOOKING_ITERABLES = {
    "generator": lambda model: (float(model.u.sum()) for _ in range(12)),
    "map": lambda model: map(model.v.__getitem__, [(0, 0)] * 12),
    "enumerated generator": lambda model: enumerate(float(model.u.sum()) for _ in range(12)),
    "strict zip": lambda model: zip(range(12), [0.5] * 12, strict=True),
    "text": lambda model: ["ab"] * 12,
    "callable": lambda model: iter(lambda: min(model.n + float(model.u.sum()) * 0, 12), 12),
}


@pytest.mark.parametrize("kind", ITERABLES)
def test_iterables_that_run_no_code(kind: str, both: Any, behind: Counter[str]) -> None:
    made = both("def main(model, rounds):\n    last = None\n    for last in rounds:\n" + STEP + "    return last\n")

    def play(planet: ModuleType) -> Any:
        model = model_of(planet)
        return str(planet.main(model, ITERABLES[kind](model))), state(model)

    made.check(play)
    assert behind["held"] > 20


def reasons() -> str:
    """Why iterations left nothing on the device, by the report."""
    functions = json.loads(accel.report("json"))["functions"]
    return " ".join(why for each in functions for why in each["transfers"]["not_held"])


@pytest.mark.parametrize("kind", LOOKING_ITERABLES)
def test_iterables_that_read_state(kind: str, both: Any, behind: Counter[str]) -> None:
    made = both("def main(model, rounds, seen):\n    for each in rounds:\n" + STEP + "        seen.append(each)\n")

    def play(planet: ModuleType) -> Any:
        model, seen = model_of(planet), []
        planet.main(model, LOOKING_ITERABLES[kind](model), seen)
        return seen, state(model)

    made.check(play)
    assert not behind["held"] and behind["not"] > 20
    assert "may run code of the program's" in reasons()


LOOKS: dict[str, tuple[str, bool | None]] = {
    "the loop's end": ("    for i in range(12):\n" + STEP + "    return model.u.copy(), model.v * 2\n", True),
    "its else": ("    for i in range(12):\n" + STEP + "    else:\n        x = model.u.sum()\n    return x\n", True),
    "break": (
        "    for i in range(40):\n"
        + STEP
        + "        if model.n % 13 == 12:\n            break\n    return model.u * 2\n",
        True,
    ),
    "continue": (
        "    for i in range(12):\n" + STEP + "        if i > 4:\n            continue\n    return model.u * 2\n",
        True,
    ),
    "return": ("    for i in range(40):\n" + STEP + "        if i == 12:\n            return model.u.sum(), i\n", True),
    "a history": (
        "    seen, rows = [], []\n    for i in range(12):\n" + STEP + "        seen.append(model.u)\n"
        "        rows.append(model.v[1:3])\n    return seen, rows\n",
        True,
    ),
    "changes in place": (
        "    seen, w = [], np.zeros(model.u.shape)\n    for i in range(12):\n        model.n += 1\n"
        "        model.u += 0.1 * np.cos(w)\n        w[1:3] += model.u[1:3]\n        seen.append(model.u)\n"
        "    return seen, w, seen[0] is model.u\n",
        True,
    ),
    "a view of the state": (
        "    model.part = model.u[1:4]\n    for i in range(12):\n        model.n += 1\n"
        "        model.v = model.v + model.part.sum()\n        model.u = np.sin(model.u + model.v)\n"
        "        model.part = model.u[1:4]\n    return model.part\n",
        True,
    ),
    "a view of what is changed in place": (
        "    part = model.u[1:4]\n    for i in range(12):\n        model.n += 1\n        x = part * 0.5\n"
        "        model.v = model.v + x.sum()\n        if i % 2:\n            model.u *= 1.1\n    return part\n",
        None,
    ),
    "a variable": ("    w = model.u\n    for i in range(12):\n        w = np.sin(w) + 1\n    return w\n", True),
    "del": (
        "    for i in range(12):\n" + STEP + "        w = model.u * 2\n        model.last = w\n        del w\n"
        "    return model.last\n",
        True,
    ),
    "a variable that may be unbound": (
        "    for i in range(12):\n        try:\n            w\n        except NameError:\n            w = model.u * 1\n"
        "        w = np.sin(w)\n        model.u = model.u + w\n        if i == 8:\n            del w\n    return w\n",
        None,
    ),
    "a condition of numbers": (
        "    t = 0.0\n    end = 0.95\n    while t < end:\n" + STEP + "        t += 0.1\n    return t\n",
        True,
    ),
    "a condition of arrays": (
        "    w = model.u * 0\n    s = w.sum()\n    while model.u[0, 0] < 9:\n        model.u = model.u + 0.5 + s\n"
        "    return model.u\n",
        False,
    ),
    "a condition of an array's name": (
        "    t, n = np.zeros(()), 0\n    while t < 10:\n        t += 1\n        n += 1\n"
        "        model.u = model.u * 1.01\n    return n\n",
        False,
    ),
    "while True": (
        "    while True:\n" + STEP + "        if model.n % 12 == 11:\n            break\n    return model.u * 1\n",
        True,
    ),
    "the loop itself, in a round": (
        "    for i in range(12):\n" + STEP + "        if i == 5 and model.n < 40:\n"
        "            open(__file__).close()\n            main(model)\n    return model.u * 2\n",
        None,
    ),
    "its own array of numbers": (
        "    times, s = np.arange(12.0), 0.0\n    for t in times:\n        times += 0.25\n"
        "        model.u = model.u + t\n        s = s + t\n    return times, s\n",
        False,
    ),
    "a target that sets": (
        "    class Box:\n        seen = []\n        def __setattr__(self, name, value):\n"
        "            self.seen.append(float(model.u.sum()))\n    box = Box()\n    for box.i in range(12):\n"
        + STEP
        + "    return box.seen\n",
        False,
    ),
}
"""By who looks: the body of `main(model)`, and whether rounds hold state for all that; None for some of them."""


@pytest.mark.parametrize("who", LOOKS)
def test_whoever_looks_sees_what_numpy_has_made(who: str, both: Any, behind: Counter[str]) -> None:
    text, holds = LOOKS[who]
    made = both("def main(model):\n" + text)

    def play(planet: ModuleType) -> Any:
        model = model_of(planet)
        return planet.main(model), state(model)

    made.check(play)
    assert holds is None or bool(behind["held"]) is holds


def test_an_error_at_a_round(both: Any, behind: Counter[str]) -> None:
    made = both(
        "def main(model):\n    for i in range(30):\n" + STEP + "        if i == 12:\n            raise ValueError(i)\n"
    )

    def play(planet: ModuleType) -> Any:
        model = model_of(planet)
        with pytest.raises(ValueError, match="12"):
            planet.main(model)
        return state(model)

    made.check(play)
    assert behind["held"] > 20


class Finalized:
    """Reads what a model holds when nobody holds it any more."""

    def __init__(self, model: Any, seen: list[Any]) -> None:
        self.model, self.seen = model, seen

    def __del__(self) -> None:
        self.seen.append(float(self.model.u.sum()))


def test_a_finalizer_of_what_a_round_replaces(both: Any, behind: Counter[str]) -> None:
    made = both(
        "def main(model, seen):\n    for i in range(12):\n"
        + STEP
        + "        if i == 8:\n            model.held = None\n"
    )

    def play(planet: ModuleType) -> Any:
        model, seen = model_of(planet), []
        for _ in range(3):
            model.held = Finalized(model, seen)
            planet.main(model, seen)
        return seen, state(model)

    made.check(play)
    assert behind["held"] > 20


@pytest.mark.parametrize("is_told", [False, True])
def test_a_weak_reference_to_what_a_round_replaces(is_told: bool, both: Any, behind: Counter[str]) -> None:
    made = both("def main(model):\n    for i in range(12):\n" + STEP)

    def play(planet: ModuleType) -> Any:
        model, seen = model_of(planet), []

        def gone(_: Any) -> None:
            seen.append(float(np.nansum(model.v) + model.u.sum()))

        refs = [weakref.ref(model.u, gone if is_told else None), weakref.ref(model.v)]
        planet.main(model)
        return seen[:0], [each() is None for each in refs], not seen or bool(np.isfinite(seen).all()), state(model)

    made.check(play)
    assert behind["held"] > 20


def test_finalizers_of_garbage(both: Any, behind: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Garbage is collected while rounds hold state, and what is collected looks at it."""
    monkeypatch.setattr(observers, "MOST_OBJECTS", 20)
    made = both("def main(model):\n    for i in range(60):\n" + STEP)

    class Again:
        """Garbage that leaves garbage."""

        def __init__(self, model: Any, seen: list[Any]) -> None:
            self.model, self.seen, self.own = model, seen, self

        def __del__(self) -> None:
            self.seen.append(float(self.model.u.sum()) + float(self.model.v.sum()))
            if len(self.seen) < 200:
                Again(self.model, self.seen)

    def play(planet: ModuleType) -> Any:
        model, seen = model_of(planet), []
        before = gc.get_threshold()
        Again(model, seen)
        gc.set_threshold(20, 1, 1)
        try:
            planet.main(model)
        finally:
            gc.set_threshold(*before)
        return bool(np.isfinite(seen).all()), len(seen) > 3 or planet.__name__ == "plainplanet", state(model)

    made.check(play)


def test_ctrl_c_between_rounds(both: Any, behind: Counter[str]) -> None:
    """Wherever it arrives, the program sees the state after a whole number of iterations."""
    made = both(
        "def main(model, rounds):\n    try:\n        for i in rounds:\n"
        + STEP.replace("        ", "            ")
        + "    except KeyboardInterrupt:\n        return float(model.u.sum()), float(model.v.sum()), model.n\n"
    )
    accel.install(Catalogue("test", (Row("planet", "main", "a test", loops=True),)))
    for _ in range(2):
        made.fast.main(model_of(made.fast), range(10))
    for delay in (0.05, 0.11, 0.17, 0.23, 0.31):
        timer = threading.Timer(delay, signal.raise_signal, [signal.SIGINT])
        timer.start()
        u, v, n = made.fast.main(model_of(made.fast), range(10**6))
        timer.join()
        model = model_of(made.plain)
        made.plain.main(model, range(n))
        np.testing.assert_allclose([u, v], [model.u.sum(), model.v.sum()], rtol=1e-9)
    assert behind["held"] > 100


def test_a_handler_that_looks_at_state_and_goes_on(both: Any, behind: Counter[str]) -> None:
    """It sees the state after a whole number of iterations, and stands where the program has put it after the loop."""
    made = both(
        "import signal\n\n\ndef main(model, rounds, seen):\n    model.stop = False\n\n    def look(number, frame):\n"
        "        assert signal.getsignal(number) is look\n"
        "        seen.append((float(model.u.sum()), float(model.v.sum()), model.n))\n"
        "        model.stop = len(seen) > 4\n\n"
        "    before = signal.signal(signal.SIGUSR1, look)\n    for i in rounds:\n"
        + STEP
        + "        if model.stop:\n            break\n"
        "    assert signal.signal(signal.SIGUSR1, before) is look\n"
    )
    accel.install(Catalogue("test", (Row("planet", "main", "a test", loops=True),)))
    for _ in range(2):
        made.fast.main(model_of(made.fast), range(10), [])
    behind.clear()
    seen: list[tuple[float, float, int]] = []
    timers = [threading.Timer(delay, signal.raise_signal, [signal.SIGUSR1]) for delay in (0.1, 0.2, 0.31, 0.4, 0.5)]
    for timer in timers:
        timer.start()
    made.fast.main(model_of(made.fast), range(10**6), seen)
    for timer in timers:
        timer.join()
    assert len(seen) == 5 and behind["held"] > 20
    for u, v, n in seen:
        model = model_of(made.plain)
        made.plain.main(model, range(n), [])
        np.testing.assert_allclose([u, v], [model.u.sum(), model.v.sum()], rtol=1e-9)


def test_two_signals_while_a_round_is_stored(both: Any, behind: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One before arrays are left behind, the next before they are brought up to date: its handler sees their values."""
    made = both("def main(model):\n    for i in range(14):\n" + STEP)
    made.check(all_rounds, times=2)
    expected, model = all_rounds(made.plain), model_of(made.fast)
    seen: list[float] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(float(model.u.sum() + model.v.sum())))
    note, bring = resident.Residents.note, resident.Residents.bring_up_to_date
    sent: list[int] = []

    def noting(self: Any, *args: Any) -> Any:
        if not sent and behind["held"] > 4:
            sent.append(1)
            signal.raise_signal(signal.SIGUSR1)
        return note(self, *args)

    def bringing(self: Any, *why: str) -> None:
        if len(sent) == 1 and seen:
            sent.append(2)
            signal.raise_signal(signal.SIGUSR1)
        bring(self, *why)

    behind.clear()
    monkeypatch.setattr(resident.Residents, "note", noting)
    monkeypatch.setattr(resident.Residents, "bring_up_to_date", bringing)
    try:
        made.fast.main(model)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert sent == [1, 2] and np.isfinite(seen).all()
    assert_same(state(model), expected)


@pytest.mark.parametrize("at", ["handlers", "garbage"])
def test_a_signal_while_rounds_begin_to_hold_state(
    at: str, both: Any, behind: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its handler runs once, and runs the loop itself; all handlers and the collection of garbage are as before."""
    made = both("def main(model):\n    for i in range(14):\n" + STEP)
    made.check(all_rounds, times=2)
    seen: list[int] = []
    expected = all_rounds(made.plain)

    def handler(number: int, _: Any) -> None:
        seen.append(number)
        if len(seen) < 3:
            assert_same(all_rounds(made.fast), expected)

    taken = (signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
    before = [signal.signal(each, handler) for each in taken]
    real = signal.signal if at == "handlers" else gc.disable
    sent: list[int] = []

    def sending(*args: Any) -> Any:
        result = real(*args)
        if not sent:
            sent.append(1)
            signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr(*((signal, "signal", sending) if at == "handlers" else (gc, "disable", sending)))
    behind.clear()
    try:
        assert_same(all_rounds(made.fast), expected)
        assert gc.isenabled() and [signal.getsignal(each) for each in taken] == [handler] * 3
        signal.raise_signal(signal.SIGUSR2)
        assert seen == [signal.SIGINT, signal.SIGUSR2] and behind["held"] > 10
    finally:
        monkeypatch.undo()
        gc.enable()
        for each, old in zip(taken, before, strict=True):
            signal.signal(each, old)


def test_garbage_is_collected_in_long_loops(both: Any, behind: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Not while arrays are behind, and nearly as often as Python would."""
    made = both("def main(model, rounds):\n    for i in rounds:\n" + STEP)
    accel.install(Catalogue("test", (Row("planet", "main", "a test", loops=True),)))
    made.fast.main(model_of(made.fast), range(10))
    found: list[bool] = []

    def told(phase: str, info: object) -> None:
        found.append(bool(resident.current.is_open))

    monkeypatch.setattr(observers, "MOST_OBJECTS", 20)
    gc.callbacks.append(told)
    before = gc.get_threshold()
    gc.set_threshold(20, 1, 1)
    try:
        made.fast.main(model_of(made.fast), range(200))
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(told)
    assert gc.isenabled() and found and not any(found)


@pytest.mark.parametrize("holds", ["arrays", "nothing"])
def test_garbage_that_may_hold_arrays_waits_for_less_long(
    holds: str, both: Any, behind: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between rounds, garbage waits: of few objects, until it may keep much memory."""
    keeps = "        kept.append(model.u)\n" if holds == "arrays" else "        kept.append([model.n])\n"
    made = both("def main(model, rounds, kept):\n    for i in rounds:\n" + STEP + keeps)
    accel.install(Catalogue("test", (Row("planet", "main", "a test", loops=True),)))
    made.fast.main(model_of(made.fast), range(10), [])
    monkeypatch.setattr(observers, "MOST_KEPT", 50 * NBYTES)
    behind.clear()
    before = gc.get_threshold()
    gc.set_threshold(20, 1000, 1000)
    try:
        made.fast.main(model_of(made.fast), range(400), [])
    finally:
        gc.set_threshold(*before)
    assert ("garbage is to be collected" in open_ledger("planet:main:9").not_held) is (holds == "arrays")
    assert behind["held"] > 350


# -- progress bars -----------------------------------------------------------------------------------------------------

BAR = (
    "import io\n\nfrom tqdm import tqdm\n\n\nclass Looking(io.StringIO):\n    def __init__(self, model):\n"
    "        super().__init__()\n        self.model, self.seen = model, []\n\n    def write(self, text):\n"
    "        self.seen.append(float(self.model.u.sum()))\n        return super().write(text)\n\n\n"
)

BARS = {
    "a bar": "tqdm(range(14), file=io.StringIO())",
    "a bar in the middle": "enumerate(tqdm(np.arange(14.0), desc='steps', file=io.StringIO(), mininterval=0.0))",
    "a bar of a bar": "tqdm(tqdm(list(range(14)), file=io.StringIO()), file=io.StringIO(), miniters=1)",
    "asynchronous too": "__import__('tqdm.asyncio').asyncio.tqdm(range(14), file=io.StringIO())",
}

LOOKING_BARS = {
    "its stream": "tqdm(range(14), file=Looking(model), mininterval=0.0)",
    "what it goes through": "tqdm(Looking(model), file=io.StringIO())",
    "a class of the program's": "type('Own', (tqdm,), {})(range(14), file=io.StringIO())",
    "its clock": "__import__('types') and timed(tqdm(range(14), file=io.StringIO()), model)",
    "what it began with": "begun(tqdm((float(model.u.sum()) for _ in range(14)), file=io.StringIO()))",
    "the clock it began with": "begun(timed(tqdm(range(14), file=io.StringIO()), model))",
    "its lock": "locked(tqdm(range(14), file=io.StringIO(), mininterval=0.0), model)",
    "who shows its warnings": "warned(tqdm(range(14), file=io.StringIO(), mininterval=0.0), model)",
}


BEGUN = """
def begun(bar):
    steps = iter(bar)
    next(steps)
    bar.iterable, bar._time = range(14), __import__("time").time
    return steps


class Lock:
    def __init__(self, model):
        self.model, self.seen = model, []

    def acquire(self, *args, **kwargs):
        self.seen.append(float(self.model.u.sum()))
        return True

    __enter__ = acquire

    def release(self, *args):
        pass

    __exit__ = release


def locked(bar, model):
    type(bar)._lock = Lock(model)
    model.seen = type(bar)._lock.seen
    return bar


def warned(bar, model):
    import warnings

    warnings.showwarning = lambda *_, **__: model.__dict__.setdefault("seen", []).append(float(model.u.sum()))
    warnings.simplefilter("always")
    bar.colour = "none"
    return bar


"""


def _barred(iterable: str) -> str:
    return (
        BAR
        + "def timed(bar, model):\n    bar._time = lambda: float(model.n) + 0 * model.u.sum()\n    return bar\n\n\n"
        + BEGUN
        + f"def main(model):\n    last = None\n    bar = {iterable}\n    for last in bar:\n{STEP}"
        "    seen = [getattr(getattr(bar, 'fp', None), 'seen', []), getattr(model, 'seen', [])]\n"
        "    finite = [bool(np.isfinite(each).all()) for each in seen]\n"
        "    return last if isinstance(last, float) else str(last), seen[0][:1], finite\n"
    )


@pytest.mark.parametrize("kind", BARS)
def test_bars_hold_state(kind: str, both: Any, behind: Counter[str]) -> None:
    both(_barred(BARS[kind])).check(lambda planet: (planet.main(model := model_of(planet)), state(model)))
    assert behind["held"] > 20


@pytest.mark.parametrize("kind", LOOKING_BARS)
def test_bars_that_look(kind: str, both: Any, behind: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    std = pytest.importorskip("tqdm").tqdm
    monkeypatch.setattr(std, "_lock", std.get_lock())
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    both(_barred(LOOKING_BARS[kind])).check(lambda planet: (planet.main(model := model_of(planet)), state(model)))
    assert not behind["held"]


@pytest.mark.parametrize("where", ["in a function", "in a module"])
def test_a_bar_that_raises(where: str, both: Any, behind: Counter[str]) -> None:
    """Whoever handles what a library's code raises sees arrays that are up to date."""
    loop = (
        "stream, held = io.StringIO(), []\nbar = tqdm(range(40), file=stream, mininterval=0.0)\n"
        "try:\n    for i in bar:\n"
        + STEP.replace("        ", " " * 8)
        + "        if i == 20:\n            stream.close()\nexcept ValueError as error:\n"
        "    held += [float(model.u.sum()), model.n, str(error)]\n"
    )
    inner = loop.replace("\n", "\n    ").rstrip()
    functions = {
        "in a function": f"def main(model):\n    {inner}\n    return held\n",
        "in a module": "def main(model):\n    names = {**globals(), 'model': model, '__name__': 'planet'}\n"
        f"    exec({loop!r}, names)\n    return names['held']\n",
    }
    made = both(BAR + functions[where])
    made.check(lambda planet: (planet.main(model := model_of(planet)), state(model)))
    if where != "in a module":
        assert behind["held"] > 20


def test_what_a_handler_raises_at_the_end_under_a_bar(
    both: Any, behind: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    fetch = resident.Residents._fetch

    def fetching(self: Any, wanted: Any) -> None:
        fetch(self, wanted)
        if not self.is_open and self.is_held and not sent:
            sent.append(1)
            signal.raise_signal(signal.SIGINT)

    made = both(BAR + f"def main(model):\n    for i in tqdm(range(14), file=io.StringIO()):\n{STEP}")
    made.check(all_rounds, times=2)
    expected = all_rounds(made.plain)
    monkeypatch.setattr(resident.Residents, "_fetch", fetching)
    model = model_of(made.fast)
    with pytest.raises(KeyboardInterrupt):
        made.fast.main(model)
    assert behind["held"] > 20
    assert_same(state(model), expected)


def test_what_watches_over_plain_bars_looks_at_nothing() -> None:
    """The thread is no observer; nor are there others than those that are known."""
    tqdm = pytest.importorskip("tqdm")
    gc.collect()  # bars of other tests
    bar = tqdm.tqdm(range(3), file=io.StringIO())
    own = bar.monitor.ident  # other tests may have left one of theirs
    assert bar.monitor in threading.enumerate() and own in bars.monitors()
    looking = tqdm.tqdm(range(3), file=type("Stream", (io.StringIO,), {})())
    assert own not in bars.monitors()
    looking.close()
    bar.close()
    assert own in bars.monitors()
    tqdm.tqdm.monitor.exit()
    tqdm.tqdm.monitor = None


# -- observers ---------------------------------------------------------------------------------------------------------


def _thread() -> Iterator[None]:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    yield
    done.set()
    thread.join()


def _profiler() -> Iterator[None]:
    before = sys.getprofile()
    sys.setprofile(lambda *_: None)
    yield
    sys.setprofile(before)


PRESENT = {"there are other threads": _thread, "a debugger, profiler or coverage tool is active": _profiler}


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process in which the program alone runs, whatever this test run has around it."""
    rows = dict(observers.OBSERVERS)
    present = [why for why in PRESENT if rows[why]()]
    monkeypatch.setattr(observers, "OBSERVERS", tuple(row for row in observers.OBSERVERS if row[0] not in present))
    assert observers.observer() is None


@pytest.mark.parametrize("why", PRESENT)
def test_who_could_look(why: str, alone: None) -> None:
    if why not in dict(observers.OBSERVERS):
        pytest.skip("there already")
    present = PRESENT[why]()
    next(present)
    assert observers.observer() == why
    next(present, None)
    assert observers.observer() is None


def test_another_thread_than_the_main_one_is_seen_by_the_main_one(alone: None) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(observers.observer()))
    thread.start()
    thread.join()
    assert found[0] is not None and "main" in found[0]


def all_rounds(planet: ModuleType) -> Any:
    """What the model holds after all rounds of a loop."""
    model = model_of(planet)
    planet.main(model)
    return state(model)


def test_nothing_is_held_while_somebody_looks(both: Any, behind: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel.entry.lift.holding.observer", lambda: "there are other threads")
    made = both("def main(model):\n    for i in range(12):\n" + STEP)

    made.check(all_rounds, times=2)
    assert behind["not"] > 10 and not behind["held"]
    assert "there are other threads" in reasons()


def test_on_a_device_that_shares_the_hosts_memory_nothing_is_asked(
    both: Any, behind: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "plays_apart", False)
    made = both("def main(model):\n    for i in range(12):\n" + STEP)

    made.check(all_rounds, times=2)
    assert open_ledger("planet:main:9").compiled_calls > 10 and not behind


# -- programs that come late -------------------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Programs are kept on disk, and compiled in the background where the budget holds, which covers all."""
    monkeypatch.setattr(KnownPaths, "is_worth_compiling", lambda *_: True)
    monkeypatch.setattr(Parts, "come_first", False)
    monkeypatch.setattr(Parts, "leave_enough", True)
    with config.override(cache_dir=tmp_path / "programs"):
        yield


KINDS = (
    "def main(model, n):\n    for i in range(n):\n" + STEP + "        if i % 40 == 30:\n"
    "            model.u = np.tanh(model.u)\n"
)
"""Two kinds of iterations, the second of which is met late and rarely."""


def of_kinds(n: int) -> Callable[[ModuleType], Any]:
    def play(planet: ModuleType) -> Any:
        model = model_of(planet)
        planet.main(model, n)
        return state(model)

    return play


@pytest.mark.parametrize("in_background", [False, True])
def test_a_warm_start_holds_state_too(in_background: bool, both: Any, behind: Counter[str], kept: None) -> None:
    """What an earlier run has compiled is the device's program: for the CPU itself, there are others."""
    made = both(KINDS)
    starts = []
    for plays in (False, True, True):
        devices.plays_apart = plays  # `remote` puts it back
        behind.clear()
        with config.override(ahead_of_time=in_background):
            made.check(of_kinds(200), times=1)
            for _ in range(5 if plays else 1):  # its programs come in the background
                assert is_idle(PATIENCE_S)
                made.check(of_kinds(200), times=1)
                if behind["held"] > 20:
                    break
        starts.append(behind["held"])
    assert starts[0] == 0 and min(starts[1:]) > 20, starts


def slow_compiles(monkeypatch: pytest.MonkeyPatch, is_over: Callable[[], bool]) -> list[bool]:
    """Have the compiler take until `is_over`, or until a deadline. Returns whether it was in time, by compile."""
    import jax

    compile_now, found = jax.stages.Lowered.compile, []

    def compiled(self: Any, *args: Any, **kwargs: Any) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while not is_over() and time.monotonic() < deadline:
            time.sleep(1e-3)
        found.append(is_over())
        return compile_now(self, *args, **kwargs)

    monkeypatch.setattr(jax.stages.Lowered, "compile", compiled)
    return found


def test_rounds_hold_state_while_another_kind_is_compiled(
    both: Any, behind: Counter[str], kept: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = both("def main(model, n):\n    for i in range(n):\n        model.v = model.v * 0.5\n" + STEP)
    done = slow_compiles(monkeypatch, lambda: not queues.busy() or behind["held"] > 50)

    with config.override(ahead_of_time=False):
        made.check(of_kinds(30), times=2)
    # a program of another target is on its way, for as long as it takes
    other = accel.accelerate(lambda x: np.sin(x) * np.cos(x) + np.tan(x), name="another")
    behind.clear()
    with config.override(ahead_of_time=True):
        for i in range(40):
            other(np.full(SHAPE, 0.1 * i))
        assert queues.busy()
        found = of_kinds(120)(made.fast)
        assert is_idle(PATIENCE_S)
    assert_same(found, of_kinds(120)(made.plain))
    assert behind["held"] > 50 and all(done), "it was done only as nobody waited any more"


def test_threads_of_accels_own_see_what_numpy_has_made(both: Any, behind: Counter[str]) -> None:
    """One that compiles, and runs Python before and after, which may look: rounds hold state only while it compiles."""
    made = both("def main(model):\n    for i in range(400):\n" + STEP)
    made.check(all_rounds, times=2)
    model, expected = model_of(made.fast), model_of(made.plain)
    seen: list[float] = []
    ends = threading.Event()

    def work() -> None:
        while not ends.is_set():
            with background.threads.python():
                seen.append(float(np.sum(model.u) + np.sum(model.v)))
                with background.threads.compiler():
                    time.sleep(2e-3)
                seen.append(float(np.sum(model.u) + np.sum(model.v)))

    thread = threading.Thread(target=work, name="accel-compile", daemon=True)
    behind.clear()
    thread.start()
    try:
        for _ in range(3):
            made.fast.main(model)
    finally:
        ends.set()
        thread.join()
    assert np.isfinite(seen).all() and len(seen) > 10
    assert behind["held"] > 20 and behind["not"] > 3
    assert open_ledger("planet:main:9").not_held[observers.BUSY]
    for _ in range(3):
        made.plain.main(expected)
    assert_same(state(model), state(expected))


def test_a_round_waits_for_nobody_and_nobody_waits_for_ever(both: Any, behind: Counter[str]) -> None:
    """A thread that wants to run Python gets to it within a round, and rounds go on meanwhile."""
    made = both("def main(model):\n    for i in range(60):\n" + STEP)
    made.check(all_rounds, times=2)
    behind.clear()
    ends = threading.Event()

    def work() -> None:
        with background.threads.python():
            ends.wait(20.0)

    thread = threading.Thread(target=work, name="accel-compile", daemon=True)
    thread.start()
    try:
        made.check(all_rounds, times=1)
        assert not behind["held"] and behind["not"] == 60
    finally:
        ends.set()
        thread.join()
    made.check(all_rounds, times=1)
    assert behind["held"] > 50


# -- what the report says ----------------------------------------------------------------------------------------------


def test_the_report_counts_rounds_that_held_state_and_says_why_others_did_not(both: Any, behind: Counter[str]) -> None:
    made = both(KINDS)
    made.check(of_kinds(200), times=2)
    found = moved()
    assert found["held_rounds"] == behind["held"] > 300
    assert sum(found["not_held"].values()) == behind["not"] > 5
    assert all(found["not_held"]) and "it leaves the loop" not in found["not_held"]
    text = accel.report(full=True, transfers=True)
    rounds = behind["held"] + behind["not"]
    told = " ".join(text.split())
    assert f"state stayed on the device after {behind['held']} of {rounds} iterations; not after" in told


def test_a_reason_that_each_round_has_is_said(both: Any, behind: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel.dispatch.replay.commit.may_stay", lambda staged: False)
    both("def main(model, n):\n    for i in range(n):\n" + STEP).check(of_kinds(40), times=2)
    assert not behind["held"]
    assert "what it stores or shows might run code of the program's" in reasons()
