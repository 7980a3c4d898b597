"""Resident arrays by themselves: what is on the device already, what is behind, and who is brought up to date."""

from __future__ import annotations

import gc
import mmap
from collections import Counter
from typing import Any

import numpy as np
import pytest

from accel.backend.resident import Residents, filled


@pytest.fixture
def device() -> Any:
    import jax

    return jax.devices("cpu")[0]


@pytest.fixture
def residents() -> Residents:
    made = Residents()
    made.is_open = True
    return made


def leave_behind(residents: Residents, array: Any, values: float, counts: Counter[str], device: Any) -> None:
    """Let the device alone have these values of an array."""
    import jax

    buffer = jax.device_put(np.full(array.shape, values, np.float32), device)
    residents.note(array, buffer, lambda: counts.update(fetched=1))()


def test_what_was_handed_over_is_there(residents: Residents, device: Any) -> None:
    one, other = np.ones(3, np.float32), np.zeros(3, np.float32)
    first = residents.hand([one, other], device)
    assert residents.there([other, np.zeros(3), one], device) == [0, 2]
    assert all(a is b for a, b in zip(residents.hand([one, other], device), first, strict=True))
    one[:] = 5.0  # the buffer is a copy
    np.testing.assert_array_equal(first[0], np.ones(3))
    residents.bring_up_to_date()
    assert residents.there([one, other], device) == [] and not residents.is_open


def test_memory_that_others_may_write_to_is_handed_over_each_time(residents: Residents, device: Any) -> None:
    mapped = np.frombuffer(mmap.mmap(-1, 64), np.float32)
    part = mapped[:2]
    residents.hand([mapped, part], device)
    assert residents.there([mapped, part], device) == []


@pytest.mark.parametrize("kind", ["itself", "a view", "a view of a view", "by its memory"])
def test_whoever_reads_memory_that_is_behind_gets_the_values(kind: str, residents: Residents, device: Any) -> None:
    counts: Counter[str] = Counter()
    array = np.zeros(6, np.float32)
    leave_behind(residents, array, 7.0, counts, device)
    views = {
        "itself": array,
        "a view": array[1:4],
        "a view of a view": array.reshape(2, 3)[1],
        "by its memory": np.frombuffer(memoryview(array), np.float32),
    }
    residents.refresh(np.zeros(6))
    assert not counts and not array.any()
    residents.refresh(views[kind])
    assert counts["fetched"] == 1 and (array == 7.0).all()


def test_a_view_is_handed_over_with_the_values_of_its_base(residents: Residents, device: Any) -> None:
    array = np.zeros(6, np.float32)
    part = array[2:4]
    residents.hand([part], device)
    leave_behind(residents, array, 7.0, Counter(), device)
    assert residents.there([array, part], device) == [0]
    np.testing.assert_array_equal(residents.hand([part], device)[0], [7.0, 7.0])


def test_what_is_replaced_is_never_fetched_and_what_is_kept_once(residents: Residents, device: Any) -> None:
    counts: Counter[str] = Counter()
    kept = []
    for number in range(6):
        residents.iteration += 1
        array = np.zeros(3, np.float32)
        leave_behind(residents, array, float(number), counts, device)
        if number % 2:
            kept.append(array)
        residents.end_iteration()
    del array
    residents.bring_up_to_date()
    assert counts["fetched"] == len(kept) == 3
    assert [each[0] for each in kept] == [1.0, 3.0, 5.0]


def test_an_address_that_is_used_again_is_another_array(residents: Residents, device: Any) -> None:
    for number in range(50):
        array = np.full(3, number, np.float32)
        assert residents.there([array], device) == []
        residents.hand([array], device)
        del array
        gc.collect(0)


def test_bringing_up_to_date_may_be_interrupted(
    residents: Residents, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: Counter[str] = Counter()
    arrays = [np.zeros(3, np.float32) for _ in range(3)]
    for number, array in enumerate(arrays):
        leave_behind(residents, array, number + 1.0, counts, device)
    copyto, calls = np.copyto, []

    def interrupted(*args: Any) -> None:
        calls.append(args)
        if len(calls) == 2:
            residents.bring_up_to_date()  # as before Ctrl-C
            raise KeyboardInterrupt
        copyto(*args)

    monkeypatch.setattr(np, "copyto", interrupted)
    with pytest.raises(KeyboardInterrupt):
        residents.bring_up_to_date()
    assert [each[0] for each in arrays] == [1.0, 2.0, 3.0] and counts["fetched"] == 3


def test_filling() -> None:
    into = [np.zeros(2), np.zeros(1)]
    (other,) = filled(into, [np.ones(2), np.full(1, 3.0)], [np.full(3, 4.0)])
    assert into[0].tolist() == [1.0, 1.0] and into[1].tolist() == [3.0] and other.tolist() == [4.0] * 3
