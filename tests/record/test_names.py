"""Variables outside the function: globals and variables of enclosing functions that recorded code assigns and deletes.

Each case runs twice from the same state, plainly and accelerated. After every call the result, or what it raised, and
the variables themselves must be the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import CellType, ModuleType
from typing import Any

import numpy as np
import pytest

import accel
from accel.dispatch.costs import speed
from accel.reports.ledger import Ledger, open_ledger
from tests.record.conftest import Twins, play

CALLS = 9
_names = itertools.count()


def some(i: int, *shape: int) -> Any:
    return np.random.default_rng(i).normal(size=shape or (4,))


class World:
    """A module of its own with some source, fresh each time, and what is to be looked at after each call."""

    def __init__(self, source: str, target: str = "work") -> None:
        self.module = ModuleType(f"names_{next(_names)}")
        self.module.__file__ = __file__
        self.module.np = np  # type: ignore[attr-defined]
        code = compile("from __future__ import annotations\n" + source, __file__, "exec")
        self.module.__dict__["__builtins__"] = __builtins__
        exec(code, self.module.__dict__)
        self.target = target

    @property
    def state(self) -> dict[str, Any]:
        """The module's variables that are values, and those of functions in it."""
        found = {name: value for name, value in vars(self.module).items() if is_value(name, value)}
        for name, value in vars(self.module).items():
            for cell_name, cell in cells_of(value):
                found[f"{name}'s {cell_name}"] = cell
        return {name: snapshot(value) for name, value in sorted(found.items())}


def is_value(name: str, value: Any) -> bool:
    plain = isinstance(value, (int, float, np.ndarray, np.generic, list, tuple, dict, str, type(None)))
    return plain and not name.startswith("__")


def cells_of(value: Any) -> list[tuple[str, Any]]:
    function = getattr(value, "__wrapped__", value)
    closure = getattr(function, "__closure__", None)
    if not isinstance(closure, tuple):
        return []
    names = function.__code__.co_freevars
    pairs = [(name, contents(cell)) for name, cell in zip(names, closure, strict=True)]
    return [pair for pair in pairs if is_value(*pair)]


def contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return "unbound"


def snapshot(value: Any) -> Any:
    """A copy that keeps types."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, list):
        return [snapshot(part) for part in value]
    if isinstance(value, tuple):
        return tuple(snapshot(part) for part in value)
    if isinstance(value, dict):
        return {key: snapshot(part) for key, part in value.items()}
    return value


Make = Callable[[int], Any]


@pytest.fixture(autouse=True)
def quick(foreground: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile at once, and after few samples."""
    monkeypatch.setattr(speed, "NUMPY_SAMPLES", 1)


def compare(
    source: str,
    make: Make = some,
    *,
    calls: int = CALLS,
    replays: int | None = None,
    reason: str | None = None,
    before: Callable[[int, Any], None] | None = None,
) -> Ledger:
    """Run the source's `work` in two worlds. before(i, module): done before call i. Returns the ledger."""
    plain, fast = World(source), World(source)
    name = f"name{next(_names)}"
    work = accel.accelerate(fast.module.work, name=name)
    for i in range(calls):
        if before is not None:
            before(i, plain.module)
            before(i, fast.module)
        mine, theirs = make(i), make(i)
        expected, found = play(plain.module.work, mine), play(work, theirs)
        Twins(False).same((expected, mine, plain.state), (found, theirs, fast.state), f"call {i}")
    ledger = open_ledger(name)
    text = [refusal.message(name) for refusal in ledger.refusals]
    reasons = [refusal.reason for refusal in ledger.refusals]
    if reason is not None:
        assert reason in reasons, text
        assert ledger.compiled_calls >= (replays or 0), text
    else:
        assert ledger.compiled_calls >= (calls - 5 if replays is None else replays), text or ledger
        assert not {"verify.mismatch", "recorder.gap", "accel.fault"}.intersection(reasons), text
    return ledger


