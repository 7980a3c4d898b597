"""Lines: what is done before each line of a module, and when it ends."""

from __future__ import annotations

import sys

import pytest

from accel.entry.hook.lines import before_each_line, last_line_that_binds

MODULE = """
import math
def inner():
    return 1
class Outer:
    def method(self): return inner()
value = Outer().method() if math.pi > 3 else inner()
for _ in range(3):
    value = inner()
"""


def lines_before(names: set[str], enough: int = 99) -> list[int]:
    """Run the module. Returns the lines before which something was done, of at most `enough`."""
    code, seen, namespace = compile(MODULE, "module", "exec"), [], {}

    def is_over() -> bool:
        seen.append(sys._getframe(1).f_back.f_lineno)  # type: ignore[union-attr]
        return len(seen) == enough

    before = sys.gettrace()
    sys.settrace(None)
    try:
        before_each_line(code, names, is_over)
        exec(code, namespace)
        assert sys.gettrace() is None
    finally:
        sys.settrace(before)
    assert namespace["value"] == 1
    return seen


@pytest.mark.parametrize(
    ("names", "enough", "seen"),
    [({"inner"}, 99, [2, 3, 5]), ({"inner", "Outer"}, 99, [2, 3, 5, 7]), ({"Outer"}, 2, [2, 3]), ({"absent"}, 99, [])],
)
def test_each_line_until_the_names_are_bound(names: set[str], enough: int, seen: list[int]) -> None:
    assert lines_before(names, enough) == seen


def test_the_last_line_that_binds_a_name() -> None:
    code = compile(MODULE, "module", "exec")
    assert [last_line_that_binds(code, {name}) for name in ("inner", "Outer", "value", "math", "method")] == [
        *(3, 5, 9, 2),
        None,
    ]
