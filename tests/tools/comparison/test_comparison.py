"""Comparison runs: what is observed of a run, how errors and steps are told, and one whole run in fresh processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from accel.catalogue import Row, Steps
from accel.entry.lift.transform import NOT_RUN
from accel.tools.comparison import charts, runs
from accel.tools.comparison.observer import Observer

ROOT = Path(__file__).resolve().parents[3]


def step(model: Any, forcing: Any) -> Any:
    model.u = model.u * 0.5 + forcing
    return model.u.sum(), model.u * 2.0


ROW = Row("m", "step", "a test")
STEPS = Steps("m:step", {"m:step": ("u", "absent")}, (("m:step", "u"),))


def model() -> SimpleNamespace:
    return SimpleNamespace(u=np.ones(5), name="planet", count=np.arange(3))


def samples(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.stem: dict(np.load(path)) for path in folder.glob("*.npz")}


def test_the_state_that_a_catalogue_names_is_sampled_ever_more_rarely(tmp_path: Path) -> None:
    observer = Observer(tmp_path / "s", STEPS, perturb=False)
    observed, state = observer.on_numpy(ROW, step), model()
    for _ in range(10):
        observed(state, np.ones(5))
    observer.finish(peak_mb=1.0)
    found = samples(tmp_path / "s")
    assert sorted(found, key=runs._call_of) == [f"m:step@{number}" for number in (*range(1, 9), 10)]
    assert list(found["m:step@1"]) == ["u"]
    np.testing.assert_array_equal(found["m:step@2"]["u"], np.full(5, 1.75))
    summary = json.loads((tmp_path / "s" / "summary.json").read_text())
    assert len(summary["starts"]["m:step"]) == 10
    assert summary["peak_mb"] == 1.0


def test_without_a_catalogue_every_floating_point_array_at_hand_is_sampled(tmp_path: Path) -> None:
    observer = Observer(tmp_path / "s", None, perturb=False)
    observer.on_numpy(ROW, step)(model(), forcing=np.ones(5))
    (found,) = samples(tmp_path / "s").values()
    assert set(found) == {"result[1]", "forcing", "model.u"}


@pytest.mark.parametrize(
    ("steps", "forced", "moved"), [(STEPS, 1.0, (True, False)), (None, 1.0, (False, True)), (None, 0.0, (True, False))]
)
def test_a_perturbed_run_moves_the_state_once_by_a_last_place(
    tmp_path: Path, steps: Steps | None, forced: float, moved: tuple[bool, bool]
) -> None:
    observer = Observer(tmp_path / "s", steps, perturb=True)
    state, forcing = model(), np.full(5, forced)
    shared = state.u
    seen: list[Any] = []

    def look(model: Any, forcing: Any) -> None:
        seen.append((model.u.copy(), forcing.copy()))

    observed = observer.on_numpy(ROW, look)
    observed(state, forcing)
    observed(state, forcing)
    assert state.u is shared, "in place, so that who shares it goes on sharing"
    assert ((seen[0][0] != 1.0).all(), (seen[0][1] != forced).all()) == moved, "an array of zeros is not moved"
    np.testing.assert_array_equal(seen[0], seen[1])


def test_only_calls_that_the_program_makes_itself_are_observed(tmp_path: Path) -> None:
    observer = Observer(tmp_path / "s", None, perturb=False)
    inner = observer.on_numpy(Row("m", "inner", "a test"), lambda x: x * 2.0)  # type: ignore[arg-type]
    outer = observer.on_numpy(Row("m", "outer", "a test"), lambda x: inner(x) + 1.0)  # type: ignore[arg-type]
    outer(np.ones(2))
    inner(np.ones(2))
    assert set(samples(tmp_path / "s")) == {"m:outer@1", "m:inner@1"}
    with pytest.raises(TypeError):
        outer(None)
    outer(np.ones(2))
    assert "m:outer@3" in samples(tmp_path / "s"), "an exception leaves nothing behind"


@pytest.mark.parametrize(
    ("found", "expected", "error"),
    [
        ([1.0, 2.5], [1.0, 2.0], 0.25),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.nan, 1.0], [0.0, 1.0], np.inf),
        ([1.0], [1.0, 1.0], np.inf),
        ([1e-3, 0.0], [0.0, 0.0], 1e-3),
    ],
)
def test_the_error_of_a_field(found: list[float], expected: list[float], error: float) -> None:
    assert runs.error_between(np.array(found), np.array(expected)) == error
    assert runs.error_between(None, np.array(expected)) == np.inf


def test_steps_are_counted_by_the_function_with_most_time_unless_a_catalogue_says() -> None:
    starts, seconds = {"a": [1.0, 2.0], "b": [1.0, 1.5, 2.0], "c": [0.0]}, {"a": 1.0, "b": 0.1, "c": 9.0}
    run: dict[str, Any] = {"step": "x", "starts": starts, "seconds": seconds}
    assert runs._step(run) == "a"
    assert runs._step({**run, "step": "b"}) == "b"
    assert runs._step({"step": None, "starts": {"c": [0.0]}, "seconds": {}}) is None


PROGRAM = """
import sys
import numpy as np

