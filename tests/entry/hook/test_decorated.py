"""Accelerated functions in users' hands: how they look, travel and are typed, and what accel says in Python."""

from __future__ import annotations

import copy
import logging
import os
import pickle
import subprocess
import sys
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import accel
from accel.catalogue import Catalogue, Row
from accel.platform import config, ledger, logs

ROOT = Path(__file__).resolve().parents[3]

MODULE = {
    "travel.py": """
import accel

class Model:
    @accel.accelerate
    def step(self, x):
        return x + 1.0

    @accel.accelerate
    @staticmethod
    def add(x):
        return x + 2.0

    @classmethod
    @accel.accelerate
    def make(cls, x):
        return x + 3.0

class Ocean(Model): ...

def plain(x):
    return x + 4.0
"""
}


@pytest.fixture
def travel(write_modules: Any) -> ModuleType:
    write_modules(MODULE)
    import travel  # type: ignore[import-not-found]

    return travel  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", ["Model.step", "Model.add", "Model.make", "Ocean.step", "Ocean.make", "plain"])
@pytest.mark.parametrize("where", ["decorated", "installed"])
def test_they_travel_as_functions_do(travel: ModuleType, name: str, where: str) -> None:
    if where == "installed":
        accel.install(Catalogue("travel", tuple(Row("travel", each, "") for each in (name, "Ocean.step"))))
    taken: Any = travel
    for part in name.split("."):
        taken = getattr(taken, part)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(taken, protocol))
        assert again == taken or again.__qualname__ == taken.__qualname__
        bound = (travel.Ocean(),) if name.endswith("step") else ()
        assert again(*bound, np.zeros(2)).tolist() == taken(*bound, np.zeros(2)).tolist()
    assert copy.deepcopy(taken) == taken and copy.copy(taken) == taken


def test_methods_are_bound_copied_and_held_weakly(travel: ModuleType) -> None:
    model = travel.Model()
    held = weakref.WeakMethod(model.step)
    assert held()(1.0) == 2.0
    assert copy.deepcopy(model.step).__self__ is not model
    assert pickle.loads(pickle.dumps(model.step))(1.0) == 2.0
    assert weakref.ref(travel.Model.step)() is travel.Model.step
    del model
    assert held() is None


def test_it_shows_its_name(travel: ModuleType) -> None:
    assert repr(travel.Model.step).startswith("<accelerated function Model.step at 0x")
    assert "Model.step" in repr(travel.Model().step)


def test_the_decorator_sets_the_level_as_install_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs.LOGGER, "handlers", [logging.NullHandler()])
    monkeypatch.setattr(logs.LOGGER, "level", logging.NOTSET)
    monkeypatch.setattr(logs, "_own_level", logging.NOTSET)
    with config.override(log="info"):
        accel.accelerate(lambda x: x)
    assert logs.LOGGER.level == logging.INFO and len(logs.LOGGER.handlers) == 2
    monkeypatch.setattr(logs.LOGGER, "level", logging.DEBUG)  # the program's own
    accel.accelerate(lambda x: x)
    assert logs.LOGGER.level == logging.DEBUG


@pytest.mark.parametrize("loops", [False, True])
def test_the_decorator_looks_for_the_platform_at_once(monkeypatch: pytest.MonkeyPatch, loops: bool) -> None:
    from accel.backend import devices

    monkeypatch.setattr(devices, "_is_there", lambda platform: platform == "cpu")
    with config.override(platform="tpu"), pytest.raises(accel.SettingError, match="expected: cpu"):
        accel.accelerate(loops=loops)


def test_a_catalogue_is_installed_by_name(monkeypatch: pytest.MonkeyPatch, travel: ModuleType) -> None:
    known = (Catalogue("voyage", (Row("travel", "plain", ""),)), Catalogue("other", ()))
    monkeypatch.setattr("accel.catalogue.discover", lambda: known)
    with accel.installed("voyage"):
        assert "accelerated" in repr(travel.plain)
    with pytest.raises(accel.SettingError, match=r"^catalogue='voyag' is not installed; expected: .*\(voyage, other\)"):
        accel.install("voyag")
    with pytest.raises(accel.SettingError, match=r"^catalogue='none\.py' cannot be read"):
        accel.install("none.py")


