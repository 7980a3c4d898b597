"""What a user is told to change: the ceiling that compiled code sets, and the lines that cost most."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import FrameType

import pytest

import accel
from accel.platform import ledger
from accel.platform.reasons import Refusal, source_line
from accel.reports import brief, text
from accel.reports.advice import IN_SHELL
from accel.reports.figures import figures_of_run
from accel.tools.cli import running
from accel.tools.plugins import faster, lines
from accel.tools.plugins.lines import ACCEL, COMPILED, NUMPY, PYTHON, LineProfile
from tests.conftest import WriteModules
from tests.tools.cli.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


SOURCE = """import numpy as np
x = np.fft.fft(x)
n = rng.normal(size=3)
for i in range(9): total += x[i]
z = np.exp(x)
w = z.sum()
"""


@pytest.fixture
def profile(tmp_path: Path) -> LineProfile:
    path = tmp_path / "script.py"
    path.write_text(SOURCE)
    made = LineProfile()
    made.seconds = 10.0
    for number, seconds in {2: {NUMPY: 3.0}, 3: {NUMPY: 1.0}, 4: {PYTHON: 2.0, NUMPY: 0.5}, 5: {NUMPY: 1.5}}.items():
        made._seconds[str(path), number] = seconds
        made._functions[str(path), number] = ("script:f", number), ("script", 7)
    made._seconds[str(path), 6] = {COMPILED: 1.0, ACCEL: 0.5, NUMPY: 0.1}
    return made


def test_the_ceiling_and_the_costliest_lines_are_told(profile: LineProfile, tmp_path: Path, books: None) -> None:
    ledger.open_ledger("script:f").calls = 3
    told = faster.advice(profile)
    assert told[0] == (
        "40% of the run is in work that accel cannot help (FFT, random numbers): "
        "at most 2.5x, with everything else free"
    )
    place = source_line(str(tmp_path / "script.py"), 4)
    assert told[1] == (
        f"{place}: 2.5 s (25%), for i in range(9): total += x[i]: "
        "Python runs it element by element: one operation on the whole array"
    )
    assert "a longer run helps" in told[2] and len(told) == 3, "line 6 takes one hundredth"
    place_of_6 = str(tmp_path / "script.py"), 6
    profile._seconds[place_of_6], profile._functions[place_of_6] = {NUMPY: 1.0}, (("script:f", 6),)
    assert faster.advice(profile)[3].endswith("w = z.sum()"), "the hint stands once"


def test_an_import_is_none_of_accels_work_and_few_samples_are_not_told(profile: LineProfile, books: None) -> None:
    path = next(iter(profile._seconds))[0]
    profile._seconds[path, 1] = {NUMPY: 1.0}
    assert "(FFT, imports, random numbers)" in faster.advice(profile)[0]
    profile.interval_s = 2.0
    assert faster.advice(profile) == [], "no line was seen five times"


def test_a_line_is_told_with_its_refusal_and_what_helps(profile: LineProfile, tmp_path: Path, books: None) -> None:
    refusal = Refusal("effect.file", source_line(str(tmp_path / "script.py"), 5), "open()")
    book = ledger.open_ledger("script:f")
    book.calls = 3
    book.refuse(refusal)
    own = next(each for each in faster.advice(profile) if ":5:" in each)
    assert own.endswith(f"z = np.exp(x): {refusal.why}; {refusal.hint}")
    other = next(each for each in faster.advice(profile) if ":4:" in each)
    assert f": {refusal.where} keeps it on NumPy: {refusal.why}; " in other


def test_a_refusal_is_told_of_lines_that_its_own_function_or_loop_runs(
    profile: LineProfile, tmp_path: Path, books: None
) -> None:
    """The innermost target answers: what stops a loop does not stop a function inside it that has a program."""
    path = str(tmp_path / "script.py")
    for name, line in {"script:3": 2, "script:f:5-5": 5, "script:7": 6}.items():
        book = ledger.open_ledger(name)
        book.calls = 3
        book.refuse(Refusal("effect.file", source_line(path, line), "open()"))
    told = faster.advice(profile)
    assert f"{source_line(path, 5)}: 1.5 s (15%), z = np.exp(x): " + Refusal("effect.file", "", "").why in told[2]
    assert f"{source_line(path, 6)} keeps it on NumPy" in told[1], "of two loops of the module, the one at its line"
    ledger.open_ledger("script:f").calls = 3
    assert "keeps it on NumPy" not in faster.advice(profile)[1]


def test_a_line_that_nothing_accelerated_runs_is_told_so(profile: LineProfile, tmp_path: Path, books: None) -> None:
    ledger.open_ledger("other:f").calls = 3
    told = faster.advice(profile)[2]
    assert told.endswith(f"{faster._UNCHOSEN}: accel explain script:f shows whether script:f can be")
    profile._functions.clear()
    assert faster.advice(profile)[2].endswith(f"z = np.exp(x): {faster._UNCHOSEN}")


def test_what_takes_the_time_inside_a_program_is_told(profile: LineProfile, books: None) -> None:
    book = ledger.open_ledger("script:f")
    book.count_compiled(4.0, 9.0)
    parts = [
        {"group": name, "share": share, "where": "script.py:5"}
        for name, share in (("exponentials", 0.62), ("sums", 0.001))
    ]
    programs = [{"replays": 1, "work": []}, {"replays": 9, "work": parts}]
    book.describe = lambda: programs
    assert "script:f: 4.0 s compiled, by estimate in exponentials 62% (most at script.py:5)" in faster.advice(profile)


def test_a_target_that_dropped_its_programs_is_told_nothing_of(profile: LineProfile, books: None) -> None:
    book = ledger.open_ledger("script:f")
    book.compiled_total_s, book.describe = 60.0, list
    assert not any("script:f:" in each for each in faster.advice(profile))


def test_reports_end_with_it(books: None) -> None:
    figures = figures_of_run()
    assert "to be faster" not in brief.brief(figures, IN_SHELL)
    figures["faster"] = ["50% of the run ..."]
    assert brief.brief(figures, IN_SHELL).endswith("\n\nto be faster\n  50% of the run ...\n")
    assert "\nto be faster\n  50% of the run ...\n" in text.text(figures, IN_SHELL)


def test_every_run_ends_with_it_and_shows_no_table_that_nobody_asked_for(bench: Bench, tmp_path: Path) -> None:
    script, report = tmp_path / "mix.py", tmp_path / "r.json"
    script.write_text(
        "import time\nimport numpy as np\nx = np.ones(200_000)\nends = time.perf_counter() + 1.5\n"
        "while time.perf_counter() < ends:\n    y = np.fft.fft(x)\n"
    )
    done = bench.accel("--report", str(report), str(script))
    assert done.code == 0 and "NumPy s" not in done.err
    told = json.loads(report.read_text())["faster"]
    assert "of the run is in work that accel cannot help (FFT" in told[0], told


def test_a_sample_of_accels_own_command_belongs_to_no_line(tmp_path: Path) -> None:
    script = tmp_path / "console.py"
    script.write_text("def start(act): act()\n")
    own: dict[str, object] = {}
    exec(compile(script.read_text(), str(script), "exec"), own)
    seen = LineProfile()
    path = Path(running.__file__).with_name("made_up.py")
    inner: dict[str, object] = {"note": lambda: seen.note(sys._getframe(1), 1.0)}
    exec(compile("def act(): note()", str(path), "exec"), inner)
    own["start"](inner["act"])  # type: ignore[operator]
    assert not seen._seconds
    own["start"](lambda: seen.note(sys._getframe(1), 1.0))  # type: ignore[operator]
    assert [line for _, line in seen._seconds] == [1]


def test_python_s_own_time_is_told_apart() -> None:
    def look(_: object) -> bool:
        return lines._runs_library(sys._getframe(1))

    assert list(map(look, "ab")) == [True, True], "it stands at a call of compiled code"
    steps = (i for i in range(3))
    next(steps)
    assert not lines._runs_library(steps.gi_frame), "it stands at its yield"


OUTLINED = """
def main(look):
    n = 0
    while n < 3:
        n += 1
        look()
