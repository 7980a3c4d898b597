"""Recordings that earlier runs have kept: a later one takes them up, unless the program has become another.

Two wrappers of one function, with nothing between them but the disk, stand for two runs. Where it matters that they are
two processes, they are.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import accel
from accel.backend.disk import references
from accel.backend.job import key_of_path
from accel.dispatch import Target
from accel.platform import gain
from tests.processes import ROOT, said_by, without_settings

pytestmark = pytest.mark.usefixtures("foreground", "in_background")

CALLS = 60


@pytest.fixture(autouse=True)
def _old_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All files are older than this process."""
    monkeypatch.setattr(references, "STARTED_S", time.time() + 1e6)
    references._hash_of.cache_clear()
    yield
    references._hash_of.cache_clear()


def run(function: Any, arguments: Callable[[int], tuple[Any, ...]]) -> tuple[Target, list[Any]]:
    """A run of so many calls: its target, and what the calls gave."""
    target = Target(function, f"{function.__module__}:{function.__qualname__}", None, "strict")
    return target, [target.answer(arguments(call), {}) for call in range(CALLS)]


def assert_taken_up(function: Any, arguments: Callable[[int], tuple[Any, ...]]) -> None:
    """The second run records nothing, has programs all the same, and both give what NumPy gives."""
    expected = [function(*arguments(call)) for call in range(CALLS)]
    for recordings in (True, False):
        target, found = run(function, arguments)
        assert bool(target.recordings.count) is recordings
        assert target.paths.with_program
        assert [path.replays for path in target.paths] != [0] * len(target.paths)
        for path in target.paths:  # what is taken up has the key that it was kept under
            assert key_of_path(dataclasses.replace(path.trace, key=None)) == path.key == path.trace.key
        for one, other in zip(expected, found, strict=True):
            assert type(one) is type(other)
            np.testing.assert_allclose(other, one, rtol=1e-12)


def assert_recorded_again(function: Any, arguments: Callable[[int], tuple[Any, ...]]) -> None:
    for _ in range(2):
        target, _ = run(function, arguments)
        assert target.recordings.count


def assert_numpys(function: Any, arguments: Callable[[int], tuple[Any, ...]]) -> Target:
    """A run gives what NumPy gives now, whatever was recorded before. Returns its target."""
    expected = [function(*arguments(call)) for call in range(CALLS)]
    target, found = run(function, arguments)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    return target


WEIGHT = 0.5
LIMITS = {"low": 0.1, "high": 0.9}


class Field:
    scale = 2.0

    def __init__(self) -> None:
        self.u, self.n, self.log = np.linspace(0.0, 1.0, 50), 0, [0.0]

    @property
    def rate(self) -> float:
        return 0.1 * self.scale

    @staticmethod
    def doubled(x: Any) -> Any:
        return x * 2.0

    def slope(self, u: Any, *, order: int = 2) -> Any:
        return np.roll(u, 1) - order * u + np.roll(u, -1)

    def step(self, x: Any) -> Any:
        self.n += 1
        self.u = self.u + self.rate * self.doubled(self.slope(self.u)) + WEIGHT * np.sin(x)
        if self.u.max() > LIMITS["high"]:
            self.u *= 0.5
        self.log.append(float(self.u.sum()))
        return self.u.copy()


def helper(x: Any, power: float = 1.5, *, shift: float = 0.25) -> Any:
    return np.abs(x) ** power + shift


def helped(x: Any) -> Any:
    return helper(x) * math.pi + np.exp(-x)


def branching(x: Any) -> Any:
    y = np.sin(x)
    y = y * 2.0 if x[0] > 15.0 else y + 1.0
    if x[-1] > 70.0:
        y = np.sqrt(np.abs(y))
    return y


def drawing(generator: np.random.Generator, x: Any) -> Any:
    return x + generator.standard_normal(len(x))


def nested(x: Any) -> Any:
    def inner(y: Any) -> Any:
        return y * WEIGHT + x

    return inner(np.cos(x)) + sum(inner(x + k) for k in range(2))


@dataclasses.dataclass
class Fit:
    """Its `__init__` is generated, with a closure that holds a default, a factory, and an object to tell by."""

    slope: Any
    offset: float = 0.5
    log: list[float] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Pair:
    first: Any
    second: Any = 2.0


