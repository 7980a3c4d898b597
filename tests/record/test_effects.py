"""Effects and escapes: what keeps a path on NumPy, and recorded values that outlive their recording."""

from __future__ import annotations

import datetime
import itertools
import logging
import random
import sys
import threading
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import accel
from accel.record.state.wrapper import isinstance_wrapper
from accel.rules import load
from accel.rules.rule import RULES
from tests.helpers import some

COUNT = 0
STORE: list[Any] = []
TABLE: dict[str, Any] = {}
LOG = logging.getLogger("accel-tests")


def assert_plain(value: Any, seen: set[int] | None = None) -> None:
    """Nothing that can be reached from `value` is a wrapper of the recorder's."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    assert not isinstance_wrapper(value), type(value)
    assert not (type(value).__module__ or "").startswith("accel."), type(value)
    if isinstance(value, dict):
        for pair in value.items():
            assert_plain(pair, seen)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for part in value:
            assert_plain(part, seen)
    elif isinstance(value, BaseException):
        assert_plain(value.args, seen)
        assert_plain(vars(value), seen)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        assert_plain(vars(value), seen)


def printing(x: Any) -> Any:
    print("sum", x.sum())
    return x * 2


def writing(x: Any) -> Any:
    with open("/dev/null", "w") as file:
        file.write("x")
    return x * 2


def timing(x: Any) -> Any:
    return x * (time.perf_counter() > 0)


def dating(x: Any) -> Any:
    return x * (datetime.datetime.now().year > 0)


def drawing(x: Any) -> Any:
    return x * 2 + 0 * random.choice([1, 2])


def drawing_numpy(x: Any) -> Any:
    return x * 2 + 0 * len(np.random.bytes(4))  # noqa: NPY002


GENERATOR = np.random.default_rng(0)


def drawing_generator(x: Any) -> Any:
    return x * 2 + 0 * GENERATOR.spawn(1)[0].normal(size=4)


def counting(x: Any) -> Any:
    global COUNT
    COUNT += 1
    return x * 2


def counting_in_a_generator(x: Any) -> Any:
    def counts() -> Any:
        global COUNT
        COUNT += 1
        yield COUNT

    next(counts())
    return x * 2


def showing(x: Any) -> Any:
    sys.stdout.writelines([])
    return x * 2


def logging_it(x: Any) -> Any:
    LOG.critical("x is %r", float(x[0]))
    return x * 2


def reading(x: Any) -> Any:
    return x * len(Path("/dev/null").read_text())


def yielding(x: Any) -> Any:
    yield x * 2
    yield x * 3


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (printing, "effect.print"),
        (writing, "effect.file"),
        (timing, "effect.clock"),
        (dating, "effect.clock"),
        (drawing, "effect.random"),
        (drawing_numpy, "effect.random"),
        (drawing_generator, "effect.random"),
        (counting_in_a_generator, "effect.global"),
        (showing, "effect.print"),
        (logging_it, "effect.print"),
        (reading, "effect.file"),
    ],
)
def test_effects_have_a_reason_and_a_place(check: Any, function: Any, reason: str, capsys: Any) -> None:
    checked = check(function, some, reason=reason)
    refusal = next(r for r in checked.ledger.refusals if r.reason == reason)
    first = function.__code__.co_firstlineno
    assert "test_effects.py:" in refusal.where
    assert first <= int(refusal.where.rpartition(":")[2]) <= first + 4


def test_effects_happen_once_per_call(check: Any, capsys: Any) -> None:
    check(printing, some, reason="effect.print", calls=6)
    assert len(capsys.readouterr().out.splitlines()) == 12


def test_a_global_counter_counts_every_call() -> None:
    before = COUNT
    function = accel.accelerate(counting, name="counting")
    for i in range(8):
        function(some(i))
    assert before + 8 == COUNT


def test_generator_functions(check: Any) -> None:
    function = accel.accelerate(yielding, name="yielding")
    for i in range(6):
        assert [v.tolist() for v in function(some(i))] == [v.tolist() for v in yielding(some(i))]
    assert_plain(list(function(some(1))))


def test_a_path_with_an_effect_beside_one_without(check: Any, capsys: Any) -> None:
    def work(x: Any, loud: bool) -> Any:
        if loud:
            print("loud")
        return x * 2

    check(work, lambda i: (some(i), i % 3 == 0), calls=24, replays=18)
    assert len(capsys.readouterr().out.splitlines()) == 16


def test_a_path_with_an_effect_that_values_decide(check: Any, capsys: Any) -> None:
    def work(x: Any) -> Any:
        if x.max() > 5:
            print("large")
        return x * 2

    def make(i: int) -> Any:
        x = some(i)
        x[0] = 9.0 if i % 7 == 5 else 0.0
        return x

    check(work, make, calls=20, replays=12)
    assert len(capsys.readouterr().out.splitlines()) == 2 * 3


# -- escapes ----------------------------------------------------------------------------------------------------------


def into_list(x: Any) -> Any:
    STORE.append(x * 2)
    STORE.append([x, {"k": x + 1}])
    return x + 1


def into_dict(x: Any) -> Any:
    y = x * 2
    TABLE["new"] = y
    y += 1
    return y


def into_list_and_after(x: Any) -> Any:
    inner = [x * 2]
    STORE.append(inner)
    inner.append(x.sum())
    inner[0] += 1
    return inner[0]


@pytest.mark.parametrize("function", [into_list, into_dict, into_list_and_after])
def test_stored_in_a_global_container(check: Any, function: Any) -> None:
    def record(run: Any) -> Any:
        STORE.clear()
        TABLE.clear()
        result = run(some(1))
        found = (list(STORE), dict(TABLE), result)
        assert_plain(found)
        return repr(found)

    expected = record(function)
    accelerated = accel.accelerate(function, name="escaping")
    for _ in range(6):
        assert record(accelerated) == expected


def test_a_list_that_is_kept_and_changed(check: Any) -> None:
    def work(box: Any, x: Any) -> Any:
        inner = [x * 2]
        box.append(inner)
        inner.append(x)
        return inner

    check(work, lambda i: ([], some(i)))


def test_sets_deques_and_objects_of_others(check: Any) -> None:
    import collections
    import queue

    def work(s: Any, d: Any, q: Any, x: Any) -> Any:
        s.add(float(x[0]))
        d.append(x * 2)
        q.put(x * 3)
        return x + 1

    accelerated = accel.accelerate(work, name="others")
    for i in range(5):
        s: Any = set()
        d: Any = collections.deque()
        q: Any = queue.Queue()
        accelerated(s, d, q, some(i))
        found = (s, list(d), q.get())
        assert_plain(found)
        assert found[0] == {some(i)[0]}
        assert np.array_equal(found[1][0], some(i) * 2)
        assert np.array_equal(found[2], some(i) * 3)


def returning_function(x: Any) -> Any:
    y = x * 2

    def inner(z: Any) -> Any:
        return y + z + x[0]

    return inner


def returning_generator(x: Any) -> Any:
    y = x * 2
    return (v * y for v in (1.0, 2.0))


def returning_iterators(x: Any) -> Any:
    y = x * 2
    return zip(y, x, strict=True), map(float, y), iter([y, x])


def returning_set(x: Any) -> Any:
    return {float(x[0]), 2.0}, frozenset([float(x[1])])


def returning_method(x: Any) -> Any:
    return x.sum, (x * 2).mean


def returning_keys(x: Any, n: int = 3) -> Any:
    return {n: x, float(n): 2.0, (n, 1): x * 2}


def returning_partial(x: Any) -> Any:
    import functools

    return functools.partial(np.add, x * 2)


def use(value: Any) -> Any:
    """What the returned thing does, as text."""
    if isinstance(value, tuple):
        return tuple(use(part) for part in value)
    if hasattr(value, "__next__"):
        return [use(part) for part in value]
    if callable(value):
        try:
            return use(value())
        except TypeError:
            return use(value(np.ones(4)))
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    assert_plain(value)
    return repr(value)


@pytest.mark.parametrize(
    "function",
    [
        returning_function,
        returning_generator,
        returning_iterators,
        returning_set,
        returning_method,
        returning_keys,
        returning_partial,
    ],
)
def test_things_that_hold_recorded_values_leave(function: Any) -> None:
    accelerated = accel.accelerate(function, name="leaving")
    for i in range(7):
        expected, found = function(some(i)), accelerated(some(i))
        assert type(found) is type(expected)
        assert use(found) == use(expected)


def test_a_function_made_inside_and_kept(check: Any) -> None:
    class Box:
        f: Any = None

    def work(box: Any, x: Any) -> Any:
        y = x * 2
        box.f = lambda z: y + z
        box.g = box.f
        return box.f(x)

    for i in range(6):
        accelerated = accel.accelerate(work, name="kept")
        mine, theirs = Box(), Box()
        assert np.array_equal(work(mine, some(i)), accelerated(theirs, some(i)))
        found = theirs.f(np.ones(4))
        assert type(found) is np.ndarray
        assert np.array_equal(mine.f(np.ones(4)), found)


class Fault(Exception):
    def __init__(self, text: str, value: Any) -> None:
        super().__init__(text, value)
        self.value = value


@pytest.mark.parametrize("touch", [False, True])
def test_exceptions_carry_plain_values(touch: bool, capsys: Any) -> None:
    def work(x: Any) -> Any:
        if touch:
            print("touched")
        raise Fault("no", [x * 2, x.sum()])

    accelerated = accel.accelerate(work, name="raising")
    for i in range(4):
        with pytest.raises(Fault, match="no") as caught:
            accelerated(some(i))
        assert_plain(caught.value)
        assert np.array_equal(caught.value.value[0], some(i) * 2)
    assert len(capsys.readouterr().out.splitlines()) == (4 if touch else 0)


def test_opaque_calls_get_plain_values(check: Any) -> None:
    def work(x: Any) -> Any:
        y = x * 2
        seen = list(itertools.chain([y], [x]))
        return seen[0] + np.vectorize(lambda v: v + 1)(y)

    check(work, some, replays=0)


def test_callbacks_of_opaque_functions(check: Any) -> None:
    from scipy.optimize import brentq

    def work(x: Any) -> Any:
        return x * brentq(lambda t: t - float(x[0]), -10, 10)

    check(work, some, reason="call.opaque")


def test_unknown_numpy_functions(check: Any, monkeypatch: Any) -> None:
    load()
    monkeypatch.delitem(RULES, np.sinc)

    def work(x: Any) -> Any:
        return np.sinc(x) + 1

    check(work, some, reason="rule.missing")


def test_a_shuffle_after_which_everything_is_plain(check: Any) -> None:
    def work(x: Any) -> Any:
        z = [x, x * 2]
        z[1].sort(kind="stable", axis=0)
        np.random.Generator(np.random.PCG64(3)).shuffle(x)
        return z, type(x) is np.ndarray

    check(work, lambda i: some(i, 4, 2), reason="effect.random")


def test_setting_module_attributes(check: Any) -> None:
    def work(x: Any) -> Any:
        sys.accel_test = x * 2  # type: ignore[attr-defined]
        return x

    check(work, some, reason="effect.global")
    assert_plain(sys.accel_test)  # type: ignore[attr-defined]
    del sys.accel_test  # type: ignore[attr-defined]


def test_class_attributes_are_written(check: Any) -> None:
    class Counter:
        n = 0

    def work(x: Any) -> Any:
        Counter.n += 1
        return x * Counter.n

    accelerated = accel.accelerate(work, name="class")
    for i in range(1, 6):
        assert np.array_equal(accelerated(np.ones(2)), np.ones(2) * i)


def test_the_effect_that_a_text_is_for_is_named(check: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def work(x: Any) -> Any:
        print(f"{f'sum {x.sum():.3f}':>12}")
        return x * 2

    def named(x: Any) -> Any:
        return x * 2, f"{x.sum():.3f}"

    checked = check(work, some, reason="effect.print")
    assert checked.refusals == ["effect.print"]
    assert len(capsys.readouterr().out.splitlines()) == 18
    assert check(named, some, reason="value.forced").refusals == ["value.forced"]


def test_effects_of_numpys_own_functions_are_named(check: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "x.npy")

    def saved(x: Any) -> Any:
        np.save(path, x)
        return x * 2

    def dumped(x: Any) -> Any:
        x.tofile(path)
        return x * 2

    def loud(x: Any) -> Any:
        np.seterr(divide=np.geterr()["divide"])
        return x * 2

    assert check(saved, some, reason="effect.file").refusals == ["effect.file"]
    assert check(dumped, some, reason="effect.file").refusals == ["effect.file"]
    check(loud, some, reason="rule.missing")


def test_a_warning_of_the_programs_is_an_effect_after_the_run(check: Any) -> None:
    def work(x: Any) -> Any:
        warnings.warn("unstable", RuntimeWarning, stacklevel=1)
        return x * 2

    assert not check(work, some).refusals


def test_iterators_from_outside_are_used_up_once(check: Any) -> None:
    def work(s: Any) -> Any:
        return s.x * sum(s.values), list(s.values), 2 in s.others

    def make(i: int) -> Any:
        return SimpleNamespace(x=some(i), values=iter([i, 2]), others=iter([1, i, 2, 3]))

    check(work, make, reason="call.opaque")


def test_identity_with_what_a_call_gives(check: Any) -> None:
    here = threading.current_thread()

    def work(x: Any) -> Any:
        return x * 2 if here is threading.current_thread() else x * 3

    def swapped(x: Any) -> Any:
        return x * 2 if threading.current_thread() is here else x * 3

    check(work, some, reason="code.unsupported")
    check(swapped, some, reason="code.unsupported")


def test_warnings_in_the_program(check: Any) -> None:
    def work(x: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.log(x)

    check(work, some)


def test_errstate(check: Any) -> None:
    def quiet(x: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return 1.0 / x + np.sqrt(x)

    def loud(x: Any) -> Any:
        with np.errstate(divide="raise"):
            return 1.0 / x

    def make(i: int) -> Any:
        x = some(i)
        x[0] = 0.0 if i >= 6 else 1.0
        return x

    check(quiet, make)
    check(loud, make, reason="fp.errstate")


def test_errstate_around_the_call() -> None:
    def work(x: Any) -> Any:
        return 1.0 / x

    accelerated = accel.accelerate(work, name="errstate")
    for _ in range(6):
        accelerated(np.ones(2))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        accelerated(np.zeros(2))


def test_recording_ends_at_max_nodes(check: Any) -> None:
    def work(x: Any) -> Any:
        for _ in range(60):
            x = x * 0.9 + 1
        return x

    def again(x: Any) -> Any:
        for _ in range(60):
            y = x * 0.9
        return y

    for each in (work, again):
        with accel.platform.config.override(max_nodes=40):
            check(each, some, reason="limit.nodes")


def test_nothing_of_a_result_is_recorded(check: Any) -> None:
    def work(x: Any, n: int) -> Any:
        parts = [x * 2, (x, {"k": x.sum()})]
        return {"a": parts, "b": float(x[0]), "c": n, "d": [n, n + 1], "t": (n, x.dtype, x.shape)}

    accelerated = accel.accelerate(work, name="plain")
    for i in range(7):
        assert_plain(accelerated(some(i), i))


def test_what_a_statement_had_computed_before_the_tape_broke(check: Any) -> None:
    """Recorded values that are on Python's stack when the tape breaks are stored in objects that are plain again."""

    def tick() -> float:
        return time.perf_counter() * 0

    def touched(box: Any, x: Any) -> Any:
        box.u, box.v = x * 2, tick()
        box.items[0] = (x * 3, [x * 4, tick()], {"k": x + tick()})
        BOX["kept"] = (x * 5, tick())
        return {"r": (x * 6, tick())}

    def untouched(box: Any, x: Any) -> Any:
        box.u, box.v = x * 2, x[::2][x[::2] > 0]
        BOX["kept"] = (x * 5, np.sinc(x[x > 0]).tolist())
        box.w = (x * 3, x.tolist())
        return box.u

    for work, reason in ((touched, "effect.clock"), (untouched, None)):

        def worlds(work: Any = work) -> Any:
            return lambda i: (SimpleNamespace(items=[1]), some(i))

        check(work, worlds=worlds, reason=reason, replays=0)
        assert_plain(BOX)


BOX: dict[str, Any] = {"kept": None}


def test_a_recording_that_no_loop_shortens_ends_early(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations of ever other shapes cannot be compiled: recording all of them would be for nothing."""
    monkeypatch.setattr("accel.record.state.writer.LOOK_AT", 64)
    monkeypatch.setattr("accel.compiler.lower.passes.arrange.MAX_OPERATIONS", 40)

    def work(x: Any) -> Any:
        total = 0.0
        for n in range(1, 60):
            total = total + np.sin(x[:n]).sum()
        return total

    found = check(work, lambda i: (np.arange(60.0) + i,), reason="limit.nodes")
    (refusal,) = found.ledger.refusals
    assert "64 operations, too few of them in equal iterations" in refusal.detail
