"""The examples: each gives the same plain and accelerated, and is compiled, in a process of its own."""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.conftest import ROOT
from tests.processes import starter

RTOL = 1e-9
EXAMPLES = ("shallow_water", "lattice_boltzmann", "image_filter")
SMALLER = {"STEPS = 1000": "STEPS = 12", "size=(2, 800, 800)": "size=(2, 40, 40)"}
"""What the notebook says, and what is quick enough for a test."""


def _hurry() -> None:
    """Small arrays and few calls do not keep functions from being compiled."""
    from accel.platform import config
    from accel.policy import speed

    config.set_current(replace(config.current(), policy="eager"))
    speed.SPEED_SAMPLES = 10**9


def _compiled(target: str) -> int:
    from accel.platform.ledger import open_ledger

    return open_ledger(target).compiled_calls


def scripts() -> dict[str, Any]:
    """Run each script plain and accelerated; give the plain results."""
    from importlib import import_module

    import accel
    from examples.catalogue import CATALOGUE

    _hurry()
    results = {}
    for name in EXAMPLES:
        program = import_module(f"examples.{name}")
        plain = program.run(14, 40)
        with accel.installed(CATALOGUE):
            fast = program.run(14, 40)
        np.testing.assert_allclose(fast, plain, rtol=0, atol=RTOL * np.abs(plain).max())
        assert program.describe(plain)
        results[name] = plain
    for row in CATALOGUE.rows:
        assert _compiled(row.target) > 0, row.target
    return results | _plate()


def _plate() -> dict[str, Any]:
    """The script that imports its functions from a module beside it."""
    import accel
    from accel.catalogue import Catalogue, Row

    folder = ROOT / "examples" / "plate"
    sys.path.insert(0, str(folder))
    sys.argv = ["simulate.py", "14", "40"]

    def said() -> str:
        with contextlib.redirect_stdout(io.StringIO()) as words:
            runpy.run_path(str(folder / "simulate.py"), run_name="__main__")
        return words.getvalue()

    plain = said()
    with accel.installed(Catalogue("heat", (Row("heat", "Plate.step", "the whole time step"),))):
        assert said() == plain
    assert _compiled("heat:Plate.step") > 0
    return {"plate": plain}


def notebook() -> dict[str, Any]:
    """Run the notebook's cells, of which one runs a function plain and accelerated."""
    _hurry()
    cells = json.loads((ROOT / "examples" / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    for said, smaller in SMALLER.items():
        assert said in text
        text = text.replace(said, smaller)
    with contextlib.redirect_stdout(io.StringIO()) as words:
        exec(compile(text, "notebook", "exec"), names)
    np.testing.assert_allclose(names["fast"], names["plain"], rtol=0, atol=RTOL)
    assert "can be recorded whole" in words.getvalue()
    assert _compiled("__main__:react") > 0
    return {"plain": names["plain"]}


def test_scripts_give_the_same_accelerated(tmp_path: Path) -> None:
    outcome = starter(tmp_path)(scripts, timeout=120.0)
    assert set(outcome.bits) == {*EXAMPLES, "plate"}
    assert outcome.compiled > 0


def test_no_example_is_warned_of_the_rows_of_the_others() -> None:
    """Each imports its own module only."""
    from examples.catalogue import CATALOGUE

    assert {row.module for row in CATALOGUE.rows} == {f"examples.{name}" for name in EXAMPLES}
    assert all("optional" in row.traits for row in CATALOGUE.rows)


def test_the_notebook_gives_the_same_accelerated(tmp_path: Path) -> None:
    assert starter(tmp_path)(notebook, timeout=120.0).compiled > 0
