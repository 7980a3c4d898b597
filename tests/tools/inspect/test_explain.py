"""`accel.explain` and its command: what is told, that nothing changes by it, and how bad input is answered."""

from __future__ import annotations

import copy
import functools
import importlib
import json
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import jax  # noqa: F401  where it runs already, explain leaves it out, which saves the child importing it
import numpy as np
import pytest

import accel
from accel.catalogue import Catalogue, Row
from accel.compiler.lower.passes import arrange
from accel.entry.lift import iterations
from accel.platform.config import SettingError
from accel.tools.cli.starts import TARGETS as STARTED
from accel.tools.inspect.explain import apart
from accel.tools.inspect.explain.command import _find, main
from accel.tools.inspect.explain.text import marked
from accel.tools.inspect.programs import PROGRAMS
from tests.conftest import WriteModules

ROOT = Path(__file__).resolve().parents[3]
FACTOR = 3.0
COUNTER = {"calls": 0}
TRACK: list[Any] = []


class Plate:
    """A bit of everything: state that is read, written in place, and set."""

    def __init__(self) -> None:
        self.t = np.arange(12.0).reshape(3, 4)
        self.n = 0
        self.path = "nowhere"

    def step(self, dt: float) -> Any:
        if os.environ.get("PLATE_OFF"):
            return None
        self.t += dt * FACTOR * np.roll(self.t, 1, 0)
        if np.any(self.t > 1e9):
            self.t[:] = 0.0
        self.n += 1
        return self.t.sum()

    def report(self) -> Any:
        mean = self.t.mean()
        print("mean", mean)
        return mean

    def step_and_report(self) -> Any:
        self.step(0.5)
        return self.report()

    def save(self) -> None:
        self.t *= 2.0
        with open(self.path, "w") as stream:
            stream.write("done")

    def count(self) -> Any:
        self.t *= 2.0
        COUNTER["calls"] += 1
        TRACK.append(self.t)
        return self.t

    def __call__(self, dt: float) -> Any:
        return self.step(dt)

    @staticmethod
    def norm(field: Any) -> Any:
        return np.sqrt((field * field).sum())

    @classmethod
    def scaled(cls, field: Any) -> Any:
        return FACTOR * field


def prints_itself(x: Any) -> Any:
    print("é", x.sum(), "ü")
    return x


def fails(x: Any) -> Any:
    y = x + 1.0
    return y[{"a": 3}["b"]]


def forces(x: Any) -> Any:
    return f"{x[0]:.3f}"


def together(a: Any, b: Any) -> Any:
    a += 1.0
    return a + b


def swallow(x: Any) -> Any:
    try:
        return x[{"a": 0}["b"]]
    except KeyError:
        print("missing", x.sum())
    return x


def stop_of(explanation: Any) -> dict[str, Any]:
    """The stop of an explanation that has one."""
    assert explanation.data["verdict"] == "stopped", explanation.text
    assert not explanation.recorded
    return dict(explanation.data["stop"])


def paths(explanation: Any, kind: str) -> dict[str, str]:
    """The inputs of one kind, and what they were."""
    return {each["path"]: each["is"] for each in explanation.data["inputs"] if each["kind"] == kind}


# -- what is told ------------------------------------------------------------------------------------------------------


def test_a_whole_recording_is_told_with_its_guards_and_its_program() -> None:
    explanation = accel.explain(Plate().step, 0.5)
    data = explanation.data
    assert explanation.recorded and data["stop"] is None, explanation.text
    assert data["schema"] == 1 and data["target"].endswith("Plate.step") and "test_explain.py:" in data["where"]
    assert paths(explanation, "array") == {"self.t": "float64[3, 4]"}
    assert paths(explanation, "number") == {"dt": "float", f"{__name__}.FACTOR": "float", "self.n": "int"}
    assert paths(explanation, "environment") == {"$PLATE_OFF": "unset"}
    assert paths(explanation, "object") == {"self": "Plate"}
    assert [each["value"] for each in data["outcomes"] if "np.any" in each["source"]] == ["False"]
    assert data["outputs"] == {"result": "float64", "changed": ["self.t"], "writes": ["self.n"]}
    assert data["operations"]["rules"]["numpy.roll"] == 1
    assert data["lowered"]["operations"] > 3


