"""The user's project: helpers in other modules of it are followed, libraries are not."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import accel
from accel.catalogue import Catalogue, Row
from accel.platform import own_code
from accel.platform.ledger import open_ledger

pytestmark = pytest.mark.usefixtures("foreground")

Write = Callable[..., ModuleType]


@pytest.fixture
def write(write_modules: Any, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a module into a folder on the path, and import it."""

    def module(name: str, text: str, folder: str = ".") -> ModuleType:
        root = write_modules({f"{folder}/{name.replace('.', '/')}.py": f"import numpy as np\n{text}"})
        monkeypatch.syspath_prepend(root / folder)
        return import_module(name)

    return module


def compiled(function: Any, *args: Any) -> int:
    """Compiled calls of a function that gives the same as without accel."""
    fast = accel.accelerate(function, name="work")
    for _ in range(8):
        np.testing.assert_allclose(fast(*args), function(*args), rtol=1e-12)
    return open_ledger("work").compiled_calls


def refusals() -> list[str]:
    return [f"{each.reason} {each.detail}" for each in open_ledger("work").refusals]


x = np.linspace(0.0, 1.0, 30)


def test_a_helper_in_the_module_beside_the_script_is_followed(write: Write) -> None:
    write(
        "project_physics",
        "G = 9.81\ndef rhs(u): return np.sin(u) * G + shifted(u)\ndef shifted(u): return np.roll(u, 1)",
    )
    script = write(
        "project_script",
        "from project_physics import rhs\nimport project_physics as physics\n"
        "def step(u): return u + 0.1 * rhs(u) + physics.shifted(u)",
    )
    assert compiled(script.step, x) > 0


def test_what_a_helper_reads_of_its_module_is_guarded(write: Write) -> None:
    physics = write("project_constants", "G = 2.0\ndef force(u): return u * G")
    script = write("project_uses", "from project_constants import force\ndef step(u): return force(u) + 1.0")
    assert compiled(script.step, x) > 0
    physics.G = 3.0
    assert compiled(script.step, x) > 0


def test_classes_of_other_packages_of_the_project_are_followed(write: Write) -> None:
    write(
        "project_shapes.cell",
        "class Cell:\n    def __init__(self, u): self.u = u\n"
        "    def advance(self, dt):\n        self.u = self.u + dt * np.cos(self.u)\n        return self.u",
    )
    script = write("project_model", "def step(cell): return cell.advance(0.1) * 1.0")
    cell_class: Any = import_module("project_shapes.cell").Cell
    plain, fast = cell_class(x), cell_class(x)
    step = accel.accelerate(script.step, name="work")
    for _ in range(8):
        np.testing.assert_allclose(step(fast), script.step(plain), rtol=1e-12)
    assert open_ledger("work").compiled_calls > 0
    np.testing.assert_allclose(fast.u, plain.u, rtol=1e-12)


@pytest.mark.parametrize("folder", ["site-packages", "lib/dist-packages"])
def test_what_is_installed_is_not_followed(write: Write, folder: str) -> None:
    write("project_library", "def scaled(u): return u * 2.0", folder)
    script = write("project_client", "from project_library import scaled\ndef step(u): return scaled(u) + 1.0")
    assert compiled(script.step, x) == 0
    assert refusals() == ["call.opaque project_library:scaled"]


def test_an_installed_package_is_followed_if_a_catalogue_names_a_function_of_it(write: Write) -> None:
    write("project_installed", "def scaled(u): return halved(u) * 4.0\ndef halved(u): return u / 2.0", "site-packages")
    script = write("project_runs", "from project_installed import halved\ndef step(u): return halved(u) + 1.0")
    accel.install(Catalogue("own", (Row("project_installed", "scaled", "why"), Row("numpy.fft", "no_such", "why"))))
    try:
        assert compiled(script.step, x) > 0
        assert not own_code.is_of_project(np.fft.fftfreq)
    finally:
        accel.uninstall()
    assert not own_code.is_of_project(script.halved)


def test_python_s_own_library_is_not_followed() -> None:
    assert not own_code.is_of_project(statistics.mean)
    assert not own_code.is_of_project(accel.install)
    assert own_code.is_of_project(compiled)


def test_code_without_a_file_is_followed_in_its_own_module_only(write: Write) -> None:
    namespace: dict[str, Any] = {"np": np, "__name__": "project_made"}
    exec(compile("def made(u): return np.sin(u)", "<made>", "exec"), namespace)
    script = write("project_caller", "def step(made, u): return made(u) + 1.0")
    assert compiled(script.step, namespace["made"], x) == 0
    assert refusals() == ["call.opaque project_made:made"]
    assert compiled(namespace["made"], x) > 0


def test_what_is_generated_for_a_module_is_the_module_s(write: Write) -> None:
    parameters = write(
        "project_parameters",
        "from dataclasses import dataclass\n@dataclass\nclass Parameters:\n    k: float = 2.0\n    power: int = 2",
    )
    script = write("project_reads", "from project_parameters import Parameters\ndef step(u): return Parameters().k * u")
    assert own_code.is_of_project(parameters.Parameters.__init__)
    assert compiled(script.step, x) > 0
    namespace: dict[str, Any] = {"__name__": "project_parameters"}
    exec("def made(): pass", namespace)
    assert not own_code.is_of_project(namespace["made"])
