"""The recorder's own structure: what code it follows, and that no import hides in a function."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import accel.record
from accel.ir import bits
from accel.record.objects import scan
from accel.record.state.writer import frozen

FOLDER = Path(accel.record.__file__).parent


def test_no_import_hides_in_a_function() -> None:
    for path in FOLDER.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef):
                for node in ast.walk(function):
                    assert not (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("accel")), path


COUNTER = 0


def global_writer() -> None:
    global COUNTER
    COUNTER += 1


def generator_writer() -> Any:
    def count() -> Any:
        global COUNTER
        COUNTER += 1
        yield COUNTER

    return sum(count())


def name_writer() -> None:
    global __name__
    __name__ = "other"


def class_maker() -> Any:
    class Inner:
        pass

    return Inner


def generator() -> Any:
    yield 1


def pattern(x: Any) -> Any:
    match x:
        case list():
            return 1
    return 2


def outer() -> Any:
    n = 0

    def inner() -> None:
        nonlocal n
        n += 1

    return inner


def harmless(x: Any) -> Any:
    total = sum(v for v in x)

    def inner(y: Any) -> Any:
        return [y + total for _ in range(2)]

    return inner(total)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (global_writer, None),
        (generator_writer, "effect.global"),
        (name_writer, "effect.global"),
        (class_maker, "code.unsupported"),
        (generator, "call.generator"),
        (pattern, "code.unsupported"),
        (outer(), None),
        (outer, None),
        (harmless, None),
        (lambda: globals(), "code.unsupported"),
        (lambda: eval("1"), "code.unsupported"),
        (lambda x, y: type(x) is type(y), None),
        (lambda x, y: x[0] is y.z, None),
        (lambda x, y: x(y) is None, None),
        (lambda x, y: x(1) is y, "code.unsupported"),
        (lambda x, y: x(1) or (x is y), None),
        (lambda x, y: x is y(1), "code.unsupported"),
        (lambda x, y: x is not type(y(1)), "code.unsupported"),
    ],
)
def test_scan(function: Any, reason: str | None) -> None:
    found = scan.problem(function.__code__)
    assert (found and found[0]) == reason
    if found is not None:
        first = function.__code__.co_firstlineno
        assert first <= found[2] <= first + 3


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x is None, False),
        (lambda x: x is not None and x is not True, False),
        (lambda x, y: x is y, True),
        (lambda x, y: [v is not y for v in x], True),
    ],
)
def test_comparisons_of_identity_are_found(function: Any, expected: bool) -> None:
    assert scan.compares_identity(function.__code__) is expected


def test_scalars_are_the_same_by_type_and_bits() -> None:
    nan = float("nan")
    assert bits.same_scalar(nan, nan)
    assert bits.same_scalar(1.5, 1.5)
    for left, right in ((0.0, -0.0), (1, 1.0), (1, True), (nan, 1.0), (0j, -0j)):
        assert not bits.same_scalar(left, right)


def test_keys_of_operations_tell_values_apart() -> None:
    keys = [frozen(value) for value in (1, 1.0, True, 0.0, -0.0, (1,), [1], slice(1), {"a": 1})]
    assert len(set(keys)) == len(keys)