def made_anew(x: Any) -> Any:
    fit, pair = Fit(np.sin(x)), Pair(np.cos(x))
    fit.log.append(float(fit.slope.sum()))
    return fit.slope * fit.log[0] + fit.offset + pair.first * pair.second


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        COUNTS[function.__name__] = COUNTS.get(function.__name__, 0) + 1
        return function(*args, **kwargs)

    return inner


COUNTS: dict[str, int] = {}


@counted
@counted
def decorated_helper(x: Any) -> Any:
    return np.exp(-x) + np.sqrt(x)


def decorated(x: Any) -> Any:
    return decorated_helper(np.sin(x) ** 2) * 2.0


class Bodies(NamedTuple):
    place: Any
    speed: Any


def moved(x: Any) -> Bodies:
    bodies = Bodies(np.sin(x), np.cos(x))
    return Bodies(bodies.place + 0.1 * bodies.speed, bodies.speed)


def replaced(x: Any) -> Any:
    fit = dataclasses.replace(Fit(np.sin(x)), offset=1.5)
    return fit.slope + fit.offset


rectified = lambda x: np.maximum(x, 0.0)  # noqa: E731


class Mode(enum.Enum):
    CLOSED, OPEN = "closed", "open"


class Valve:
    mode = Mode.OPEN

    def passed(self, x: Any) -> Any:
        return np.cos(x) if self.mode is Mode.OPEN else x * 0.0


def passed(x: Any, valve: Valve = Valve()) -> Any:  # noqa: B008
    return valve.passed(np.sin(x))


class Lens:
    """Without an `__init__` of its own."""

    blurred = lambda self, x: np.exp(-np.abs(x))  # noqa: E731

    @functools.cached_property
    def window(self) -> Any:
        return np.hanning(50)


LENS = Lens()


def imaged(x: Any) -> Any:
    return rectified(LENS.blurred(x) * LENS.window - 0.1) + Lens().blurred(x)


def drawn_anew(x: Any) -> Any:
    return x + np.random.default_rng(3).standard_normal(len(x))


def fields(call: int, _kept: list[Field] = []) -> tuple[Any, ...]:  # noqa: B006
    if call == 0:
        _kept[:] = [Field()]
    return _kept[0], np.full(50, 0.01 * call)


def grids(call: int) -> tuple[Any, ...]:
    return (np.linspace(call, 2.0 * call + 20.0, 50),)


def generators(call: int, _kept: list[Any] = []) -> tuple[Any, ...]:  # noqa: B006
    if call == 0:
        _kept[:] = [np.random.default_rng(3)]
    return _kept[0], np.full(50, float(call))


CASES = {
    "a method with state": (Field.step, fields),
    "helpers and defaults": (helped, grids),
    "branches": (branching, grids),
    "draws": (drawing, generators),
    "nested functions": (nested, grids),
    "data classes": (made_anew, grids),
    "a decorated helper": (decorated, grids),
    "named tuples": (moved, grids),
    "data classes with changes": (replaced, grids),
    "lambdas and cached properties": (imaged, grids),
    "members of an enumeration": (passed, grids),
    "a generator of its own": (drawn_anew, grids),
}


