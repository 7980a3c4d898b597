"""Exceptions and swallowed exceptions, state after them, threads, and re-entrancy."""

from __future__ import annotations

import contextlib
import copy
import gc
import os
import sys
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import fft, linalg, ndimage, signal

import accel
from accel.dispatch.replay import commit
from accel.platform import tracebacks
from accel.record import Raised, record
from accel.record.values import arrays
from accel.rules import load
from accel.rules.rule import RULES
from tests.helpers import some


class Mine(Exception):
    pass


def test_an_exception_between_two_writes(check: Any) -> None:
    def work(state: Any, x: Any, y: Any) -> Any:
        x += 1.0
        state.n = state.n + 1
        state.x = x * 2
        if y[0] > 0:
            raise Mine("stop", 3)
        y -= 1.0
        state.y = y
        return x

    check(work, lambda i: (SimpleNamespace(n=i), some(i), some(i + 9)), calls=24, replays=4)


def test_numpys_exception_between_two_writes(check: Any) -> None:
    def work(x: Any, k: Any) -> Any:
        x += 1.0
        x[k] = 5.0
        x *= 2.0
        return x

    check(work, lambda i: (some(i), np.array([9 if i % 3 == 2 else 1])), calls=20, replays=4)


WRITERS: dict[str, Any] = {
    "a filter's output": lambda a, b, v: ndimage.maximum_filter(a, 3, output=a),
    "a filter's output by position": lambda a, b, v: ndimage.maximum_filter1d(a, 3, -1, a),
    "distances": lambda a, b, v: ndimage.distance_transform_edt(a > 0, distances=b),
    "a matrix": lambda a, b, v: linalg.lu_factor(a.T, overwrite_a=True),
    "both sides": lambda a, b, v: linalg.solve_banded((1, 1), a[:3], v, overwrite_ab=True, overwrite_b=True),
    "a transform": lambda a, b, v: fft.dct(a, overwrite_x=True),
    "a line": lambda a, b, v: signal.detrend(a, overwrite_data=True),
    "a median": lambda a, b, v: np.median(a, overwrite_input=True),
    "a median by position": lambda a, b, v: np.median(a, None, None, True),
    "out of a reduction": lambda a, b, v: np.nansum(a + v, 0, None, v),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_a_function_writes_to_its_arguments_is_put_back_before_the_call_is_repeated(name: str) -> None:
    def raising(a: Any, b: Any, v: Any) -> None:
        WRITERS[name](a, b, v)
        raise Mine(float(v[0]))

    def refused(a: Any, b: Any, v: Any) -> None:
        WRITERS[name](a, b, v)
        np.apply_along_axis(len, 0, a)

    calls = [tuple(some(seed + at, *shape) for at, shape in enumerate([(6, 6), (6, 6), (6,)])) for seed in range(4)]
    for work in (raising, refused):
        accelerated = accel.accelerate(work, name=name)
        for call in calls:
            mine, theirs = copy.deepcopy(call), copy.deepcopy(call)
            with contextlib.suppress(Mine):
                accelerated(*mine)
            with contextlib.suppress(Mine):
                work(*theirs)
            for found, expected in zip(mine, theirs, strict=True):
                np.testing.assert_array_equal(found, expected)


def test_handlers_around_dict_access(check: Any) -> None:
    def work(d: Any, x: Any) -> Any:
        try:
            k = d["k"]
        except KeyError:
            k = 2.0
        return x * k

    check(work, lambda i: ({"k": 3.0 + i} if i % 2 else {}, some(i)), calls=24, replays=4)


def test_handlers_around_attributes(check: Any) -> None:
    def work(s: Any, x: Any) -> Any:
        try:
            return x * s.k
        except AttributeError:
            s.k = 1.0
            return x

    check(work, lambda i: (SimpleNamespace(**({"k": 3.0 + i} if i % 2 else {})), some(i)), calls=24, replays=0)


def test_finally_and_else(check: Any) -> None:
    def work(x: Any) -> Any:
        try:
            y = x * 2
        except ValueError:
            y = x
        else:
            y = y + 1
        finally:
            x += 1
        return y

    check(work, some)


def test_broad_handlers_around_what_has_no_rule(check: Any, monkeypatch: Any) -> None:
    load()
    monkeypatch.delitem(RULES, np.sinc)

    def work(x: Any) -> Any:
        y = x * 1.0
        try:
            y = np.sinc(y) + x
            y = x.byteswap(False) * 0 + y
        except Exception:
            y = x * 100
        return y

    check(work, some, reason="rule.missing")


@pytest.mark.parametrize("gap", ["wrap", "as_template", "record_scalar"])
def test_a_fault_of_the_recorder_changes_no_number(check: Any, monkeypatch: Any, gap: str) -> None:
    """A fault while writing to the tape only breaks it."""

    def fault(*args: Any, **kwargs: Any) -> Any:
        raise TypeError("a fault of the recorder's")

    for module in [module for name, module in sys.modules.items() if name.startswith("accel.record.")]:
        if hasattr(module, gap):
            monkeypatch.setattr(module, gap, fault)

    def work(x: Any, s: float) -> Any:
        try:
            y = (x * 2 + s * 3) / x.sum() + np.sin(x) * round(s)
        except Exception:
            y = x * 0
        x += 1
        return y

    check(work, lambda i: (some(i), 1.0 + i), reason="recorder.gap")


@pytest.mark.parametrize("name", ["__add__", "__getitem__", "__iadd__", "__len__", "__gt__"])
def test_a_fault_inside_an_operator_is_undone(check: Any, monkeypatch: Any, name: str) -> None:
    """A fault that is raised into the program, where its own handler swallows it."""

    def fault(*args: Any) -> Any:
        raise TypeError("a fault of the recorder's")

    monkeypatch.setattr(arrays.RecordedArray, name, fault, raising=False)

    def work(s: Any, x: Any) -> Any:
        x *= 2
        s.k = 5.0
        try:
            y = x + 1
            x += x[0] * len(x)
            if (x > 0).any():
                s.new = y
        except Exception:
            y = x * 0
            s.bad = 1
        return y

    check(work, lambda i: (SimpleNamespace(k=1.0), some(i)), reason="path.exception")


def test_warnings_as_errors(check: Any) -> None:
    import warnings

    def work(x: Any) -> Any:
        return np.log(x)

    accelerated = accel.accelerate(work, name="warned")
    for i in range(7):
        accelerated(abs(some(i)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            accelerated(-abs(some(1)))


def _shape_error(x: Any) -> Any:
    return x + np.ones(len(x) + 1)


def _linalg_error(x: Any) -> Any:
    return np.linalg.solve(np.zeros((3, 3)) * x[0], x[:3])


def _own_error(x: Any) -> Any:
    if x[0] > -1e9:
        raise Mine("stop")
    return x


def _key_error(x: Any) -> Any:
    return x * {"a": 1.0}["b"]


def _chained_error(x: Any) -> Any:
    try:
        return _shape_error(x * 2.0)
    except ValueError as error:
        raise Mine("again") from error


class _Stepper:
    def step(self, x: Any, how: Any) -> Any:
        return how(x)


def _places(error: BaseException | None) -> Any:
    """Where the traceback of an error leads, and those of its cause and context."""
    if error is None:
        return None
    entries = [(each.tb_frame.f_code.co_filename, each.tb_lineno) for each in tracebacks.entries(error.__traceback__)]
    return type(error), entries, _places(error.__cause__), _places(error.__context__)


ERRORS = [_shape_error, _linalg_error, _own_error, _key_error, _chained_error]


@pytest.mark.parametrize("how", ERRORS)
@pytest.mark.usefixtures("foreground")
def test_tracebacks_that_handlers_see_are_the_programs(how: Any) -> None:
    seen: list[Any] = []

    def look(error: Any) -> None:
        seen.append((_places(error), os.getpid()))  # recorded code cannot see this: the call cannot be undone any more

    def work(x: Any) -> Any:
        y = np.sin(x)
        try:
            y = _Stepper().step(y, how)
        except Exception as error:
            look(error)
        return y * 2.0

    work(some(1))
    accelerated = accel.accelerate(work)
    for _ in range(4):
        accelerated(some(1))
    assert len(seen) == 5
    assert all(each == seen[0] for each in seen)


@pytest.mark.parametrize("how", ERRORS)
@pytest.mark.usefixtures("foreground")
def test_tracebacks_that_callers_see_are_the_programs(how: Any) -> None:
    written: list[int] = []

    def work(x: Any, fails: bool) -> Any:
        os.environ.get("HOME")
        y = _Stepper().step(np.sin(x) * 2.0, how if fails else np.cos)
        written.append(len(written))
        return y

    def raised(function: Any, *args: Any) -> Any:
        try:
            function(*args)
        except Exception as error:
            return _places(error)

    expected = raised(work, some(1), True)
    accelerated = accel.accelerate(work)
    for turn in range(6):
        assert raised(accelerated, some(1), True) == expected
        if turn > 1:
            accelerated(some(1), False)
    assert raised(accelerated) == raised(work)  # never reaches the function


def test_the_caller_sees_the_original_traceback() -> None:
    def work(x: Any) -> Any:
        y = x + 1
        raise Mine(y.shape)

    accelerated = accel.accelerate(work, name="trace")
    for i in range(3):
        with pytest.raises(Mine) as caught:
            accelerated(some(i))
        assert any(entry.name == "work" for entry in caught.traceback)
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None


def test_generators_and_context_managers_of_the_program(check: Any) -> None:
    @contextlib.contextmanager
    def inside(x: Any) -> Any:
        yield x * 2

    def rows(x: Any) -> Any:
        for row in x:
            yield row * 2

    def work(x: Any) -> Any:
        with inside(x) as y:
            return y + sum(rows(x))

    check(work, some, reason="call.generator", replays=0)


def test_next_and_stop_iteration(check: Any) -> None:
    def work(x: Any) -> Any:
        it = iter([x, x * 2])
        total = next(it)
        while True:
            try:
                total = total + next(it)
            except StopIteration:
                break
        return total + next((v for v in (x,) if v is None), 1.0)

    check(work, some, replays=0)


def test_threads_call_the_same_target() -> None:
    state = threading.local()

    def work(x: Any, k: float) -> Any:
        y = x * k
        for _ in range(5):
            y = y + np.sin(x)
        return y

    accelerated = accel.accelerate(work, name="threads")
    wrong: list[Any] = []

    def run(seed: int) -> None:
        state.seed = seed
        for i in range(30):
            x, k = some(seed * 100 + i), float(i)
            if not np.allclose(accelerated(x, k), work(x, k), rtol=1e-10):
                wrong.append((seed, i))

    workers = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_a_target_that_calls_itself_through_its_wrapper() -> None:
    def work(x: Any, n: int) -> Any:
        return x if n == 0 else wrapped(x * 0.5 + n, n - 1)

    wrapped = accel.accelerate(work, name="itself")
    for i in range(8):
        expected = some(i)
        for n in (3, 2, 1):
            expected = expected * 0.5 + n
        assert np.allclose(wrapped(some(i), 3), expected)


def test_keyboard_interrupt_while_recording() -> None:
    class Stop:
        def __init__(self) -> None:
            self.on = False

    stop = Stop()

    def work(x: Any, y: Any) -> Any:
        x += 1
        if stop.on:
            raise KeyboardInterrupt
        y += 1
        return x

    accelerated = accel.accelerate(work, name="interrupt")
    x, y = some(1), some(2)
    stop.on = True
    with pytest.raises(KeyboardInterrupt):
        accelerated(x, y)
    assert np.array_equal(x, some(1) + 1)
    assert np.array_equal(y, some(2))


def test_keyboard_interrupt_waits_for_the_commit(monkeypatch: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        x += 1.0
        y += 2.0
        return x

    accelerated = accel.accelerate(work, name="commit")
    for i in range(6):
        accelerated(some(i), some(i))
    original, raised = commit.store, []

    def store(steps: Any, done: Any) -> None:
        if not raised:
            raised.append(True)
            original(steps[:1], done)
            raise KeyboardInterrupt
        original(steps, done)

    monkeypatch.setattr(commit, "store", store)
    x, y = some(8), some(9)
    with pytest.raises(KeyboardInterrupt):
        accelerated(x, y)
    assert raised
    assert np.allclose(x, some(8) + 1)
    assert np.allclose(y, some(9) + 2)


def test_assertions(check: Any) -> None:
    def work(x: Any) -> Any:
        assert x.shape == (4,), "shape"
        small = bool((x < 100).all())
        assert small
        return x * 2

    def make(i: int) -> Any:
        x = some(i)
        x[0] = 1000.0 if i == 7 else 0.0
        return x

    check(work, make, replays=2)


def test_user_exceptions_caught_by_the_program(check: Any) -> None:
    def inner(x: Any) -> Any:
        if x.sum() > 0:
            raise Mine(x.shape)
        return x

    def work(x: Any) -> Any:
        try:
            return inner(x)
        except Mine as error:
            return x * len(error.args[0])

    check(work, some, calls=24, replays=3)


class Carries(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


def test_what_an_exception_carries_is_one_object_to_its_handler(check: Any) -> None:
    def work(s: Any, x: Any) -> Any:
        try:
            raise Carries(x * 2)
        except Carries as error:
            error.value += 1
            s.kept = error.value
            s.kept *= 3
            return error.value is error.args[0], s.kept is error.value, error.value

    check(work, lambda i: (SimpleNamespace(kept=None), some(i)), replays=0)


def test_a_variable_may_hold_an_exception_of_an_earlier_call(check: Any) -> None:
    def work(s: Any, x: Any) -> Any:
        error = s.error
        try:
            open(os.devnull).close()  # the tape ends
        finally:
            x = x * 2
        return x, str(error)

    check(work, lambda i: (SimpleNamespace(error=ValueError("late")), some(i)), replays=0)


def test_wrong_shapes_raise_numpys_message(check: Any) -> None:
    check(lambda x, y: x + y, lambda i: (some(i), some(i, 3 if i % 5 == 4 else 4)), calls=20, replays=6)


def test_an_error_that_passes_does_not_keep_the_programs_objects_alive() -> None:
    """The error leads to the frames that it passed, of the recorder too: none of those may lead back to it."""

    class Field:
        pass

    held = []

    def work(x: Any) -> Any:
        field = Field()
        held.append(weakref.ref(field))
        try:
            os.getpid()  # ends the tape, and as there is a handler, the call cannot be left
        except KeyError:
            pass
        raise ValueError(x)

    gc.collect()
    gc.disable()
    try:
        raised = record(work, (some(0),), {}, max_nodes=100)
        assert isinstance(raised, Raised)
        assert raised.error.__context__ is None
        del raised
        assert [reference() for reference in held] == [None]
    finally:
        gc.enable()
