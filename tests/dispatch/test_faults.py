"""The boundary: whichever function of accel's fails, the program gets NumPy's numbers, each effect once, and no error.

The functions are read off a run, not from a list: all of accel's that the calls of `scenario` run through. Each is made
to fail at every entry, one at a time, in a run of its own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import io
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

import accel
from accel.backend import job
from accel.backend.underway import pending, queues, supervisor, worker
from accel.platform import config, interrupts, ledger, tuning
from accel.policy import prices
from accel.policy.call import THREAD
from accel.record.state.recording import current
from tests.helpers import LONG
from tests.rules.cases import stable_hash

pytestmark = pytest.mark.usefixtures("books")

PACKAGE = str(Path(accel.__file__).parent) + os.sep
BOUNDARY = {
    "Queue._work",
    "Accelerated.__call__",
    "Accelerated.__get__",
    "Target.answer",
    "Target._answer_or_fall_back",
    "Target._after_fault",
    "is_fault",
    "raised_by_handler",
    "Deferral.held",
    "Watch.__call__",
    "_handlers",
    "_code_of",
    "Iterations.__call__",
    "Switch.amend",
}
"""What catches errors cannot be caught itself."""

STANDING = {"TextObserver.__call__", "Switch.run", "_InParts.__call__"}
"""What the program calls in the place of its own stream, or statements: nothing of accel's is around it."""

RESTORING = {
    *(f"accel.platform.tuning._Setting.{name}" for name in ("_give_back", "_restore")),
    *(f"accel.platform.interrupts.{name}" for name in ("Deferral.__exit__", "HandlerStandIn.put_back", "_in_full")),
}
"""What puts a setting of Python's back leaves it where it fails itself."""

MENDING = {f"accel.dispatch.replay.draws.Drawn.{name}" for name in ("put_back", "_put_back", "_states")} | {
    f"accel.record.values.draws.generators.{name}" for name in ("_state", "_put_back")
}
"""Where what puts a generator's state back fails, the stream of random numbers goes on from where it is."""

PARTS = 4 if LONG else 2
ONE_IN = 1 if LONG else 3
"""One function in so many is made to fail: each failure takes a run of the scenario, and compiling where it is cold."""

SAMPLE = 12
"""Functions of rules and lowering that are tried; all of them with ACCEL_LONG_TESTS=1."""


class Planted(Exception):
    """What the failing function raises."""


class Model:
    """State in attributes, arrays changed in place, branches on values, a counter."""

    def __init__(self) -> None:
        self.u = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
        self.table = np.arange(4.0)
        self.total = 0.0
        self.count = 0
        self.log: dict[str, float] = {}

    def step(self, forcing: Any, dt: float) -> Any:
        self.count += 1
        v = self.u + dt * np.sin(self.table) * forcing
        if (v > 0.4).any():
            v[v > 0.4] -= 0.3
        self.u[1:] += 0.1 * np.roll(v, 1, axis=0)[1:]
        self.total += float(v.mean())
        forcing *= 0.5
        return v, self.total


def smooth(x: Any) -> Any:
    return np.where(x > 0, x[::-1], 0.25 * x) + x.sum()


def chatty(x: Any) -> Any:
    x += 1.0
    print("at", len(x), f"{x.mean():.2f}")
    return x * 2.0


def picky(x: Any, items: list[int]) -> Any:
    items.append(len(items))
    if items[-1] % 4 == 3:
        raise ValueError(f"at {len(items)}")
    return x + 1.0


def drawing(x: Any, rng: Any) -> Any:
    y = x + rng.normal(size=x.shape) * rng.random()
    if y.sum() > 0.5:
        y = y * 0.5
    return y, rng.normal(y, 1.0)


TALLY = 0.0


def tallied() -> Any:
    count = 0

    def tally(x: Any) -> Any:
        global TALLY
        nonlocal count
        count += 1
        TALLY = TALLY + float(x.sum())
        return x * count + TALLY

    return tally


def decorated(wrap: Callable[..., Any]) -> list[Any]:
    """The program's functions, as they are or accelerated."""
    return [wrap(function) for function in (Model.step, smooth, chatty, picky, tallied(), drawing)]


