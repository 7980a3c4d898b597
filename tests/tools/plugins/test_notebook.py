"""Notebooks: the magics, in IPython's own shell; reports and explanations as a notebook shows them; line profiles."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import warnings
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any

import numpy as np
import pytest

import accel
from accel.platform import ledger
from accel.platform.reasons import Refusal
from accel.record.objects.sinks.streams import is_standard
from accel.tools.plugins import lines
from accel.tools.plugins.notebook import with_lines_of_frames

ROOT = Path(__file__).resolve().parents[3]

SESSION = r"""
from IPython.core.interactiveshell import InteractiveShell
import accel, numpy as np
from accel.platform import config
from accel.platform import ledger

config.set_current(config.Settings(ahead_of_time=False, quiet=True, log="off", mode="verify"))
shell = InteractiveShell.instance()
shell.colors = "nocolor"

def run(cell):
    done = shell.run_cell(cell, store_history=True)
    return done.result if done.success else done.error_in_exec or done.error_before_exec

def books():
    return {book.target: book for book in ledger.ledgers()}

run("%load_ext accel")
run("import accel, numpy as np\nx = np.linspace(0.0, 1.0, 50)")
run("def helper(x):\n    return np.sin(x) * 2.0")

# functions, methods and loops; a helper of another cell is followed; the last expression is the cell's result
given = run('''%%accel
def smooth(x):
    return helper(x) + 1.0

class Model:
    def __init__(self):
        self.t = x
    def step(self, dt):
        self.t = self.t + dt * np.cos(self.t)

def numbers():
    yield 1

def marks(function):
    assert type(function).__name__ == "function"
    return function

@marks
def marked(x):
    return x

class Base:
    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
    def __new__(cls, *args):
        return super().__new__(cls)
    @property
    def two(self):
        return 2
    @staticmethod
    def three(x):
        return 3 * x

class Derived(Base):
    def __init__(self, x):
        self.x = x
assert (Derived(5).x, Derived(5).two, Base.three(1)) == (5, 2, 3)

model, u, plain = Model(), 0.0 * x, list(numbers())
for i in range(12):
    u = smooth(x) + 0.5 * u
for i in range(12):
    model.step(0.1)
u.sum(), i
''')
t = x = np.linspace(0.0, 1.0, 50)
expected = 0.0
for _ in range(12):
    expected, t = np.sin(x) * 2.0 + 1.0 + 0.5 * expected, t + 0.1 * np.cos(t)
assert np.isclose(given[0], expected.sum(), rtol=1e-12) and given[1] == 11
assert np.allclose(shell.user_ns["model"].t, t, rtol=1e-12)
loops = [book for name, book in books().items() if name.startswith("In[4]:")]
assert len(loops) == 2 and all(book.compiled_calls > 5 for book in loops), accel.report()
assert {"__main__:smooth", "__main__:Model.step"} <= set(books()), accel.report()

# outside of a loop at the cell's top, too
run("for _ in range(9): smooth(x)")
assert books()["__main__:smooth"].compiled_calls > 3, accel.report()

# a function that is defined again has a row of its own; the same cell once more has not
for text in ("3.0", "4.0", "4.0"):
    run("%%accel verify\ndef smooth(x):\n    return x * " + text + "\nfor _ in (1, 2, 3): smooth(x)")
assert {"__main__:smooth#2", "__main__:smooth#3"} <= set(books()) and "__main__:smooth#4" not in books()
assert shell.user_ns["smooth"](2.0) == 8.0

# what a cell raises is the cell's error, and its traceback shows the user's lines
error = run("%%accel\ndef bad(x):\n    return 1 // x\nbad(0)")
assert type(error) is ZeroDivisionError, error
assert type(run("%%accel\ndef f(:")) is SyntaxError
assert type(run("%%accel fast\n1")).__name__ == "UsageError"

