"""Written views: what a call writes to of an array is all that its program gives, and all that is stored."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from numpy.typing import NDArray

import accel
from accel.compiler.lower import written
from accel.dispatch.comparing.policy import Comparisons
from accel.dispatch.replay.commit import commit

pytestmark = pytest.mark.usefixtures("foreground")

CALLS = 8


@pytest.fixture(autouse=True)
def _views_of_small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "LEAST_SPARED", 1)


def played(function: Any, *shape: int) -> Any:
    """The function accelerated, after some calls of which each left the same as a plain one."""
    fast = accel.accelerate(function)
    plain, quick = (np.random.default_rng(1).random(shape) for _ in range(2))
    for number in range(CALLS):
        x = np.linspace(0.0, 1.0 + number, shape[-1])
        np.testing.assert_equal(fast(quick, x), function(plain, x))
        np.testing.assert_allclose(quick, plain, rtol=1e-12)
    return fast


def keys_of(fast: Any) -> list[list[Any]]:
    """The keys of the views that its programs give, array by array."""
    programs = [path.program.variant.executable.program for path in fast._self_target.paths]
    return [[view.key for view in views] for program in programs for views in program.written.values()]


def one_field(fields: NDArray[Any], x: NDArray[Any]) -> None:
    fields[2] += fields[0] * x


def fields_of_fields(fields: NDArray[Any], x: NDArray[Any]) -> None:
    field = fields[1]
    field[1:] = field[:-1] * 0.5
    field *= x
    fields[1, 0] = x


def several(fields: NDArray[Any], x: NDArray[Any]) -> None:
    first, last = fields[0], fields[-1]
    np.multiply(first, x, out=last)
    np.add(last, 1.0, out=first)


def across(fields: NDArray[Any], x: NDArray[Any]) -> None:
    fields[0, 1:3] = x
    fields[0, 2:4] = fields[0, 1:3] + 1.0


def one_number(fields: NDArray[Any], x: NDArray[Any]) -> None:
    fields[1, 2, 3] = x.mean()


def whole(fields: NDArray[Any], x: NDArray[Any]) -> None:
    fields[0] = x
    fields *= 2.0


def with_steps(fields: NDArray[Any], x: NDArray[Any]) -> None:
    fields[::2] = x


def one_after_the_other(fields: NDArray[Any], x: NDArray[Any]) -> None:
    for field in fields[1:3]:
        for row in field:
            row += x


@pytest.mark.parametrize(
    ("function", "keys"),
    [
        (one_field, [[(2,)]]),
        (fields_of_fields, [[(1,)]]),
        (several, [[(0,), (-1,)]]),
        (across, [[(0, slice(2, 4)), (0, slice(1, 3))]]),
        (one_number, [[(1, 2, 3)]]),
        (whole, []),
        (with_steps, []),
    ],
)
def test_what_is_written_to_is_all_that_a_program_gives(function: Any, keys: list[Any]) -> None:
    assert sorted(map(str, *keys_of(played(function, 5, 4, 6)) or [[]])) == sorted(map(str, *keys or [[]]))


def test_views_of_large_arrays_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "LEAST_SPARED", 8 * 4 * 6 * 4 + 1)
    assert keys_of(played(one_field, 5, 4, 6)) == []
    assert keys_of(played(one_field, 6, 4, 6)) == [[(2,)]]


def test_many_views_are_stored_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "MOST_VIEWS", 1)
    assert keys_of(played(several, 5, 4, 6)) == []
    played(one_after_the_other, 5, 4, 6)


def test_nothing_else_of_the_array_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another thread writes to beside it stands."""
    monkeypatch.setattr(Comparisons, "is_due", lambda self, path, mode: False)
    fast = played(one_field, 5, 4, 6)
    (path,) = fast._self_target.paths
    fields, x = np.ones((5, 4, 6)), np.ones(6)
    values = path.matcher.match((fields, x), {})
    staged = path.program.variant.run(values)
    fields[1] = 7.0
    commit(staged)
    assert (fields[[0, 3, 4]] == 1.0).all() and (fields[1] == 7.0).all() and (fields[2] == 2.0).all()


class Log:
    """A history, kept as programs do that know its length."""

    def __init__(self, length: int) -> None:
        self.fields = np.zeros((length, 4, 6))
        self.means = np.zeros(length)
        self.n = 0

    def note(self, field: NDArray[Any]) -> None:
        self.fields[self.n] = field
        self.fields[-self.n - 1, 1:3, 0] = self.n
        self.means[self.n] = field.mean()
        self.n += 1


def test_a_view_that_moves(books: Any) -> None:
    fast = accel.accelerate(Log.note, name="log")
    plain, quick = Log(30), Log(30)
    for number in range(30):
        field = np.random.default_rng(number).random((4, 6))
        plain.note(field)
        fast(quick, field)
        np.testing.assert_allclose(quick.fields, plain.fields, rtol=1e-12)
        np.testing.assert_allclose(quick.means, plain.means, rtol=1e-12)
    assert books.open_ledger("log").compiled_calls > 20
    (path,) = fast._self_target.paths
    assert sorted(map(len, path.program.variant.executable.program.written.values())) == [1, 2]
    for log, note in ((plain, Log.note), (quick, fast)):
        before = log.fields.copy()
        with pytest.raises(IndexError):
            note(log, field)
        assert np.array_equal(log.fields, before) and log.n == 30


def test_a_view_that_moves_in_one_of_several_ways(books: Any) -> None:
    def note(log: Log, field: NDArray[Any]) -> None:
        if field.sum() > 12.0:
            log.fields[log.n] = field
        else:
            log.fields[0] = -field
        log.n += 1

    fast = accel.accelerate(note, name="ways")
    plain, quick = Log(40), Log(40)
    for number in range(40):
        field = np.random.default_rng(number).random((4, 6))
        note(plain, field)
        fast(quick, field)
        np.testing.assert_allclose(quick.fields, plain.fields, rtol=1e-12)
    assert books.open_ledger("ways").compiled_calls > 20


WRITES = st.tuples(
    st.integers(-5, 4),
    st.one_of(st.integers(-4, 3), st.slices(4).filter(lambda s: s.step in (None, 1))),
    st.sampled_from(["=", "+=", "out"]),
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WRITES, min_size=1, max_size=5))
def test_any_writes_leave_what_numpy_leaves(writes: list[Any]) -> None:
    def function(fields: NDArray[Any], x: NDArray[Any]) -> None:
        for number, row, way in writes:
            view = fields[number]
            if way == "=":
                view[row] = x * 0.5
            elif way == "+=":
                view[row] += x
            else:
                np.multiply(view, x, out=fields[number - 1] if number > -5 else view)

    played(function, 5, 4, 6)
