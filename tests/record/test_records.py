"""Arrays of records: their fields are read and written as views of the array's memory."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest

import accel
from accel.platform.ledger import open_ledger

_names = itertools.count()

BODY = np.dtype([("x", float), ("y", float), ("n", np.int32), ("pos", float, (3,)), ("on", bool)])
PACKED = np.dtype([("a", "i1"), ("x", "f8"), ("y", "f4"), ("n", "i2")])
NESTED = np.dtype([("at", [("x", float), ("y", float)]), ("w", float)])
TEXT = np.dtype([("x", float), ("name", "U4"), ("big", ">f8")])
OBJECTS = np.dtype([("x", float), ("any", object)])


def filled(dtype: np.dtype[Any] = BODY, shape: Any = 6, kind: type = np.ndarray, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    array = np.zeros(shape, dtype)
    for name in dtype.names or ():
        field = array[name]
        if field.dtype.kind in "fiub":
            field[...] = (rng.normal(size=field.shape) * 3.0 + 1.0).astype(field.dtype)
        elif field.dtype.names:
            for part in field.dtype.names:
                field[part] = rng.normal(size=field.shape)
    return array.view(kind)


def outcome(work: Any, args: tuple[Any, ...]) -> Any:
    try:
        return work(*args)
    except Exception as error:
        return type(error), str(error)


def same(expected: Any, found: Any, what: str) -> None:
    """Equal in type, dtype and shape; in value to rounding."""
    if isinstance(expected, tuple):
        assert type(found) is type(expected) and len(found) == len(expected), what
        for one, other in zip(expected, found, strict=True):
            same(one, other, what)
        return
    assert type(found) is type(expected), what
    if isinstance(expected, (np.ndarray, np.generic)):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), what
        for name in expected.dtype.names or ():
            same(expected[name], found[name], what)
        if expected.dtype.names is None and expected.dtype.kind in "fc":
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=what)
        elif expected.dtype.names is None:
            np.testing.assert_array_equal(found, expected, err_msg=what)
    else:
        assert found == (pytest.approx(expected, rel=1e-12) if isinstance(expected, float) else expected), what


def agree(
    work: Any, make: Any = filled, *, calls: int = 9, replays: int = 3, reason: str | None = None, between: Any = None
) -> Any:
    """Compare `work(array, number)` with its accelerated form, each with an array of its own that lasts.

    make: makes the array, or several as a tuple. between(arrays, i): what the program does before call i. Returns the
    accelerated form's arrays.
    """
    name = f"records {next(_names)}"
    fast = accel.accelerate(work, name=name)
    plain, mine = make(), make()
    for i in range(calls):
        if between is not None:
            plain, mine = between(plain, i), between(mine, i)
        args, others = (each if isinstance(each, tuple) else (each,) for each in (plain, mine))
        expected, found = outcome(work, (*args, 0.5 + i)), outcome(fast, (*others, 0.5 + i))
        same(expected, found, f"call {i}")
        for one, other in zip(args, others, strict=True):
            if isinstance(one, np.ndarray):
                same(one, other, f"after call {i}")
    ledger = open_ledger(name)
    refusals = [refusal.reason for refusal in ledger.refusals]
    assert ledger.compiled_calls >= replays if reason is None else reason in refusals, refusals
    assert not {"verify.mismatch", "recorder.gap", "accel.fault"} & set(refusals), ledger.refusals
    return mine


def test_fields_are_read_and_written() -> None:
    def work(a: Any, s: float) -> Any:
        a["x"] += s * a["y"]
        a["y"] = a["x"] * 0.5
        a["n"] += 1
        a["on"] = a["x"] > 1.0
        a["pos"][:, 1] = a["x"]
        return a["x"].sum(), a["pos"].mean(axis=0), a["n"].max(), a["x"] @ a["y"]

    agree(work)


def test_packed_fields_are_not_aligned() -> None:
    def work(a: Any, s: float) -> Any:
        a["x"] *= 1.1
        a["y"] += a["x"]
        a["n"] += 3
        a["a"][::2] = 5
        return a["x"] + a["y"], a["n"] * a["a"], a["y"].dtype

    agree(work, lambda: filled(PACKED))


def test_what_is_returned_is_a_view() -> None:
    def work(a: Any, s: float) -> Any:
        a["x"] += s
        return a["x"], a["pos"][1:, 0], a["y"][::-1]

    array = filled()
    fast = accel.accelerate(work, name="views of records")
    for i in range(8):
        x, part, back = fast(array, 0.5 + i)
        for view in (x, part, back):
            assert np.shares_memory(view, array) and not view.flags.owndata
        x[0], part[0], back[0] = -1.0, -2.0, -3.0
        assert (array["x"][0], array["pos"][1, 0], array["y"][-1]) == (-1.0, -2.0, -3.0)
        assert x is not fast(array, 0.0)[0]
    assert open_ledger("views of records").compiled_calls


def test_each_read_gives_another_view() -> None:
    def work(a: Any, s: float) -> Any:
        return a["x"] is a["x"], a["x"] * s

    agree(work)


def test_fields_of_one_another() -> None:
    def work(a: Any, s: float) -> Any:
        x, y = a["x"], a["y"]
        a["x"] = y
        y[0] = s
        a["y"][1:] = a["y"][:-1]
        x[:] = x[::-1]
        return x + y, a["x"][0]

    agree(work)


def test_a_record_is_a_view() -> None:
    def work(a: Any, s: float) -> Any:
        one = a[1]
        a["x"][1] = s
        one["y"] = one["x"] * 2.0
        one["x"] += 1.0
        one["pos"][2] = 7.0
        one["n"] = 3
        return one["x"], one["y"], a[-1]["x"], a["y"].copy(), a[1]["pos"].copy()

    agree(work)


def test_slices_of_records_are_views() -> None:
    def work(a: Any, s: float) -> Any:
        part, back = a[1:4], a[::-2]
        part["x"] += s
        back["x"][0] = -1.0
        part[0]["y"] = 2.5
        part[1:]["n"] = 9
        return part["x"].sum(), back["x"], len(part), part.shape, back.size, part["pos"][0]

    agree(work)


def test_a_record_that_data_choose() -> None:
    def work(a: Any, s: float) -> Any:
        i = int(np.argmax(a["x"]))
        a["x"][i] -= s
        best = a[i]
        best["y"] = best["y"] * 0.5 + s
        return i, best["y"], a[i : i + 1]["n"].sum()

    agree(work, calls=16, replays=1)


def test_masks_and_places() -> None:
    def work(a: Any, s: float) -> Any:
        low = a["x"] < 1.0
        a["x"][low] += s
        a["y"][[0, 2]] = a["x"][low].sum()
        a["pos"][low] = 0.25
        return a["x"][a["y"] > 0.0].sum(), np.where(low, a["x"], a["y"])

    agree(work, calls=12, replays=1)


def test_several_axes() -> None:
    def work(a: Any, s: float) -> Any:
        a["x"][1] += a["x"][0] * s
        row, corner = a[1], a[0, 2]
        row["y"] += 1.0
        corner["x"] = s
        return a["x"].sum(axis=0), row["x"], corner["y"], a[:, 1]["pos"], a.ndim, a[..., 0]["x"], a[None, 0]["x"].shape

    agree(work, lambda: filled(shape=(3, 4)))


def test_nested_records() -> None:
    def work(a: Any, s: float) -> Any:
        a["at"]["x"] += a["w"]
        at = a["at"]
        at["y"] = at["x"] * s
        a[2]["at"]["y"] = 4.0
        return a["at"][1:]["x"].sum(), at["y"], a["w"].mean()

    agree(work, lambda: filled(NESTED))


def test_a_recarray_by_names() -> None:
    def work(a: Any, s: float) -> Any:
        a.x += s * a.y
        a.n = 4
        a["y"] -= 1.0
        a[1].x = 2.0
        a[1:3].y[0] = 3.0
        a.pos[:, 0] = a.x
        return a.x, a[2].y, a[0].pos, type(a.x) is np.ndarray, a.size

    agree(work, lambda: filled(kind=np.recarray))


def test_a_recarray_with_fields_that_methods_hide() -> None:
    dtype = np.dtype([("x", float), ("mean", float), ("size", float)])

    def work(a: Any, s: float) -> Any:
        a["mean"] += s
        return a["size"] * a.x, a.size, a["mean"]

    agree(work, lambda: filled(dtype, kind=np.recarray))


def test_in_an_attribute_that_gets_another_array() -> None:
    class World:
        def __init__(self) -> None:
            self.bodies = filled()

        def step(self, s: float) -> Any:
            self.bodies["x"] += s
            self.bodies["pos"] *= 0.5
            return self.bodies["x"].sum()

    plain, mine = World(), World()
    fast = accel.accelerate(World.step, name="records of an object")
    for i in range(14):
        if i == 5:
            plain.bodies, mine.bodies = filled(seed=3), filled(seed=3)
        if i == 8:
            plain.bodies, mine.bodies = filled(shape=9), filled(shape=9)
        if i == 11:
            plain.bodies, mine.bodies = filled(NARROW), filled(NARROW)
        same(plain.step(0.5), fast(mine, 0.5), f"call {i}")
        same(plain.bodies, mine.bodies, f"after call {i}")
    assert open_ledger("records of an object").compiled_calls


NARROW = np.dtype([("x", np.float32), ("pos", float, (3,))])


def test_records_of_another_form() -> None:
    def work(a: Any, s: float) -> Any:
        a["x"] += s
        return a["x"].sum(), a.itemsize, a.dtype.names, a.nbytes

    def between(array: Any, i: int) -> Any:
        return filled(NARROWER if i % 3 == 2 else NARROW, seed=i)

    agree(work, between=between, calls=14)


NARROWER = np.dtype([("x", np.float32), ("y", np.int8)])


def test_the_same_array_twice() -> None:
    def work(a: Any, b: Any, s: float) -> Any:
        a["x"] += b["y"] * s
        b["y"][0] += 1.0
        return a["y"].sum(), b["x"].sum(), a is b

    def between(arrays: Any, i: int) -> Any:
        a = arrays[0]
        return (a, a) if i in (4, 5, 6) else (a, filled(seed=i))

    agree(work, lambda: (filled(), filled(seed=1)), between=between, calls=14, replays=1)


def test_parts_that_overlap() -> None:
    def work(a: Any, b: Any, s: float) -> Any:
        a["x"] += s
        b["x"] *= 2.0
        return a["x"].sum(), b["x"].sum()

    def between(arrays: Any, i: int) -> Any:
        whole = arrays[0] if arrays[0].base is None else arrays[0].base
        return (whole[:4], whole[2:]) if i % 3 == 2 else (whole[:3], whole[3:])

    agree(work, lambda: (filled(), filled()), between=between, calls=15, replays=1)


def test_an_array_and_its_field() -> None:
    def work(a: Any, x: Any, s: float) -> Any:
        a["x"] += s
        x[0] = -1.0
        return x + a["y"]

    def between(arrays: Any, i: int) -> Any:
        a = arrays[0]
        return a, (a["y"] if i % 3 == 1 else a["x"] if i % 3 == 2 else np.arange(6.0))

    agree(work, lambda: (filled(), np.arange(6.0)), between=between, calls=15, replays=1)


def test_an_array_and_its_bytes() -> None:
    def work(a: Any, raw: Any, s: float) -> Any:
        a["n"] += 1
        return a["n"].sum(), raw.sum()

    def make() -> Any:
        a = filled()
        return a, a.view(np.uint8)

    agree(work, make, reason="alias.overlap")


def test_an_error_half_way() -> None:
    def work(a: Any, s: float) -> Any:
        a["x"] += s
        if a["x"].sum() > 40.0:
            raise ValueError("too far")
        a["y"] = a["x"]
        a["nothing"] = 1.0
        return a["y"].sum()

    agree(work, replays=0)


def test_an_error_that_numpy_raises() -> None:
    def work(a: Any, s: float) -> Any:
        a["x"] += 1.0
        try:
            a["y"] = np.zeros(5)
        except ValueError:
            a["y"] = -1.0
        return a["x"].sum()

    agree(work, replays=0)


def test_what_may_not_be_written() -> None:
    def work(a: Any, s: float) -> Any:
        total = a["x"].sum() * s
        a["y"][0] = total
        return total

    def between(array: Any, i: int) -> Any:
        array.flags.writeable = i % 4 != 3
        return array

    agree(work, between=between, calls=14, replays=1)


def test_casts_are_numpys() -> None:
    def work(a: Any, s: float) -> Any:
        a["n"] = a["x"] * 1.7
        a["on"] = a["n"]
        a["x"] = a["n"] // 2
        a[1]["n"] = 7.9
        a["pos"] = a["n"][:, None]
        return a["n"] + a["x"]

    agree(work)


def test_on_sides_of_branches_and_in_loops() -> None:
    def work(a: Any, s: float) -> Any:
        if a["x"].sum() > 10.0:
            a["x"] *= 0.25
        else:
            a["y"] += 1.0
        while a["y"].max() > 3.0:
            a["y"] *= 0.5
            a["n"] += 1
        for record in a[:3]:
            record["x"] += record["y"]
        return a["x"], a["n"].sum()

    agree(work, calls=30, replays=1)


def test_fields_of_other_types() -> None:
    def work(a: Any, s: float) -> Any:
        a["x"] += s
        return a["x"].sum(), len(a)

    agree(work, lambda: filled(TEXT))


@pytest.mark.parametrize(("field", "dtype"), [("name", TEXT), ("big", TEXT)])
def test_fields_that_xla_has_not_end_the_tape(field: str, dtype: Any) -> None:
    def work(a: Any, s: float) -> Any:
        a["x"] += s
        return a[field][0], a["x"].sum()

    agree(work, lambda: filled(dtype), reason="array.unknown")


def test_python_objects_in_records_end_the_tape() -> None:
    def work(a: Any, s: float) -> Any:
        a["x"] += s
        return a["x"].sum()

    agree(work, lambda: filled(OBJECTS), reason="array.unknown")


@pytest.mark.parametrize(
    "ends",
    [
        lambda a: a.copy()["x"],
        lambda a: a[a["x"] > 0.0]["x"].sum(),
        lambda a: a[[0, 1]]["y"],
        lambda a: a[["x", "y"]]["x"],
        lambda a: np.sort(a, order="x")["x"],
        lambda a: a.__setitem__(0, (1.0, 2.0, 3, (4.0, 5.0, 6.0), True)),
        lambda a: a.__setitem__(slice(1, 3), a[3:5]),
        lambda a: np.concatenate([a, a])["x"],
        lambda a: (a == a).sum(),
        lambda a: a["pos"].sum() + a.view(np.uint8).size,
        lambda a: a[0][0],
        lambda a: a[0].tolist()[0],
        lambda a: list(a.dtype.names) + [a.itemsize, a.tobytes()[:4]],
        lambda a: np.asarray(a)["x"].sum(),
    ],
)
def test_whatever_else_ends_the_tape(ends: Any) -> None:
    def work(a: Any, s: float) -> Any:
        a["x"] += s
        found = ends(a)
        a["y"] += 1.0
        return a["x"].sum(), np.asarray(found, dtype=object).size

    mine = agree(work, replays=0)
    assert mine["y"].mean() > 5.0


def test_an_unsupported_way_tells_why() -> None:
    def work(a: Any, s: float) -> Any:
        return a[a["x"] > 0.0]["x"] * s

    agree(work, reason="array.records")


def test_a_value_out_of_bounds() -> None:
    def work(a: Any, s: float) -> Any:
        a["x"] += s
        return a[int(s)]["x"]

    agree(work, calls=12, replays=0)


def test_empty_and_without_axes() -> None:
    def work(a: Any, s: float) -> Any:
        a["x"] += s
        return a["x"].sum(), a["pos"].shape, a.shape

    agree(work, lambda: filled(shape=0), replays=0)
    agree(work, lambda: filled(shape=()), replays=0)
    agree(work, lambda: filled(shape=1))


def test_order_and_steps_of_memory() -> None:
    def work(a: Any, s: float) -> Any:
        a["x"] += s
        a["pos"][..., 2] -= a["x"]
        return a["x"], a["pos"].sum(axis=-1)

    agree(work, lambda: filled(shape=12)[::-2])
    agree(work, lambda: np.asfortranarray(filled(shape=(3, 4))))
    agree(work, lambda: filled(shape=(4, 3)).T)


def test_several_threads() -> None:
    def work(a: Any, s: float) -> Any:
        a["x"] += s
        a["y"] = a["x"] * 2.0
        return a["y"].sum()

    fast = accel.accelerate(work, name="records in threads")
    wrong: list[int] = []

    def calls(seed: int) -> None:
        plain, mine = filled(seed=seed), filled(seed=seed)
        for i in range(20):
            if not np.isclose(work(plain, 0.5 + i), fast(mine, 0.5 + i)) or plain.tobytes() != mine.tobytes():
                wrong.append(seed)

    threads = [threading.Thread(target=calls, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_records_are_handed_on_and_kept() -> None:
    class Holder:
        held: Any = None

    def work(a: Any, s: float) -> Any:
        def shifted(bodies: Any) -> Any:
            bodies["x"] += s
            return bodies

        HOLDER.held = shifted(a)
        return a["x"].sum(), HOLDER.held is a

    HOLDER = Holder()
    mine = agree(work)
    assert HOLDER.held is mine


def test_a_part_that_leaves_the_call_ends_the_tape() -> None:
    def work(a: Any, s: float) -> Any:
        a["x"] += s
        return a[1:3], a[0]

    mine = agree(work, reason="escape.object")
    part, one = work(mine, 1.0)
    assert np.shares_memory(part, mine)
    assert one["x"] == mine["x"][0]


@pytest.mark.parametrize(
    "work",
    [
        lambda x: np.ma.masked_where(x > 5.0, x).mean() + x.sum(),
        lambda x: np.ma.array(x, mask=x > 1.0).filled(0.0),
        lambda x: MASKED.sum() * x,
    ],
)
def test_masked_arrays_have_a_reason_of_their_own(work: Any) -> None:
    name = f"masked {next(_names)}"
    fast = accel.accelerate(work, name=name)
    for i in range(4):
        same(work(np.linspace(-1.0, 2.0, 5) + i), fast(np.linspace(-1.0, 2.0, 5) + i), f"call {i}")
    assert "array.masked" in [refusal.reason for refusal in open_ledger(name).refusals]


MASKED = np.ma.masked_where(np.arange(4) > 2, np.arange(4.0))