# the cell says what was compared
import contextlib, io
def shown_by(cell):
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        run(cell)
    return shown.getvalue()
compared = "%%accel verify\ndef compared(x):\n    return x * 5.0\n"
assert "accel: " in shown_by(compared + "for _ in range(9): compared(x)")
assert " compared calls agreed\n" in shown_by("%%accel verify\nfor _ in range(9): compared(x)")
assert "accel: nothing was verified: " in shown_by("%%accel verify\npass")
assert shown_by("%%accel\nfor _ in range(9): compared(x)").startswith("accel: this cell took ")
assert shown_by("%%accel\npass") == ""

# what cells print is shown by replays, too: IPython's own `write` stands before the stream's while a cell runs
run("%%accel\ndef told(x):\n    print(f'largest {x.max():.3f}')\n    return x * 6.0")
shown = shown_by("for _ in range(9): told(x)")
assert shown == 9 * "largest 1.000\n", shown
assert books()["__main__:told"].compiled_calls > 3, accel.report()

# a profile: lines, and what keeps them on NumPy
profile = run('''%%accel_profile
def trimmed(x):
    y = np.sin(np.concatenate([x] * 4000))
    return np.trim_zeros(y)
for i in range(25):
    v = trimmed(x)
''')
lines = {line.number: line for line in profile.lines() if "ipython" in line.filename}
assert lines[3].seconds["NumPy"] > 0.005 and lines[3].text.strip().startswith("y = np.sin("), str(profile)
assert any("[shape.dynamic]" in reason for line in lines.values() for reason in line.reasons), str(profile)
assert any(each.startswith("In[") for each in str(profile).splitlines()), str(profile)
assert ">In[" in profile._repr_html_()
assert "<table" in profile._repr_html_() and "shape.dynamic" in profile._repr_html_() and "trimmed" in str(profile)

