"""Versions: what is declared, what is said and what is checked agree, and a package that is too old costs no result."""

from __future__ import annotations

import ast
import logging
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata, util
from pathlib import Path

import numpy as np
import pytest

import accel
from accel.catalogue import Catalogue
from accel.dispatch import Refused
from accel.entry.hook import patching
from accel.platform import versions
from accel.platform.ledger import open_ledger
from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
NAMES = {"numpy": "NumPy", "scipy": "SciPy", "jax": "JAX", "wrapt": "wrapt"}
PYTHON = "3.11"
OPTIONAL = {"IPython", "matplotlib", "numba", "pytest", "xarray"}
"""What accel imports only where a program has it."""


def _declared() -> dict[str, str]:
    return dict(re.fullmatch(r"(\w+)>=([\d.]+)", each).groups() for each in PROJECT["project"]["dependencies"])  # type: ignore[union-attr, misc]


# -- one truth ---------------------------------------------------------------------------------------------------------


def test_pip_and_accel_ask_for_the_same() -> None:
    assert _declared() == {**versions.FLOORS, **versions.OPTIONAL}


def test_the_extras_of_devices_are_jaxs_own_for_the_same_versions() -> None:
    extras = {name: PROJECT["project"]["optional-dependencies"][name] for name in ("cuda", "tpu")}
    floor = versions.FLOORS["jax"]
    assert extras == {"cuda": [f"jax[cuda12]>={floor}"], "tpu": [f"jax[tpu]>={floor}"]}
    offered = metadata.metadata("jax").get_all("Provides-Extra") or []
    assert {"cuda12", "tpu"} <= set(offered), "of the installed version"


def test_the_readme_asks_for_the_same() -> None:
    said = " ".join(README.split())
    for name, word in NAMES.items():
        assert re.search(rf"\b{word} {re.escape(versions.FLOORS[name])}(,| )", said), name


def test_the_oldest_python_is_the_same_everywhere() -> None:
    assert PROJECT["project"]["requires-python"] == f">={PYTHON}"
    assert f"Python ({PYTHON} or newer" in README
    assert f"Python {PYTHON} or newer" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert PROJECT["tool"]["mypy"]["python_version"] == PYTHON
    assert PROJECT["tool"]["ruff"]["target-version"] == "py" + PYTHON.replace(".", "")


def test_what_is_installed_beside_accel_is_what_it_imports() -> None:
    tops = {name for path in Path(accel.__file__).parent.rglob("*.py") for name in _imported(path)}
    foreign = tops - set(sys.stdlib_module_names) - OPTIONAL - {"accel"}
    assert foreign | {"jaxlib", "flatbuffers"} == set(_declared()), "JAX imports these two"


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]


def test_numbers_of_versions() -> None:
    ordered = ["0.8", "0.8.0", "0.8.3", "0.10.0rc1", "0.10.2.dev7+g1", "0.12.0.1", "2.1"]
    assert ordered == sorted(ordered, key=versions._numbers)
    assert versions._numbers("unknown") == ()


# -- too old -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str | None]]:
    """Versions by distribution that seem to be installed; None: without any that pip knows of."""
    found: dict[str, str | None] = {}
    real = metadata.version

    def version(name: str) -> str:
        version = found[name] if name in found else real(name)
        if version is None:
            raise metadata.PackageNotFoundError(name)
        return version

    _forget()
    monkeypatch.setattr(metadata, "version", version)
    yield found
    _forget()


def _forget() -> None:
    versions.shortfall.cache_clear()
    versions.warn.cache_clear()


def double(x: np.ndarray) -> np.ndarray:
    return 2.0 * x


def test_what_is_installed_is_new_enough() -> None:
    assert versions.shortfall() is None


