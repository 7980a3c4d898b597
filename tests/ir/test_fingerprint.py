"""Fingerprints: equal programs have equal ones in every process, and different programs different ones."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import math
import operator
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage
import scipy.special

import accel
from accel import rules
from accel.compiler.lower import Known, lower
from accel.ir.fingerprint import Describer, Indescribable, fingerprint
from accel.ir.views import Index
from accel.record import Completed, record
from accel.rules.rule import RULES

ROOT = Path(accel.__file__).parents[1]


def of(function: Any, *args: Any, known: tuple[int, ...] = ()) -> str | None:
    """The fingerprint of the program of one call; `known` are the positions of arguments taken for constant."""
    recorded = record(function, args, {}, max_nodes=1000)
    assert isinstance(recorded, Completed), recorded
    assert recorded.refusal is None, recorded.refusal
    slots = {recorded.trace.inputs.find(("arg", place)): args[place] for place in known}
    arrays = {slot: value for slot, value in slots.items() if isinstance(value, np.ndarray)}
    scalars = {slot: value for slot, value in slots.items() if slot not in arrays}
    return lower(recorded.trace, Known(scalars, arrays)).fingerprint


X = np.arange(12.0).reshape(3, 4) + 1.0


def double(x):
    return 2.0 * np.sin(x)


def with_a_count_assumed(x):
    count = int(np.sign(x).max())
    y = x * 2.0
    for _ in range(count):
        y = -y
    return y


def with_a_count_returned(x):
    count = int(np.sign(x).max())
    y = x * 2.0
    y = -y
    return y, count


VARIATIONS = [
    lambda x: 2.0 * np.sin(x),
    lambda x: 3.0 * np.sin(x),
    lambda x: 2.0 * np.cos(x),
    lambda x: 2.0 + np.sin(x),
    lambda x: 2.0 * np.sin(x)[1:],
    lambda x: 2.0 * np.sin(x)[:2],
    lambda x: 2.0 * np.sin(x) + 0.0,
    lambda x: 2.0 * np.sin(x) + -0.0,
    lambda x: 2.0 * np.sin(x) + np.float64(1.0),
    lambda x: 2.0 * np.sin(x) + 1.0,
    lambda x: np.roll(x, 1, axis=0),
    lambda x: np.roll(x, 1, axis=1),
    lambda x: x + np.array([1.0, 2.0, 3.0, 4.0]),
    lambda x: x + np.array([1.0, 2.0, 3.0, 5.0]),
    lambda x: x.astype(np.float32),
    lambda x: (x + x, x * x),
    lambda x: (x * x, x + x),
    lambda x: np.max(x),
    lambda x: np.min(x),
    lambda x: np.sum(x, axis=0),
    lambda x: np.sum(x, axis=1),
    with_a_count_assumed,
    with_a_count_returned,
]


def test_the_same_program_has_the_same_fingerprint() -> None:
    first = of(double, X)
    assert first is not None
    assert of(double, X * 3.0) == first
    assert of(VARIATIONS[0], X) == first


def test_different_programs_have_different_fingerprints() -> None:
    found = [of(function, X) for function in VARIATIONS]
    assert None not in found
    assert len(set(found)) == len(VARIATIONS)


def test_shapes_and_dtypes_are_part_of_it() -> None:
    found = {of(double, array) for array in (X, X[:2], X.T, X.astype("f4"))}
    assert len(found) == 4


def test_a_constant_by_value_is_part_of_it_and_one_by_place_is_not() -> None:
    def scaled(x, factor, field):
        return x * factor + field

    def program(factor: float, field: Any) -> str | None:
        return of(scaled, X, factor, field, known=(1, 2))

    assert program(2.0, X + 1.0) == program(2.0, X + 2.0)
    assert program(2.0, X + 1.0) != program(3.0, X + 1.0)


OTHER_PROCESS = """
import numpy as np
from tests.ir.test_fingerprint import X, double, of
print(of(double, X))
"""


def test_another_process_agrees() -> None:
    environment = {"PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS], capture_output=True, text=True, cwd=ROOT, env=environment, check=True
    )
    assert done.stdout.strip() == of(double, X)


def test_every_rules_lowering_has_a_description_of_its_own() -> None:
    """Else programs that hold it would be compiled at every start, or, worse, one taken for another."""
    rules.load(everything=True)
    describe = Describer(lambda node: None)
    seen: dict[str, Any] = {}
    for rule in RULES.values():
        for way in filter(None, (rule.lower, rule.recorded.masked, rule.recorded.holds)):
            assert seen.setdefault(repr((rule.name, describe(way))), way) is way, rule.name
    assert len(seen) > 300


class Own:
    """A class of the user's."""


