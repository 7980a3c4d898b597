"""Functions and generators that recorded code has made, and that outlive a call which could not be undone."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import accel
from accel.platform.ledger import open_ledger
from accel.record.run.stepping import Stepper
from accel.record.state.events import Events
from accel.rules import load
from accel.rules.rule import RULES, Rule
from tests.conftest import WriteModules

pytestmark = pytest.mark.usefixtures("foreground")

HOLDERS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda function: function,
    "a tuple": lambda function: (function, 1),
    "a partial": functools.partial,
    "its method": lambda function: function.__call__,
    "a default value": lambda function: lambda made=function: made(),
    "a variable": lambda function: lambda: function(),
}


def _called(held: Any) -> Any:
    return held[0]() if type(held) is tuple else held()


def _writing(how: Callable[[Any], Any]) -> Any:
    """A function that makes a writer; one that is called meanwhile, and writes unseen; what is held; a reader."""
    n, held = 0, []

    def meddling(x: Any) -> Any:
        nonlocal n
        n += 5
        return x * 2.0

    def work(x: Any) -> Any:
        nonlocal n
        n += 1

        def bump(by: int = 100) -> int:
            nonlocal n
            n += by
            return n

        held.append(how(bump))
        y = meddling(x * n)
        n += 1
        bump(1000)
        return y + n

    return work, meddling, held, lambda: n


@pytest.mark.parametrize("name", HOLDERS)
def test_what_a_function_writes_after_the_call_is_not_lost(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load()
    results = []
    for is_fast in (False, True):
        work, meddling, held, read = _writing(HOLDERS[name])
        if is_fast:
            rule = Rule("meddling", meddling, meddling, operands=("x",), signature=inspect.signature(meddling))
            monkeypatch.setitem(RULES, meddling, rule)
            work = accel.accelerate(work, name="rebound")
        seen: list[Any] = []
        for i in range(3):
            seen += [float(work(np.ones(3) * i)[0]), read(), *map(_called, held), read()]
        results.append(seen)
    assert results[0] == results[1]
    assert {refusal.reason for refusal in open_ledger("rebound").refusals} == {"guard.unstable"}


def doubled(x: Any) -> Any:
    return 2.0 * x


def meddle(x: Any) -> Any:
    """Let accel accelerate a function while another that calls it is recorded, as `accel run --auto` may."""
    is_recorded = any("recorder.py" in each.filename for each in inspect.stack(context=0))
    if type(doubled) is FunctionType and is_recorded:
        globals()["doubled"] = accel.accelerate(doubled, name="rebound.doubled")
    return np.sin(x)


def test_a_function_that_accel_accelerates_meanwhile_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    load()
    monkeypatch.setattr(sys.modules[__name__], "doubled", doubled)  # it is put back afterwards
    rule = Rule("meddle", meddle, lambda *, x: jnp.sin(x), operands=("x",), signature=inspect.signature(meddle))
    monkeypatch.setitem(RULES, meddle, rule)

    def work(x: Any) -> Any:
        first = meddle(doubled(x))
        return doubled(first)

    fast = accel.accelerate(work, name="rebound.meanwhile")
    for i in range(9):
        x = np.linspace(0.0, 1.0 + i, 4)
        np.testing.assert_allclose(fast(x), 2.0 * np.sin(2.0 * x), rtol=1e-14)
    book = open_ledger("rebound.meanwhile")
    assert type(doubled) is not FunctionType and not book.refusals
    assert book.compiled_calls >= 3 and book.variants == 1, (book.waits(), open_ledger("rebound.doubled"))


def test_a_function_that_was_exchanged_still_tells_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    load()
    work, meddling, held, _ = _writing(functools.partial)
    rule = Rule("meddling", meddling, meddling, operands=("x",), signature=inspect.signature(meddling))
    monkeypatch.setitem(RULES, meddling, rule)
    accel.accelerate(work, name="told")(np.ones(3))
    assert str(inspect.signature(held[0].func)).startswith("(by: ")
    assert held[0].func.__qualname__.endswith("work.<locals>.bump")
    with pytest.raises(TypeError, match=r"bump\(\) got an unexpected keyword argument 'beyond'"):
        held[0](beyond=3)


GENERATORS = """
import os
import numpy as np