def test_a_stop_is_told_with_its_place_on_the_line_and_the_way_there() -> None:
    stop = stop_of(accel.explain(Plate().step_and_report))
    assert stop["id"] == "effect.print" and stop["function"] == "Plate.report"
    assert stop["source"][stop["column"] : stop["end_column"]] == 'print("mean", mean)'
    assert [each.rpartition(" in ")[2] for each in stop["via"]] == ["Plate.step_and_report"]
    assert "shows" in stop["why"] and stop["hint"]


def test_the_parts_around_a_stop_are_told(write_modules: WriteModules, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import numpy as np\ndef step(u):\n    w = np.sin(u)\n    input()\n    v = w * u\n    return v + 1\n"
    write_modules({"split_plate.py": source})
    monkeypatch.setitem(iterations.measured, ("split_plate:step", "5-6"), 0.25)
    step = importlib.import_module("split_plate").step
    found = accel.explain(step, np.ones(3))
    assert found.data["stop"]["parts"] == {"between": [4], "lines": ["3-3", "5-6"], "shares": [None, 0.25]}
    assert "compiled apart: line 3, lines 5-6 (25% of a call); line 4 runs as it is" in found.text


def test_the_place_is_counted_in_characters_and_the_carets_stand_under_it() -> None:
    explanation = accel.explain(prints_itself, np.ones(3))
    stop = stop_of(explanation)
    call = 'print("é", x.sum(), "ü")'
    assert stop["source"][stop["column"] : stop["end_column"]] == call
    lines = explanation.text.splitlines()
    line = next(i for i, text in enumerate(lines) if call in text)
    assert lines[line + 1] == " " * lines[line].index(call) + "^" * len(call)


def test_a_long_line_is_cut_around_the_place() -> None:
    source = "a" * 150 + "here" + "b" * 150
    text, carets = marked(source, 150, 154)
    assert len(text) <= 100 and text[carets.index("^") : len(carets)] == "here"


def test_the_text_fits_100_columns() -> None:
    for explanation in (accel.explain(Plate().step, 0.5), accel.explain(Plate().step_and_report)):
        assert max(map(len, explanation.text.splitlines())) <= 100
        assert str(explanation) == explanation.text and explanation.data["target"] in explanation.text


def test_the_json_is_the_data() -> None:
    explanation = accel.explain(Plate().report)
    assert json.loads(explanation.json()) == explanation.data
    assert repr(explanation) == f"<explanation of {__name__}:Plate.report: stopped>"


def test_aliases_are_guards() -> None:
    x = np.ones(3)
    assert accel.explain(Plate.norm, x).data["aliases"] == []
    assert accel.explain(together, x, x).data["aliases"] == [["b", "a"]]


def test_an_exception_is_told_with_its_line() -> None:
    stop = stop_of(accel.explain(fails, np.ones(3)))
    assert stop["id"] == "path.exception" and "KeyError" in stop["why"]
    assert stop["source"] == 'return y[{"a": 3}["b"]]' and stop["function"] == "fails"


def test_what_an_exception_leads_to_is_told_too() -> None:
    explanation = accel.explain(swallow, np.ones(3))
    assert stop_of(explanation)["id"] == "effect.print"
    assert any("before that" in note and "KeyError" in note for note in explanation.data["notes"])


def test_a_forced_value_is_told() -> None:
    assert stop_of(accel.explain(forces, np.ones(3)))["id"] == "value.forced"


def test_a_refusal_of_the_lowering_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrange, "MAX_OPERATIONS", 1)
    stop = stop_of(accel.explain(Plate().step, 0.5))
    assert stop["id"] == "limit.compile"


def test_what_keeps_every_call_on_numpy_is_noted() -> None:
    with accel.override(mode="off"):
        assert any("[mode.off]" in note for note in accel.explain(Plate().step, 0.5).data["notes"])


# -- what it works on --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda plate: plate.step, "Plate.step"),
        (lambda plate: functools.partial(Plate.step, plate), "Plate.step"),
        (lambda plate: accel.accelerate(Plate.step).__get__(plate), "Plate.step"),
        (lambda plate: plate, "Plate.__call__"),
        (lambda plate: accel.accelerate(plate.step.__func__).__get__(plate, Plate), "Plate.step"),
    ],
)
def test_it_works_on_all_kinds_of_methods(make: Callable[[Plate], Any], name: str, books: Any) -> None:
    explanation = accel.explain(make(Plate()), 0.5)
    assert explanation.recorded, explanation.text
    assert explanation.data["target"] == f"{__name__}:{name}"