@pytest.mark.parametrize("value", [Own(), object(), lambda x: x, double, functools.partial(double), {1: Own()}])
def test_what_is_not_known_elsewhere_is_indescribable(value: Any) -> None:
    with pytest.raises(Indescribable):
        Describer(lambda node: None)(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ("1", 1),
        ((1, 2), [1, 2]),
        (np.float64(1.0), 1.0),
        (np.float32(1.0), np.float64(1.0)),
        (slice(1, 2), (1, 2, None)),
        (np.sin, np.cos),
        (np.dtype("f4"), np.dtype("f8")),
        (np.dtype("f8"), np.float64),
        (np.zeros(2), np.zeros((2, 1))),
        (np.array([0.0]), np.array([-0.0])),
        (Index((slice(1),)), Index((slice(2),))),
        (None, Ellipsis),
    ],
)
def test_values_that_compute_differently_are_described_differently(one: Any, other: Any) -> None:
    describe = Describer(lambda node: None)
    assert describe(one) == describe(one)
    assert describe(one) != describe(other)


@pytest.mark.parametrize(
    "value",
    [
        operator.mul,
        functools.reduce,
        functools.partial(functools.reduce, operator.and_),
        math.hypot,
        itertools.chain,
        struct.pack,
        max,
        dict.fromkeys,
        "text".join,
        np.float32,
        np.add,
        np.add.reduce,
        np.dot,
        np.linalg.norm,
        np.strings.str_len,
        scipy.special.expit,
        scipy.ndimage.gaussian_filter,
    ],
)
def test_what_python_numpy_and_scipy_are_written_in_does_not_matter(value: Any) -> None:
    """`operator.mul` says that it comes from `_operator`, `functools.reduce` from `_functools`, and `expit` nothing."""
    describe = Describer(lambda node: None)
    assert describe(value) == describe(value)
    assert repr(value) not in repr(describe(value)), "an address is of one process only"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.add.reduce, np.multiply.reduce),
        (np.cbrt, scipy.special.cbrt),
        (dict.fromkeys, collections.OrderedDict.fromkeys),
        ("a".join, "b".join),
    ],
)
def test_what_shares_a_name_is_told_apart(one: Any, other: Any) -> None:
    describe = Describer(lambda node: None)
    assert describe(one) != describe(other)


@pytest.mark.parametrize("name", ["calendar", "numpy"])
def test_a_class_that_is_not_where_it_says_is_indescribable(name: str) -> None:
    impostor = type("Calendar", (), {"__module__": name})
    with pytest.raises(Indescribable):
        Describer(lambda node: None)(impostor)


SHADOWED = """
import colorsys
from accel.ir.fingerprint import Indescribable, Describer
for value in (colorsys.Own, colorsys.own):
    try:
        print(Describer(lambda node: None)(value))
    except Indescribable as error:
        print(error)
"""


def test_a_users_module_named_like_one_of_pythons_is_not_taken_for_it(tmp_path: Path) -> None:
    (tmp_path / "colorsys.py").write_text("class Own: pass\ndef own(): pass\n")
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", SHADOWED], capture_output=True, text=True, cwd=tmp_path, env=environment, check=True
    )
    assert done.stdout.splitlines() == ["colorsys.Own", "colorsys.own"]


def test_numbers_from_arrays_have_a_fingerprint() -> None:
    """Their programs check that integers do not wrap, by the functions of `operator`."""

    def scaled(x):
        return x * (int(np.sum(x)) * 2 + 1) ** 2

    assert of(scaled, X) is not None


def test_what_has_no_description_is_named() -> None:
    def told(value: Any) -> str:
        with pytest.raises(Indescribable) as caught:
            Describer(lambda node: None)(value)
        return str(caught.value)

    assert told(Own()).startswith("an object of ") and told(Own()).endswith("test_fingerprint.Own")
    assert told(Own).endswith("test_fingerprint.Own")
    assert told(double).endswith("test_fingerprint.double")
    assert told(np.array([Own()], dtype=object)) == "an array of Python objects"


def test_a_program_that_holds_it_says_so() -> None:
    recorded = record(double, (X,), {}, max_nodes=1000)
    assert isinstance(recorded, Completed)
    (node,) = [node for node in recorded.trace.tape.nodes if node.rule.name == "numpy.sin"]
    node.rule = dataclasses.replace(node.rule, lower=double)
    program = lower(recorded.trace, Known())
    assert program.fingerprint is None
    assert program.indescribable.endswith("test_fingerprint.double")


def test_nothing_is_a_program_too() -> None:
    assert fingerprint([], [], lambda node: None)


def test_a_librarys_function_may_take_nothing_given_for_a_value() -> None:
    """SciPy marks by an object of its own that an argument was not given (that of `linalg.qr`, from 1.18 on)."""
    given = tuple(scipy.linalg.qr.__defaults__ or ())
    try:
        scipy.linalg.qr.__defaults__ = (*given[:1], object(), *given[2:])
        assert Describer(hash)(scipy.linalg.qr)[0] == (scipy.linalg.qr.__module__, "qr")
    finally:
        scipy.linalg.qr.__defaults__ = given or None