"""


def test_the_time_of_an_outlined_while_belongs_to_its_line(write_modules: WriteModules, books: None) -> None:
    write_modules({"outlined.py": OUTLINED})
    main = accel.accelerate(importlib.import_module("outlined").main, loops=True)
    profile, without = LineProfile(), []

    def look() -> None:
        frame: FrameType | None = sys._getframe()
        while frame is not None and frame.f_code is not main.__code__:
            frame = frame.f_back
        assert frame is not None
        without.append(frame.f_lineno)
        profile.note(frame, 1.0)

    main(look)
    assert without == [None] * 3, "its jump would otherwise be a line more to a debugger"
    assert [(line.number, sum(line.seconds.values())) for line in profile.lines()] == [(4, 3.0)]
    assert profile.lines()[0].functions[0] == ("outlined:main", 4)


def test_accel_run_lines_shows_the_table_and_keeps_its_advice_in_the_report(bench: Bench, tmp_path: Path) -> None:
    script = tmp_path / "mix.py"
    script.write_text("import numpy as np\nx = np.ones(90_000)\nfor i in range(60):\n    y = np.fft.fft(x)\n")
    report = tmp_path / "r.json"
    done = bench.accel("--lines", "--report", str(report), str(script))
    assert done.code == 0
    assert "NumPy s   Python s compiled s    accel s" in done.err and "y = np.fft.fft(x)" in done.err
    assert isinstance(json.loads(report.read_text())["faster"], list)
