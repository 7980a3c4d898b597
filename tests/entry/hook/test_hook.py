"""The hook: every name of a function is replaced, and put back, however and whenever it was made.

A stand-in takes the place of `accel.dispatch.accelerated`, so that these tests hold without the engine.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import os
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import MethodType, ModuleType
from typing import Any

import pytest
import wrapt

import accel
from accel import catalogue as catalogues
from accel.catalogue import Catalogue, Hold, Row
from accel.entry.hook import patching, patterns
from accel.platform import config, ledger
from accel.platform.config import SettingError
from accel.platform.ledger import State
from accel.platform.reasons import Refusal

pytestmark = pytest.mark.usefixtures("books", "accelerate")

PLANET = """
import functools

def flux(x):
    return x + 1

def helper(x):
    return x

is_fast = lambda: True

@functools.wraps(flux)
def wrapped_flux(x):
    return flux(x)

constant = 3

class Base:
    def shared(self):
        return ("shared", self)

class Model(Base):
    def step(self, x):
        return flux(x)

    @staticmethod
    def area(x):
        return 2 * x

    @classmethod
    def make(cls, *args):
        return cls, args

    @property
    def mass(self):
        "The mass in kg."
        return 5

    @mass.setter
    def mass(self, value):
        self.given = value
"""
USER = "from pkg.planet import flux, Model\nfrom pkg import planet as p\nimport pkg.planet\nflow = flux\n"
QUALNAMES = ("flux", "Model.step", "Model.area", "Model.make", "Model.mass", "Model.shared", "wrapped_flux")
ROWS = tuple(Row("pkg.planet", name, "a test") for name in QUALNAMES)
CATALOGUE = Catalogue("test", ROWS)


class Accelerated(wrapt.CallableObjectProxy):
    """What the stand-in returns: counts its calls, otherwise as before."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._self_called.append(self._self_name)
        return self.__wrapped__(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)


@pytest.fixture
def accelerate(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Put the stand-in in place; give the list of targets that were called through it."""
    called: list[str] = []

    def stand_in(fn: Callable[..., Any], *, name: str, rtol: float | None, mode: str | None, effects: bool) -> Any:
        made = Accelerated(fn)
        made._self_name, made._self_mode, made._self_called = name, mode, called
        return made

    dispatch = ModuleType("accel.dispatch")
    dispatch.accelerated = stand_in  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "accel.dispatch", dispatch)
    yield called
    patching.uninstall()


@pytest.fixture
def planet(write_modules: Callable[[dict[str, str]], Path]) -> ModuleType:
    """The program, imported before anything is installed."""
    write_modules({"pkg/__init__.py": "", "pkg/planet.py": PLANET, "user.py": USER})
    return importlib.import_module("pkg.planet")


def _state(module: ModuleType) -> dict[str, dict[str, int]]:
    """Return the identity of everything in a module's namespace and in those of its classes, in order."""
    spaces = {"": vars(module)} | {name: vars(v) for name, v in vars(module).items() if type(v) is type}
    return {owner: {name: id(value) for name, value in space.items()} for owner, space in spaces.items()}


def _books() -> dict[str, State]:
    return {book.target.removeprefix("pkg.planet:"): book.state for book in accel.entry.hook.patching.ledger.ledgers()}


# -- patterns --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "selected"),
    [
        ("pkg.planet", True),
        ("pkg", True),
        ("pkg.planet:Model.step", True),
        ("Model.step", True),
        ("step", True),
        ("pkg.planet:Model.step", True),
        ("pkg.planet:Model", True),
        ("*:Model.*", True),
        ("*.Model.*", True),
        ("pkg.*.step", True),
        ("planet", False),
        ("Model", False),
        ("ep", False),
        ("pkg.plan", False),
        ("PKG.*", False),
    ],
)
def test_patterns(pattern: str, selected: bool) -> None:
    assert patterns.matches("pkg.planet:Model.step", pattern) is selected