@pytest.mark.parametrize("fn", [Plate.norm, Plate.scaled, Plate.__dict__["norm"], accel.accelerate(prints_itself)])
def test_it_works_on_functions(fn: Any) -> None:
    assert accel.explain(fn, np.ones(3)).data["verdict"] in ("recorded", "stopped")


def test_it_works_on_a_catalogues_target_and_leaves_the_books_alone(write_modules: Any, books: ModuleType) -> None:
    write_modules({"planet.py": "def warm(t):\n    return t + 1.0\n"})
    with accel.installed(Catalogue("test", (Row("planet", "warm", "a test"),))):
        import planet  # type: ignore[import-not-found]

        before = json.loads(accel.report("json"))["functions"]
        assert accel.explain(planet.warm, np.ones(3)).recorded
        assert accel.explain("planet:warm", np.ones(3)).recorded
        assert json.loads(accel.report("json"))["functions"] == before


@pytest.mark.parametrize(
    ("fn", "args", "says"),
    [
        (Plate, (), "explain takes a function or method written in Python, not the class Plate"),
        (len, ([],), "explain takes a function or method written in Python, not the builtin_function_or_method len"),
        (3, (), "explain takes a function or method written in Python, not a int"),
        (prints_itself, (), "prints_itself: missing a required argument: 'x'"),
    ],
)
def test_what_it_cannot_explain_is_a_type_error(fn: Any, args: tuple[Any, ...], says: str) -> None:
    with pytest.raises(TypeError) as caught:
        accel.explain(fn, *args)
    assert str(caught.value) == says


def test_a_name_that_is_not_there_is_a_setting_error() -> None:
    with pytest.raises(SettingError, match=r"^fn='json:dumbs' has no dumbs; expected: dumps"):
        accel.explain("json:dumbs")


# -- that nothing changes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["step", "report", "step_and_report", "save", "count"])
def test_nothing_changes(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plate = Plate()
    plate.path = str(tmp_path / "file")
    array, before = plate.t, copy.deepcopy(vars(plate))
    environment, randomness = dict(os.environ), np.random.get_state()[1].copy()  # type: ignore[index,union-attr]  # noqa: NPY002
    accel.explain(getattr(plate, name), *((0.5,) if name == "step" else ()))
    assert plate.t is array and (plate.t == before["t"]).all()
    assert (plate.n, plate.path) == (before["n"], before["path"]) and vars(plate).keys() == before.keys()
    assert COUNTER == {"calls": 0} and TRACK == []
    assert dict(os.environ) == environment
    assert (np.random.get_state()[1] == randomness).all()  # type: ignore[index]  # noqa: NPY002
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_memory_that_processes_share_is_put_back() -> None:
    shared = mmap.mmap(-1, 64)
    array = np.frombuffer(shared, float)
    array[:] = 1.0
    assert accel.explain(together, array, np.ones(8)).recorded
    assert (array == 1.0).all()


def test_an_effect_that_the_recorder_does_not_foresee_is_stopped_too(tmp_path: Path) -> None:
    def hidden(x: Any) -> Any:
        return x + sneaky.__array__()

    class Sneaky:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            (tmp_path / "made").write_text("")
            return np.ones(3)

    sneaky = Sneaky()
    accel.explain(hidden, np.ones(3))
    assert not (tmp_path / "made").exists()


# -- the child process -------------------------------------------------------------------------------------------------


def test_a_child_that_dies_is_told() -> None:
    answer = apart.run_apart(lambda send: os.kill(os.getpid(), signal.SIGKILL), seconds=60)
    assert answer == ([], "the child process that recorded it was ended by SIGKILL")


def test_a_child_that_takes_too_long_is_ended() -> None:
    answer = apart.run_apart(lambda send: time.sleep(60), seconds=0.2)
    assert answer == ([], "the child process did not finish within 0.2 s")


@pytest.mark.parametrize("in_thread", [False, True])
def test_what_a_child_sent_arrives_and_a_fault_is_told(in_thread: bool) -> None:
    def job(send: apart.Send) -> None:
        send({"first": 1})
        raise ValueError("a fault")

    messages, trouble = apart.run_apart(job, seconds=60, in_thread=in_thread)
    assert messages[0] == {"first": 1} and "ValueError: a fault" in messages[1]["fault"] and trouble == ""


def test_without_fork_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "available", lambda: False)
    with pytest.raises(RuntimeError, match=r"^accel\.explain needs os\.fork, which this platform does not have"):
        accel.explain(Plate().step, 0.5)


