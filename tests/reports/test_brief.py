"""The report in brief: what helped, what did not, what to do, and no more than a screen."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType

import pytest

import accel
from accel.platform import config, forks
from accel.platform.ledger import Difference, RunLedger, State
from accel.platform.reasons import Refusal
from accel.reports import advice, brief, last, reporting
from accel.reports.figures import figures_of_run


@pytest.fixture(autouse=True)
def ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunLedger, "wall_s", 10.0)


@pytest.fixture
def crowd(books: ModuleType) -> None:
    """Forty functions: compiled, at a loss, on NumPy for several reasons, and never called."""
    for index in range(10):
        good = books.open_ledger(f"package.with.a.long.name.Fast{index}.step")
        bad = books.open_ledger(f"package.with.a.long.name.Slow{index}.step")
        lost = books.open_ledger(f"package.with.a.long.name.Lost{index}.step")
        books.open_ledger(f"package.with.a.long.name.Never{index}.step")
        good.variants = lost.variants = 1
        for _ in range(5):
            good.count_compiled(0.01, 0.1 + 0.01 * index)
            lost.count_compiled(0.01, 0.0)
            bad.count_numpy(0.1 + 0.01 * index)
            bad.refuse(Refusal("effect.file" if index % 2 else "call.opaque", f"somewhere.py:{index}", "x" * 300))
        lost.charge("recording", 0.1)
        bad.state = State.NUMPY


def test_it_is_a_screen_whatever_ran(crowd: None) -> None:
    text = accel.report()
    lines = text.splitlines()
    assert len(lines) <= brief.LINES
    assert max(map(len, lines)) <= 100
    for title in ("what helped (1 of 10 functions)", "what did not (2 of 20 functions)", "what to do"):
        assert f"\n{title}\n" in text
    assert "Fast9.step: " in text and "Fast0.step" not in text and "Slow9.step: 0.950 s on NumPy: " in text
    assert "compiled, at a loss so far\n" in text
    assert "Never" not in text
    assert "Never" in accel.report(full=True)


def test_what_to_change_is_shown_whole_and_takes_no_functions_place(crowd: None, books: ModuleType) -> None:
    figures = figures_of_run()
    plain = brief.brief(figures, advice.IN_PYTHON)
    long = f"script.py:4: {'a reason of many words, ' * 12}and what to change"
    told = brief.brief({**figures, "faster": [long] * 3}, advice.IN_PYTHON)
    assert told.startswith(plain) and "[...]" not in told.removeprefix(plain)
    assert " ".join(told.split()).count(" ".join(long.split())) == 3


def test_a_hint_names_the_line_that_it_is_for(crowd: None) -> None:
    hints = accel.report().partition("\nwhat to do\n")[2].splitlines()
    assert hints[0].startswith("  somewhere.py:8: "), "line 9 needs none"


def test_what_fits_is_shown(books: ModuleType) -> None:
    for index in range(3):
        book = books.open_ledger(f"m.f{index}")
        book.count_compiled(0.01, 0.1)
    text = accel.report()
    assert "\nwhat helped\n" in text and all(f"m.f{index}: " in text for index in range(3))
    assert len(text.splitlines()) <= brief.LINES


def test_a_run_without_calls_says_what_to_do(books: ModuleType) -> None:
    first, _, title, *rest = accel.report().splitlines()
    assert (first, title) == ("accel: no accelerated function was called", "what to do")
    assert " ".join(" ".join(rest).split()) == advice.IN_PYTHON.start


def test_a_difference_is_never_left_out(books: ModuleType) -> None:
    book = books.open_ledger("m.f")
    book.count_numpy(0.1)
    book.differ(Difference("result", "", "1 and 2", math.inf), "demoted")
    assert "differed from NumPy beyond the tolerance" in accel.report()


def test_what_is_kept_is_shown_as_it_was(crowd: None, books: ModuleType, tmp_path: Path) -> None:
    books.open_ledger("package.with.a.long.name.Fast1.step").compared(math.inf)
    figures = figures_of_run()
    with config.override(cache_dir=tmp_path / "c"):
        assert last.load() is None
        assert last.keep(figures, "program")
        kept = last.load()
    assert kept is not None
    for name in reporting.FORMATS:
        assert reporting.render(kept.figures, name) == reporting.render(figures, name)
    assert reporting.render(kept.figures, full=False) == reporting.render(figures, full=False)


def test_what_cannot_be_kept_is_not(crowd: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = figures_of_run()
    with config.override(cache_dir=None):
        assert not last.keep(figures, "p")
    with config.override(cache_dir=tmp_path):
        with monkeypatch.context() as patch:
            patch.setattr(last, "MOST_BYTES", 100)
            assert not last.keep(figures, "p")
        monkeypatch.setattr(forks, "happened", True)
        assert not last.keep(figures, "p")
    assert list(tmp_path.iterdir()) == []
