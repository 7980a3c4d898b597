"""Which results kernels know to be without NaN and infinity. Other tests check that of every program they run."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel.backend import segmented
from accel.compiler.kernels.nested import Choice
from tests.compiler.kernels.merging import all_in_kernels
from tests.compiler.kernels.test_segments import built

pytest.importorskip("llvmlite")

SHAPES = [(1,), (3,), (7,), (300,), (1, 3), (5, 8), (6, 37), (40, 1), (3, 4, 19)]


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    with all_in_kernels(request.param):
        yield request.param


def known(program: Any, *given: Any) -> list[bool]:
    """Of each result of a program that gives a list, whether it is known to be finite."""
    (found, _), finite = program.run(given, [], {})
    return [any(each is other for other in finite) for each in found]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_element_that_is_not_finite_is_found_wherever_it_stands(
    shape: tuple[int, ...], dtype: Any, threads: int
) -> None:
    program = built(lambda x: [x * 2, x > 1, (x + 1).astype("float32")], np.ones(shape, dtype))
    assert known(program, np.ones(shape, dtype)) == [True, False, True], "of booleans, nobody asks"
    for place in {0, np.prod(shape) // 2, np.prod(shape) - 1}:
        for value in (np.nan, -np.nan, np.inf, -np.inf):
            x = np.ones(shape, dtype)
            x.flat[place] = value
            assert known(program, x) == [False] * 3
    assert known(program, np.ones(shape, dtype)) == [True, False, True], "a run leaves nothing behind"


def test_pieces_rows_and_numbers_are_looked_at_where_they_are_stored(threads: int) -> None:
    import jax.numpy as jnp

    def pieces(x: Any) -> list[Any]:
        return [jnp.concatenate([x[:2] * 2, x[3:] - 1]), jnp.roll(x, 1, 1), x[:, :3] / 2, jnp.ones((4, 9)) * x[0, 0]]

    x = np.arange(1.0, 55.0).reshape(6, 9)
    program = built(pieces, x)
    assert known(program, x) == [True] * 4
    for place in [(0, 0), (5, 8), (3, 0), (0, 8)]:
        y = x.copy()
        y[place] = np.inf
        assert not any(known(program, y)), place


def test_what_others_than_loops_write_is_not_known(threads: int) -> None:
    import jax.numpy as jnp

    def functions(x: Any, places: Any) -> list[Any]:
        written = (x * 2).at[places].set(x[0], mode="drop")
        return [x.sum(0), jnp.cumsum(x, 1), written, x.sum(), x + 1]

    x, places = np.ones((4, 30)), np.array([2, 0])
    assert known(built(functions, x, places), x, places) == [False, False, False, False, True]


def test_infinities_on_the_way_and_arguments_do_not_matter(threads: int) -> None:
    import jax.numpy as jnp

    def dry(x: Any) -> list[Any]:
        return [jnp.where(x > 0, 1 / x, 0.0), x]

    x = np.array([0.0, 1.0, np.inf] * 9)
    assert known(built(dry, x), x) == [True, False]


def test_a_branch_tells_what_it_knows(threads: int) -> None:
    from jax import lax

    def chosen(x: Any, which: Any) -> list[Any]:
        return [lax.cond(which > 0, lambda: 1 / x, lambda: x + 1), x * 2]

    x = np.linspace(0.0, 1.0, 60)
    program = built(chosen, x, np.array(0))
    assert any(isinstance(each, Choice) for each in program.segments)
    assert known(program, x, np.array(0)) == [True, True]
    assert known(program, x, np.array(1)) == [False, True]


def test_a_program_from_disk_knows_as_much() -> None:
    x = np.ones((6, 9))
    made = built(lambda x: [x * 2], x)
    again = segmented.loaded(pickle.loads(pickle.dumps(segmented.without_xla(made))), [])
    assert known(again, x) == [True] and known(again, x * np.nan) == [False]
