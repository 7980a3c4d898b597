"""All goals in one command: every row is measured by one benchmark, or says why not."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from benchmarks import __main__ as everything
from benchmarks import goal_table, goals, harness, publish, races
from benchmarks.harness import BadInput
from benchmarks.parts import Ended, Ledger

MACHINE = {"cpu": "a processor", "cores": 2, "memory_gb": 8.0}


def result(rows: list, quick: bool = False) -> dict:
    return {
        "rows": rows,
        "quick": quick,
        "machine": MACHINE,
        "versions": {"numpy": "2"},
        "commit": "abc",
        "date": "2026-01-01",
    }


def test_every_row_is_answered_by_some_measurement_and_told_apart_by_what_it_ran_on():
    answered = [(row, each.module, each.on(each.programs[0])) for each in goals.MEASUREMENTS for row in each.rows]
    assert {row for row, _, _ in answered} == set(goal_table.ROWS)
    assert len(set(answered)) == len(answered)
    assert len({measurement.name for measurement in goals.MEASUREMENTS}) == len(goals.MEASUREMENTS)


@pytest.mark.parametrize("measurement", goals.MEASUREMENTS, ids=lambda each: each.name)
def test_every_command_line_is_one_that_its_benchmark_takes(measurement):
    module, *arguments = measurement.part(measurement.programs[0], Path("somewhere"), quick=True).command
    assert module == f"benchmarks.{measurement.module}"
    importlib.import_module(module).parser().parse_args([*arguments, "--out", "x.json"])


def test_no_row_begins_as_another_does():
    texts = [row.text for row in goal_table.ROWS.values()]
    assert not [(a, b) for a in texts for b in texts if a is not b and a.startswith(b)]


def test_a_row_without_its_program_is_skipped_and_says_what_it_needs(tmp_path):
    measurement = next(each for each in goals.MEASUREMENTS if "step-new" in each.rows)
    (row,) = goals.run(measurement, {}, Ledger(tmp_path, resume=False), quick=True)
    assert (row["verdict"], row["why"]) == ("skipped", "needs a checkout of PyGCM 72b7af5: --pygcm DIR")
    text = goals.describe(result([row]))
    assert "72b7af5, 121x240: steady step faster than NumPy by: skipped, needs a checkout" in text
    assert "0 of 1 met" in text


def test_a_mean_of_steps_is_shown_with_the_median():
    records = [goal.record() for goal in goal_table.goals("step-old", 4.0)]
    (row,) = goals._measured("step-old", records, "1742bf9")
    text = goals.describe(result([goals._with_median(row, {"ratio": 5.99})]))
    assert "4 x (median 5.99)" in text


def test_a_benchmark_that_fails_is_told_and_not_taken_for_met(tmp_path):
    broken = goals.Measurement("broken", "overheads", ("--grid", "3x4"), (), ("guards", "stay"))
    rows = goals.run(broken, {}, Ledger(tmp_path, resume=False), quick=False)
    assert [row["verdict"] for row in rows] == ["failed", "failed"]
    assert "overheads: error: --grid '3x4'" in rows[0]["why"]


def test_figures_are_measured_and_judged(tmp_path, capsys):
    """The one row that needs no checkout, really run."""
    assert goals.main(["--only", "guards", "--quick", "--results", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "guard, fetch and commit of a whole-step target" in out
    assert "the figures mean nothing" in out
    written = json.loads((tmp_path / "goals.json").read_text())
    (row,) = written["rows"]
    assert row["measured"] > 0.0
    assert row["verdict"] == ("met" if row["measured"] <= 60.0 else "missed")
    assert (tmp_path / "goals.md").read_text().strip() == out.strip()
    assert json.loads((tmp_path / "parts.json").read_text())["overheads"]["ended"]["why"] == ""
    detail = json.loads((tmp_path / "overheads.json").read_text())["whole_step"]
    assert detail["overhead_us"] == pytest.approx(detail["call_us"] - detail["program_us"])
    assert detail["error"] <= 1e-12


@pytest.mark.parametrize(
    ("measured", "verdict"), [(12.5, "met"), (8.0, "met, not yet 12"), (7.5, "missed"), (float("nan"), "missed")]
)
def test_two_limits_are_judged_one_by_one(measured, verdict):
    records = [goal.record() for goal in goal_table.goals("step-old", measured)]
    (row,) = goals._measured("step-old", records, "1742bf9")
    assert row["verdict"] == verdict
    assert "at least 8, then 12 x" in goals.describe(result([row]))


def test_a_result_that_cannot_be_read_fails_its_rows_alone(tmp_path, monkeypatch):
    measurement = next(each for each in goals.MEASUREMENTS if each.name == "overheads")
    ledger = Ledger(tmp_path, resume=False)
    ledger.path("overheads").write_text("{")
    monkeypatch.setattr(goals, "told", lambda *_: Ended("", 1.0, 1.0))
    rows = goals.run(measurement, {}, ledger, quick=True)
    assert [row["verdict"] for row in rows] == ["failed", "failed"]
    assert "its result cannot be read" in rows[0]["why"]


def test_the_revision_of_a_checkout_is_seen(toy, monkeypatch):
    assert goals.checkouts_by_name([str(toy)])[goal_table.OLD] == toy
    (toy / "pygcm" / "jax_compat.py").touch()
    monkeypatch.setenv("QD_PYGCM_PATH", str(toy))
    assert goals.checkouts_by_name([])[goal_table.NEW] == toy
    monkeypatch.delenv("QD_PYGCM_PATH")
    assert goals.checkouts_by_name([]) == {"miniature": harness.MINIATURE}
    monkeypatch.setenv("QD_NPBENCH_PATH", "/nowhere")
    with pytest.raises(BadInput, match="--npbench /nowhere: no 'bench_info'"):
        goals.checkouts_by_name([])


def test_bad_input_is_named(tmp_path):
    with pytest.raises(BadInput, match="--only speed: no such row; there are step-old, "):
        goals.main(["--only", "speed"])
    with pytest.raises(BadInput, match="--pygcm /nowhere: no folder 'pygcm' there"):
        goals.main(["--pygcm", "/nowhere"])
    with pytest.raises(BadInput, match="--publish: the figures of a quick run mean nothing"):
        everything.main(["--quick", "--publish"])
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"--results .*file/x: Not a directory"):
        goals.main(["--results", str(tmp_path / "file" / "x")])


def test_every_benchmark_is_part_of_all(tmp_path):
    checkouts = {"1742bf9": tmp_path}
    for quick in (False, True):
        parts = everything.more_parts(checkouts, quick)
        assert [part.name for part in parts] == ["starts", "functions-1742bf9", "ndimage"]
        for module, *arguments in (part.command for part in parts):
            importlib.import_module(module).parser().parse_args([*arguments, "--out", "x.json"])


# -- publishing --------------------------------------------------------------------------------------------------------


def test_a_summary_shows_goals_and_machine(tmp_path):
    row = {"id": "guards", "goal": "guards", "measured": 50.0, "limits": [60.0], "verdict": "met"}
    goals.write(result([row]), tmp_path)
    assert publish.main(["--results", str(tmp_path)]) == 0
    text = (tmp_path / "summary.md").read_text()
    assert "**Goals**, measured on 2026-01-01:" in text
    assert "| guards | 50 us" in text
    assert "a processor, 2 cores" in text


def test_a_summary_shows_kernels_and_ndimage(tmp_path):
    shown = {"machine": MACHINE, "versions": {"numpy": "2", "jax": "1"}}
    rows = [
        {"kernel": f"k{ratio}", "n": "M", "ratio": ratio, "state": "compiled", "reasons": [], "wrong": []}
        | {"numpy_ms": ratio, "accel_ms": 1.0, "tolerance": 0.0}
        for ratio in (0.5, 8.0)
    ]
    races.write({"benchmark": "collection", **races.totals(rows), **shown}, str(tmp_path / "collection.json"))
    timing = {"case": "label", "grid": "31x60", "scipy_ms": 2.0, "compiled_ms": 1.0, "ratio": 2.0}
    harness.write_json(tmp_path / "ndimage.json", {"timings": [timing], **shown})
    text = publish.summary(tmp_path)
    assert "2 compiled, 0 wrong; geometric mean 2.00, of the compiled 2.00; 1 compiled ones below 0.97: k0.5 M" in text
    assert "| label    | 31x60 |        2 |           1 |            2 |" in text
    if (tmp_path / "collection-ratios.png").is_file():  # matplotlib may be missing
        assert "![collection-ratios](collection-ratios.png)" in text


def test_only_the_marked_section_changes():
    page = f"before\n{publish.BEGIN}\nold\n{publish.END}\nafter\n"
    changed = publish.replaced(page, "new\n")
    assert changed == f"before\n{publish.BEGIN}\n\nnew\n\n{publish.END}\nafter\n"
    assert publish.replaced(changed, "new\n") == changed
    with pytest.raises(BadInput, match=r"docs/benchmarks\.md has no section between"):
        publish.replaced("no marks", "new")


def test_what_was_measured_elsewhere_replaces_what_is_shown(tmp_path):
    page, found, shown = tmp_path / "page.md", tmp_path / "found", tmp_path / "results"
    page.write_text(f"{publish.BEGIN}\n{publish.END}\n")
    for folder in (found, shown):
        folder.mkdir()
    (shown / "functions-old.json").write_text("{}")
    (found / "old-cold.json").write_text("{}")  # not part of the page
    row = {"id": "guards", "goal": "guards", "measured": 50.0, "limits": [60.0], "verdict": "met"}
    goals.write(result([row]), found)
    publish.show(found, shown, page)
    assert sorted(path.name for path in shown.iterdir()) == ["goals.json", "goals.md"]
    assert "| guards | 50 us" in page.read_text()


def test_the_page_shows_what_is_published_and_nothing_else():
    text = publish.PAGE.read_text()
    assert publish.replaced(text, "x").count(publish.BEGIN) == 1
    if (publish.PUBLISHED / "goals.json").is_file():
        assert publish.replaced(text, publish.section(publish.PUBLISHED)) == text