def main(n, kept):
    u, k, out = np.ones(4), 0, []
    for i in range(n):
        k = i
        u = np.sin(u) + k
        with open(os.devnull, "w") as file:
            file.write("an effect")
        kept.append(k * 10 + j for j in range(100))
        out.append([next(each) for each in kept])
    return u, out

def around():
    k = 1
    def step(x, kept):
        with open(os.devnull, "w") as file:
            file.write("an effect")
        def following():
            got = 0
            while got is not None:
                try:
                    got = yield k, got
                except ValueError:
                    yield "caught", k
                except KeyError:
                    raise RuntimeError("left")
                finally:
                    kept.append(k)
            return "end"
        kept += [following(), following(), following(), (k + j for j in range(5))]
        return np.sin(x) + k
    def put(value):
        nonlocal k
        k = value
    return step, put
"""


@pytest.fixture
def planet(write_modules: WriteModules) -> ModuleType:
    """Both programs, as a module."""
    write_modules({"generating.py": GENERATORS})
    import generating  # type: ignore[import-not-found]

    return generating  # type: ignore[no-any-return]


def test_generators_of_a_round_see_what_later_rounds_assign(planet: ModuleType) -> None:
    expected = planet.main(6, [])[1]
    fast = accel.accelerate(planet.main, loops=True)
    for _ in range(3):
        assert fast(6, [])[1] == expected


def _drive(step: Any, put: Any) -> list[Any]:
    """All that a generator may be asked, with assignments in between."""
    seen: list[Any] = []
    for n in range(3):
        put(n)
        kept: list[Any] = []
        seen.append(float(step(np.ones(3), kept)[0]))
        asked, failing, closed, short = kept[:4]
        names = [each.__qualname__ for each in kept]
        seen += [next(short), next(asked), names]
        put(n + 100)
        seen += [next(short), asked.send(5), asked.throw(ValueError)]
        put(n + 200)
        seen += [next(short), next(asked), next(failing), next(closed)]
        with pytest.raises(StopIteration) as end:
            asked.send(None)
        with pytest.raises(RuntimeError, match="left") as left:
            failing.throw(KeyError)
        closed.close()
        own = os.path.basename(planet_file(step))
        seen += [end.value.value, [each.name for each in left.traceback if each.path.name == own], kept[4:]]
        assert not [each for each in left.traceback if f"{os.sep}accel{os.sep}record" in str(each.path)]
        seen += [list(short), list(asked), list(closed)]
    return seen


def planet_file(step: Any) -> str:
    """The file of the program."""
    return str(step.__code__.co_filename)


def test_generators_that_outlive_the_call_do_all_that_generators_do(planet: ModuleType) -> None:
    step, put = planet.around()
    expected = _drive(step, put)
    step, put = planet.around()
    assert _drive(accel.accelerate(step, name="generating"), put) == expected


def test_only_code_that_touches_variables_outside_itself_is_stepped() -> None:
    """Stepping takes microseconds for each instruction, after the tape broke too: of a loop over cells, seconds."""

    class Noted(Events):
        def __init__(self) -> None:
            self.stepped: list[Any] = []

        def step(self, code: CodeType) -> None:
            self.stepped.append(code)

    count = 0

    def writer() -> None:
        nonlocal count
        count += 1

    def plain(x: Any) -> Any:
        return [each + 1 for each in x]

    stepper = Stepper(None, noted := Noted())  # type: ignore[arg-type]
    for function in (writer, plain):
        stepper.watch(function.__code__)
    assert noted.stepped == [writer.__code__]