def scenario(functions: list[Any]) -> Any:
    """A little program, and all that can be seen of it."""
    global TALLY
    seen: list[Any] = []
    items: list[int] = []
    model, forcing, TALLY = Model(), np.ones((3, 4)), 0.0
    step, flat, noisy, selective, counting, draw = functions
    rng = np.random.default_rng(4)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for i in range(9):
            if i == 7:
                model.table[0] += 1.0
            seen.append(step(model, forcing, 0.25 if i < 8 else 0.5))
            seen.append(flat(np.linspace(-1.0, i, 5)))
            seen.append(counting(np.linspace(-1.0, i, 5)))
        for i in range(16):
            seen.append(draw(np.linspace(-1.0, i % 4 - 1.0, 5), rng))
        for i in range(8):
            seen.append(noisy(np.full(3, float(i))))
        for _ in range(9):
            try:
                seen.append(selective(np.ones(2), items))
            except ValueError as error:
                seen.append(str(error))
    state = [model.u, model.table, model.total, model.count, forcing, items, TALLY, out.getvalue(), rng.random()]
    return [seen, state]


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, (list, tuple)):
        return type(ours) is type(theirs) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, np.ndarray):
        return type(ours) is np.ndarray and ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=1e-12, atol=0)
    return type(ours) is type(theirs) and (
        np.isclose(ours, theirs, rtol=1e-12) if type(ours) is float else ours == theirs
    )


@contextlib.contextmanager
def settings(mode: str, folder: Path | None) -> Iterator[None]:
    with config.override(ahead_of_time=False, cache_dir=folder, mode=mode), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@dataclasses.dataclass
class Way:
    """A way to run the scenario: a mode, and a folder with its programs, or None to compile them."""

    mode: str
    folder: Path | None

    def run(self, around: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext) -> Any:
        """What the scenario gives; around: what holds during the calls, but not while functions are decorated."""
        ledger.reset()
        with settings(self.mode, self.folder):
            functions = decorated(accel.accelerate)
            with around():
                return scenario(functions)

    def functions(self) -> dict[str, FunctionType]:
        """Accel's functions that calls of the scenario run through, by name."""
        codes: set[CodeType] = set()

        def note(frame: Any, event: str, arg: Any) -> None:
            if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
                codes.add(frame.f_code)

        @contextlib.contextmanager
        def noted() -> Iterator[None]:
            sys.setprofile(note)
            try:
                yield
            finally:
                sys.setprofile(None)

        self.run(noted)
        found = [each for each in gc.get_objects() if type(each) is FunctionType and each.__code__ in codes]
        return {name_of(each): each for each in found if each.__qualname__ not in BOUNDARY | STANDING}

    def seen_of_faults(self, functions: list[FunctionType]) -> list[str]:
        """What the program sees of each function's failure: nothing, or an error, or other numbers."""
        expected, before = scenario(decorated(lambda function: function)), left_behind()
        wrong = []
        for function in functions:
            try:
                got = self.run(functools.partial(failing, function))
            except BaseException as error:
                wrong.append(f"{name_of(function)}: {type(error).__name__}: {error}")
            else:
                if not same(got, expected) and name_of(function) not in MENDING:
                    wrong.append(f"{name_of(function)}: other numbers")
            if left_behind() != before:
                if name_of(function) not in RESTORING:
                    wrong.append(f"{name_of(function)}: leaves {left_behind()}, not {before}")
                put_back(before)
        return wrong


@contextlib.contextmanager
def failing(function: FunctionType) -> Iterator[None]:
    """`function` raises Planted whenever it is called."""
    code = function.__code__
    template: CodeType = compile("def fail(*args, **kwargs):\n    raise 'planted'", "planted", "exec").co_consts[0]
    constants = tuple(Planted if each == "planted" else each for each in template.co_consts)
    _become(function, template.replace(co_consts=constants, co_freevars=code.co_freevars, co_name=code.co_name))
    try:
        yield
    finally:
        _become(function, code)


def _become(function: FunctionType, code: CodeType) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.13, where one of the two is a generator's
        function.__code__ = code


def is_deep(function: FunctionType) -> bool:
    """Whether the function is one of the many that compute: what they raise is caught in few places."""
    return function.__module__.startswith(("accel.rules", "accel.compiler.lower", "accel.ndimage"))


