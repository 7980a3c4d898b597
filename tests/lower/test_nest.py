"""Nests: loops whose numbers of rounds, and whose slices, change from round to round."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel import config
from accel.lower.passes import arrange
from accel.lower.passes.nests import emit
from accel.lower.passes.nests.nest import Nest
from tests.replays import assert_replays_agree, program_of, variant_of

N = 12


def triangle(a: Any, b: Any, v: Any) -> Any:
    """Each element depends on all before it, in its row and its column."""
    for i in range(1, N):
        for j in range(i):
            a[i, j] -= a[i, :j] @ b[:j, j]
            a[i, j] /= b[j, j]
        a[i, i] = np.sqrt(abs(a[i, i] - np.dot(a[i, :i], a[i, :i])))
    return a


def growing(a: Any, b: Any, v: Any) -> Any:
    """Slices that begin and end elsewhere in each round, one turned round."""
    y = np.zeros_like(v)
    total = 1.0
    for k in range(1, N):
        total *= 1.0 - 0.1 * v[k] * v[k]
        y[k] = (v[k] + np.dot(np.flip(v[:k]), y[:k])) / (total + 2.0)
        y[:k] += 0.1 * y[k] * np.flip(y[:k])
    return y


def backwards(a: Any, b: Any, v: Any) -> Any:
    x = np.zeros_like(v)
    for i in range(N - 1, -1, -1):
        x[i] = (v[i] - a[i, i + 1 :] @ x[i + 1 :]) / (3.0 + a[i, i])
    return x


def columns(a: Any, b: Any, v: Any) -> Any:
    """Rows and columns that get shorter, written to the same array."""
    c = np.zeros((N, N))
    for i in range(N):
        c[i:, i] = c[i, i:] = a[:, i] @ b[:, i:] / 7.0
    return c


def blocks(a: Any, b: Any, v: Any) -> Any:
    """Shrinking blocks: an outer product is taken away from the rest."""
    for k in range(N - 1):
        a[k + 1 :, k] /= 4.0 + abs(a[k, k])
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k][:, None] * a[k, k + 1 :]
    return a


def reductions(a: Any, b: Any, v: Any) -> Any:
    out = np.zeros((6, N))
    for i in range(1, N):
        part = a[:i, : i + 1]
        out[0, i] = part.sum()
        out[1, i] = part.max(axis=0).sum()
        out[2, i] = np.min(part)
        out[3, i] = np.prod(v[:i]) + np.any(part[0] > 0.5)
        out[4, :i] = np.sum(part.T, axis=0)
        out[5, : i + 1] += np.where(part > 0.2, part, -v[: i + 1]).sum(axis=0)
    return out


def three_deep(a: Any, b: Any, v: Any) -> Any:
    for i in range(N - 1, -1, -1):
        for j in range(i + 1, N):
            a[i, j] = max(a[i, j], a[i, j - 1])
            for k in range(i + 1, j):
                a[i, j] = max(a[i, j], 0.5 * a[i, k] + 0.5 * a[k + 1, j])
    return a


def inner_independent(a: Any, b: Any, v: Any) -> Any:
    q = np.zeros_like(a)
    for k in range(N):
        v[k] = np.sqrt(np.dot(a[:, k], a[:, k]) + 1.0)
        q[:, k] = a[:, k] / v[k]
        for j in range(k + 1, N):
            b[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * b[k, j]
    return q


def many_numbers(a: Any, b: Any, v: Any) -> Any:
    """What every round computes is used afterwards."""
    sums = []
    for i in range(1, N):
        for j in range(i):
            sums.append(a[i, : j + 1].sum() * b[j, i])
            v[j] += 0.125 * sums[-1]
    return np.array(sums)


def integers(a: Any, b: Any, v: Any) -> Any:
    counts = np.zeros((N, N), np.int32)
    for i in range(N):
        for j in range(i, N):
            counts[i, j] = np.count_nonzero(a[i, i : j + 1] > 0.0) + counts[i - 1, j]
    return counts


def temporaries(a: Any, b: Any, v: Any) -> Any:
    """A written slice of its own, of changing length."""
    for i in range(2, N):
        part = a[i, :i] * 2.0
        part[0] = v[i]
        part[1:] += v[: i - 1]
        b[:i, i] = part
    return b


def rows_of_products(a: Any, b: Any, v: Any) -> Any:
    """An inner loop that is all of the outer one, its rounds independent of one another."""
    for i in range(N):
        for j in range(N):
            b[i, j] += np.dot(a[i + 1 :, i], b[i + 1 :, j])
    return b


def columns_backwards(a: Any, b: Any, v: Any) -> Any:
    """Independent rounds that go backwards and write to two arrays, one of them in slices of changing length."""
    c = np.zeros((N, N))
    for i in range(N):
        v[i] += 0.5
        for j in range(N - 1, -1, -1):
            b[:i, j] += a[i, :i] * v[j]
            c[i, j] = v[j] - a[i, j] * v[i]
    return c


def crossing(a: Any, b: Any, v: Any) -> Any:
    """Independent rounds of the only loop, each with a row and a column of its own."""
    c = np.zeros((N, N))
    for i in range(N):
        c[i:, i] = c[i, i:] = a[:, i] @ b[:, i:] / 7.0
        v[i] *= 2.0
    return c


def gathered(a: Any, b: Any, v: Any) -> Any:
    """Results of independent rounds, collected; a diagonal that is read along both axes."""
    found = []
    for i in range(1, N):
        for j in range(N):
            found.append(a[i, :i] @ b[:i, j] + a[j, j])
    return np.array(found)


def every_other(a: Any, b: Any, v: Any) -> Any:
    """Slices with a step, of changing length."""
    out = np.zeros((4, N))
    for i in range(1, N):
        out[0, i] = v[i::3].sum() + v[i - 1 :: -1].sum()
        out[1, i] = a[0, 0:i:2].max()
        out[2, :i:2] += b[i, :i:2]
        out[3, i] = v[:i][::-1] @ v[i - 1 :: -1]
    return out


ABREAST: list[Callable[..., Any]] = [rows_of_products, columns_backwards, crossing, gathered]


def neighbours(a: Any, b: Any, v: Any) -> Any:
    """Each round of the inner loop reads what the one before wrote."""
    for i in range(1, N):
        for j in range(1, N):
            b[i, j] += 0.5 * b[i, j - 1] * (a[i, :i] @ a[:i, j])
    return b


def one_place(a: Any, b: Any, v: Any) -> Any:
    """All rounds of the inner loop write to one place."""
    for i in range(1, N):
        for j in range(N):
            v[i] += a[i, :i] @ b[:i, j]
    return v


def own_row(a: Any, b: Any, v: Any) -> Any:
    """A round reads the whole row of which others write the elements."""
    for i in range(1, N):
        for j in range(N):
            b[i, j] = 0.1 * b[i].sum() + a[i, :i] @ b[:i, j]
    return b


SEQUENTIAL: list[Callable[..., Any]] = [neighbours, one_place, own_row]


PROGRAMS: list[Callable[..., Any]] = [
    triangle,
    growing,
    backwards,
    columns,
    blocks,
    reductions,
    three_deep,
    inner_independent,
    many_numbers,
    integers,
    temporaries,
    *ABREAST,
    *SEQUENTIAL,
]


def inputs(seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, N, N))
    return a, b + 4.0 * np.eye(N), rng.random(N)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Nest]:
    """The nests that programs are compiled with, however few operations they have."""
    monkeypatch.setattr(arrange, "NESTED", 0)
    seen: list[Nest] = []
    real = emit.run

    def spy(part: Nest, *args: Any) -> None:
        seen.append(part)
        real(part, *args)

    monkeypatch.setattr(emit, "run", spy)
    return seen


@pytest.fixture(autouse=True)
def no_cache() -> Any:
    with config.override(cache_dir=None):
        yield


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_nests_agree_with_numpy(program: Any, found: list[Nest]) -> None:
    variant = variant_of(program, inputs)
    assert found
    assert_replays_agree(variant, program, inputs)


@pytest.mark.parametrize("program", ABREAST, ids=lambda program: program.__name__)
def test_independent_rounds_are_computed_abreast(program: Any, found: list[Nest]) -> None:
    variant_of(program, inputs)
    assert any(part.vectorized for part in found)


@pytest.mark.parametrize("program", SEQUENTIAL, ids=lambda program: program.__name__)
def test_dependent_rounds_are_computed_one_by_one(program: Any, found: list[Nest]) -> None:
    variant_of(program, inputs)
    assert found and not any(part.vectorized for part in found)


def test_slices_with_a_step_are_no_windows(found: list[Nest]) -> None:
    variant = variant_of(every_other, inputs)
    assert not found
    assert_replays_agree(variant, every_other, inputs)


def test_parameters_that_change_from_round_to_round_are_no_operands(found: list[Nest]) -> None:
    def turning(a: Any, b: Any, v: Any) -> Any:
        for i in range(N):
            for j in range(i):
                a[i] += np.roll(b[j], j) * v[i]
        return a

    variant = variant_of(turning, inputs)
    assert not found
    assert_replays_agree(variant, turning, inputs)


def test_a_program_that_only_looks_like_a_nest_is_none(found: list[Nest]) -> None:
    def swapping(a: Any, b: Any, v: Any) -> Any:
        """Each round takes what two rounds before it made: no register holds that."""
        first, second = v[:1].copy(), v[1:2].copy()
        for i in range(2, N):
            first, second = second, first * 0.5 + a[i, :i].sum()
        return second

    variant = variant_of(swapping, inputs)
    assert not found
    assert_replays_agree(variant, swapping, inputs)


def test_axes_that_turn_round_in_some_rounds_alone(found: list[Nest]) -> None:
    """One view is computed for all rounds of a site, so that these are no nest."""
    keys = [np.s_[::-1, :], np.s_[:, ::-1]]

    def turning(a: Any, b: Any, v: Any) -> Any:
        square = b[:3, :3] + 0.0
        for i in range(1, 8):
            for j in range(1, i + 1):
                x = square[keys[j % 2]] * 2.0
                a[i, j] = a[i, :j] @ a[:j, j] + x[0, 1] + x.sum() * 0.1
        return a

    assert_replays_agree(variant_of(turning, inputs), turning, inputs)


# -- random nests -----------------------------------------------------------------------------------------------------

NESTS = int(os.environ.get("ACCEL_NESTS", "24"))
"""Random nests that are tried."""

_SLICES = "i::2 | :i:3 | ::-1 | i - 1 :: -1 | :i | i: | i + 1: | :i + 1 | 1:i + 1 | i - 1: | :-i | 2:i + 2".split(" | ")
_INNER = ":j | j: | j + 1: | :j + 1 | i: | :i | j:i + 1".split(" | ")


def nest_program(seed: int) -> str:
    """Loops of a few assignments to slices of a, b and v that change their length; p holds indices."""
    draw = random.Random(seed)
    deep = draw.random() < 0.6
    indirect = draw.random() < 0.4

    def cut() -> str:
        return draw.choice(_INNER if deep and draw.random() < 0.7 else _SLICES)

    def number() -> str:
        k = "j" if deep and draw.random() < 0.6 else "i"
        if indirect and draw.random() < 0.5:
            return draw.choice([f"v[p[{k}, 1]]", f"a[i, p[i, {k}]]", f"b[p[i, p[{k}, 0]], {k}]", f"v[p[{k}, i] - {N}]"])
        return draw.choice([f"v[{k}]", f"a[i, {k}]", f"b[{k}, i]", "0.25", f"a[{k}, {k}]", f"v[{k} - 1]"])

    def vector(part: str) -> str:
        k = "j" if deep and draw.random() < 0.6 else "i"
        plain = [f"a[{k}, {part}]", f"b[{part}, {k}]", f"v[{part}]", f"a[{part}, 1]"]
        if indirect:
            plain += [f"a[p[{k}, 2], {part}]", f"b[{part}, p[i, {k}]]"]
        forms = ["{x}", "{x} * {n}", "np.flip({x})", "np.sin({x})", "{x} + {y}", "np.where({x} > 0.1, {x}, {y})"]
        return draw.choice(forms).format(x=draw.choice(plain), y=draw.choice(plain), n=number())

    def scalar(part: str) -> str:
        forms = ["{x} @ {y}", "np.dot({x}, {y})", "np.sum({x})", "{n} + {m}", "np.sum({x} * {y})"]
        forms.append("{x} @ a[{p}, {p}] @ {y}")
        return draw.choice(forms).format(x=f"({vector(part)})", y=f"({vector(part)})", n=number(), m=number(), p=part)

    def statement() -> str:
        if indirect and draw.random() < 0.3:
            k = "j" if deep else "i"
            target = draw.choice([f"v[p[i, {k}]]", f"a[p[{k}, 1], i]", f"a[p[i, 0], p[i, {k}]]", f"b[i, p[{k}, 3]]"])
            return draw.choice([f"{target} += 0.05 * {number()}", f"p[i, {k}] = p[p[{k}, 1], p[i, 2]]"])
        part, sign = cut(), draw.choice(["=", "+=", "-="])
        if draw.random() < 0.5:
            target = draw.choice([f"a[i, {part}]", f"b[{part}, i]", f"v[{part}]"])
            return f"{target} {sign} 0.1 * ({vector(part)})"
        target = draw.choice(["v[i]", "a[i, i]", "b[i, 2]", "v[j]" if deep else "v[0]"])
        return f"{target} {sign} 0.05 * ({scalar(part)})"

    outer = draw.choice([f"range(1, {N})", f"range({N - 2}, 0, -1)", f"range(2, {N - 1})"])
    inner = draw.choice(["range(i)", f"range(i, {N})", f"range(i + 1, {N})", "range(i - 1, -1, -1)", "range(1, i)"])
    if draw.random() < 0.5:
        inner = draw.choice([f"range({N})", f"range(1, {N - 1})", f"range({N - 1}, -1, -1)"])
    lines = [f"    for i in {outer}:"]
    if not deep:
        lines += [f"        {statement()}" for _ in range(draw.randint(1, 3))]
    else:
        shallow, deep = deep, False
        before, after = [f"        {statement()}"] * draw.randint(0, 1), [f"        {statement()}"] * draw.randint(0, 1)
        deep = shallow
        body = [f"            {statement()}" for _ in range(draw.randint(1, 2))]
        lines += [*before, f"        for j in {inner}:", *body, *after]
    start = [f"    p = (abs(b) * 97.0).astype(int) % {N}"] if indirect else []
    return "\n".join(["def case(a, b, v):", *start, *lines, "    return a.sum()", ""])


@pytest.mark.parametrize("seed", range(NESTS))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_nests(seed: int, found: list[Nest]) -> None:
    source = nest_program(seed)
    program = program_of(source, f"nest {seed}")
    try:
        program(*inputs(0))
    except (ValueError, IndexError):  # shapes that do not go together
        return
    variant = variant_of(program, inputs)
    if variant is not None:
        assert_replays_agree(variant, program, inputs, source)