def test_only_and_exclude_choose_rows(planet: ModuleType, accelerate: list[str]) -> None:
    patching.install(CATALOGUE, only=["pkg.planet:Model.*", "flux"], exclude=["area"])
    planet.flux(1), planet.Model().step(1), planet.Model.area(1), planet.wrapped_flux(1)
    assert accelerate == ["pkg.planet:flux", "pkg.planet:Model.step", "pkg.planet:flux", "pkg.planet:flux"]
    assert _books()["Model.area"] is State.NUMPY
    assert accel.entry.hook.patching.ledger.open_ledger("pkg.planet:Model.area").refusals == {
        Refusal("choice.excluded"): 1
    }


def test_a_pattern_that_selects_nothing_is_an_error(planet: ModuleType) -> None:
    before = _state(planet)
    expected = "only='flus' selects no function; expected: patterns such as pkg.planet:flux"
    with pytest.raises(SettingError) as caught:
        patching.install(CATALOGUE, only=["flus"])
    assert str(caught.value) == expected
    assert _state(planet) == before


# -- what is replaced ------------------------------------------------------------------------------------------------


def test_functions_of_every_kind_are_wrapped_and_work(planet: ModuleType, accelerate: list[str]) -> None:
    patching.install(CATALOGUE)
    model = planet.Model()
    assert planet.flux(1) == 2
    assert model.step(1) == 2
    assert (model.area(2), planet.Model.area(2)) == (4, 4)
    assert (model.make(1), planet.Model.make(1)) == ((planet.Model, (1,)), (planet.Model, (1,)))
    assert model.mass == 5
    model.mass = 7
    assert model.given == 7
    assert model.shared() == ("shared", model)
    targets = {name: accelerate.count(f"pkg.planet:{name}") for name in QUALNAMES}
    assert targets == {
        "flux": 2,
        "Model.step": 1,
        "Model.area": 2,
        "Model.make": 2,
        "Model.mass": 1,
        "Model.shared": 1,
        "wrapped_flux": 0,
    }
    assert planet.Model.mass.__doc__ == "The mass in kg."
    assert planet.flux.__wrapped__(1) == 2


def test_a_subclass_row_leaves_the_base_class_alone(planet: ModuleType, accelerate: list[str]) -> None:
    patching.install(CATALOGUE)
    planet.Base().shared()
    assert accelerate == []
    planet.Model().shared()
    assert accelerate == ["pkg.planet:Model.shared"]


def test_base_and_subclass_rows_wrap_once_each(planet: ModuleType, accelerate: list[str]) -> None:
    before = _state(planet)
    rows = (Row("pkg.planet", "Base.shared", "a test"), Row("pkg.planet", "Model.shared", "a test"))
    patching.install(Catalogue("test", rows))
    planet.Model().shared()
    assert accelerate == ["pkg.planet:Model.shared"]
    patching.uninstall()
    assert _state(planet) == before


def test_a_function_that_two_rows_name_is_wrapped_once(planet: ModuleType, accelerate: list[str]) -> None:
    before = _state(planet)
    twice = (Row("pkg.planet", "Model.step", "a test"), Row("pkg.planet", "Model.step", "another catalogue's row"))
    patching.install(Catalogue("test", twice))
    planet.Model().step(1)
    assert accelerate == ["pkg.planet:Model.step"]
    patching.uninstall()
    assert _state(planet) == before


def test_what_was_decorated_by_hand_is_left_alone(planet: ModuleType) -> None:
    planet.flux = decorated = Accelerated(planet.flux)
    patching.install(CATALOGUE)
    assert planet.flux is decorated


def test_what_is_no_function_is_left_alone_with_a_reason(planet: ModuleType) -> None:
    patching.install(Catalogue("test", (Row("pkg.planet", "constant", "a test"), Row("pkg.planet", "Model", "a test"))))
    assert planet.constant == 3
    assert _books() == {"constant": State.NUMPY, "Model": State.NUMPY}
    refusals = accel.entry.hook.patching.ledger.open_ledger("pkg.planet:constant").refusals
    assert refusals == {Refusal("choice.callable", detail="a int"): 1}


