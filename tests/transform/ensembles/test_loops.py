"""`accel run --ensemble`: members of a program's loop are what it is with another start, or are refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from accel.entry.lift.lifting import lifted_module_code
from accel.transform.ensembles import paths
from accel.transform.ensembles.members import Members
from accel.transform.ensembles.perturbation import Perturbation, load
from tests.conftest import ROOT
from tests.transform.ensembles.whole import HEAD, WHOLE, Whole

pytest.importorskip("jax")

MEMBERS = 3


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


class Run:
    """One run of a program beside members. lines: what was said; code: the exit code; names: the program's."""

    def __init__(self, folder: Path, text: str, around: str, perturb: Callable[..., object], **plan: Any) -> None:
        self.lines: list[str] = []
        self.path, say = folder / "members.npz", self.lines.append
        members = Members(Perturbation("perturb.py", perturb, **plan), MEMBERS, self.path, say, say)
        self.names, self.code = self._run(folder / "program.py", HEAD + text, around, members), 0
        self.code = self.ended or members.finish()

    def _run(self, path: Path, text: str, around: str, members: Members) -> dict[str, Any]:
        path.write_text(text)
        lifted = lifted_module_code(compile(text, str(path), "exec", dont_inherit=True), [around])
        (switch,) = lifted.switches
        members.join(switch, "program")
        module = ModuleType("program")
        vars(module).update(MEMBER=0, __file__=str(path))
        self.ended = 0
        try:
            exec(lifted.code, vars(module))
        except SystemExit as ended:
            self.ended = ended.code  # type: ignore[assignment]
        return vars(module)

    def saved(self) -> dict[str, Any]:
        with np.load(self.path) as file:
            return dict(file)


def perturbation(whole: Whole) -> Callable[..., object]:
    def perturb(state: Any, member: int, rng: Any) -> None:
        for name, text in whole.perturbed.items():
            state[name] = eval(text, {"np": np, "m": member})

    return perturb


def alone(text: str, member: int) -> dict[str, Any]:
    names = {"__name__": "alone", "MEMBER": member, "print": lambda *args: None}
    exec(HEAD + text, names)
    return names


@pytest.mark.parametrize("worth", [1e9, 0.0], ids=["by NumPy", "learning"])
@pytest.mark.parametrize("name", WHOLE)
def test_members_are_what_the_program_is_with_another_start(
    name: str, worth: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "WORTH", worth)
    whole = WHOLE[name]
    run = Run(tmp_path, whole.text, whole.around, perturbation(whole))
    assert run.code == 0, run.lines
    assert len(run.lines) == 1
    assert f"{MEMBERS} members of program:" in run.lines[0]
    saved, own = run.saved(), alone(whole.text, 0)
    for text in whole.compared.values():  # the program's own run is as it is without members
        np.testing.assert_array_equal(eval(text, run.names), eval(text, own), err_msg=text)
    for state, text in whole.compared.items():
        wanted = np.array([eval(text, alone(whole.text, member)) for member in range(MEMBERS)])
        assert saved[state].dtype == wanted.dtype
        np.testing.assert_allclose(saved[state], wanted, rtol=1e-12, atol=1e-14, err_msg=state)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == (3 if name == "flat" else 0)  # by the program alone