# -- the command -------------------------------------------------------------------------------------------------------

HEAT = """
import numpy as np

class Plate:
    def __init__(self):
        self.t = np.ones((4, 4))
        self.k = 0

    def step(self, dt):
        self.t = self.t + dt * np.roll(self.t, 1, 0)
        self.k += 1
        if self.k == 3:
            print("third", self.t.mean())

def run():
    plate = Plate()
    for _ in range(5):
        plate.step(0.5)
    print("never reached by explain")

if __name__ == "__main__":
    run()
"""


@pytest.fixture
def heat(write_modules: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the program heat.py, as the current one."""
    folder: Path = write_modules({"heat.py": HEAT, "bad.py": "def f(:\n"})
    monkeypatch.chdir(folder)
    return folder


def start(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m accel` with `args` in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-W", "error", "-m", "accel", *args]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_the_command_prints_what_each_pass_changes(heat: Path) -> None:
    done = start(heat, "explain", "heat:Plate.step", "--passes", "--run", "heat.py")
    assert (done.returncode, done.stderr) == (0, "")
    _, _, passes = done.stdout.partition("passes: the program as recorded, and what each changes\n")
    heads = [line.split(":")[0].strip() for line in passes.splitlines() if not line.startswith("    ")]
    assert heads == ["recorded", "needed", "positions", "nesting", "aliasing", "loops"]
    assert "    -%0 = input" in passes and "nothing changed" in passes


@pytest.mark.parametrize(
    ("program", "module"),
    [
        ("heat", "__main__"),
        ("-m heat", "__main__"),
        ("heat.py", "__main__"),
        ("heat:run", "heat"),
        ("heat.run", "heat"),
    ],
)
def test_the_command_explains_a_call_of_a_running_program(heat: Path, program: str, module: str) -> None:
    done = start(heat, "explain", "heat.Plate.step", "--nth", "3", "--format", "json", "--run", *program.split())
    assert (done.returncode, done.stderr) == (0, "")
    data = json.loads(done.stdout)
    assert data["target"] == f"{module}:Plate.step"
    assert data["stop"]["id"] == "effect.print" and data["stop"]["source"] == 'print("third", self.t.mean())'


@pytest.mark.parametrize("program", ["heat", "heat.py"])
def test_names_of_the_script_itself_can_be_copied_from_the_report(heat: Path, program: str) -> None:
    done = start(heat, "explain", "__main__.Plate.step", "--format", "json", "--run", program)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["target"] == "__main__:Plate.step"


def test_a_first_call_that_stops_may_not_be_typical(heat: Path) -> None:
    done = start(heat, "explain", "heat:run", "--run", "heat")
    assert (done.returncode, done.stderr) == (0, "")
    assert "[effect.print]" in done.stdout and "--nth 2 explains the next one" in done.stdout


def test_a_program_that_never_makes_the_call_is_told(heat: Path) -> None:
    done = start(heat, "explain", "heat.py:Plate.step", "--nth", "9", "--run", "heat.py")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines()[-1] == (
        "accel: FUNCTION='heat.py:Plate.step' was called fewer than 9 times before the program ended; "
        "expected: a function that this program calls, or a smaller --nth"
    )


TARGETS = (
    "expected: module:function or module:Class.method, such as package.module:Model.step; a dot may replace the colon"
)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("", "the following arguments are required: FUNCTION"),
        ("heat --run heat", f"FUNCTION='heat' cannot be used; {TARGETS}"),
        ("cold:step --run heat", f"FUNCTION='cold:step' does not exist; {TARGETS}, or file.py:function"),
        ("heat:run --format xml", "argument --format: invalid choice: 'xml'"),
        ("heat:run --nth 0", "argument --nth: invalid whole number from 1 value: '0'"),
        ("heat:run", f"--run='' is missing its program; expected: {PROGRAMS}"),
        ("heat:run --run", f"--run='' is missing its program; expected: {PROGRAMS}"),
        (
            "heat:walk --run heat",
            "FUNCTION='heat:walk' is not defined in heat.py; expected: Plate.__init__, Plate.step, run",
        ),
        (
            "heat:run --run ice",
            f"--run='ice' does not exist; expected: {STARTED}",
        ),
        ("bad:f --run heat", "FUNCTION='bad:f' cannot be parsed: invalid syntax (bad.py, line 1); "
         "expected: a file that Python can read"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(heat: Path, capsys: pytest.CaptureFixture[str], args: str, says: str) -> None:
    try:
        code: Any = main(args.split())
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"accel: {says}") and err.count("\n") == 1


def test_an_unknown_option_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main(["heat:run", "--fast"])
    assert ending.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("accel: unrecognized arguments: --fast (did you mean --format?); expected: --nth, ")
    assert said.count("\n") == 1


def test_a_module_is_no_function_to_explain() -> None:
    with pytest.raises(SettingError, match="accel run --auto compiles its loops"):
        _find(f"{__file__}:<module>", "")


# -- iterations of loops -----------------------------------------------------------------------------------------------

LOOPS = """
import numpy as np

class Plate:
    def __init__(self):
        self.t = np.ones((4, 4))

def run():
    plate = Plate()
    history = []
    for day in range(4):
        for _ in range(2):
            plate.t = plate.t + 0.5 * np.roll(plate.t, 1, 0)
        history.append(plate.t.mean())
        if day == 2:
            print("mean", plate.t.mean())
    print("never reached by explain")

def rows():
    for row in np.ones((3, 4)):
        yield row.sum()

if __name__ == "__main__":
    u = np.ones(5)
    for k in range(3):
        u = 2.0 * u + k
    run()
"""


@pytest.fixture
def loops(write_modules: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the program loops.py, as the current one."""
    folder: Path = write_modules({"loops.py": LOOPS})
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    ("name", "program", "target"),
    [
        ("loops:run:11", "loops", "__main__:run:11"),
        ("loops.run.11", "loops.py", "__main__:run:11"),
        ("__main__:run:11", "loops.py", "__main__:run:11"),
        ("loops:run:11", "loops:run", "loops:run:11"),
        ("__main__:25", "loops.py", "__main__:25"),
        ("loops.py:25", "-m loops", "__main__:25"),
    ],
)
def test_a_round_of_a_loop_is_explained_by_the_name_that_the_report_gives_it(
    loops: Path, name: str, program: str, target: str
) -> None:
    done = start(loops, "explain", name, "--format", "json", "--run", *program.split())
    assert (done.returncode, done.stderr) == (0, "")
    data = json.loads(done.stdout)
    assert (data["target"], data["verdict"]) == (target, "recorded")