run("import accel")
assert "<table" in run("accel.report()")._repr_html_()
run("%unload_ext accel")
assert "accel" not in shell.magics_manager.magics["cell"]
print("done")
"""


def test_cells_in_ipython(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(tmp_path)}
    command = [sys.executable, "-c", SESSION]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environ, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr
    shown = done.stdout[done.stdout.index("ZeroDivisionError") :]
    assert "return 1 // x" in shown and "in _execute" not in shown.partition("Error: ")[0]


NOTEBOOK = (
    "%load_ext accel",
    "%%accel\nimport numpy as np\ndef f(x):\n    return np.sin(x)\nx = np.ones(100)\nfor _ in range(9):\n    y = f(x)",
    "import accel\naccel.report()",
    "%%accel_profile\nfor _ in range(9):\n    y = f(x)",
    "accel.explain(f, x)",
    "%%accel bogus\ny",
    "%%accel\ndef g(x):\n    return np.trim_zeros(x)\nfor _ in range(30):\n    g(x)\naccel.report(full=True)",
    "accel.explain(g, x)",
    "%%accel\ndef h(x):\n    return 1 // 0\nh(x)",
    "%%accel\nfor _ in range(3):\n    y = x + 1.0\n    z = 1 // 0",
    "@accel.accelerate(mode='strict')\ndef strict(x):\n    return np.trim_zeros(x)\nfor _ in range(9):\n    strict(x)",
    "%%accel strict\nfor _ in range(9):\n    y = x + 1.0\n    z = np.trim_zeros(y)",
    "accel.summary_line()",
    "%%accel verify\ndef told(x):\n    print(f'largest {x.max():.3f}')\n    return x * 6.0",
    "for _ in range(30):\n    z = told(x)",
    "from accel.platform import ledger\n"
    "[b.compiled_calls > 9 for b in ledger.ledgers() if b.target == '__main__:told']",
    "%%accel verify\nfor _ in range(30):\n    z = told(x)",
)


def test_a_notebook_in_a_kernel_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel", reason="needs a kernel: ipykernel")
    settings = {"QD_JAX_CACHE_DIR": "off", "QD_JAX_AOT": "0"}
    for name, value in {"PYTHONPATH": ROOT, "IPYTHONDIR": tmp_path, **settings}.items():
        monkeypatch.setenv(name, str(value))
    cells = [nbformat.v4.new_code_cell(text) for text in NOTEBOOK]
    notebook = nbformat.v4.new_notebook(cells=cells)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the kernel's client
        nbclient.NotebookClient(notebook, timeout=300, allow_errors=True).execute(cwd=str(tmp_path))
    shown = [cell.outputs for cell in notebook.cells]
    assert shown[0] == [] and shown[1][0].text.startswith("accel: this cell took ")
    for outputs, word in ((shown[2], "<table>"), (shown[3], "compiled s"), (shown[4], "recorded")):
        (output,) = outputs
        assert word in output.data["text/html"]
    assert "run_cell_magic" not in shown[3][0].data["text/plain"]
    (error,) = shown[5]
    assert "mode='bogus' cannot be used; expected: off, auto, verify, strict" in str(error)
    # cells have the numbers that stand beside them, and lines are counted from the cell's first one
    report, explained = shown[6][0].data["text/plain"], shown[7][0].data["text/html"]
    assert "In[7]:4" in report and "where  In[7]:3" in report
    assert "In[7]:3 in g  [shape.dynamic]" in explained and "return np.trim_zeros(x)\n" in explained
    failed = "\n".join(re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown[8][0].traceback)
    assert "In[9], line 3" in failed and "In[9], line 4" in failed
    failed = "\n".join(re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown[9][0].traceback)
    assert "In[10], line 4" in failed and "----> 4     z = 1 // 0" in failed
    failed = "\n".join(re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown[10][0].traceback)
    assert "In[11], line 5" in failed and "where  In[11]:3" in failed and "accel/" not in failed
    failed = "\n".join(re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown[11][0].traceback)
    assert "In[12], line 2" in failed and "where  In[12]:4" in failed and "accel/" not in failed
    assert "accel.report(" in shown[12][0].data["text/plain"]
    assert "accel: nothing was verified: " in shown[13][0].text
    # what a replay prints stands under the cell, by IPython's own `write`
    assert "".join(each.text for each in shown[14] if each.name == "stdout") == 30 * "largest 1.000\n"
    assert shown[15][0].data["text/plain"] == "[True]"
    printed = "".join(each.text for each in shown[16])
    assert printed.startswith(30 * "largest 1.000\n") and printed.count("accel: ") == 1
    assert re.search("accel: [0-9]+ of [0-9]+ compared calls? agreed\n", printed), printed
    assert "ipykernel_" not in str(shown)


def test_ipythons_tee_is_known_by_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    shells = pytest.importorskip("IPython.core.interactiveshell")
    if not hasattr(shells.InteractiveShell, "_tee"):
        pytest.skip("needs IPython 9, which puts a `write` of its own on the streams")
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with shells.InteractiveShell._tee(SimpleNamespace(execution_count=1), "stdout"):
        assert "write" in vars(stream) and is_standard(stream)
        with shells.InteractiveShell._tee(SimpleNamespace(execution_count=1), "stdout"):
            assert is_standard(stream)
    assert "write" in vars(stream) and is_standard(stream)  # the method itself, which IPython leaves there

    # one of the program's own, though it is called the same, or the tee hands on to it
    def write(data: str) -> int:
        return len(data)

    write.__module__ = "IPython.core.interactiveshell"
    write.__qualname__ = "InteractiveShell._tee.<locals>.write"
    stream.write = write  # type: ignore[method-assign]
    assert not is_standard(stream)
    with shells.InteractiveShell._tee(SimpleNamespace(execution_count=1), "stdout"):
        assert not is_standard(stream)
    stream.write = io.StringIO().write  # type: ignore[method-assign]
    assert not is_standard(stream)


def test_the_frame_of_a_cell_is_at_the_line_of_its_entry() -> None:
    code = compile("a = 1\nb = a + 1\n1 // 0\n", "cell", "exec")
    with pytest.raises(ZeroDivisionError) as raised:
        exec(code, {})
    frame, last = raised.tb.tb_next.tb_frame, raised.tb.tb_next.tb_lasti  # type: ignore[union-attr]
    second = next(2 * place for place, each in enumerate(code.co_positions()) if each[0] == 2)
    for lasti, columns in ((second, (4, 5)), (last, (None, None))):
        made = with_lines_of_frames(TracebackType(None, frame, lasti, 2), "cell")
        assert made is not None and (made.tb_lineno, made.tb_frame.f_lineno, made.tb_next) == (2, 2, None)
        assert made.tb_frame.f_globals is frame.f_globals
        assert list(made.tb_frame.f_code.co_positions())[made.tb_lasti // 2][2:] == columns
    there, elsewhere = TracebackType(None, frame, last, 3), TracebackType(None, frame, second, 2)
    assert with_lines_of_frames(there, "cell") is there and with_lines_of_frames(elsewhere, "other") is elsewhere


class Balanced(HTMLParser):
    """Fails where tags are not balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells.append(data)


