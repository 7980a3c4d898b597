"""Warnings of NumPy's while a call is recorded: they name the program's line, and its filters apply."""

from __future__ import annotations

import linecache
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import accel
from accel.platform import warned
from accel.platform.ledger import open_ledger

SOURCE = """
import numpy as np


def ratio(x, y):
    return x / y


def step(x, y):
    a = ratio(x, y)
    b = np.log(x) + np.sqrt(
        x - 1.0
    )
    mean = x[x > 1e9].mean()
    np.divide(x, y, out=a)
    a /= y
    c = np.float64(x.sum()) / y[0]
    d = abs(np.array([1e300, 1e300, 1e300]) * 1e10 * x)
    d **= 3
    x[:] = np.arcsin(x)
    return a + b + c, mean, d, (x * 1e308 * 1e10).cumsum(), np.hypot(x, 2.0) % y


def refused(x, y):
    return (x / y).astype(np.int64)


def overflows(x, y):
    return x * (np.int8(100) + np.int8(100)) + y


"""


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the program's."""
    made = ModuleType("hotspring")
    made.__file__ = "/hotspring.py"
    exec(compile(SOURCE, made.__file__, "exec"), vars(made))
    monkeypatch.setitem(sys.modules, "hotspring", made)
    linecache.cache[made.__file__] = len(SOURCE), None, SOURCE.splitlines(True), made.__file__
    return made


def shown(call: Callable[[], object], choose: Callable[[], object], program: ModuleType) -> list[Any]:
    """What two calls warn of: message, kind, file and line; None after each call."""
    vars(program).pop("__warningregistry__", None)
    found: list[Any] = []
    with warnings.catch_warnings():
        warnings.resetwarnings()
        choose()
        warnings.showwarning = lambda message, kind, file, line, *_: found.append((str(message), kind, file, line))
        for _ in range(2):
            call()
            found.append(None)
    return found


def arguments() -> tuple[Any, Any]:
    return np.array([1.0, -2.0, 0.0]), np.array([0.0, 1.0, 2.0])


def nothing_of_the_program() -> None:
    warnings.simplefilter("always")
    warnings.filterwarnings("ignore", module="hotspring")


def one_line() -> None:
    warnings.filterwarnings("ignore", module="hotspring", lineno=6)


CHOICES = {
    "always": lambda: warnings.simplefilter("always"),
    "default": lambda: warnings.simplefilter("default"),
    "once": lambda: warnings.simplefilter("once"),
    "module": nothing_of_the_program,
    "line": one_line,
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_recorded_call_warns_as_numpys_does(program: Any, name: str) -> None:
    expected = shown(lambda: program.step(*arguments()), CHOICES[name], program)
    fast = accel.accelerate(program.step, name=f"warns {name}")
    found = shown(lambda: fast(*arguments()), CHOICES[name], program)
    assert found == expected
    assert len(fast._self_target.paths) == 1, [each.message("") for each in open_ledger(f"warns {name}").refusals]


def test_compiling_and_replays_warn_of_nothing_else(program: Any) -> None:
    expected = shown(lambda: program.step(*arguments()), CHOICES["always"], program)
    fast = accel.accelerate(program.step, name="warns nowhere")
    for _ in range(4):
        assert set(shown(lambda: fast(*arguments()), CHOICES["always"], program)) <= set(expected)
    assert open_ledger("warns nowhere").compiled_calls > 4


def test_a_recording_that_is_undone_warns_once_per_line(program: Any) -> None:
    expected = shown(lambda: program.refused(*arguments()), CHOICES["default"], program)
    fast = accel.accelerate(program.refused, name="warns refused")
    assert shown(lambda: fast(*arguments()), CHOICES["default"], program) == expected
    assert not len(fast._self_target.paths)


def test_errors_have_no_frame_of_accels(program: Any) -> None:
    def wrong(x: Any) -> Any:
        return np.linalg.inv(x * 2.0)

    fast = accel.accelerate(wrong, name="wrong")
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError) as caught:
            fast(np.zeros((3, 3)))
        assert [entry.name for entry in caught.traceback][:3] == [
            test_errors_have_no_frame_of_accels.__name__,
            "wrong",
            "inv",
        ]


def test_a_level_counts_the_frames_of_the_program_alone() -> None:
    def warns(x: Any, level: int) -> Any:
        warnings.warn("it does", stacklevel=level)
        return x + 1.0

    fast = accel.accelerate(warns, name="warns its caller")
    for level in (-1, 0, 1, 2, 3):
        found = []
        for function in (warns, fast, fast, fast, fast):
            with warnings.catch_warnings(record=True) as given:
                warnings.simplefilter("always")
                # one line, so that all frames of the test stand at one line
                function(np.ones(3), level)
            found.append([(each.filename, each.lineno) for each in given])
        assert found == [found[0]] * 5


def test_a_filter_meets_the_module_of_the_caller() -> None:
    def warns(x: Any) -> Any:
        warnings.warn("it does", stacklevel=2)
        return x + 1.0

    fast = accel.accelerate(warns, name="warns a filter")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", module=__name__.replace(".", r"\."))
        for _ in range(3):
            with pytest.raises(UserWarning) as raised:
                fast(np.ones(3))
            assert all(str(warned.__file__) != str(each.path) for each in raised.traceback)


def test_the_functions_arguments_are_pythons() -> None:
    for arguments, named in (
        (("text", None, 1, None), {}),
        ((), {"message": "text", "category": UserWarning, "source": None}),
    ):
        with pytest.warns(UserWarning, match="text"):
            warned.warn(*arguments, **named)
    with pytest.raises(TypeError, match="category"):
        warned.warn("text", int)


@pytest.mark.parametrize("name", ["always", "default"])
def test_plain_numbers_warn_in_the_recorded_code_itself(program: Any, name: str) -> None:
    """Python keeps what a module has warned of among its globals: nothing that the code has stored there."""
    expected = shown(lambda: program.overflows(*arguments()), CHOICES[name], program)
    fast = accel.accelerate(program.overflows, name=f"overflows {name}")
    assert shown(lambda: fast(*arguments()), CHOICES[name], program) == expected
    assert not open_ledger(f"overflows {name}").refusals