@pytest.mark.parametrize("case", CASES)
def test_a_later_run_records_nothing(case: str) -> None:
    assert_taken_up(*CASES[case])


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_static_method_that_is_accelerated_itself_has_a_name(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def accelerate() -> None:
        monkeypatch.setattr(Field, "doubled", staticmethod(accel.accelerate(vars(Field)["doubled"].__func__)))

    def arguments(call: int) -> tuple[Any, ...]:
        if call == (0 if when == "before" else CALLS - 1) and type(vars(Field)["doubled"].__func__) is FunctionType:
            accelerate()
        return fields(call)

    run(Field.step, arguments)
    target, _ = run(Field.step, fields)
    assert target.recordings.count == 0
    assert target.paths.with_program


def test_a_loop_whose_parts_come_first_takes_them_up_when_these_leave_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings that no earlier run has compiled a program of cost much to read, and save little."""
    run(helped, grids)
    monkeypatch.setattr("accel.policy.rest.SMALL_CALL_S", 0.0)
    monkeypatch.setattr("accel.policy.rest.MAX_REST", 0)
    monkeypatch.setattr("accel.policy.parts.PARTS_SHARE", 0.0)  # any parts are worth waiting for
    target = Target(helped, f"{__name__}:helped", None, "auto", in_parts=helped.__code__)
    for call in range(5):
        target.answer(grids(call), {})
    assert not target.paths
    monkeypatch.setattr("accel.policy.parts.PARTS_SHARE", 1.0)
    target.answer(grids(5), {})
    assert target.paths
    assert target.recordings.count == 0


@pytest.mark.parametrize("in_parts", [True, False])
def test_what_a_loop_has_recorded_is_kept_at_the_end(in_parts: bool) -> None:
    """A function's recording is not, before it leads to a program: to read it costs as much as to make it."""
    name, code = f"{__name__}:helped", helped.__code__ if in_parts else None
    first = Target(helped, name, None, "strict", in_parts=code)
    first.answer(grids(0), {})
    assert len(first.paths) == first.recordings.count == 1
    (path,) = first.paths
    path.lost_s = 1.25
    first.let_go()
    second = Target(helped, name, None, "strict", in_parts=code)
    potential_s = gain.potential_gain.seconds
    second.answer(grids(1), {})
    (path,) = second.paths
    assert second.recordings.count == (0 if in_parts else 1)
    lost_s = 1.25 if in_parts else 0.0
    assert path.lost_s == pytest.approx(lost_s, abs=0.01), "what its calls have lost in both runs"
    assert round(gain.potential_gain.seconds - potential_s, 9) >= lost_s  # a difference of sums


def test_state_is_that_of_numpy() -> None:
    expected, found = Field(), Field()
    run(Field.step, fields)
    step: Any = Field.step
    target = Target(step, f"{__name__}:Field.step", None, "strict")
    for call in range(CALLS):
        x = np.full(50, 0.01 * call)
        np.testing.assert_allclose(target.answer((found, x), {}), expected.step(x), rtol=1e-12)
    assert target.recordings.count == 0
    assert found.n == expected.n
    np.testing.assert_allclose(found.log, expected.log, rtol=1e-12)


# -- what is not taken up ----------------------------------------------------------------------------------------------


def weighted(weight: float) -> Callable[[Any], Any]:
    return lambda x: x * weight


HALVED = [weighted(0.5)]


def of_a_closure(x: Any) -> Any:
    return HALVED[0](np.sin(x))


def test_what_has_no_name_is_recorded_again() -> None:
    assert_recorded_again(of_a_closure, grids)


def test_a_generated_function_that_differs_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    run(made_anew, grids)

    @dataclasses.dataclass
    class Other:
        slope: Any
        log: list[float] = dataclasses.field(default_factory=list)
        offset: float = 0.75

    Other.__qualname__, Other.__init__.__qualname__ = "Fit", "Fit.__init__"
    monkeypatch.setitem(globals(), "Fit", Other)
    assert assert_numpys(made_anew, grids).recordings.count


def test_fields_with_other_defaults_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert references.told_fields(vars(Fit)["__dataclass_fields__"]) is not None
    run(defaulted, grids)
    monkeypatch.setattr(Fit.__dataclass_fields__["offset"], "default", 0.75)
    assert_numpys(defaulted, grids)
    monkeypatch.setattr(Fit.__dataclass_fields__["offset"], "default", np.ones(2))
    assert references.told_fields(vars(Fit)["__dataclass_fields__"]) is None


def defaulted(x: Any) -> Any:
    return np.sin(x) + sum(each.default for each in dataclasses.fields(Fit) if each.name == "offset")


def test_a_default_in_a_closure_that_differs_is_seen() -> None:
    run(made_anew, grids)
    init = Fit.__init__
    held = dict(zip(init.__code__.co_freevars, init.__closure__ or (), strict=True))
    (factory,) = [cell for cell in held.values() if cell.cell_contents is list]
    try:
        factory.cell_contents = lambda: [1.0]
        assert_numpys(made_anew, grids)
    finally:
        factory.cell_contents = list


def test_other_code_of_the_same_name_is_recorded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper that is defined in one way or another, as the program finds its machine."""
    run(helped, grids)

    def helper(x: Any, power: float = 1.5, *, shift: float = 0.25) -> Any:
        return np.abs(x) * power - shift

    helper.__qualname__ = "helper"
    monkeypatch.setitem(globals(), "helper", helper)
    assert assert_numpys(helped, grids).recordings.count


def test_a_value_that_differs_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    run(Field.step, fields)
    monkeypatch.setattr(Field, "scale", 3.0)
    monkeypatch.setitem(globals(), "WEIGHT", 0.75)
    assert_numpys(Field.step, fields)


SOURCE = """
import numpy as np

{other}

class Base:
    def rate(self):
        return {rate}

class Model(Base):
    def step(self, x):
        return np.sin(x) * self.rate()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """Writes a module of the user's, and imports it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(**parts: str) -> ModuleType:
        (tmp_path / "written_model.py").write_text(SOURCE.format(**{"other": "", **parts}), encoding="utf-8")
        references._hash_of.cache_clear()
        sys.modules.pop("written_model", None)
        importlib.invalidate_caches()
        return importlib.import_module("written_model")

    return write


@pytest.mark.parametrize(
    ("parts", "recorded"),
    [({"rate": "2.0"}, False), ({"rate": "3.0"}, True), ({"rate": "2.0", "other": "# a remark"}, True)],
    ids=["unchanged", "another number", "another remark"],
)
def test_a_file_that_has_changed_is_recorded_again(
    module: Callable[..., ModuleType], parts: dict[str, str], recorded: bool
) -> None:
    first = module(rate="2.0")
    run(first.Model.step, lambda call: (first.Model(), *grids(call)))
    second = module(**parts)
    target, found = run(second.Model.step, lambda call: (second.Model(), *grids(call)))
    assert bool(target.recordings.count) is recorded
    expected = [second.Model().step(*grids(call)) for call in range(CALLS)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_file_that_is_newer_than_the_process_is_not_trusted(
    module: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(references, "STARTED_S", time.time() - 100.0)
    model = module(rate="2.0")
    assert_recorded_again(model.Model.step, lambda call: (model.Model(), *grids(call)))


def test_a_recording_of_a_file_that_has_changed_is_replaced(module: Callable[..., ModuleType]) -> None:
    for recorded in (True, False):
        for other in ("", "# a remark") if recorded else ("# a remark",):
            model = module(rate="2.0", other=other)
            target, _ = run(model.Model.step, lambda call, model=model: (model.Model(), *grids(call)))
            assert bool(target.recordings.count) is recorded


def test_the_process_began_before_its_modules_were_read() -> None:
    code = "import time; t = time.time(); from accel.backend.disk import references; print(references.STARTED_S - t)"
    assert -30.0 < float(said_by(code)) <= references.CLOCKS_S


def test_a_damaged_recording_is_recorded_again(in_background: Path) -> None:
    run(helped, grids)
    (kept,) = in_background.rglob("*.recording")
    kept.write_bytes(kept.read_bytes()[:-20])
    target, _ = run(helped, grids)
    assert target.recordings.count


# -- processes ---------------------------------------------------------------------------------------------------------

SCRIPT = """
import json
import numpy as np
import accel

class Model:
    def __init__(self):
        self.u = np.linspace(0.0, 1.0, 250_000)
        self.names = {"b", "a", "c"}

    def slope(self, u):
        return np.roll(u, 1) - 2 * u + np.roll(u, -1)

    @accel.accelerate
    def step(self):
        for _ in range(3):
            self.u = self.u + 0.1 * self.slope(self.u) * np.exp(-self.u)
        if "a" in self.names and self.u.mean() > 0.4:
            self.u *= 0.999
        return float(self.u.max())

def compiled_calls():
    return sum(each["compiled_calls"] for each in json.loads(accel.report(format="json"))["functions"])

model, step = Model(), 0
while step <= SHOWN or (step < MOST and compiled_calls() < 20):
    for _ in range(20):
        last = model.step()
        step += 1
    if step == SHOWN:
        print(f"{last:.9f} {model.u.sum():.6f}")
"""


def test_the_second_process_records_nothing(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.replace("SHOWN", "100").replace("MOST", "4000"), encoding="utf-8")
    os.utime(path, (time.time() - 1000.0,) * 2)
    settings = {
        "PYTHONPATH": str(ROOT),
        "QD_JAX_CACHE_DIR": str(tmp_path / "cache"),
        "QD_JAX_LOG": "info",
        "QD_JAX_REPORT": "0",
    }
    said, recorded = [], []
    for mode in ("auto", "auto", "verify"):
        environment = {**without_settings(), **settings, "QD_JAX_MODE": mode}
        done = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
        recorded.append("recorded, " in done.stderr)
    assert said[0] == said[1] == said[2]
    assert recorded == [True, False, False]


def test_why_a_value_has_no_name_is_told_without_its_text() -> None:
    """A container of large arrays took 15 s for its text, and a text of the program's own may do anything."""

    class Loud:
        def __repr__(self) -> str:
            raise AssertionError("its text was asked for")

    with pytest.raises(references.Unnamed, match="Loud without a name"):
        references.path_of(Loud())
