"""Lifting: what is refused, what stays as it was, and how it is undone."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType, ModuleType
from typing import Any

import pytest

from accel.entry.lift.lifting import LiftedFunction, lift_function, lifted_module_code
from accel.entry.lift.source import NotLiftable
from accel.platform.reasons import Refusal
from tests.conftest import WriteModules

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(write_modules: WriteModules, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Give a function that imports a module of this source."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # sources of one size are written in one second

    def load(source: str) -> ModuleType:
        write_modules({"planet.py": source})
        sys.modules.pop("planet", None)
        return importlib.import_module("planet")

    yield load


def lifted(function: FunctionType, *, on: bool = True) -> LiftedFunction:
    made = lift_function(function)
    for switch in made.lifted.switches:
        switch.on = on
    return made


def refusal(function: FunctionType) -> Refusal:
    with pytest.raises(NotLiftable) as caught:
        lift_function(function)
    return caught.value.refusal


BODIES = {
    "yield i": "yields inside the loop",
    "x = yield from [i]": "yields inside the loop",
    "x = locals()": "uses locals()",
    "x = vars()": "uses vars()",
    "x = dir()": "uses dir()",
    "exec('x = 1')": "uses exec()",
    "x = eval('i')": "uses eval()",
    "x = locals": "uses locals()",
    "x = [eval('i') for k in range(2)]": "uses eval()",
    "x = sys._getframe()": "uses _getframe",
    "x = super().y": "uses super() where there is no object",
}


@pytest.mark.parametrize("body", BODIES)
def test_a_body_that_could_not_be_a_function_is_refused(load: Load, body: str) -> None:
    planet = load(f"import sys\n\ndef main():\n    for i in range(3):\n        {body}\n")
    code = planet.main.__code__
    given = refusal(planet.main)
    assert (given.reason, given.where, given.detail) == ("lift.code", "planet.py:5", BODIES[body])
    assert planet.main.__code__ is code


def test_what_only_looks_like_it_is_lifted(load: Load) -> None:
    planet = load(
        "class Model:\n    pass\n\ndef main(model):\n    for i in range(3):\n        vars(model)['i'] = i\n"
        "        x = dir(model)\n        known = 'x' in locals()\n    return known, x == dir(model)\n"
    )
    lifted(planet.main)
    assert planet.main(planet.Model()) == (True, True)


def test_awaiting_is_refused(load: Load) -> None:
    planet = load("async def main(tasks):\n    for each in tasks:\n        await each\n")
    assert refusal(planet.main).detail == "awaits inside the loop"


def test_the_loops_inside_a_loop_that_cannot_be_lifted_are(load: Load) -> None:
    planet = load(
        "def main(n):\n    for i in range(n):\n        total = 0\n        for k in range(i):\n            total += k\n"
        "        yield total\n"
    )
    made = lifted(planet.main)
    assert [switch.line for switch in made.lifted.switches] == [4]
    assert [each.detail for each in made.lifted.refusals] == ["yields inside the loop"]
    assert list(planet.main(4)) == [0, 0, 1, 3]


def test_a_function_without_a_loop_is_refused(load: Load) -> None:
    assert refusal(load("def main():\n    return 1\n").main).detail == "holds no loop"


# -- exactness --------------------------------------------------------------------------------------------------------

MAIN = "def main(n):\n    total = 0\n    for i in range(n):\n        total += i\n    return total\n"


def test_an_edited_file_is_noticed(load: Load, tmp_path: Any) -> None:
    planet = load(MAIN)
    for edited in (
        MAIN.replace("+= i", "+= 2 * i"),
        "\n" + MAIN,
        MAIN.replace("total = 0", "total = 0.0"),
        "def (",
        "",
    ):
        (tmp_path / "planet.py").write_text(edited, encoding="utf-8")
        assert refusal(planet.main).reason == "lift.source"
    (tmp_path / "planet.py").unlink()
    assert refusal(planet.main).reason == "lift.source"


def test_code_without_a_file_is_refused() -> None:
    names: dict[str, Any] = {}
    exec(MAIN, names)
    assert refusal(names["main"]).reason == "lift.source"


def test_code_that_a_tool_has_rewritten_is_refused() -> None:
    def asserting() -> None:  # pytest rewrites the assertions of this file
        for i in range(3):
            assert i < 3

    assert refusal(asserting).reason == "lift.source"


def test_the_function_stays_what_it_was_to_all_who_ask(load: Load) -> None:
    planet = load("alias = []\n\n" + MAIN)
    plain, main = planet.main.__code__, planet.main
    made = lifted(main)
    assert planet.main is main
    assert main.__code__ is not plain
    assert main(4) == 6
    assert inspect.getsource(main) == MAIN
    for name in ("co_name", "co_qualname", "co_firstlineno", "co_filename", "co_flags", "co_freevars", "co_argcount"):
        if name != "co_flags":
            assert getattr(main.__code__, name) == getattr(plain, name)
    assert inspect.signature(main) == inspect.signature(made.function)
    made.undo()
    assert main.__code__ is plain


def test_code_that_a_program_has_put_there_meanwhile_stays(load: Load) -> None:
    planet = load(MAIN + "\ndef other(n):\n    return -n\n")
    made = lifted(planet.main)
    planet.main.__code__ = planet.other.__code__
    made.undo()
    assert planet.main(3) == -3


def test_lifted_code_that_is_sent_elsewhere_runs_the_programs_loop(load: Load) -> None:
    planet = load(MAIN)
    made = lifted(planet.main)
    for switch in (pickle.loads(pickle.dumps(made.lifted.switches[0])), copy.deepcopy(made.lifted.switches[0])):
        assert not switch.on
        assert switch.line == 3


# -- while it runs ----------------------------------------------------------------------------------------------------


def test_undoing_in_the_middle_of_a_running_loop(load: Load) -> None:
    planet = load(
        "def main(undo):\n    seen = []\n    for i in range(4):\n        seen.append(undo(i))\n    return seen\n"
    )
    made = lifted(planet.main)
    ran: list[Any] = []

    def counted(body: FunctionType) -> Any:
        ran.append(body)
        return body()

    made.lifted.switches[0].call = counted
    assert planet.main(lambda i: made.undo() if i == 1 else i) == [0, None, 2, 3]
    assert len(ran) == 2


def test_a_function_gets_its_code_back_once_all_its_loops_are_left_alone(load: Load) -> None:
    loop = "    for i in range(3):\n        a += i\n"
    planet = load(f"def f(a):\n{loop}{loop}    return a\n")
    code = planet.f.__code__
    made = lifted(planet.f)
    first, second = made.lifted.switches

    def off(body: FunctionType) -> object:
        second.turn_off()
        return body()

    first.turn_off()
    second.call = off
    assert planet.f.__code__ is made.lifted.code
    assert planet.f(1) == 7, "the code changed while it ran"
    assert planet.f.__code__ is code
    assert planet.f(1) == 7


def test_a_tracer_sees_the_programs_own_loop_and_nothing_of_accel(load: Load) -> None:
    planet = load(
        "def helper(x):\n    return x\n\n\ndef main(n):\n    total = 0\n    try:\n        for i in range(n):\n"
        "            if i == 1:\n                continue\n            total += helper(i)\n            if i == 3:\n"
        "                break\n        else:\n            total = -1\n    finally:\n        total += 1\n"
        "    while total > 3:\n        total -= 2\n    return total\n"
    )

    def events(n: int) -> list[tuple[str, str, int]]:
        seen = []

        def trace(frame: FrameType, event: str, arg: Any) -> Any:
            seen.append((frame.f_code.co_name, event, frame.f_lineno))
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            planet.main(n)
        finally:
            sys.settrace(before)
        return seen

    plain = [events(n) for n in (0, 2, 6)]
    made = lifted(planet.main)
    assert len(made.lifted.switches) == 2
    assert [events(n) for n in (0, 2, 6)] == plain


def test_a_function_that_calls_itself(load: Load) -> None:
    planet = load(
        "def main(n):\n    total = n\n    for i in range(n):\n        total += main(i)\n        here = i\n"
        "    return total\n"
    )
    plain = planet.main(6)
    lifted(planet.main)
    assert planet.main(6) == plain


def test_two_threads_in_one_function(load: Load) -> None:
    planet = load(
        "def main(n, wait):\n    total = 0\n    for i in range(n):\n        total += i\n        wait()\n"
        "    return total\n"
    )
    lifted(planet.main)
    barrier, results = threading.Barrier(2), {}

    def work(n: int) -> None:
        results[n] = planet.main(n, lambda: barrier.wait() if n else None)

    threads = [threading.Thread(target=work, args=(n,)) for n in (50, 50)]
    [each.start() for each in threads]
    [each.join() for each in threads]
    assert results == {50: 1225}


def test_generators_and_iterators_that_look_between_rounds(load: Load) -> None:
    planet = load(
        "def main():\n    state = []\n    def source():\n        for i in range(4):\n            state.append(-i)\n"
        "            yield len(state)\n    for n in source():\n        state = [*state, n]\n        n = None\n"
        "    return state, n\n"
    )
    plain = planet.main()
    lifted(planet.main)
    assert planet.main() == plain


def test_a_generator_with_a_lifted_loop(load: Load) -> None:
    planet = load(
        "def main(n):\n    total = 0\n    for i in range(n):\n        if i == 5:\n            return 'end'\n"
        "        total += i\n    got = yield total\n    yield got\n"
    )
    lifted(planet.main)
    running = planet.main(3)
    assert (next(running), running.send(7)) == (3, 7)
    with pytest.raises(StopIteration) as stop:
        next(planet.main(6))
    assert stop.value.value == "end"


def test_an_error_in_a_finally_that_looks_at_the_variables(load: Load) -> None:
    planet = load(
        "import sys\n\ndef main(seen):\n    try:\n        for i in range(3):\n            x = 10 // (1 - i)\n"
        "    finally:\n        seen.append((i, x))\n"
    )
    lifted(planet.main)
    seen: list[Any] = []
    with pytest.raises(ZeroDivisionError) as caught:
        planet.main(seen)
    assert seen == [(1, 10)]
    assert [each.lineno for each in caught.traceback[1:]] == [5]
    assert caught.traceback[-1].frame.f_locals["x"] == 10


def test_a_bare_raise_in_a_loop_leaves_the_traceback_of_a_callers_error_alone(load: Load) -> None:
    planet = load(
        "def main():\n    try:\n        1 // 0\n    except ZeroDivisionError:\n        inner()\n\n\n"
        "def inner():\n    for i in range(3):\n        if i == 2:\n            raise\n"
    )
    plain: list[int] = []
    for lift in (False, True):
        if lift:
            lifted(planet.inner)
        with pytest.raises(ZeroDivisionError) as caught:
            planet.main()
        lines = [each.lineno for each in caught.traceback[1:]]
        assert lines == (plain or lines)
        plain = lines
    assert plain == [4, 2]


# -- modules ----------------------------------------------------------------------------------------------------------


def test_a_modules_loop_leaves_only_the_programs_names(load: Load, tmp_path: Any) -> None:
    source = (
        "from __future__ import annotations\ntotal = 0\nfor i in range(5):\n    if i == 1:\n        continue\n"
        "    if i == 4:\n        break\n    total += i\n    def last(k=i):\n        return total + k\n"
        "else:\n    total = -1\n"
    )
    path = tmp_path / "planet.py"
    path.write_text(source, encoding="utf-8")
    code = compile(source, str(path), "exec", dont_inherit=True)
    names: dict[str, Any] = {"__name__": "planet"}
    made = lifted_module_code(code)
    for on in (True, False):
        made.switches[0].on = on
        names = {"__name__": "planet", "__builtins__": __builtins__}
        exec(made.code, names)
        assert names.keys() == {"__name__", "__builtins__", "annotations", "total", "i", "last"}
        assert (names["total"], names["i"], names["last"]()) == (5, 4, 8)
        assert names["last"].__qualname__ == "last"


@pytest.mark.parametrize(
    ("body", "detail"),
    [("x: int = i", "annotates a name of the module"), ("from math import *", "imports all names of a module")],
)
def test_what_cannot_stand_in_a_function_is_refused_in_a_module(tmp_path: Any, body: str, detail: str) -> None:
    source = f"for i in range(3):\n    {body}\n"
    path = tmp_path / "planet.py"
    path.write_text(source, encoding="utf-8")
    with pytest.raises(NotLiftable) as caught:
        lifted_module_code(compile(source, str(path), "exec", dont_inherit=True))
    assert caught.value.refusal.reason == "lift.code"
    assert caught.value.refusal.detail.startswith(detail)
