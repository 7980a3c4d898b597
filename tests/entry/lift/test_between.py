"""What stands between two iterations of a loop: how many are to come."""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tqdm import tqdm

from accel.entry.lift.between import iterations_of
from accel.entry.lift.lifting import lift_function
from accel.entry.lift.switch import Switch
from tests.conftest import WriteModules


class Own:
    """A sequence of the program's: its code is not to run once more than Python runs it."""

    def __len__(self) -> int:
        raise AssertionError

    def __length_hint__(self) -> int:
        raise AssertionError

    def __getitem__(self, index: int) -> int:
        raise AssertionError

    def __iter__(self) -> Iterator[int]:
        raise AssertionError


class OwnList(list[int]):
    def __len__(self) -> int:
        raise AssertionError


def half_done(iterable: Any) -> Any:
    found = iter(iterable)
    next(found)
    return found


@pytest.mark.parametrize(
    ("iterable", "iterations"),
    [
        (range(7), 7),
        ([Own(), Own()], 2),
        ({"a": 1}.items(), 1),
        (deque([1, 2], maxlen=5), 2),
        (np.zeros((3, 2)), 3),
        (half_done(np.zeros(3)), 2),
        (half_done(range(9)), 8),
        (half_done([1, 2, 3]), 2),
        ("two", 3),
        (enumerate(range(4), 10), 4),
        (zip(range(4), [1, 2, 3]), 3),  # noqa: B905
        (enumerate(tqdm(range(5), disable=True)), 5),
        (tqdm([1, 2], disable=True), 2),
        (zip([1], Own.__mro__, (1,)), 1),  # noqa: B905
        (Own(), None),
        (OwnList(), None),
        ((i for i in range(3)), None),
        (enumerate(i for i in range(3)), None),
        (zip(range(3), (i for i in range(3))), None),  # noqa: B905
        (map(str, [1, 2]), None),
        (None, None),
    ],
)
def test_the_iterations_of_a_loop_are_told_without_the_programs_code(iterable: Any, iterations: int | None) -> None:
    assert iterations_of(iterable) == iterations


def test_a_sequence_iterator_of_the_programs_own_is_not_asked() -> None:
    class Items:
        def __len__(self) -> int:
            raise AssertionError

        def __getitem__(self, index: int) -> int:
            return [1, 2, 3][index]

    assert iterations_of(iter(Items())) is None  # type: ignore[call-overload]


def test_a_switch_says_how_many_iterations_are_to_come(
    write_modules: WriteModules, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "def main(n):\n    for i in range(n):\n        pass\n    for j in (k for k in range(2)):\n        pass\n"
    write_modules({"rounds_to_come.py": source})
    planet = importlib.import_module("rounds_to_come")
    first, second = lift_function(planet.main).lifted.switches
    left: list[tuple[int | None, int | None]] = []

    def call(body: Any) -> Any:
        left.append((first.left, second.left))
        return body()

    first.call = second.call = call
    first.on = second.on = True
    planet.main(3)
    assert left == [(2, None), (1, None), (0, None), (0, None), (0, None)]


def test_a_loop_that_is_entered_again_does_not_say_how_many_rounds_there_are() -> None:
    """Those of this time are not all, and nobody knows how often it is entered."""
    switch = Switch(1)
    for left in (3, None, None):
        switch.knows([1, 2, 3])
        assert switch.left == left