REFUSED = {
    "a member breaks earlier": (
        "x = 10.0 - m\nwhile True:\n    x -= 1.0\n    if x < 2.0:\n        break\n",
        {"x": "10.0 - 3 * m"},
        r"leaves the loop in another iteration.*in iteration 3 member 2 breaks out of the loop, and the program goes",
    ),
    "a member's test ends earlier": (
        "x = 10.0\nwhile x > 2.0:\n    x -= 1.0\n",
        {"x": "10.0 - 3 * m"},
        r"in iteration 3 member 2 ends, and the program goes on",
    ),
    "a member would go on": (
        "x = 10.0\nwhile x > 2.0:\n    x -= 1.0\n",
        {"x": "10.0 + 3 * m"},
        r"in iteration 8 member 1 goes on, and the program ends",
    ),
    "a test that calls": (
        "x = [1.0]\nwhile x.pop() > 0.0:\n    x.append(-1.0)\n",
        {},
        r"what the loop's test calls may change something.*x\.pop\(\)",
    ),
    "random numbers": (
        "x = np.ones(3)\nfor n in range(3):\n    x += np.random.default_rng(n).normal(size=3)\n",
        {"x": "np.ones(3) * m"},
        r"no ensemble of program:\d+ after iteration 0: .*random",
    ),
    "a file": (
        "x = np.ones(3)\nfor n in range(3):\n    x += 1.0\n    np.save('written.npy', x)\n",
        {"x": "np.ones(3) * m"},
        r"no ensemble of program:\d+ after iteration 0: .*file",
    ),
    "a file in a later round": (
        "x = np.ones(3)\nfor n in range(3):\n    x += 1.0\n    if n > 1:\n        np.save(f'written{n}.npy', x)\n",
        {"x": "np.ones(3) * m"},
        r"no ensemble of program:\d+ after iteration 2: .*",
    ),
    "a method that reads a perturbed name of the script": (
        "k, x = 2.0, np.ones(3)\nclass A:\n    def f(self, x):\n        return x * k\na = A()\n"
        "for n in range(3):\n    x = a.f(x) + k\n",
        {"k": "1.0 + m"},
        r"a method, or another module, reads k by its name",
    ),
    "a method that reads what each iteration assigns": (
        "k, x = 0.0, np.ones(3)\nclass A:\n    def f(self, x):\n        return x * k\na = A()\n"
        "for n in range(3):\n    k = float(x.sum())\n    x = a.f(x)\n",
        {"x": "np.ones(3) + m"},
        r"a method, or another module, reads k by its name",
    ),
    "a method that assigns a name of the script": (
        "k, x = 2.0, np.ones(3)\nclass A:\n    def f(self, x):\n        global k\n        k += 1.0\n        return x\n"
        "a = A()\nfor n in range(3):\n    x = a.f(x) + 1.0\n",
        {"x": "np.ones(3) + m"},
        r"a method, or another module, assigns a name of the script",
    ),
    "a function in a list": (
        "x, k = np.ones(3), 0.5\ndef f(x):\n    return x * k\nstages = [f]\nfor n in range(3):\n"
        "    for stage in stages:\n        x = stage(x)\n    k = k * 0.5\n",
        {"x": "np.ones(3) + m"},
        r"a method, or another module, reads k by its name",
    ),
    "what cannot be copied and is changed": (
        "import threading\nclass A:\n    def __init__(self):\n"
        "        self.lock, self.u = threading.Lock(), np.ones(3)\n"
        "a = A()\nfor n in range(3):\n    a.u = a.u + 1.0\n",
        {},
        r"a: TypeError: cannot pickle",
    ),
    "a loop that is run again": (
        "x = np.ones(3)\ndef go():\n    global x\n    for n in range(2):\n        x = x + 1.0\ngo()\ngo()\n",
        {"x": "np.ones(3) + m"},
        r"the loop is run a second time",
    ),
    "arrays that overlap": (
        "x = np.ones(5)\ny = x[1:]\nfor n in range(3):\n    x += 1.0\n    z = y.sum()\n",
        {"x": "np.ones(5) + m"},
        r"share memory",
    ),
    "no such state": ("x = np.ones(3)\nfor n in range(2):\n    x = x + 1.0\n", {"y": "1.0"}, r"there is no state 'y'"),
}


REASONS = {"test that calls": "ensemble.test", "a member": "ensemble.rounds", "read": "ensemble.place"}
"""By parts of the names of some of these."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_members_cannot_do_by_themselves_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text, perturbed, wanted = REFUSED[name]
    around = "go" if "def go" in text else "<module>"
    run = Run(tmp_path, text, around, perturbation(Whole(text, perturbed, {})))
    assert run.code == 2
    assert "\n" not in run.lines[-1] and "\n" not in run.lines[0]
    assert any(re.search(wanted, line) for line in run.lines), run.lines
    reason = next((id_ for part, id_ in REASONS.items() if part in name), "")
    assert reason in run.lines[0] + run.lines[-1]
    written = sorted(each.name for each in tmp_path.glob("written*"))
    assert written == [], "a member has written a file"


def test_members_begin_later_and_are_observed(tmp_path: Path) -> None:
    text = "x = None\nfor n in range(6):\n    if x is None:\n        x = np.ones(2)\n    x = x + n\n"

    def perturb(state: Any, member: int, rng: Any) -> None:
        state["x"] += member

    def observe(members: Any) -> dict[str, Any]:
        return {"mean": members.mean("x"), "x": 1.0 * members.steps}

    run = Run(tmp_path, text, "<module>", perturb, begin=3, observe=observe)
    assert run.code == 0, run.lines
    saved = run.saved()
    np.testing.assert_array_equal(saved["x"], [[16.0, 16.0], [17.0, 17.0], [18.0, 18.0]])
    np.testing.assert_array_equal(saved["mean"][:, 0], [5.0, 8.0, 12.0, 17.0])
    np.testing.assert_array_equal(saved["x_observed"], [1.0, 2.0, 3.0, 4.0])
    assert saved["steps"] == 4


OF_THE_PAGE = """
class Ocean:
    def __init__(self):
        self.T = np.arange(4.0)

def main():
    ocean, drag = Ocean(), 0.1
    for n in range(3):
        ocean.T = ocean.T - drag * ocean.T
    return ocean

ocean = main()
"""


def test_the_file_on_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "gradients.md").read_text(encoding="utf-8")
    text = page.partition("### Whole programs")[2].partition("```python\n")[2].partition("```")[0]
    (tmp_path / "perturb.py").write_text(text)
    plan = load(str(tmp_path / "perturb.py"))
    assert (plan.module, plan.function, plan.line, plan.begin, plan.seed) == ("__main__", "main", None, 1, 0)
    run = Run(tmp_path, OF_THE_PAGE, "main", plan.perturb, observe=plan.observe)
    assert run.code == 0, run.lines
    saved = run.saved()
    np.testing.assert_allclose(saved["drag"], [0.1, 0.12, 0.14])
    starts = [np.arange(4.0) + 0.1 * np.random.default_rng([0, member]).normal(size=4) for member in range(MEMBERS)]
    wanted = np.array([start * (1.0 - drag) ** 3 for start, drag in zip(starts, saved["drag"], strict=True)])
    np.testing.assert_allclose(saved["ocean.T"], wanted, rtol=1e-13)
    np.testing.assert_allclose(saved["spread"][-1], wanted.std(0, ddof=1), rtol=1e-12)