def test_the_round_that_is_asked_for_is_explained(loops: Path) -> None:
    done = start(loops, "explain", "loops:run:11", "--nth", "3", "--run", "loops.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert "__main__:run:11 (loops.py:11) stops after" in done.stdout
    assert "where  loops.py:16 in run  [effect.print]" in done.stdout


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("loops:run:12 --run loops", "is no loop that is compiled by itself; "
         "expected: one of the outermost loops, at line 11"),
        ("loops:rows:20 --run loops", "is a loop that is not compiled by itself: "),
        ("loops:walk:3 --run loops", "is not defined in loops.py; expected: Plate.__init__, run, rows"),
    ],
)  # fmt: skip
def test_a_name_that_is_no_such_loop_is_told_in_one_line(
    loops: Path, capsys: pytest.CaptureFixture[str], args: str, says: str
) -> None:
    assert main(args.split()) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith(f"accel: FUNCTION='{args.split()[0]}' {says}"), told.err
    assert told.err.count("\n") == 1


def test_a_loop_that_the_program_does_not_run_so_often_is_told(loops: Path) -> None:
    done = start(loops, "explain", "loops:run:11", "--nth", "9", "--run", "loops.py")
    assert done.returncode == 2 and done.stdout == ""
    assert "'loops:run:11' was run fewer than 9 times before the program ended" in done.stderr.splitlines()[-1]