def step(field, k):
    return field + k * (np.roll(field, 1) - field)

def main():
    print("started in", sys.argv[1:])
    field = np.linspace(0.0, 1.0, 64) ** 2
    for _ in range(12):
        field = step(field, 0.1)
    if sys.argv[1:] == ["fail"]:
        raise ValueError("the planet froze")

main()
"""
CATALOGUE = """
from accel.catalogue import Catalogue, Row
CATALOGUE = Catalogue("test", (Row("__main__", "step", "a test"), Row("model", "step", "a test")))
"""
OWN_ROW = 'Row("model", "step", "the user\'s own"),'
FILES = {
    "work/catalogue_of_the_test.py": CATALOGUE,
    "work/of_the_test-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: of-the-test\nVersion: 1\n",
    "work/of_the_test-1.dist-info/entry_points.txt": "[accel.catalogues]\na = catalogue_of_the_test:CATALOGUE\n",
    "work/model.py": PROGRAM.replace("\nmain()\n", ""),
    "work/go.py": "import model\nmodel.main()\n",
}


def compare(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    paths = [str(ROOT), ".", os.environ.get("PYTHONPATH", "")]
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("QD_")}
    settings = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "QD_JAX_CACHE_DIR": "off", "QD_JAX_AOT": "0"}
    return subprocess.run(
        [sys.executable, "-m", "accel", "compare", *args],
        cwd=folder / "work",
        env={**inherited, **settings},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_whole_comparison_run(tmp_path: Path) -> None:
    done = compare(tmp_path, "--out", "found", "go.py", "a", "b")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    out = tmp_path / "work" / "found"
    result = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert result["step"] == "model:step"
    assert [result["runs"][way]["steps"] for way in runs.WAYS] == [12, 12, 12]
    assert all(result["runs"][way]["peak_mb"] > 10 for way in runs.WAYS)
    field = result["fields"]["model:step: result"]
    assert field["calls"] == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12]
    assert max(field["accel"]) < 1e-12
    assert 0 < max(field["perturbed"]) < 1e-12
    (function,) = [each for each in result["accel"]["functions"] if each["target"] == "model:step"]
    assert function["compiled_calls"] > 0
    report = (out / "report.md").read_text(encoding="utf-8")
    assert "A step is the time between the starts of two calls of `model:step`." in report
    assert "| ms per step, median after warm-up |" in report
    assert (out / "numpy" / "log.txt").read_text(encoding="utf-8") == "started in ['a', 'b']\n"
    assert not list(out.glob("*-samples"))
    assert result["charts"] in (["steps.png", "fields.png"], [])
    assert all((out / name).stat().st_size > 1000 for name in result["charts"])
    said = f"{function['compiled_calls']} of {function['calls']} calls compiled"
    assert f"accel's run had {said}." in report
    last = done.stderr.splitlines()[-1]
    assert last.startswith("accel: steps ") and f", {said}; " in last and "; see " in last


def test_a_catalogue_of_the_users_own_is_passed_on(tmp_path: Path) -> None:
    own = CATALOGUE.replace('Row("__main__", "step", "a test"), Row("model", "step", "a test")', OWN_ROW)
    (tmp_path / "rows.py").write_text(own, encoding="utf-8")
    done = compare(tmp_path, "--out", "found", "--catalogue", "../rows.py", "go.py")
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "work" / "found" / "report.json").read_text(encoding="utf-8"))
    assert [each["target"] for each in result["accel"]["functions"]] == ["model:step"]


MARKED = """
import accel
import numpy as np

class Field:
    def __init__(self):
        self.u = np.linspace(0.0, 1.0, 64) ** 2

    @accel.accelerate(rtol=1e-9)
    def step(self, k):
        self.u = self.u + k * (np.roll(self.u, 1) - self.u)

@accel.accelerate
def total(u):
    return u.sum() * np.ones(2)

@accel.accelerate(loops=True)
def main():
    u = np.ones(9)
    for n in range(12):
        u = 0.9 * np.roll(u, 1) + n

field = Field()
for _ in range(12):
    field.step(0.1)
    total(field.u)