def left_behind() -> list[Any]:
    """What a call must leave as it was."""
    settings = gc.get_threshold(), sys.getswitchinterval(), signal.getsignal(signal.SIGINT)
    return [sys.gettrace(), *settings, THREAD.inside, current()]


def put_back(before: list[Any]) -> None:
    """Have what `left_behind` tells as it was."""
    for setting in (tuning._turns, tuning._garbage):
        setting._holders.clear()
    sys.settrace(before[0])
    gc.set_threshold(*before[1])
    sys.setswitchinterval(before[2])
    signal.signal(signal.SIGINT, before[3])
    interrupts._under_way.clear()


def chosen(names: Iterable[str]) -> list[str]:
    """Names of the functions to make fail, in order."""
    return sorted(name for name in names if stable_hash(name) % ONE_IN == 0)


def name_of(function: FunctionType) -> str:
    return f"{function.__module__}.{function.__qualname__}"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder that the tests of this file share."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture
def folder(programs: Path) -> Path:
    """A folder with the scenario's programs: a run that finds them takes a tenth of the time."""
    for mode in ("auto", "verify"):
        Way(mode, programs).run()
    return programs


@pytest.mark.parametrize("part", range(PARTS))
def test_no_fault_of_accels_reaches_the_program(part: int, folder: Path) -> None:
    warm, cold = Way("auto", folder), Way("auto", None)
    found = warm.functions()
    assert len(found) > 200
    names = chosen(found)
    assert not warm.seen_of_faults([found[name] for name in names[part::PARTS]])
    compiling = {name: function for name, function in cold.functions().items() if name not in found}
    shallow = chosen(name for name, function in compiling.items() if not is_deep(function))
    deep = sorted(name for name, function in compiling.items() if is_deep(function))
    if not LONG:
        deep = random.Random(1).sample(deep, min(SAMPLE, len(deep)))
    assert not cold.seen_of_faults([compiling[name] for name in [*shallow, *deep][part::PARTS]])


def test_nor_does_one_of_what_only_comparing_runs_through(folder: Path) -> None:
    known = Way("auto", folder).functions()
    verify = Way("verify", folder)
    found = verify.functions()
    assert not verify.seen_of_faults([found[name] for name in chosen(found.keys() - known.keys())])


# -- in the background -------------------------------------------------------------------------------------------------


def functions_of(*modules: ModuleType) -> list[FunctionType]:
    """The modules' own functions and methods: threads run through them, which no profile sees."""
    names = {module.__name__ for module in modules}
    found = [each for each in gc.get_objects() if type(each) is FunctionType and each.__module__ in names]
    return sorted(
        (each for each in found if each.__qualname__ not in BOUNDARY and "<locals>" not in each.__qualname__),
        key=name_of,
    )


def settled(call: Callable[[], Any]) -> list[Any]:
    """What calls give until nothing is compiled any more."""
    given = []
    for _ in range(2000):
        given.append(call())
        if len(given) > 8 and not queues._under_way:
            break
        time.sleep(0.002)
    return [*given, *(call() for _ in range(4))]


@pytest.mark.parametrize("part", range(2))
def test_no_fault_in_the_background_reaches_the_program(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prices, "burden_s", lambda compile_s: 0.0)
    seen: list[Any] = []
    before = left_behind()
    monkeypatch.setattr(threading, "excepthook", seen.append)
    x = np.linspace(-1.0, 1.0, 5)
    functions = functions_of(queues, job, pending, supervisor, worker)
    assert len(functions) > 30
    functions = [each for each in functions if stable_hash(name_of(each)) % ONE_IN == 0]
    for place, function in enumerate(functions[part::2]):
        supervisor.supervisor._lost, supervisor.supervisor.can_start = 0, True
        ledger.reset()
        with config.override(cache_dir=tmp_path / str(place % 3)), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            fast = accel.accelerate(smooth)
            with failing(function):
                given = settled(lambda fast=fast: fast(x))
        assert same(given, [smooth(x)] * len(given)), name_of(function)
        assert not seen, name_of(function)
        queues.stop()
        queues._forget()  # what has stopped takes no more programs
        put_back(before)
        sys.meta_path[:] = [each for each in sys.meta_path if type(each) is not queues.NoMoreImports]
    supervisor.supervisor.can_start = True