def trimmed(x: Any) -> Any:
    return np.trim_zeros(x)


@pytest.mark.usefixtures("foreground")
def test_the_report_and_an_explanation_show_themselves_in_html() -> None:
    fast = accel.accelerate(trimmed, name="<trimmed>")
    for _ in range(4):
        fast(np.ones(3))
    shown = accel.report()
    assert isinstance(shown, str) and shown.startswith("accel: ") and not hasattr(accel.report("json"), "_repr_html_")
    page = Balanced()
    page.feed(shown._repr_html_())  # type: ignore[attr-defined]
    assert page.open == [] and page.cells[:3] == ["<trimmed>", "numpy", "4"]
    explained = accel.explain(trimmed, np.ones(3))
    assert explained._repr_html_() == f"<pre>{escape(explained.text)}</pre>"
    pretty = pytest.importorskip("IPython.lib.pretty").pretty
    assert pretty(shown) == str(shown) and pretty(explained) == explained.text, "in a terminal, without quotes"


class Frame:
    """What a profile asks of a frame."""

    def __init__(self, filename: str, line: int, back: Any) -> None:
        self.f_code, self.f_globals = compile("", filename, "exec"), {"__name__": "program"}
        self.f_lineno, self.f_lasti, self.f_back = line, -1, back


@pytest.mark.usefixtures("books")
def test_a_line_profile_tells_numpys_time_from_compiled_time() -> None:
    here, replay = __file__, lines._REPLAY + "variant.py"
    user = Frame(here, 20, Frame("/elsewhere/site-packages/tool.py", 3, None))
    profile = lines.LineProfile()
    for frame, seconds in (
        (user, 1.0),
        (Frame(np.__file__, 5, user), 2.0),
        (Frame(replay, 7, Frame(lines._ACCEL + "dispatch/target.py", 1, user)), 4.0),
        (Frame(lines._ACCEL + "record/recording.py", 9, user), 8.0),
        (Frame("/elsewhere/site-packages/tool.py", 3, None), 16.0),
        (None, 32.0),
        (Frame(lines._STARTERS[0], 90, user), 64.0),
    ):
        profile.note(frame, seconds)  # type: ignore[arg-type]
    ledger.open_ledger("f").refuse(Refusal("effect.file", lines.source_line(here, 22)))
    first, second = profile.lines()
    assert (first.number, first.seconds) == (20, {"NumPy": 3.0, "compiled": 4.0, "accel": 8.0})
    assert second.number == 22 and second.seconds == {} and "[effect.file]" in second.reasons[0]
    assert str(profile).splitlines()[-1].strip().startswith("^ f: this path reads or writes a file")
