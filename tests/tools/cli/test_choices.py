"""What accel chooses without a catalogue: whether it chooses at all, and what the next run takes up."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from accel.catalogue import Catalogue, Row
from accel.entry.hook import patching
from accel.entry.hook.lifts import WHY
from accel.platform import config, ledger
from accel.platform.config import Settings
from accel.tools.cli import choices
from accel.tools.cli.starts import Start, StartCommand, find
from tests.tools.cli.bench import Bench

STEP = Row("model", "step", WHY)
LOOPS = Row("__main__", "<module>", WHY, loops=True)


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    config.set_current(Settings(quiet=True, cache_dir=tmp_path / "cache"))
    monkeypatch.setattr(patching, "chosen", lambda: [STEP, LOOPS])
    monkeypatch.setattr("accel.catalogue.discover", lambda: ())
    return _start(tmp_path, "import numpy\n")


def _start(folder: Path, text: str) -> Start:
    (folder / "script.py").write_text(text)
    return find(StartCommand(str(folder / "script.py"), [], None))


def test_the_next_run_of_a_program_takes_up_what_was_faster_than_numpy(
    start: Start, monkeypatch: pytest.MonkeyPatch, books: ModuleType
) -> None:
    assert choices.RunChoice(start).settle(lost=True) == [STEP, LOOPS]
    assert choices.RunChoice(start).before == [], "compiled calls were no faster"
    ledger.open_ledger("f").count_compiled(1.0, 0.5)
    choices.RunChoice(start).settle(lost=True)  # by what compiling cost
    monkeypatch.setattr(patching, "chosen", lambda: [STEP])
    again = choices.RunChoice(start)
    assert again.before == [STEP, LOOPS]
    assert again.settle() == [STEP, LOOPS], "whatever was compiled of it this time"


def test_a_choice_is_forgotten_after_a_loss_and_when_the_program_changes(start: Start, tmp_path: Path) -> None:
    choices.RunChoice(start).settle(beforehand=True)
    assert choices.RunChoice(_start(tmp_path, "import numpy as np\n")).before == []
    start = _start(tmp_path, "import numpy\n")
    choices.RunChoice(start).settle(lost=True)
    assert choices.RunChoice(start).before == []


@pytest.mark.parametrize("content", ["", "[]", "{", '{"%s": 1}', '{"%s": {"source": "x", "rows": [[1]]}}'])
def test_a_damaged_file_is_no_choice(start: Start, tmp_path: Path, content: str) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / choices.NAME).write_text(content.replace("%s", start.elsewhere[0]))
    assert choices.RunChoice(start).before == []
    choices.RunChoice(start).settle(beforehand=True)
    assert choices.RunChoice(start).before == [STEP, LOOPS]


def test_nothing_is_chosen_where_functions_are_named(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert choices.chooses(start, named=False)
    assert not choices.chooses(start, named=True)
    marked = _start(tmp_path, "x = 1\nfrom accel import accelerate\n")
    assert not choices.chooses(marked, named=False)
    assert choices.chooses(_start(tmp_path, "accel = force / mass\n"), named=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "planet_of_the_test.py").write_text("")
    known = Catalogue("known", (Row("planet_of_the_test", "step", "a test"),))
    monkeypatch.setattr("accel.catalogue.discover", lambda: (known,))
    assert not choices.chooses(start, named=False)


def test_what_was_taken_up_is_not_watched_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[str] = []
    monkeypatch.setattr(patching.Watch, "start", lambda self: watched.append("yes"))
    none = Catalogue("none", ())
    for more, expected in (((), ["yes"]), ((STEP, LOOPS), [])):
        watched.clear()
        patching.install(none, more=more)
        patching.watch()
        assert watched == expected and patching.chosen() == [], "nothing is compiled yet"
        patching.uninstall()


def test_the_next_run_outlines_the_loops_of_the_functions_that_held_them(books: ModuleType) -> None:
    patching.install(Catalogue("none", ()))
    try:
        for name in ("__main__:7", "__main__:main:12", "__main__:Model.run:30"):
            ledger.current_run().loops.append(name)
            ledger.open_ledger(name).count_compiled(1.0, 0.5)
        assert {(row.qualname, row.loops) for row in patching.chosen()} == {
            ("<module>", True),
            ("main", True),
            ("Model.run", True),
        }
    finally:
        patching.uninstall()


@pytest.mark.parametrize("command", ["run", "compile", "compare"])
def test_a_pattern_is_told_that_no_catalogue_is_for_this_program(bench: Bench, tmp_path: Path, command: str) -> None:
    (tmp_path / "script.py").write_text("print(1)\n")
    env = {"QD_JAX_CACHE_DIR": str(tmp_path / "cache")}
    done = bench.python("-m", "accel", command, "--exclude", "work", "script.py", cwd=str(tmp_path), env=env)
    assert (done.code, done.err.splitlines()[-1]) == (
        2,
        "accel: --exclude='work' selects no function: no catalogue is for this program; "
        "expected: --catalogue FILE.py as well; `accel doctor` writes one",
    )