main()
"""


def test_functions_that_the_program_marks_are_compared(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "marked.py").write_text(MARKED)
    done = compare(tmp_path, "--out", "found", "marked.py")
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "work" / "found" / "report.json").read_text(encoding="utf-8"))
    assert [result["runs"][way]["steps"] for way in runs.WAYS] == [12, 12, 12]
    fields = {"__main__:Field.step: self.u", "__main__:total: result", "__main__:total: u", "__main__:main:20: u"}
    assert set(result["fields"]) == fields
    assert 0 < max(result["fields"]["__main__:Field.step: self.u"]["perturbed"]) < 1e-12
    assert max(result["fields"]["__main__:Field.step: self.u"]["accel"]) < 1e-12
    assert result["accel"]["totals"]["compiled_calls"] > 0


def test_runs_of_different_lengths_are_said_to_be_so() -> None:
    runs_of = {way: {"steps": steps} for way, steps in zip(runs.WAYS, (12, 12, 12), strict=True)}
    assert runs._other_steps({"runs": runs_of}) == ""
    said = runs._other_steps({"runs": {**runs_of, "accel": {"steps": 11}}})
    assert said == "the runs made different numbers of steps (12, 11, 12): do not trust these differences"


def test_a_busy_machine_is_told() -> None:
    def noise(numpy: float | None, perturbed: float | None) -> str:
        return runs._noise({"runs": {"numpy": {"ms_per_step": numpy}, "perturbed": {"ms_per_step": perturbed}}})

    assert noise(2.0, 2.9) == noise(2.9, 2.0) == noise(None, 2.0) == ""
    assert noise(12.3, 3.0) == (
        "NumPy's two runs took 12.3 and 3 ms per step: something else used the machine, so do not trust these times"
    )


def test_no_call_of_the_scripts_own_function_is_missed(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "script.py").write_text(PROGRAM.replace("main()\n", "main()\nmain()\n"), encoding="utf-8")
    done = compare(tmp_path, "--out", "found", "--catalogue", "catalogue_of_the_test.py", "script.py")
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "work" / "found" / "report.json").read_text(encoding="utf-8"))
    assert result["step"] == "__main__:step"
    assert [result["runs"][way]["steps"] for way in runs.WAYS] == [24, 24, 24]
    assert max(result["fields"]["__main__:step: result"]["accel"]) < 1e-12


FLAT = """
import numpy as np
x = np.linspace(0.0, 1.0, 50_000)
u = np.sin(6 * x)
for i in range(30):
    u = u + 0.1 * np.cos(u) * x

def main(model):
    for k in range(12):
        model.v = 0.9 * model.v + x
        for _ in range(2):
            model.v[1:-1] = 0.5 * (model.v[2:] + model.v[:-2])

class Model:
    v = None