def test_messages_speak_python(travel: ModuleType) -> None:
    with pytest.raises(accel.SettingError, match=r"^only='nope' selects no function"):
        accel.install(Catalogue("travel", (Row("travel", "plain", ""),)), only=["nope"])
    with pytest.raises(accel.SettingError, match=r"^fn='travel:nope' has no nope"):
        accel.explain("travel:nope")


@pytest.mark.usefixtures("foreground")
def test_what_strict_mode_raises_has_no_frames_of_accels() -> None:
    trimmed = accel.accelerate(lambda x: np.trim_zeros(x), name="strict", mode="strict")
    for _ in range(3):  # while recording, from what was noted, and once the function stays on NumPy for good
        with pytest.raises(accel.Refused, match=r"shape\.dynamic") as raised:
            for _ in range(30):
                trimmed(np.ones(3))
        assert {entry.path for entry in raised.traceback} == {Path(__file__)}


@pytest.mark.usefixtures("foreground")
def test_the_report_can_be_begun_again(travel: ModuleType) -> None:
    fast = accel.accelerate(lambda x: np.sin(x) * 2.0, name="fast")
    trimmed = accel.accelerate(lambda x: np.trim_zeros(x), name="trimmed")
    accel.install(Catalogue("c", (Row("travel", "plain", ""), Row("travel", "gone", ""))), exclude=["plain"])
    for _ in range(8):
        fast(np.ones(3))
        trimmed(np.ones(3))
    before = ledger.open_ledger("fast").compiled_calls
    assert before and ledger.open_ledger("trimmed").refusals
    accel.reset_report()
    books = [book for book in ledger.ledgers() if book.target[:13] not in ("travel:Model.", "travel:Ocean.")]
    assert [(book.calls, book.compiled_calls) for book in books] == [(0, 0)] * 4
    states: Mapping[str, str] = {book.target: str(book.state) for book in books}
    assert states == {"fast": "uncalled", "trimmed": "uncalled", "travel:plain": "numpy", "travel:gone": "absent"}
    fast(np.ones(3))
    assert ledger.open_ledger("fast").compiled_calls == 1 and '"operations"' in accel.report("json")


SAMPLE = """
import numpy as np
from numpy.typing import NDArray
import accel

@accel.accelerate
def smooth(field: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    return field * weight

@accel.accelerate(rtol=1e-6)
def sharpen(field: NDArray[np.float64]) -> int:
    return 1

class Model:
    @accel.accelerate
    def step(self, dt: float) -> str:
        return ""

    @accel.accelerate
    @staticmethod
    def area(x: float) -> float:
        return x

    @accel.accelerate
    @classmethod
    def make(cls, x: int) -> "Model":
        return cls()

reveal_type(smooth)
reveal_type(sharpen)
reveal_type(Model().step)
reveal_type(Model.area)
reveal_type(Model.make)
"""

CHECKER = """
[mypy]
strict = true
[mypy-accel.*]
follow_imports = skip
[mypy-accel,accel.entry.lift,accel.entry.lift.decorator]
follow_imports = normal
[mypy-numpy,numpy.*]
follow_imports = skip
"""


def test_a_strict_type_checker_sees_their_own_signatures(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "sample.py").write_text(SAMPLE)
    (tmp_path / "mypy.ini").write_text(CHECKER)
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "sample.py"]
    environ = {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environ)
    seen = [line.partition("Revealed type is ")[2] for line in done.stdout.splitlines() if "Revealed" in line]
    assert ["weight: " in seen[0], "-> Any" in seen[0]] == [True, True], done.stdout
    assert "-> int" in seen[1] or "-> builtins.int" in seen[1]
    assert "dt: " in seen[2] and "str" in seen[2]
    assert "float" in seen[3] and "Model" in seen[4]
    assert [line for line in done.stdout.splitlines() if line.startswith("sample.py") and "error: " in line] == []


@pytest.mark.parametrize("rtol", [0, -1e-9, float("nan"), "1e-9", True])
def test_a_tolerance_that_nothing_can_keep_is_refused_at_decoration(rtol: Any) -> None:
    with pytest.raises(accel.SettingError, match=r"^rtol=.* cannot be used; expected: a number more than 0$"):
        accel.accelerate(rtol=rtol)


def test_a_tolerance_may_be_a_number_of_numpys() -> None:
    assert accel.accelerate(rtol=np.float32(1e-6))(lambda x: x + 1)(1) == 2  # type: ignore[arg-type, misc]
