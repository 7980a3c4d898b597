"""Placing: a program takes the calls of a path that was recorded after it was compiled, if its tape computes that path.

ACCEL_LONG_TESTS and ACCEL_TEST_SEED choose more random programs and others.
"""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from accel.compiler.merge import Member, NotMergeable, merged
from tests.compiler.merge.programs import Writer, calls, program_of
from tests.compiler.merge.runs import Merged, assert_agrees, assert_same, traces_of
from tests.compiler.merge.test_joins import call_of
from tests.helpers import SEED, examples

PROGRAMS = examples(12, 240)
RECORDED, REPLAYED = 24, 40

THREE = ((0, 0), (1, 0), (0, 1))


def placed(function: Callable[..., Any], recorded: Sequence[Sequence[int]], later: Sequence[int]) -> Merged:
    """The program of some paths, with one that was recorded later. Raises NotMergeable."""
    program = Merged(traces_of(function, map(call_of, recorded)))
    (trace,) = traces_of(function, [call_of(later)])
    program.admit(trace)
    return program


def counting(s: Any, a: Any, b: Any, x: Any) -> Any:
    taken = []
    if a.any():
        x = np.sin(x)
        taken.append("a")
    if b.any():
        x = x + 1.0
        taken.append("b")
    s.taken = taken
    return x


def test_a_combination_is_taken_once_it_has_been_recorded() -> None:
    function = counting
    (trace,) = traces_of(function, [call_of((1, 1))])
    program = Merged(traces_of(function, map(call_of, THREE)))
    assert not program.run(call_of((1, 1)))[0]  # the list differs from those of all three
    program.admit(trace)
    everything = itertools.product((0, 1), repeat=2)
    assert assert_agrees(function, program, map(call_of, everything)) == 4


def test_a_path_of_an_edited_program_is_not_placed_as_the_one_before() -> None:
    def edited(s: Any, a: Any, b: Any, x: Any) -> Any:
        _ = s.more  # one input more, which the tape does not read
        return counting(s, a, b, x)

    def call(flags: Sequence[int]) -> Any:
        made = call_of(flags)
        made[0].more = 1.0
        return made

    (trace,) = traces_of(edited, [call(THREE[0])])
    both = merged(traces_of(counting, map(call_of, THREE[:2])))
    taken = next(each for each in both.members if len(each.placement.nodes) == len(trace.tape.nodes))
    with pytest.raises(NotMergeable, match="read other inputs"):
        both.with_member(Member(trace, taken.placement))


def test_the_result_is_the_later_paths_own() -> None:
    program = placed(counting, THREE, (1, 1))
    call = call_of((1, 1))
    is_taken, result = program.run(call)
    assert is_taken
    assert_same(result, np.sin(np.linspace(0.0, 1.0, 4)) + 1.0)
    assert call[0].taken == ["a", "b"]


def keeping_a_copy(s: Any, a: Any, b: Any, x: Any) -> Any:
    x = counting(s, a, b, x) * 2.0
    s.kept, s.pair = x.copy(), (x, x.copy())
    return x


def test_arrays_that_hold_the_same_are_arrays_of_their_own() -> None:
    """A snapshot shared the memory of the array that it was taken of, and changed with it."""
    program = placed(keeping_a_copy, THREE, (1, 1))
    assert assert_agrees(keeping_a_copy, program, [call_of((1, 1))]) == 1


def of_an_operation_that_no_other_path_has(s: Any, a: Any, b: Any, x: Any) -> Any:
    if a.any():
        x = np.sin(x)
    if b.any():
        x = np.cos(x) if a.any() else x + 1.0
    return x


def of_other_operands(s: Any, a: Any, b: Any, x: Any) -> Any:
    y = np.sin(x) if a.any() else np.cos(x)
    z = x if b.any() else y
    if a.any() and b.any():
        y, z = z, y
    return y - z


def of_another_literal(s: Any, a: Any, b: Any, x: Any) -> Any:
    count = 0
    if a.any():
        count += 1
    if b.any():
        count += 1
    return x * count


def of_another_output(s: Any, a: Any, b: Any, x: Any) -> Any:
    y = np.sin(x) if a.any() else x * 2.0
    if b.any():
        y = y + 1.0
    if a.any() and b.any():
        s.u = y
    return y


def of_another_array_that_is_changed(s: Any, a: Any, b: Any, x: Any) -> Any:
    y = np.sin(x) if a.any() else x * 2.0
    if b.any():
        y += 1.0
    if a.any() and b.any():
        x[:] = y
    return y


def of_another_input(s: Any, a: Any, b: Any, x: Any) -> Any:
    if a.any():
        x = x * 2.0
    if b.any():
        x = x + 1.0
    return x * s.k if a.any() and b.any() else x


@pytest.mark.parametrize(
    "function",
    [
        of_an_operation_that_no_other_path_has,
        of_other_operands,
        of_another_literal,
        of_another_array_that_is_changed,
        of_another_input,
    ],
)
def test_what_the_program_does_not_compute_is_not_taken(function: Callable[..., Any]) -> None:
    with pytest.raises(NotMergeable):
        placed(function, THREE, (1, 1))


def test_what_it_writes_is_its_own() -> None:
    program = placed(of_another_output, THREE, (1, 1))
    assert assert_agrees(of_another_output, program, map(call_of, itertools.product((0, 1), repeat=2))) == 4


def test_random_programs_agree_where_half_of_their_paths_are_recorded_later() -> None:
    tried = taken = 0
    for number in range(PROGRAMS):
        source = Writer(random.Random(f"placed {SEED} {number}")).program()
        function = program_of(source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            traces = traces_of(function, calls(1, RECORDED))
            half = -(-len(traces) // 2)
            if half < 2:
                continue
            try:
                program = Merged(traces[:half])
            except NotMergeable:
                continue
            for trace in traces[half:]:
                tried += 1
                try:
                    program.admit(trace)
                except NotMergeable:
                    continue
                taken += 1
            assert_agrees(function, program, calls(2, REPLAYED), source)
    assert taken >= 0.1 * tried
