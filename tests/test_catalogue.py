"""Catalogues: found through entry points, and the one of PyGCM is complete and consistent."""

from __future__ import annotations

import ast
import logging
import os
import re
from collections import Counter
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from accel import catalogue
from accel.catalogue import TRAITS, Catalogue, Row, Steps
from accel.platform.config import SettingError
from pygcm_patch import CATALOGUE, HOLDS

ROWS = CATALOGUE.rows


def _points(monkeypatch: pytest.MonkeyPatch, *values: str) -> None:
    points = [EntryPoint(f"n{index}", value, catalogue.ENTRY_POINTS) for index, value in enumerate(values)]
    monkeypatch.setattr(metadata, "entry_points", lambda group: points)


def test_catalogues_are_found_through_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    _points(monkeypatch, "pygcm_patch:CATALOGUE")
    assert catalogue.discover() == (CATALOGUE,)


def test_no_catalogue_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _points(monkeypatch)
    assert catalogue.discover() == ()


def test_a_broken_catalogue_is_left_out_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _points(monkeypatch, "no_such_module:CATALOGUE", "pygcm_patch:CATALOGUE")
    with caplog.at_level(logging.WARNING, logger="accel"):
        assert catalogue.discover() == (CATALOGUE,)
    assert caplog.messages == [
        "the catalogue 'n0' could not be loaded from no_such_module:CATALOGUE: No module named 'no_such_module'"
    ]


def test_no_target_is_listed_twice() -> None:
    assert [target for target, count in Counter(row.target for row in ROWS).items() if count > 1] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.target)
def test_a_row_is_complete(row: Row) -> None:
    assert row.module.startswith("pygcm.") or row.loops
    assert row.why == row.why.strip() != ""
    assert not row.why.endswith(".")
    assert row.declined is None or row.declined.strip()
    assert row.traits <= set(TRAITS)
    assert row.rtol is None or 0 < row.rtol <= 1e-6


def test_the_loop_of_the_model_is_covered() -> None:
    accelerated = {row.target for row in ROWS if row.declined is None}
    outer = {row.target for row in ROWS if "outer" in row.traits}
    assert outer <= accelerated
    assert {"pygcm.dynamics:SpectralModel.time_step", "pygcm.ocean:WindDrivenSlabOcean.step"} <= outer


@pytest.mark.parametrize("name", ["m.Planet.step", "m:Planet.step"])
def test_steps_may_spell_their_targets_with_dots(name: str) -> None:
    made = Catalogue("mine", (Row("m", "Planet.step", "the step"),), steps=Steps(name, {name: ("u",)}, ((name, "u"),)))
    assert made.steps == Steps("m:Planet.step", {"m:Planet.step": ("u",)}, (("m:Planet.step", "u"),))


def test_the_built_in_jax_layer_is_held_off() -> None:
    (hold,) = HOLDS
    assert (hold.target, hold.value) == ("pygcm.jax_compat:is_enabled", False)
    assert "[JAX] Acceleration enabled: False" in hold.note  # the line of the model that it explains


def test_the_demo_is_where_the_catalogue_says() -> None:
    assert CATALOGUE.demo_root is not None
    assert (CATALOGUE.demo_root / "pygcm").is_dir()
    path = CATALOGUE.demo_root.joinpath(*CATALOGUE.demo_target.split(".")).with_suffix(".py")
    assert path.is_file()


def _functions(path: Path) -> set[str]:
    """Return the qualified names of the functions and methods that a source file defines."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        names |= {prefix + each.name for each in inner if isinstance(each, ast.FunctionDef)}
    return names


def _listed(root: Path, catalogue: Catalogue) -> tuple[set[str], set[str]]:
    """Return the targets of rows not marked optional, and those that `root` defines."""
    defined = set()
    for module in {row.module for row in catalogue.rows}:
        path = root.joinpath(*module.split(".")).with_suffix(".py")
        defined |= {f"{module}:{name}" for name in _functions(path)} if path.is_file() else set()
    return {row.target for row in catalogue.rows if "optional" not in row.traits}, defined


def test_every_revision_has_the_rows_that_are_not_optional() -> None:
    path = os.environ.get("QD_PYGCM_PATH")
    if not path:
        pytest.skip("QD_PYGCM_PATH does not name a checkout of PyGCM")
    required, defined = _listed(Path(path), CATALOGUE)
    assert required - defined == set()


def test_the_miniature_has_most_of_the_loop() -> None:
    assert CATALOGUE.demo_root is not None
    required, defined = _listed(CATALOGUE.demo_root, CATALOGUE)
    assert len(required & defined) >= 30


def test_accel_itself_names_no_program() -> None:
    """The engine knows nothing of PyGCM beyond the command line's option and what help texts show as examples."""
    words = re.compile(r"\b(import|from) +pygcm")
    root = Path(catalogue.__file__).parent
    assert [path.name for path in sorted(root.rglob("*.py")) if words.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ("Row('m', 'f', 'why', traits=frozenset({'oter'}))", "traits='oter' is unknown (did you mean outer?)); "),
        ("Row('m', 'f', 'why', rtol=0)", "rtol=0 cannot be used); expected: a number more than 0"),
        ("Row('m', 'f', wy='why')", "TypeError: "),
    ],
)
def test_a_slip_in_a_row_is_one_line_that_names_the_line_of_the_file(tmp_path: Path, row: str, line: str) -> None:
    path = tmp_path / "rows.py"
    path.write_text(f"from accel.catalogue import Catalogue, Row\n\nCATALOGUE = Catalogue('mine', ({row},))\n")
    with pytest.raises(SettingError) as raised:
        catalogue.load(str(path))
    assert str(raised.value).startswith(f"--catalogue={str(path)!r} cannot be ")
    assert f"(line 3: {line}" in str(raised.value)
    assert "\n" not in str(raised.value)
