"""The comparison with numba and hand-written JAX: its rivals compute what the NumPy programs do."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.rivals import __main__ as rivals


@pytest.mark.parametrize(("way", "name"), [("JAX", "images"), ("numba", "relaxation")])
def test_a_rival_prints_numpys_numbers(way: str, name: str, tmp_path: Path) -> None:
    pytest.importorskip(way.lower())
    (tmp_path / "accel").mkdir()
    expected = rivals.run(name, "NumPy", 5, tmp_path)
    found = rivals.run(name, way, 5, tmp_path)
    assert rivals.error_of(found.printed, expected.printed) < 1e-9
    assert found.seconds > 0.0 and found.megabytes > 10.0


def test_figures_of_a_program() -> None:
    assert rivals.lines_changed("particles", "accel") == 0
    assert 5 < rivals.lines_changed("particles", "numba") < 40
    assert rivals.error_of("a 1.0 and -2e3", "a 1.0 and -1e3") == 1.0
    assert rivals.error_of("1 2", "1") == float("inf")


def test_a_program_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="ValueError"):
        rivals.run("particles", "NumPy", "many", tmp_path)  # type: ignore[arg-type]
