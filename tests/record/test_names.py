"""Variables outside the function: globals and variables of enclosing functions that recorded code assigns and deletes.

Each case runs twice from the same state, plainly and accelerated. After every call the result, or what it raised, and
the variables themselves must be the same.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import sys
from collections.abc import Callable
from types import CellType, ModuleType
from typing import Any

import numpy as np
import pytest

import accel
from accel.dispatch.replay import commit
from accel.platform import config
from accel.platform.ledger import Ledger, open_ledger
from accel.policy import speed
from accel.record import Undone, record
from accel.rules.rule import RULES, Rule
from tests.helpers import some
from tests.record.conftest import Twins, judged, play

CALLS = 9
_names = itertools.count()


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
    return judged(name, (0 if reason else calls - 5) if replays is None else replays, reason)


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
    "two arrays by turns": """
    u, v = np.linspace(0.0, 1.0, 4), np.zeros(4)
    def work(x):
        nonlocal u, v
        v[:] = u * 2.0
        v[1:3] += x[1:3]
        u, v = v, u
        return u.max()
""",
    "a list that is made anew": """
    fields, i = [np.zeros(4), np.ones(4)], 0
    def work(x):
        nonlocal fields, i
        i = 1 - i
        fields = [fields[1], fields[0]]
        fields[0] = fields[0] + x
        return fields[0] * i
""",
    "a generator that reads between the writes": """
    n = 0
    def work(x):
        nonlocal n
        read = (n for _ in range(3))
        n += 1
        a = next(read)
        n += 1
        b = next(read)
        n += 1
        return x * (a + 10 * b + 100 * next(read))
""",
    "a module that is imported once": """
    module = None
    def work(x):
        nonlocal module
        if module is None:
            import math
            module = math
        return x * module.pi
""",
    "functions by turns": """
    function, n = None, 0
    def double(x):
        return x * 2.0
    def triple(x):
        return x * 3.0
    def work(x):
        nonlocal function, n
        n += 1
        function = double if n % 2 else triple
        return function(x)
""",
    "a decorator that counts": """
    n = 0
    def counted(function):
        def wrapper(*args):
            nonlocal n
            n += 1
            return function(*args)
        return wrapper
    @counted
    def helper(x):
        return x * 2.0
    def work(x):
        return helper(x) + helper(x + 1.0) * n
""",
    "methods and a key": """
    n = 0
    class Counter:
        def __init__(self):
            self.total = 0
        def step(self):
            nonlocal n
            n += 1
            self.total += n
            return self.total
        @property
        def next(self):
            nonlocal n
            n += 1
            return n
    counter = Counter()
    def key(value):
        nonlocal n
        n += 1
        return -value
    def work(x):
        return x * counter.step() + counter.next + sorted([1, 3, 2], key=key)[0] + n
""",
    "try and with": """
    n = 0
    def work(x):
        nonlocal n
        try:
            n += 1
        finally:
            n += 1
        with np.errstate(all="ignore"):
            n += 1
        return x * n
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


# -- other ways to the same variable -----------------------------------------------------------------------------------

WAYS = {
    "as an attribute of the module": """
counter, field = 0, np.ones(4)
import sys
def work(x):
    global counter, field
    me = sys.modules[__name__]
    counter += 1
    field = field * 0.5 + x
    y = me.counter * me.field
    me.counter = me.counter + 1
    del me.field
    me.field = y * 0.25
    return y + counter * field
""",
    "through a function's globals": """
counter = 0
def work(x):
    global counter
    counter += 1
    a = work.__globals__["counter"]
    counter += 1
    return x * a + work.__globals__["counter"]
""",
    "a missing attribute of the module, later there": """
import sys
def work(x):
    global extra
    me = sys.modules[__name__]
    a = getattr(me, "extra", 1.0)
    extra = float(x[0]) if hasattr(me, "extra") else 2.0
    return x * a + getattr(me, "extra", 0.0)
""",
}