def test_declined_rows_are_not_wrapped(planet: ModuleType) -> None:
    original = planet.flux
    patching.install(Catalogue("test", (Row("pkg.planet", "flux", "a test", declined="tiny"),)))
    assert planet.flux is original
    assert accel.entry.hook.patching.ledger.open_ledger("pkg.planet:flux").refusals == {
        Refusal("choice.declined", detail="tiny"): 1
    }


# -- what is missing -------------------------------------------------------------------------------------------------


def test_missing_modules_classes_and_attributes_are_absent(planet: ModuleType) -> None:
    rows = [Row("pkg.planet", name, "a test") for name in ("nope", "Model.nope", "Nope.step", "constant.real.x")]
    rows += [Row("pkg.nope", "f", "a test"), Row("no_such_package.sub", "f", "a test"), Row("pkg.planet.x", "f", "a")]
    rows += [Row("pkg.nope", "g", "a test", declined="tiny")]
    patching.install(Catalogue("test", tuple(rows)))
    assert set(_books().values()) == {State.ABSENT}
    assert len(_books()) == len(rows)


def _own(*names: str, **more: Any) -> Catalogue:
    return Catalogue("mine", tuple(Row(*name.split(":"), "a test", **more) for name in names), file="rows.py")


def test_a_row_that_names_nothing_in_an_imported_module_is_told_of(
    write_modules: Callable[[dict[str, str]], Path], caplog: pytest.LogCaptureFixture
) -> None:
    write_modules({"pkg/__init__.py": "", "pkg/planet.py": PLANET})
    names = ("pkg.planet:flux", "pkg.planet:fluxx", "pkg.planet:Modle.step", "pkg.planet:Model.setp", "pkg.planet:zzz")
    patching.install(_own(*names))
    assert caplog.messages == [], "nothing is known of a module before it is imported"
    module = importlib.import_module("pkg.planet")
    told = [
        "rows.py, row 2: pkg.planet has no fluxx (did you mean flux?)",
        "rows.py, row 3: pkg.planet has no Modle.step (did you mean Model.step?)",
        "rows.py, row 4: pkg.planet has no Model.setp (did you mean Model.step?)",
        "rows.py, row 5: pkg.planet has no zzz",
    ]
    assert caplog.messages == told
    importlib.reload(module)
    patching.look_back()
    assert caplog.messages == told, "once is enough"


def test_rows_that_may_name_nothing_are_not_told_of(
    planet: ModuleType, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    patching.install(_own("pkg.planet:nope", "pkg.gone:f", traits=frozenset({"optional"})))
    patching.install(_own("pkg.planet:nope", "pkg.gone:f", declined="tiny"))
    patching.install(_own("pkg.planet:nope", "pkg.gone:f", "pkg.planet:flux"), only=["flux"])
    installed = Catalogue("installed", (Row("pkg.planet", "nope", "a test"), Row("pkg.gone", "f", "a test")))
    point = metadata.EntryPoint("p", "rows_of_the_test:CATALOGUE", catalogues.ENTRY_POINTS)
    monkeypatch.setitem(sys.modules, "rows_of_the_test", ModuleType("rows_of_the_test"))
    monkeypatch.setattr(sys.modules["rows_of_the_test"], "CATALOGUE", installed, raising=False)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [point])
    patching.install(installed)
    patching.look_back()
    assert (caplog.messages, ledger.current_run().notes) == ([], [])
    accel.uninstall()
    patching.install(dataclasses.replace(installed))
    assert caplog.messages == ["catalogue installed, row 1: pkg.planet has no nope"], "this one is the user's own"