model = Model()
model.v = np.zeros(50_000)
main(model)
"""


def test_the_rounds_of_a_flat_script_are_compared(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "flat.py").write_text(FLAT, encoding="utf-8")
    done = compare(tmp_path, "--auto", "--out", "found", "flat.py")
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "work" / "found" / "report.json").read_text(encoding="utf-8"))
    assert result["step"] in ("__main__:5", "__main__:main:9")
    steps = 30 if result["step"] == "__main__:5" else 12
    assert [result["runs"][way]["steps"] for way in runs.WAYS] == [steps] * 3
    fields = result["fields"]
    assert fields["__main__:5: u"]["calls"] == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27]
    assert fields["__main__:main:9: model.v"]["calls"] == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12]
    assert all(max(row["accel"]) < 1e-12 for row in fields.values())
    assert max(max(row["perturbed"]) for row in fields.values()) > 0
    assert result["accel"]["totals"]["compiled_calls"] > 0
    assert "__main__:main:11: model.v" not in fields, "a loop inside a round is a part of it"


def test_rounds_of_a_loop_are_observed_where_they_run_as_a_function(tmp_path: Path) -> None:
    observer = Observer(tmp_path / "s", None, perturb=True)
    beside, u = observer.rounds("m:f:3"), np.ones(5)
    before = u

    def body() -> Any:
        nonlocal u
        u = u * 2.0
        return "result"

    assert beside(body, lambda run: run()) == "result"
    assert (before > 1.0).all(), "it is perturbed before the first round"
    assert beside(body, None) == NOT_RUN, "it runs in its place"
    assert beside(body, lambda run: beside(run, lambda inner: inner())) == "result"
    assert beside(lambda: u, lambda run: 7) == 7
    assert sorted(samples(tmp_path / "s")) == [f"m:f:3@{number}" for number in (1, 2, 3)], "inner rounds are not"
    np.testing.assert_array_equal(samples(tmp_path / "s")["m:f:3@1"]["u"], before * 2.0)


def test_the_first_array_that_there_is_is_perturbed(tmp_path: Path) -> None:
    observer = Observer(tmp_path / "s", None, perturb=True)
    total, fixed, u = observer.rounds("m:1"), observer.rounds("m:2"), np.ones(5)
    locked = np.ones(3)
    locked.flags.writeable = False
    count = 0

    def counting() -> Any:
        nonlocal count
        count += 1

    total(counting, lambda run: run())
    fixed(lambda: locked, lambda run: run())
    amplitude = np.ones(4, complex)
    np.testing.assert_array_equal(u, 1.0)
    observer.rounds("m:3")(lambda: (amplitude, u), lambda run: run())
    assert (u > 1.0).all()
    observer.finish()
    assert json.loads((tmp_path / "s" / "summary.json").read_text(encoding="utf-8"))["perturbed"] is True


def test_a_run_that_fails_is_said_with_its_last_words(tmp_path: Path) -> None:
    done = compare(tmp_path, "--out", "found", "go.py", "fail")
    assert done.returncode == 1
    assert "accel: the run on numpy ended with exit code 1; its last output:\n" in done.stderr
    assert done.stderr.endswith("ValueError: the planet froze\n")
    assert not list((tmp_path / "work" / "found").glob("*-samples"))


def test_numpy_compared_with_numpy_is_said_to_be_so(tmp_path: Path) -> None:
    figures = {"wall_s": 1.0, "steps": 0, "ms_per_step": None, "longest_step_ms": None, "peak_mb": 1.0, "step_ms": []}
    result: dict[str, Any] = {
        "program": "go.py",
        "step": None,
        "runs": dict.fromkeys(runs.WAYS, figures),
        "fields": {},
        "perturbed": False,
        "accel": {"totals": {"calls": 5, "compiled_calls": 0}},
        "charts": [],
    }
    line = runs.one_line_summary(result, tmp_path)
    assert "nothing was compiled, so that NumPy was compared with NumPy" in line and "QD_JAX_AOT=0" in line
    assert "largest difference" not in line
    assert "No charts: no field was sampled" in runs._markdown(result)
    result["accel"]["totals"]["calls"] = 0
    assert "--auto compares the iterations of the script's own loops" in runs.one_line_summary(result, tmp_path)
    result["accel"]["totals"] = {"calls": 5, "compiled_calls": 1}
    assert "with NumPy" not in runs.one_line_summary(result, tmp_path)
    result["fields"] = {"f: u": {"calls": [3], "accel": [1e-12], "perturbed": [0.0]}}
    assert "largest difference 1e-12 after call 3, drift not measured" in runs.one_line_summary(result, tmp_path)
    assert "drift was not measured" in runs._markdown(result)
    result["perturbed"] = True
    assert "after call 3, drift 0," in runs.one_line_summary(result, tmp_path)


def test_charts_show_medians_of_three_runs_and_zero_as_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = pytest.importorskip("matplotlib.figure")
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(figure.Figure, "savefig", lambda self, path, **_: drawn.update({path.name: self}))
    steps = {"step_ms": [4.0, 2.0, 2.0, 3.0], "ms_per_step": 2.0}
    fields = {
        "m:f: u": {"calls": [1, 2], "accel": [0.0, 1e-13], "perturbed": [0.0, 0.0]},
        "m:f: v": {"calls": [1, 2], "accel": [0.0, 0.0], "perturbed": [1e-16, 1e-12]},
    }
    result = {"runs": dict.fromkeys(runs.WAYS, steps), "fields": fields}
    assert charts.charts(result, tmp_path) == ["steps.png", "fields.png"]
    (axes,) = drawn["steps.png"].axes
    assert sorted(text.get_text() for text in axes.get_legend().texts) == sorted(
        f"{way}: 2 ms after warm-up" for way in runs.WAYS
    )
    (axes,) = drawn["fields.png"].axes
    assert axes.get_title() == "the field with the largest difference: m:f: u"
    assert axes.get_yscale() == "symlog" and axes.get_ylim()[0] < 0.0 and axes.get_yticks()[0] == 0.0
    assert [list(line.get_ydata()) for line in axes.lines] == [[0.0, 0.0], [0.0, 0.0], [0.0, 1e-13]]
    fields["m:f: u"]["accel"] = [0.0, 0.0]
    charts.charts(result, tmp_path)
    assert drawn["fields.png"].axes[0].get_title().endswith(": m:f: v"), "of equal ones, that which drifts most"