@pytest.mark.parametrize("case", WAYS)
def test_other_ways_to_the_same_variable(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Registered(World):
        def __init__(self, source: str) -> None:
            name = f"names_{next(_names)}"
            module = sys.modules[name] = ModuleType(name)
            self.module = module
            module.__file__, module.np = __file__, np  # type: ignore[attr-defined]
            module.__dict__["__builtins__"] = __builtins__
            exec(compile(source, __file__, "exec"), module.__dict__)

    monkeypatch.setattr(sys.modules[__name__], "World", Registered)
    ledger = compare(WAYS[case], calls=12, replays=0)
    reasons = {refusal.reason for refusal in ledger.refusals}
    assert not {"verify.mismatch", "recorder.gap", "accel.fault", "guard.unstable"} & reasons


def test_a_name_in_another_module_is_another_variable(write_modules: Any) -> None:
    write_modules(
        {
            "names_state.py": "counter = 0\ndef step():\n    global counter\n    counter += 1\n    return counter\n",
            "names_user.py": """
import names_state
from names_state import counter, step
def work(x):
    global counter
    counter += 10
    y = x * counter + step()
    names_state.counter += 1
    return y * names_state.counter
""",
        }
    )
    user, shared = importlib.import_module("names_user"), importlib.import_module("names_state")
    work = accel.accelerate(user.work, name="two modules")
    for i in range(1, 10):
        x = some(i)
        expected = (x * (10 * i) + (2 * i - 1)) * (2 * i)
        np.testing.assert_allclose(work(x), expected, rtol=1e-13)
        assert (user.counter, shared.counter) == (10 * i, 2 * i)
        assert type(user.counter) is type(shared.counter) is int
    assert open_ledger("two modules").compiled_calls >= 4


def test_a_module_that_is_reloaded(write_modules: Any) -> None:
    write_modules(
        {
            "names_reloaded.py": """
counter = 0
def step():
    global counter
    counter += 1
    return counter
""",
            "names_holder.py": "import names_reloaded\ndef work(x):\n    return x * names_reloaded.step()\n",
        }
    )
    holder, state = importlib.import_module("names_holder"), importlib.import_module("names_reloaded")
    work = accel.accelerate(holder.work, name="reloaded")
    expected = 0
    for i in range(14):
        if i == 7:
            importlib.reload(state)
            expected = 0
        expected += 1
        assert np.allclose(work(some(i)), some(i) * expected)
        assert state.counter == expected
    assert open_ledger("reloaded").compiled_calls >= 3


def test_a_closure_that_is_made_anew_for_each_call() -> None:
    def make(start: int) -> Any:
        n = start

        def step() -> int:
            nonlocal n
            n += 1
            return n

        return step

    def work(x: Any, step: Any) -> Any:
        return x * step()

    fast = accel.accelerate(work, name="anew")
    kept = make(100)
    for i in range(12):
        assert np.allclose(fast(some(i), make(i)), some(i) * (i + 1))
        assert np.allclose(fast(some(i), kept), some(i) * (101 + i))
    assert kept.__closure__[0].cell_contents == 112


def test_two_closures_of_one_code() -> None:
    def make(n: int) -> Any:
        def step(by: int) -> int:
            nonlocal n
            n += by
            return n

        return step

    a, b = make(0), make(1000)

    def work(x: Any) -> Any:
        return x * a(1) + b(2) + a(3)

    fast = accel.accelerate(work, name="two closures")
    for i in range(1, 10):
        assert np.allclose(fast(some(i)), some(i) * (4 * i - 3) + (1000 + 2 * i) + 4 * i)
        assert a.__closure__[0].cell_contents == 4 * i
        assert b.__closure__[0].cell_contents == 1000 + 2 * i
    assert open_ledger("two closures").compiled_calls >= 4


def test_an_argument_that_is_kept() -> None:
    """The next call may be given the very array again, or another one."""

    def make() -> Any:
        kept = np.zeros(4)

        def work(x: Any) -> Any:
            nonlocal kept
            change = x - kept
            kept = x
            x += 1.0
            return change + kept

        return work

    plain, fast = make(), make()
    work = accel.accelerate(fast, name="kept")
    mine, theirs = ([np.ones(4), np.full(4, 2.0)] for _ in range(2))
    for i in (0, 0, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1, 1):
        assert np.allclose(plain(mine[i]), work(theirs[i]))
        assert np.allclose(mine, theirs)
        assert cells_of(fast)[0][1] is theirs[i]
    assert open_ledger("kept").compiled_calls >= 6


@pytest.mark.parametrize("mode", ["verify", "strict"])
def test_modes(mode: str) -> None:
    with config.override(mode=mode):
        compare(SOURCES["stored and read by several functions"], replays=4)
        compare(enclosed(CLOSURES["two levels deep"]), replays=4)


@pytest.mark.parametrize("case", ["a temporary global", "a counter", "two names of one array"])
def test_an_interrupt_between_two_stores(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left is stored before the interrupt is raised."""
    store = commit.store

    def in_parts(steps: Any, done: Any) -> None:
        store(steps[:1], done)
        store(steps, done)
        store(steps, done)

    monkeypatch.setattr(commit, "store", in_parts)
    compare(SOURCES[case], replays=4)


# -- undoing -----------------------------------------------------------------------------------------------------------

FAILING = """
counter, field, scratch = 0, np.ones(4), 1
def work(x):
    global counter, field, scratch, made
    counter += 1
    field = field + x
    field *= 0.5
    made = counter
    if counter % 3 == 0:
        del scratch
        scratch = counter
        raise ValueError(counter)
    return field * counter
"""

HANDLED = """
counter, field = 0, np.ones(4)
def fails():
    global counter
    counter += 1
    raise ValueError(counter)
def work(x):
    global field
    field = field + x
    try:
        fails()
    except ValueError:
        field = field * 2.0
    return field * counter
"""

CALL = """
import threading
def call(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()
"""

BROKEN = """
counter, field, log = 0, np.ones(4), []
def look():
    log.append((counter, field.copy()))
def work(x):
    global counter, field
    counter += 1
    field = field + x
    try:
        call(look)
        counter += 1
        field = field * 2.0
        call(change)
        y = field * counter
        counter += 1
    finally:
        pass
    return y + counter
def change():
    global counter, field
    counter += 10
    field = field - 1.0
"""

BROKEN_CELLS = """
log = []
def make():
    counter, field = 0, np.ones(4)
    def look(*_):
        log.append((counter, field.copy()))
    def change(*_):
        nonlocal counter, field
        counter += 10
        field = field - 1.0
    def reads():
        return counter, field
    def work(x):
        nonlocal counter, field
        counter += 1
        field = field + x
        try:
            call(look)
            counter += 1
            field = field * 2.0
            call(change)
            y = field * counter
            counter += 1
            z = reads()
        finally:
            pass
        return y + counter, z
    return work
work = make()
"""


def test_an_exception_half_way() -> None:
    compare(FAILING, calls=15, replays=0)


def test_an_exception_that_is_handled() -> None:
    compare(HANDLED, calls=8, reason="path.exception")


def test_what_others_see_once_the_tape_is_broken() -> None:
    compare(CALL + BROKEN, calls=6, reason="call.opaque")


def test_what_others_see_of_an_enclosing_functions_variables_once_the_tape_is_broken() -> None:
    compare(CALL + BROKEN_CELLS, calls=6, reason="call.opaque")


def test_a_function_that_was_read_before_the_tape_broke() -> None:
    """Its real form is called then, and writes the real variable, while the frame that reads it is recorded code."""
    source = """
import threading
def make():
    n = 0
    def bump():
        nonlocal n
        n += 1
    def work(x):
        bump()
        try:
            threading.Thread(target=bump).start()
            bump()
            y = x * n
            bump()
        finally:
            pass
        return y + n
    return work
work = make()
"""
    compare(source, calls=6, reason="call.opaque")


def test_a_call_that_is_undone_leaves_variables_as_they_were() -> None:
    world = World(FAILING)
    world.module.counter = 2  # type: ignore[attr-defined]
    before = world.state
    result = record(world.module.work, (some(0),), {}, max_nodes=1000)
    assert isinstance(result, Undone)
    Twins(True).same(before, world.state, "state")
    assert not hasattr(world.module, "made")


def test_a_global_that_somebody_else_assigns_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World("""
counter = 0
def work(x):
    global counter
    counter += 1
    y = meddling(x * counter)
    return y + counter
def last(x):
    global counter
    counter += 1
    return meddling(x * counter)
""")
    module: Any = world.module

    def meddling(x: Any) -> Any:
        module.counter += 5
        return x * 2.0

    rule = Rule("meddling", meddling, meddling, operands=("x",), signature=inspect.signature(meddling))
    monkeypatch.setitem(RULES, meddling, rule)
    module.meddling = meddling
    for name in ("work", "last"):
        module.counter = 0
        fast = accel.accelerate(getattr(module, name), name=f"meddled {name}")
        for i in range(4):
            counter = 6 * i
            expected = some(i) * (counter + 1) * 2.0 + (counter + 6 if name == "work" else 0.0)
            assert np.array_equal(fast(some(i)), expected)
            assert module.counter == counter + 6
        assert {refusal.reason for refusal in open_ledger(f"meddled {name}").refusals} == {"guard.unstable"}


def test_a_cell_that_somebody_else_assigns_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> Any:
        n = 0

        def meddling(x: Any) -> Any:
            nonlocal n
            n += 5
            return x * 2.0

        def work(x: Any) -> Any:
            nonlocal n
            n += 1
            y = meddling(x * n)
            return y + n

        return work, meddling

    work, meddling = make()
    rule = Rule("meddling", meddling, meddling, operands=("x",), signature=inspect.signature(meddling))
    monkeypatch.setitem(RULES, meddling, rule)
    fast = accel.accelerate(work, name="meddled cell")
    for i in range(4):
        assert np.array_equal(fast(some(i)), some(i) * (6 * i + 1) * 2.0 + (6 * i + 6))
        assert work.__closure__[work.__code__.co_freevars.index("n")].cell_contents == 6 * i + 6
    assert {refusal.reason for refusal in open_ledger("meddled cell").refusals} == {"guard.unstable"}


# -- what stays on NumPy -----------------------------------------------------------------------------------------------

REFUSED = {
    "a generator": """
counter = 0
def work(x):
    def count():
        global counter
        for _ in range(3):
            counter += 1
            yield counter
    return x * sum(count())
""",
    "a nested function beside a handler": """
counter = 0
def work(x):
    def count():
        global counter
        counter += 1
    with np.errstate(all="ignore"):
        count()
        return x * counter
""",
    "a nested function that a handler below calls": """
counter = 0
def careful(function):
    try:
        function()
    finally:
        pass
def work(x):
    def count():
        global counter
        counter += 1
    careful(count)
    return x * counter
""",
    "the module's own name": """
def work(x):
    global __doc__
    __doc__ = "changed"
    return x * 2.0
""",
}


OPAQUE = {
    "a text, then a thread": """
import threading
def make():
    n = 0
    def work(x):
        nonlocal n
        n += 1
        text = f"{x[0]:.2f}"
        def step():
            nonlocal n
            n += 10
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()
        n += 1
        return x * n + len(text)
    return work
work = make()
""",
    "a callback that is kept": """
__called = []
def make():
    n = 0
    def work(x):
        nonlocal n
        n += 1
        def later():
            nonlocal n
            n += 100
            return n
        __called.append(later)
        for each in __called[:3]:
            each()
        return x * n
    return work
work = make()
def later():
    return __called[0]()
""",
}


@pytest.mark.parametrize("case", OPAQUE)
def test_nested_functions_that_others_call(case: str) -> None:
    ledger = compare(OPAQUE[case], calls=6, replays=0)
    assert ledger.compiled_calls == 0


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    compare(REFUSED[case], calls=6, reason="effect.global")


def test_globals_of_a_type_of_their_own() -> None:
    class Namespace(dict[str, Any]):
        pass

    scopes = [Namespace(__builtins__=__builtins__, __name__="names_custom", np=np) for _ in range(2)]
    for scope in scopes:
        exec(compile(SOURCES["a counter"], __file__, "exec"), scope)
    work = accel.accelerate(scopes[1]["work"], name="custom")
    for i in range(8):
        assert np.array_equal(scopes[0]["work"](some(i)), work(some(i)))
        assert scopes[0]["counter"] == scopes[1]["counter"] == i + 1
    assert "effect.global" in {refusal.reason for refusal in open_ledger("custom").refusals}


def test_a_module_of_a_class_of_its_own(write_modules: Any) -> None:
    write_modules(
        {
            "names_special.py": """
import sys
from types import ModuleType
class Special(ModuleType):
    pass
sys.modules[__name__].__class__ = Special
counter = 0
def work(x):
    global counter
    counter += 1
    me = sys.modules[__name__]
    me.counter += 1
    return x * me.counter * counter
"""
        }
    )
    module = importlib.import_module("names_special")
    work = accel.accelerate(module.work, name="special")
    for i in range(1, 9):
        assert np.allclose(work(some(i)), some(i) * (2 * i) ** 2)
        assert module.counter == 2 * i
    assert open_ledger("special").compiled_calls >= 3


def test_a_function_that_is_kept_in_a_global() -> None:
    compare(
        """
f = None
def work(x):
    global f
    y = x * 2.0
    f = lambda v: v + y
    return f(x)
""",
        calls=6,
        reason="escape.object",
    )