SOURCES = {
    "a counter": """
counter = 0
def work(x):
    global counter
    counter += 1
    return x * counter
""",
    "a sum of arrays that starts as None": """
total = None
def work(x):
    global total
    total = x if total is None else total + x
    return total.sum()
""",
    "an array that is bound anew": """
field, dt = np.linspace(0.0, 1.0, 4), 0.1
def work(x):
    global field
    field = field + dt * (x - field)
    return float(field.max())
""",
    "an array that is changed in place": """
field = np.linspace(0.0, 1.0, 4)
def work(x):
    global field
    field += 0.5 * x
    field *= 0.9
    return field[1:]
""",
    "a number from an array": """
last, energy = 0.0, np.float64(0.0)
def work(x):
    global last, energy
    last = float(x.sum())
    energy += (x * x).sum()
    return last
""",
    "written before it is read": """
last = None
def work(x):
    global last
    last = x * 2.0
    return last + 1.0
""",
    "a list and a tuple": """
pair, shape = [], ()
def work(x):
    global pair, shape
    pair = [x * 2.0, x + 1.0]
    shape = (x[:2], 3)
    return pair[0] - pair[1]
""",
    "stored and read by several functions": """
counter, total = 0, np.zeros(4)
def step():
    global counter
    counter += 1
def add(x):
    global total
    total = total + x * counter
def read():
    return total * counter
def work(x):
    step()
    add(x)
    step()
    add(x)
    return read()
""",
    "in a nested function": """
counter = 0
def work(x):
    def step(by):
        global counter
        counter += by
        return counter
    step(1)
    y = x * step(2)
    return y + counter
""",
    "a comprehension with a walrus": """
last = 0.0
def work(x):
    global last
    parts = [last := float(v) for v in x]
    return x * last + sum(parts)
""",
    "a name that is deleted and made again": """
scratch = 1.0
def work(x):
    global scratch
    y = x * scratch
    del scratch
    scratch = float(y[0])
    return y
""",
    "a temporary global": """
def work(x):
    global scratch
    scratch = x * 2.0
    y = scratch + 1.0
    del scratch
    return y
""",
    "a builtin that is shadowed": """
def mine(*values):
    return -1.0
def work(x):
    global max
    y = x * max(1.0, 2.0)
    max = mine
    y = y + max(1.0, 2.0)
    del max
    return y * max(1.0, 3.0)
""",
    "two names of one array": """
a, b = np.ones(4), None
def work(x):
    global a, b
    a = a * 0.5 + x
    b = a
    b += 1.0
    return a.sum()
""",
    "swapped": """
new, old = np.ones(4), np.zeros(4)
def work(x):
    global new, old
    new, old = old, new
    new = old * 0.5 + x
    return new - old
""",
    "written on one path": """
hot, calls = 0, 0
def work(x):
    global hot, calls
    calls += 1
    if x.sum() > 0:
        hot += 1
        return x * hot
    return x - hot
""",
    "in a loop": """
total, n = 0.0, 0
def work(x):
    global total, n
    for v in range(3):
        total = total + x[v] * 2.0
        n = n + 1
    return total / n
""",
    "by recursion": """
depth, total = 0, np.zeros(4)
def work(x, n=3):
    global depth, total
    depth += 1
    total = total + x * n
    if n:
        work(x, n - 1)
    return total * depth
""",
}

CLOSURES = {
    "a counter": """
    n = 0
    def work(x):
        nonlocal n
        n += 1
        return x * n
""",
    "arrays": """
    field, total = np.zeros(4), None
    def work(x):
        nonlocal field, total
        field = 0.5 * field + x
        total = field if total is None else total + field
        return total.sum()
""",
    "in place": """
    field = np.zeros(4)
    def work(x):
        nonlocal field
        field += x
        return field[::2]
""",
    "two functions over one variable": """
    n, total = 0, np.zeros(4)
    def step(x):
        nonlocal n, total
        n += 1
        total = total + x
    def show():
        return total * n
    def work(x):
        before = show()
        step(x)
        step(x * 2.0)
        return show() - before, n
""",
    "the reader comes later": """
    n = 0
    def show(x):
        return x * n
    def work(x):
        nonlocal n
        n += 2
        y = show(x)
        n += 1
        return y + show(x)
""",
    "written before it is read": """
    last = "nothing yet"
    def work(x):
        nonlocal last
        last = x * 3.0
        return last + 1.0
""",
    "not bound before the first call": """
    def work(x):
        nonlocal last
        last = x * 3.0
        return last + 1.0
    if False:
        last = 0
""",
    "two levels deep": """
    n, total = 0, 0.0
    def work(x):
        m = 0
        def step(by):
            nonlocal n, m
            n += by
            m += 1
            def deeper(v):
                nonlocal total, m
                m += 1
                total = total + v
            deeper(x.sum())
            return m
        step(1)
        step(2)
        return x * n + m + total
""",
    "deleted": """
    n = 1.0
    def work(x):
        nonlocal n
        y = x * n
        del n
        n = float(y[0])
        return y
""",
    "a walrus in a comprehension": """
    last = 0.0
    def work(x):
        nonlocal last
        parts = [last := float(v) for v in x]
        return x * last + sum(parts)
""",
}


def enclosed(body: str) -> str:
    return f"def make():\n{body}\n    return work\nwork = make()\n"


@pytest.mark.parametrize("case", SOURCES)
def test_globals(case: str) -> None:
    compare(SOURCES[case], calls=12, replays=4)


@pytest.mark.parametrize("case", CLOSURES)
def test_variables_of_enclosing_functions(case: str) -> None:
    compare(enclosed(CLOSURES[case]), calls=12, replays=5)
