"""Facts: what accel knows of a function is in its row, nowhere else; and what the rows say is so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel
from accel.ir.tape import Node
from accel.record import record
from accel.rules import core, gathers, load, scalars, selections
from accel.rules.columns import Rounding, fact
from accel.rules.opcodes import OPCODES
from accel.rules.rule import RULES, Rule, make_rule, own_rule
from accel.rules.tables import ufuncs

load(everything=True)

PACKAGE = Path(accel.__file__).parent
ENGINE = [
    path
    for folder, pattern in (
        ("compiler/lower", "**/*.py"),
        ("policy", "**/*.py"),
        ("dispatch", "**/*.py"),
        ("backend", "**/*.py"),
        ("rules", "*.py"),
    )
    for path in sorted((PACKAGE / folder).glob(pattern))
    if path != PACKAGE / "rules" / "core.py"
]
"""Modules that ask what a function is, but declare none."""


def nodes_of(function: Any, *arguments: Any) -> list[Node]:
    """What a call computes, but for its inputs."""
    trace = record(function, arguments, {}, max_nodes=100).trace
    assert trace is not None
    return [node for node in trace.tape.nodes if not node.is_input]


# -- one place --------------------------------------------------------------------------------------------------------


def _docstrings(tree: ast.AST) -> set[int]:
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def _named(path: Path) -> Iterator[str]:
    """Yield where a module names a function of NumPy's or SciPy's, or asks what a rule's name is."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    told = _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            if node.value.startswith(("numpy.", "scipy.")):
                yield f"line {node.lineno}: {node.value!r}"
        elif isinstance(node, ast.Compare):
            sides = map(ast.unparse, (node.left, *node.comparators))
            yield from (f"line {node.lineno}: {side}" for side in sides if side.endswith("rule.name"))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("rule.name.startswith"):
            yield f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("path", ENGINE, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_pass_knows_a_function_by_its_name(path: Path) -> None:
    assert list(_named(path)) == [], "make it a column of the function's row"


@pytest.mark.parametrize(
    "text",
    [
        'SHIFTING = {"numpy.roll"}',
        'ALL = [f"numpy.{name}" for name in "roll diff".split()]',
        "found = node.rule.name in NAMES",
        'own = node.rule.name.startswith("accel.")',
    ],
)
def test_the_scan_finds_names(text: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(f'"""numpy.roll is told of here."""\n{text}\n')
    assert len(list(_named(tmp_path / "module.py"))) == 1


OF_THE_FUNCTION = {"name", "function", "lower", "recorded", "signature"}
"""Columns that differ between aliases, `recorded.masked` among them."""


@pytest.mark.parametrize(("one", "other"), [(np.max, np.amax), (np.min, np.amin), (np.round, np.around)])
def test_rows_of_aliases_agree(one: Any, other: Any) -> None:
    columns = {each.name for each in fields(Rule)} - OF_THE_FUNCTION
    assert [name for name in columns if getattr(RULES[one], name) != getattr(RULES[other], name)] == []


def test_a_row_says_nothing_that_it_was_not_given() -> None:
    rule = make_rule("accel.test", abs, abs)
    assert rule.numerics.rounding is Rounding.FREE
    assert rule.numerics.jumps is None
    assert not (rule.own or rule.numerics.careful)
    assert not (rule.cost.by_shape or rule.cost.arithmetic)


def test_a_row_cannot_say_what_is_no_column() -> None:
    with pytest.raises(TypeError, match="shift"):
        make_rule("accel.test", abs, abs, shift=True)


def test_the_engines_own_operations_round_nothing() -> None:
    own = [each for module in (core, gathers, selections) for each in vars(module).values() if isinstance(each, Rule)]
    assert all(rule.own for rule in own)
    # what a loop rounds is in its body
    assert {rule for rule in own if rule.numerics.rounding is not Rounding.EXACT} == {core.INPUT, core.LOOP}


_OWN = re.compile(r"""(?:own_rule|_check)\(\s*"(\w+)",""")


def test_every_operation_of_the_engine_is_explained_and_no_other() -> None:
    """`own_rule` takes no other name, so that all whose modules are imported are explained."""
    made = {name for path in PACKAGE.rglob("*.py") for name in _OWN.findall(path.read_text(encoding="utf-8"))}
    derived = {f"exact_{function.__name__}" for function in scalars.UNWRAPPED}
    assert made | derived == set(OPCODES)
    with pytest.raises(AssertionError, match="surprise"):
        own_rule("surprise", abs)


# -- what they say is so ----------------------------------------------------------------------------------------------

_EXACT = [name for name, row in ufuncs.ROWS.items() if row.facts.get("rounding") is Rounding.EXACT]


@pytest.mark.parametrize("name", _EXACT)
def test_what_is_exact_needs_no_more_digits_than_its_operands(name: str) -> None:
    """Of numbers with few digits, in double precision."""
    function = getattr(np, name)
    few = np.random.default_rng(0).normal(size=(function.nin, 500)).astype(np.float32)
    result = function(*few.astype(float)).astype(float)
    np.testing.assert_array_equal(result, result.astype(np.float32))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: np.power(x, 2), Rounding.ROUNDED),
        (lambda x: np.power(x, 2.0), Rounding.ROUNDED),
        (lambda x: np.power(x, 3), Rounding.FREE),
        (lambda x: np.power(x, 0.5), Rounding.FREE),
        (lambda x: np.power(x, x), Rounding.FREE),
    ],
)
def test_only_squares_are_powers_that_round_alike(function: Any, expected: Rounding) -> None:
    (node,) = nodes_of(function, np.ones(3))
    assert fact(node.rule.numerics.rounding, node) is expected


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({}, True),  # beyond the edge there is another value
        ({"mode": "nearest"}, None),
        ({"mode": "nearest", "order": 0}, True),
        ({"mode": "wrap", "order": 1}, True),
    ],
)
def test_interpolation_jumps_where_a_coordinate_decides(about: dict[str, Any], expected: bool | None) -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    x = np.linspace(0.0, 1.0, 12).reshape(3, 4)
    found = nodes_of(lambda x: ndimage.map_coordinates(x, [x, x], **about), x)
    (node,) = [node for node in found if node.rule is RULES[ndimage.map_coordinates]]
    assert fact(node.rule.numerics.jumps, node) is expected