def test_rows_of_modules_that_are_never_imported_are_noted_at_the_end(
    planet: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    patching.install(_own("pkg.planet:flux", "pkg.planete:f", "pkg.planete:g", "pkg.user:f", "__main__:<module>"))
    assert ledger.current_run().notes == []
    patching.look_back()
    assert ledger.current_run().notes == [
        "rows.py, rows 2, 3: the program has not imported pkg.planete",
        "rows.py, row 4: the program has not imported pkg.user",
    ]
    first, second = ledger.current_run().notes
    assert caplog.messages == [f"{first}; the report has 1 more"]
    assert patching.slips() == [first, second]
    assert len(caplog.messages) == 1, "it is told once"


def test_installed_catalogues_of_other_programs_are_not_reported(
    planet: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Row("no_such_package", "f", "a test"), Row("no_such_package", "g", "a test", declined="tiny")
    foreign = Catalogue("foreign", rows)
    own = Catalogue("own", (Row("pkg.planet", "flux", "a test"), Row("pkg.planet", "nope", "a test")))
    monkeypatch.setattr("accel.catalogue.discover", lambda: (foreign, own))
    patching.install()
    assert _books() == {"flux": State.UNCALLED, "nope": State.ABSENT}
    patching.install(foreign)
    assert {"no_such_package:f", "no_such_package:g"} <= _books().keys(), "this one was asked for"


def test_a_module_that_is_there_but_never_imported_is_uncalled(write_modules: Callable[[dict[str, str]], Path]) -> None:
    write_modules({"pkg/__init__.py": "import no_such_module_at_all", "pkg/planet.py": PLANET})
    patching.install(CATALOGUE)
    assert set(_books().values()) == {State.UNCALLED}
    assert "pkg" not in sys.modules


def test_an_absent_module_that_turns_up_is_wrapped(
    write_modules: Callable[[dict[str, str]], Path], accelerate: list[str]
) -> None:
    patching.install(CATALOGUE)
    assert set(_books().values()) == {State.ABSENT}
    write_modules({"pkg/__init__.py": "", "pkg/planet.py": PLANET})
    importlib.import_module("pkg.planet").flux(1)
    assert accelerate == ["pkg.planet:flux"]
    assert _books()["flux"] is State.UNCALLED


# -- aliases and the order of imports ---------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["install", "import"])
def test_aliases_made_before_and_after(planet: ModuleType, accelerate: list[str], first: str) -> None:
    original = planet.flux
    if first == "install":
        patching.install(CATALOGUE)
        user = importlib.import_module("user")
    else:
        user = importlib.import_module("user")
        patching.install(CATALOGUE)
    assert user.flux is user.flow is user.p.flux is planet.flux
    assert user.flux is not original
    user.flow(1)
    user.Model().step(1)
    assert accelerate == ["pkg.planet:flux", "pkg.planet:Model.step", "pkg.planet:flux"]
    patching.uninstall()
    assert user.flux is user.flow is user.p.flux is planet.flux is original


def test_modules_imported_later_are_patched_before_anyone_can_take_a_name(
    write_modules: Callable[[dict[str, str]], Path], accelerate: list[str]
) -> None:
    write_modules({"pkg/__init__.py": "", "pkg/planet.py": PLANET, "user.py": USER})
    patching.install(CATALOGUE)
    assert "pkg.planet" not in sys.modules
    user = importlib.import_module("user")
    user.flow(1)
    assert accelerate == ["pkg.planet:flux"]
    patching.uninstall()
    assert type(user.flow) is types.FunctionType
    assert user.flow is sys.modules["pkg.planet"].flux


def test_modules_that_import_each_other(write_modules: Callable[[dict[str, str]], Path], accelerate: list[str]) -> None:
    circular = PLANET + "\nfrom pkg import other\n"
    write_modules({"pkg/__init__.py": "", "pkg/planet.py": circular, "pkg/other.py": "from pkg.planet import flux\n"})
    patching.install(CATALOGUE)
    importlib.import_module("pkg.planet").other.flux(1)
    assert accelerate == ["pkg.planet:flux"]


def test_aliases_in_front_of_a_module_that_may_not_be_imported(
    write_modules: Callable[[dict[str, str]], Path], accelerate: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_modules({"pkg/__init__.py": "", "pkg/planet.py": PLANET, "user.py": USER})
    user = importlib.import_module("user")
    monkeypatch.setitem(sys.modules, "forbidden", None)
    patching.install(CATALOGUE)
    user.flow(1)
    assert accelerate == ["pkg.planet:flux"]


def test_lazily_imported_modules_are_not_loaded(
    write_modules: Callable[[dict[str, str]], Path], accelerate: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_modules({"pkg/__init__.py": "", "pkg/planet.py": PLANET, "lazy.py": "X = 1\n"})
    spec = importlib.util.find_spec("lazy")
    assert spec is not None and spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    lazy = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lazy", lazy)
    spec.loader.exec_module(lazy)
    unloaded = type(lazy)
    patching.install(CATALOGUE)
    importlib.import_module("pkg.planet").flux(1)
    assert accelerate == ["pkg.planet:flux"]
    assert type(lazy) is unloaded is not types.ModuleType


def test_a_watched_module_keeps_its_own_loader(write_modules: Callable[[dict[str, str]], Path]) -> None:
    write_modules({"pkg/__init__.py": "", "pkg/planet.py": PLANET})
    patching.install(CATALOGUE)
    module = importlib.import_module("pkg.planet")
    assert module.__spec__ is not None
    for loader in (module.__loader__, module.__spec__.loader):
        assert type(loader) is importlib.machinery.SourceFileLoader


def test_an_import_that_fails_fails_as_before(write_modules: Callable[[dict[str, str]], Path]) -> None:
    write_modules({"pkg/__init__.py": "", "pkg/planet.py": "1 / 0\n"})
    patching.install(CATALOGUE)
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("pkg.planet")
    assert "pkg.planet" not in sys.modules


def test_a_module_imported_anew_is_patched_again(planet: ModuleType, accelerate: list[str]) -> None:
    patching.install(CATALOGUE)
    del sys.modules["pkg.planet"]
    fresh = importlib.import_module("pkg.planet")
    assert fresh is not planet
    fresh.flux(1)
    assert accelerate == ["pkg.planet:flux"]


def test_names_that_were_rebound_by_somebody_else_are_not_put_back(planet: ModuleType) -> None:
    patching.install(CATALOGUE)
    planet.flux = mine = lambda x: x
    patching.uninstall()
    assert planet.flux is mine


# -- reload ----------------------------------------------------------------------------------------------------------


def test_reload_wraps_the_new_functions_and_uninstall_restores_old_and_new(
    planet: ModuleType, accelerate: list[str]
) -> None:
    user = importlib.import_module("user")
    old_flux, old_class, old_step = planet.flux, planet.Model, planet.Model.__dict__["step"]
    patching.install(CATALOGUE)
    importlib.reload(planet)
    planet.flux(1)
    planet.Model().step(1)
    old_class().step(1)
    assert accelerate == [
        "pkg.planet:flux",
        *("pkg.planet:Model.step", "pkg.planet:flux"),
        *("pkg.planet:Model.step", "pkg.planet:flux"),
    ]
    patching.uninstall()
    assert user.flux is old_flux
    assert old_class.__dict__["step"] is old_step
    assert type(planet.flux) is types.FunctionType
    assert planet.flux is not old_flux
    assert "shared" not in vars(planet.Model)


def test_reload_after_uninstall_is_plain(planet: ModuleType, accelerate: list[str]) -> None:
    patching.install(CATALOGUE)
    patching.uninstall()
    importlib.reload(planet)
    planet.flux(1)
    assert accelerate == []


DEFAULTS = """
import functools
from pkg.planet import flux

def keep(function):
    @functools.wraps(function)
    def kept(*args, **kwargs):
        return function(*args, **kwargs)
    return kept

def run(x, step=flux):
    return step(x), step is flux

@keep
def named(x, *, step=flux, count=1):
    return step(x) * count, step is flux

class Runner:
    class Inner:
        @staticmethod
        def run(x, step=flux):
            return step(x), step is flux
    @classmethod
    def made(cls, x, a=None, step=flux):
        return step(x), step is flux
    advance = lambda self, x, step=flux: (step(x), step is flux)
"""


def test_default_values_of_functions_are_aliases(
    write_modules: Callable[[dict[str, str]], Path], planet: ModuleType, accelerate: list[str]
) -> None:
    write_modules({"defaults.py": DEFAULTS})
    module: Any = importlib.import_module("defaults")
    functions = (module.run, module.named, module.Runner.Inner.run, module.Runner.made, module.Runner().advance)
    before = [function(1) for function in functions]
    held = module.run.__defaults__, module.named.__wrapped__.__kwdefaults__.copy()
    patching.install(CATALOGUE)
    assert module.flux is planet.flux
    assert [function(1) for function in functions] == before == [(2, True)] * 5
    assert accelerate == ["pkg.planet:flux"] * 5
    patching.uninstall()
    assert [function(1) for function in functions] == before
    assert accelerate == ["pkg.planet:flux"] * 5
    assert (module.run.__defaults__, module.named.__wrapped__.__kwdefaults__) == held


# -- uninstall -------------------------------------------------------------------------------------------------------


def test_uninstall_leaves_no_trace(planet: ModuleType) -> None:
    user = importlib.import_module("user")
    before, finders = (_state(planet), _state(user)), tuple(sys.meta_path)
    patching.install(CATALOGUE)
    assert (_state(planet), _state(user)) != before
    patching.uninstall()
    assert (_state(planet), _state(user)) == before
    assert tuple(sys.meta_path) == finders


def test_uninstall_without_install_is_fine(planet: ModuleType) -> None:
    before = _state(planet)
    patching.uninstall()
    patching.uninstall()
    assert _state(planet) == before


def test_installing_twice_wraps_once(planet: ModuleType, accelerate: list[str]) -> None:
    before = _state(planet)
    patching.install(CATALOGUE)
    wrapper = planet.flux
    patching.install(CATALOGUE)
    assert planet.flux is wrapper
    planet.flux(1)
    assert accelerate == ["pkg.planet:flux"]
    patching.uninstall()
    assert _state(planet) == before


def test_installing_again_catches_aliases_made_behind_the_scenes(planet: ModuleType, accelerate: list[str]) -> None:
    original = planet.flux
    patching.install(CATALOGUE)
    planet.helper = original
    patching.install(CATALOGUE)
    planet.helper(1)
    assert accelerate == ["pkg.planet:flux"]


def test_another_choice_replaces_the_one_before(planet: ModuleType, accelerate: list[str]) -> None:
    patching.install(CATALOGUE, only=["flux"])
    patching.install(CATALOGUE, exclude=["flux"])
    planet.Model().step(1)
    assert accelerate == ["pkg.planet:Model.step"]
    assert _books()["Model.step"] is State.UNCALLED
    assert _books()["flux"] is State.NUMPY


def test_installed_is_undone_after_an_error(planet: ModuleType) -> None:
    before = _state(planet)
    with pytest.raises(RuntimeError), patching.installed(CATALOGUE):
        assert _state(planet) != before
        raise RuntimeError
    assert _state(planet) == before


def test_installed_inside_an_installation_gives_way_to_it_again(planet: ModuleType, accelerate: list[str]) -> None:
    patching.install(CATALOGUE)
    with patching.installed(CATALOGUE, only=["Model.step"]):
        planet.flux(1)
    assert accelerate == []
    planet.flux(1)
    assert accelerate == ["pkg.planet:flux"]


def test_threads_that_import_while_another_uninstalls(planet: ModuleType) -> None:
    before = _state(planet)
    errors: list[BaseException] = []

    def churn() -> None:
        try:
            for _ in range(20):
                with patching.installed(CATALOGUE):
                    planet.flux(1)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=churn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    patching.uninstall()
    assert errors == []
    assert _state(planet) == before


# -- holds and switches ----------------------------------------------------------------------------------------------


def test_a_hold_answers_its_value_and_leaves_a_note(planet: ModuleType, books: ModuleType) -> None:
    planet.alias = original = planet.is_fast
    hold = Hold("pkg.planet", "is_fast", False, "the built-in layer was bypassed")
    with patching.installed(Catalogue("test", (), (hold,))):
        assert planet.is_fast() is False
        assert planet.alias() is False
        assert planet.is_fast("any", thing=1) is False
        assert planet.is_fast.__closure__ is None, "another process could not find what is in a cell"
        assert planet.is_fast.__wrapped__ is original
    assert planet.is_fast is planet.alias is original
    assert planet.is_fast() is True
    assert books.current_run().notes == ["the built-in layer was bypassed"]


def test_a_hold_whose_module_never_comes_leaves_no_note(books: ModuleType) -> None:
    patching.install(Catalogue("test", (), (Hold("no_such_module", "f", 1, "bypassed"),)))
    assert books.current_run().notes == []
    assert books.ledgers() == ()


@pytest.mark.parametrize(
    ("changes", "variable"), [({"enabled": False}, "QD_USE_JAX"), ({"mode": "off"}, "QD_JAX_MODE")]
)
def test_switched_off_means_nothing_is_touched_and_the_log_says_so(
    planet: ModuleType, caplog: pytest.LogCaptureFixture, changes: dict[str, Any], variable: str
) -> None:
    before, finders = _state(planet), tuple(sys.meta_path)
    with config.override(log="info", **changes), caplog.at_level("INFO", logger="accel"):
        patching.install(CATALOGUE)
        assert _state(planet) == before
        assert tuple(sys.meta_path) == finders
    assert caplog.messages == [f"not installed: acceleration is switched off by {variable}"]


def test_the_books_of_a_catalogue_are_open_from_the_start(planet: ModuleType) -> None:
    patching.install(CATALOGUE)
    assert _books() == dict.fromkeys(QUALNAMES, State.UNCALLED)


# -- modes and the last word -----------------------------------------------------------------------------------------


def test_a_mode_for_these_functions_alone(write_modules: Callable[[dict[str, str]], Path]) -> None:
    write_modules({"moody.py": "def f(x):\n    return x * 2.0\n"})
    moody: Any = importlib.import_module("moody")
    catalogue = Catalogue("moody", (Row("moody", "f", "a test"),))
    patching.install(catalogue, mode="verify")
    assert moody.f._self_mode == "verify"
    with patching.installed(catalogue, mode="strict"):
        assert moody.f._self_mode == "strict"
    assert moody.f._self_mode == "verify"
    patching.install(catalogue)
    assert moody.f._self_mode is None, "the mode in force at each call"


def test_mode_off_installs_nothing_and_a_wrong_mode_is_named(write_modules: Callable[[dict[str, str]], Path]) -> None:
    write_modules({"moody.py": "def f(x):\n    return x * 2.0\n"})
    moody: Any = importlib.import_module("moody")
    catalogue = Catalogue("moody", (Row("moody", "f", "a test"),))
    patching.install(catalogue, mode="off")
    assert type(moody.f) is types.FunctionType
    with pytest.raises(SettingError, match=r"^mode='fast' cannot be used; expected: off, auto, verify, strict$"):
        patching.install(catalogue, mode="fast")


_LAST_WORD = """
import accel
from accel.catalogue import Catalogue
accel.install(Catalogue("none", ()))
accel.install(Catalogue("none", ()))
"""


@pytest.mark.parametrize(("quiet", "lines"), [("0", 1), ("1", 0)])
def test_the_last_word_of_a_process_that_installed_accel(quiet: str, lines: int) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _LAST_WORD],
        env={
            **os.environ,
            "QD_JAX_QUIET": quiet,
            "QD_JAX_CACHE_DIR": "off",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    assert done.stderr == "accel: no accelerated function was called\n" * lines