def test_a_package_that_is_too_old_keeps_functions_on_numpy(
    pretend: dict[str, str | None], books: object, caplog: pytest.LogCaptureFixture
) -> None:
    pretend["jax"] = "0.7.2"
    with caplog.at_level(logging.WARNING, "accel"):
        fast = accel.accelerate(double)
        accel.accelerate(double)
    assert [record.getMessage() for record in caplog.records] == [
        "all functions stay on NumPy: jax is 0.7.2; accel needs 0.8 or newer"
    ]
    for _ in range(8):
        np.testing.assert_array_equal(fast(np.arange(3.0)), [0.0, 2.0, 4.0])
    (refusal,) = open_ledger(fast._self_target.name).refusals
    assert (refusal.reason, refusal.detail) == ("environment.versions", "jax is 0.7.2; accel needs 0.8 or newer")


def test_strict_mode_says_so(pretend: dict[str, str | None], books: object) -> None:
    pretend["numpy"] = "2.0.2"
    with pytest.raises(Refused, match=r"numpy is 2\.0\.2; accel needs 2\.1 or newer"):
        accel.accelerate(double, mode="strict")(np.arange(3.0))


def test_install_says_so(pretend: dict[str, str | None], books: object, caplog: pytest.LogCaptureFixture) -> None:
    pretend.update(scipy="1.13.1", wrapt="1.16.0")
    with caplog.at_level(logging.WARNING, "accel"):
        patching.install(Catalogue("empty", ()))
    (record,) = caplog.records
    expected = "scipy is 1.13.1; accel needs 1.14.1 or newer; wrapt is 1.16.0; accel needs 1.17 or newer"
    assert record.getMessage() == f"all functions stay on NumPy: {expected}"


def test_what_is_not_there_is_missing_and_what_pip_does_not_know_is_not(
    pretend: dict[str, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend["jax"] = None
    assert versions.shortfall() is None
    _forget()
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    assert versions.shortfall() == "jax is not installed; accel needs 0.8 or newer"


@pytest.mark.parametrize("command", ["explain", "doctor"])
def test_commands_that_record_say_so_in_one_line(command: str) -> None:
    code = (
        "import importlib.metadata as m, sys; real = m.version;"
        "m.version = lambda name: '2.0.2' if name == 'numpy' else real(name);"
        f"from accel.__main__ import main; sys.exit(main([{command!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (2, "accel: numpy is 2.0.2; accel needs 2.1 or newer\n")


def test_a_build_without_the_gil_is_refused(monkeypatch: pytest.MonkeyPatch, pretend: object) -> None:
    monkeypatch.setattr(versions.sysconfig, "get_config_var", lambda name: int(name == "Py_GIL_DISABLED"))
    assert "and this is free-threaded CPython 3." in str(versions.shortfall())


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("CPython", (versions.PYTHONS[1][0], versions.PYTHONS[1][1] + 1)),
        ("CPython", (3, 10)),
        ("PyPy", (3, 11)),
        ("GraalVM", (3, 12)),
    ],
)
def test_an_unknown_python_is_refused_and_not_tried(
    monkeypatch: pytest.MonkeyPatch, pretend: object, books: object, name: str, version: tuple[int, int]
) -> None:
    monkeypatch.setattr(versions.platform, "python_implementation", lambda: name)
    monkeypatch.setattr(versions.sys, "version_info", (*version, 0))
    expected = f"accel supports CPython 3.11 to 3.14, and this is {name} {version[0]}.{version[1]}"
    fast = accel.accelerate(double)
    np.testing.assert_array_equal(fast(np.arange(3.0)), [0.0, 2.0, 4.0])
    (refusal,) = open_ledger(fast._self_target.name).refusals
    assert (refusal.reason, refusal.detail) == ("environment.versions", expected)


def test_the_known_pythons_are_those_of_the_matrix() -> None:
    matrix = re.search(r"PYTHONS = (\[.*\])", (ROOT / "noxfile.py").read_text(encoding="utf-8"))
    assert matrix is not None
    first, *_, last = ast.literal_eval(matrix[1])
    assert tuple(tuple(map(int, each.split("."))) for each in (first, last)) == versions.PYTHONS
