"""Kinds: what the programs of its parts show of a call that has none itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from accel.policy import kinds
from accel.policy.kinds import Kinds
from accel.policy.parts import Parts
from tests.policy.test_parts import CODE, call_of


def path(**sides: object) -> Any:
    """A path that takes these sides of branches."""
    return SimpleNamespace(sides=frozenset((line, repr(value)) for line, value in sides.items()))


WARM, COLD = path(sign=True, count=1), path(sign=False, count=1)
"""Two recorded paths of the whole."""

OF_WARM, OF_COLD = [path(sign=True), path(count=1)], [path(sign=False, elsewhere=3)]
"""Paths of its parts: of calls that may have taken one of those."""

OF_NEITHER = [path(sign=True), path(count=2)]


def noted(*calls: list[Any]) -> Kinds:
    made = Kinds()
    for parts in calls:
        made.note(parts, [WARM, COLD])
    return made


def test_a_call_is_of_a_new_kind_if_each_path_takes_another_side_somewhere() -> None:
    assert not noted(*[OF_WARM, OF_COLD] * 4).expects_new
    assert noted(OF_NEITHER).expects_new, "the next may well be of the same"


def test_new_kinds_are_expected_at_the_pace_at_which_they_come() -> None:
    every_third = noted(*[OF_WARM, OF_WARM, OF_NEITHER] * 2)
    assert not every_third.expects_new
    every_third.note(OF_WARM, [WARM, COLD])
    every_third.note(OF_WARM, [WARM, COLD])
    assert every_third.expects_new
    every_third.note(OF_WARM, [WARM, COLD])
    assert not every_third.expects_new, "this one was not"


def test_kinds_are_settled_once_new_ones_are_seldom() -> None:
    assert Kinds().are_settled, "nothing shows them"
    assert noted([]).are_settled
    assert not noted(OF_WARM).are_settled
    assert noted(OF_NEITHER, *[OF_WARM] * kinds.LATELY).are_settled
    some = [*[OF_NEITHER] * (kinds.FEW + 1), *[OF_WARM] * kinds.LATELY][: kinds.LATELY]
    assert not noted(*some).are_settled
    assert noted(*some).new_share == (kinds.FEW + 1) / kinds.LATELY
    assert Kinds().new_share == 0.0


def test_calls_before_the_first_recording_say_nothing() -> None:
    made = Kinds()
    made.note(OF_WARM, [])
    assert made.are_settled
    assert not made.expects_new


@pytest.mark.parametrize(("parts", "pays"), [(OF_WARM, False), (OF_NEITHER, True), ([], True)])
def test_only_calls_that_are_expected_to_be_of_a_new_kind_are_recorded_again(parts: list[Any], pays: bool) -> None:
    made = Parts("loop", CODE)
    made.note(call_of(1.0, 0.1), 0.5, settled=True)
    made.kinds.note(parts, [WARM])
    made.note_matched(1.5)
    assert made.pay_for_a_look(1.0, 0) is pays
