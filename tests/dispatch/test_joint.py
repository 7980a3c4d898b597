"""Joint paths: several recorded paths that have one program, and what ends that."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import accel
from accel.backend.disk import cache
from accel.compiler.merge import MergedTrace
from accel.compiler.merge import trace as merging
from accel.dispatch import paths
from accel.dispatch.paths.stages import Stage
from accel.dispatch.replay import Variant
from accel.dispatch.target import Target
from accel.platform.ledger import Ledger, State, open_ledger
from accel.policy.speed import CALLS_IN_A_ROW
from accel.record.state import joins
from tests.compiler.merge.runs import State as Model
from tests.compiler.merge.runs import assert_same

pytestmark = pytest.mark.usefixtures("foreground")


def target_of(fast: Any) -> Target:
    target: Target = fast._self_target
    return target


def members_of(fast: Any) -> list[Any]:
    joint = target_of(fast).paths.joint
    return [] if joint is None else joint.paths


def play(function: Callable[..., Any], fast: Any, calls: Sequence[tuple[Any, ...]]) -> None:
    """Make calls on both, with states of their own, and compare what they return, raise and leave."""
    twins = copy.deepcopy(calls)
    for call, twin in zip(calls, twins, strict=True):
        outcomes = []
        for each, arguments in ((function, twin), (fast, call)):
            try:
                outcomes.append((each(*arguments), ""))
            except Exception as error:
                outcomes.append((None, f"{type(error).__name__}: {error}"))
        expected, found = outcomes
        assert_same(found, expected)
        assert_same(call, twin)


def fields(seed: int, count: int, scale: float = 1.0) -> list[Any]:
    draw = np.random.default_rng(seed)
    return [draw.normal(size=(6, 5)) * scale for _ in range(count)]


def two_branches(x: Any) -> Any:
    y = x * 2.0
    if x.mean() > 0.0:
        y = np.sin(y) + 1.0
    z = np.roll(y, 1)
    if x[0, 0] > 0.3:
        z = z * y
    return z.sum(axis=0), z


@pytest.mark.usefixtures("unchecked")
def test_paths_that_meet_again_have_one_program() -> None:
    fast = accel.accelerate(two_branches, name="two")
    play(two_branches, fast, [(x,) for x in fields(0, 60)])
    assert len(members_of(fast)) == 4
    assert open_ledger("two").variants == 1
    assert {path.stage for path in target_of(fast).paths} == {Stage.COMPILED}
    discarded = open_ledger("two").costs["discarded"]
    compiled = open_ledger("two").compiled_calls
    play(two_branches, fast, [(x,) for x in fields(1, 40)])
    assert open_ledger("two").costs["discarded"] == discarded
    assert open_ledger("two").compiled_calls == compiled + 40


@pytest.mark.usefixtures("unchecked")
def test_all_are_let_go_at_the_end_without_the_garbage_collector() -> None:
    fast = accel.accelerate(two_branches, name="two")
    gc.disable()
    try:
        for x in fields(0, 60):
            fast(x)
        paths = target_of(fast).paths
        held = [weakref.ref(each) for each in (*paths, *paths.programs, *(program.whole for program in paths.programs))]
        assert len(held) == 6
        target_of(fast).let_go()
        assert [each() for each in held] == [None] * 6
    finally:
        gc.enable()


def test_the_report_says_where_paths_part_and_how_often() -> None:
    fast = accel.accelerate(two_branches, name="two")
    for x in fields(0, 60):
        fast(x)
    (program,) = target_of(fast).paths.describe()
    assert program["paths"] == 4
    for branch in program["branches"]:
        assert set(branch["sides"]) == {"True", "False"}
        # those of the last program; its first replays of each path were compared
        assert 0 < sum(branch["sides"].values()) <= 60


def turned(angles: Any, x: Any) -> Any:
    for angle in angles:
        x = x + float(angle)  # one outcome for each, and the same ones in each path
        x = x * (2.0 if int(angle) > 1 else 0.5)
    return x * 2.0 if x.mean() > 5.0 else -x


def test_outcomes_that_all_paths_have_are_no_place_where_they_part() -> None:
    fast = accel.accelerate(turned, name="turned")
    angles = np.arange(3.0)
    for x in fields(0, 60):
        fast(angles, x)
    (program,) = target_of(fast).paths.describe()
    last = turned.__code__.co_firstlineno + 4
    assert {branch["line"]: set(branch["sides"]) for branch in program["branches"]} == {last: {"True", "False"}}


def counted(a: Any, b: Any, x: Any) -> Any:
    n = 0
    if a.any():
        n += 1
    if b.any():
        n += 1
    x = np.sin(x)
    if n == 2:
        x = x + 100.0
    return x


@pytest.mark.usefixtures("unchecked")
def test_a_combination_that_was_never_recorded_is_recorded() -> None:
    """No operation tells the three recorded paths apart behind the branches; the fourth has another result."""
    fast = accel.accelerate(counted, name="counted")
    zero, one, x = np.zeros(4), np.ones(4), np.linspace(0.0, 1.0, 4)
    play(counted, fast, [(zero, zero, x), (one, zero, x), (zero, one, x)] * 8)
    assert len(members_of(fast)) == 3
    play(counted, fast, [(one, one, x)] * 8)
    assert len(members_of(fast)) == 4


def three_questions(x: Any) -> Any:
    y = x * 2.0
    if x[0] > 0.5:
        y = np.sin(y) + 1.0
    if x[1] > 0.5:
        y = np.cos(y) * 3.0
    if x[2] > 0.5:
        y = np.tanh(y) - 2.0
    return y


@pytest.mark.usefixtures("unchecked")
def test_a_call_of_a_new_kind_is_told_by_where_it_leaves_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of the paths it had been like until there, and whatever its later outcomes are."""
    kinds: list[Any] = []
    fast = accel.accelerate(three_questions, name="three")
    monkeypatch.setattr(target_of(fast).parts, "note_kind", kinds.append)
    first = three_questions.__code__.co_firstlineno

    def calls(*questions: float) -> list[Any]:
        return [(np.array([*questions, 0.1, 0.2, 0.3]) + k * 1e-3,) for k in range(12)]

    play(three_questions, fast, calls(0, 0, 0))
    assert kinds == [None], "there was no program to leave"
    play(three_questions, fast, calls(1, 0, 0))
    play(three_questions, fast, calls(0, 0, 1))
    play(three_questions, fast, calls(1, 1, 1))
    play(three_questions, fast, calls(0, 1, 0))
    lines = [kind[1] - first for kind in kinds[1:]]
    assert lines == [2, 6, 4, 4]


def by_numbers(x: Any, step: int, scale: float) -> Any:
    y = x * scale
    if step % 5 == 0:
        y = np.sin(y) + 1.0
    if step % 7 == 0:
        y = np.cos(y) * 3.0
    return np.tanh(y) - 2.0


@pytest.mark.usefixtures("unchecked")
def test_so_is_a_call_whose_guards_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[Any] = []
    fast = accel.accelerate(by_numbers, name="numbers")
    monkeypatch.setattr(target_of(fast).parts, "note_kind", kinds.append)
    first = by_numbers.__code__.co_firstlineno
    x = np.linspace(0.0, 1.0, 6)
    for step in (1, 5, 7):  # with one path, with a program of two, and with one of three
        play(by_numbers, fast, [(x + k * 1e-3, step, 2.0) for k in range(12)])
    play(by_numbers, fast, [(x, 1, 2)])
    assert kinds[0] is None, "there was no program to leave"
    assert [kind[1] - first for kind in kinds[1:3]] == [2, 4]
    assert kinds[3:] == ["inputs"]


def rounds(x: Any) -> Any:
    y = x
    for i in range(int(np.ceil(x.max()))):
        y = np.cos(y) + 0.1
        if i == 4:
            y = y * 10.0
    return y


@pytest.mark.usefixtures("unchecked")
def test_counts_are_not_extrapolated() -> None:
    fast = accel.accelerate(rounds, name="rounds")
    start = np.linspace(0.1, 0.9, 5)
    play(rounds, fast, [(start + count,) for count in (2, 3, 2, 3)] * 5)
    play(rounds, fast, [(start + count,) for count in (4, 5, 6, 0, -1, 1)] * 5)


def one_sided(s: Any, x: Any) -> Any:
    y = x + s.u
    if y.mean() > 0.5:
        s.u[1:3] = y[1:3] * 0.5  # a view of an array that the caller holds
        s.extra = y * 2.0
        s.names["last"] = float(y.max())
        if hasattr(s, "old"):
            del s.old
        return None
    if s.n % 3 == 0:
        return s.u, s.u[0]
    x[0] = -1.0
    return float(y.sum()) / s.divisor


@pytest.mark.usefixtures("unchecked")
def test_what_one_side_alone_writes_makes_deletes_and_returns() -> None:
    def world(seed: int, n: int) -> tuple[Any, ...]:
        u, x = fields(seed, 2)
        model = Model(u=u * 0.1, n=n, names={"last": 0.0}, divisor=2.0, old=x.copy())
        return model, x + (1.0 if seed % 2 else -0.5)

    fast = accel.accelerate(one_sided, name="one sided")
    play(one_sided, fast, [world(i, i) for i in range(60)])
    assert len(members_of(fast)) >= 3
    assert open_ledger("one sided").compiled_calls > 20


def raising(x: Any) -> Any:
    if x.max() > 2.0:
        raise ValueError("too large")
    return x / 2 if x.min() < -1.0 else x * 2


@pytest.mark.usefixtures("unchecked")
def test_an_exception_on_one_side_stays_numpys() -> None:
    fast = accel.accelerate(raising, name="raising")
    play(raising, fast, [(x * 0.7,) for x in fields(3, 40)])
    play(raising, fast, [(x,) for x in fields(4, 60)])
    assert len(members_of(fast)) == 2


def dividing(s: Any, x: Any) -> Any:
    if x.mean() > 0.0:
        return np.sin(x), 1.0 / s.divisor
    return np.cos(x), s.divisor


@pytest.mark.usefixtures("unchecked")
def test_what_python_raises_on_the_side_that_is_taken() -> None:
    """Before the run it is not known which side that is; the other side returns as if nothing were wrong."""
    fast = accel.accelerate(dividing, name="dividing")
    play(dividing, fast, [(Model(divisor=2.0), x) for x in fields(6, 20)])
    assert len(members_of(fast)) == 2
    compiled = open_ledger("dividing").compiled_calls
    play(dividing, fast, [(Model(divisor=0.0), x) for x in fields(7, 20)])
    assert open_ledger("dividing").compiled_calls > compiled


def by_flag(x: Any, weights: Any, flag: bool) -> Any:
    y = np.sin(x)
    if flag:
        y = y * weights.w if weights.w.mean() > 0.0 else y
    return y


@pytest.mark.usefixtures("unchecked")
def test_a_constant_decides_a_branch_that_only_one_path_has() -> None:
    fast = accel.accelerate(by_flag, name="by flag")
    weights = Model(w=np.full((6, 5), 0.5))
    play(by_flag, fast, [(x, weights, i % 3 == 0) for i, x in enumerate(fields(8, 40))])
    assert len(members_of(fast)) == 2


def by_number(x: Any, kind: int) -> Any:
    y = x * 2.5 if kind == 1 else x
    return np.sin(y) * 1.5 + x


def test_a_number_that_tells_two_paths_apart_may_seem_constant() -> None:
    """One of them was only just recorded when their program is compiled."""
    fast = accel.accelerate(by_number, name="by number")
    play(by_number, fast, [(x, int(i == 2 or i > 7)) for i, x in enumerate(fields(9, 20))])
    assert len(members_of(fast)) == 2 and open_ledger("by number").compiled_calls > 10


def test_a_program_of_several_paths_that_cannot_run_is_dissolved(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = accel.accelerate(two_branches, name="two")
    play(two_branches, fast, [(x,) for x in fields(0, 40)])

    run = Variant.run

    def broken(self: Variant, values: Any) -> Any:
        if isinstance(self.trace, MergedTrace):
            raise RuntimeError("no such device")
        return run(self, values)

    monkeypatch.setattr(Variant, "run", broken)
    play(two_branches, fast, [(x,) for x in fields(1, 40)])
    assert members_of(fast) == []
    assert any(
        path.apart == "together they have no program: RuntimeError: no such device" for path in target_of(fast).paths
    )
    assert {path.stage for path in target_of(fast).paths} <= {Stage.COMPILED, Stage.OBSERVING}


def by_kind(x: Any, scale: Any) -> Any:
    return x * 2.0 + scale if x.mean() > 0.0 else x - scale


@pytest.mark.usefixtures("unchecked")
def scaled(table: Any, x: Any) -> Any:
    y = table.sum() * x
    if x[0] > 0.5:
        y = np.sin(y)
    if x[1] > 0.5:
        y = np.cos(y) + 1.0
    return y


def test_a_new_path_while_the_program_of_the_others_is_compiled_again() -> None:
    """As after a change of a constant that no program in use can take."""
    fast = accel.accelerate(scaled, name="scaled")
    table = np.linspace(0.0, 1.0, 7)
    low, high, other = (np.array(x) for x in ([0.1, 0.1], [0.9, 0.1], [0.9, 0.9]))
    play(scaled, fast, [(table, low), (table, high)] * 12)
    joint = target_of(fast).paths.joint
    assert joint is not None and len(joint.paths) == 2
    joint.drop_program()
    play(scaled, fast, [(table, other)] * 12)
    assert "accel.fault" not in {refusal.reason for refusal in open_ledger("scaled").refusals}
    assert len(members_of(fast)) == 3


def test_an_input_of_another_type_on_each_path() -> None:
    fast = accel.accelerate(by_kind, name="kinds")
    scales = (1.5, np.full((6, 5), 0.5), np.float32(0.25), 2)
    play(by_kind, fast, [(x, scales[i % 4]) for i, x in enumerate(fields(4, 80))])
    assert len(members_of(fast)) >= 6


class Tuned:
    def __init__(self) -> None:
        self.k = 0.5
        self.table = np.linspace(0.0, 1.0, 5)

    def step(self, x: Any) -> Any:
        y = np.round(x * self.k, 1) + self.table
        return np.sin(y) if x.mean() > 0.0 else y * self.k


@pytest.mark.usefixtures("unchecked")
def test_a_constant_that_changes_after_the_paths_were_joined() -> None:
    fast, plain, mine = accel.accelerate(Tuned.step, name="tuned"), Tuned(), Tuned()
    for i, x in enumerate(fields(5, 80)):
        if i == 40:
            plain.k = mine.k = 0.7
        if i == 60:
            plain.table[2] = mine.table[2] = 9.0
        np.testing.assert_allclose(fast(mine, x), plain.step(x), rtol=1e-12)
    assert len(members_of(fast)) == 2
    assert open_ledger("tuned").compiled_calls > 60


def test_a_difference_from_numpy_dissolves_the_program_first(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    staged = Variant._staged

    def wrong(self: Variant, *arguments: Any) -> Any:
        given = staged(self, *arguments)
        for made in getattr(given, "made", ()) if isinstance(self.trace, MergedTrace) else ():
            made += 1.0
        return given

    monkeypatch.setattr(Variant, "_staged", wrong)
    fast = accel.accelerate(two_branches, name="two")
    play(two_branches, fast, [(x,) for x in fields(0, 60)])
    assert members_of(fast) == []
    assert "two: its paths get programs of their own: " in caplog.text
    assert open_ledger("two").state is State.COMPILED
    apart = [path.apart for path in target_of(fast).paths if path.stage is Stage.COMPILED]
    assert apart
    assert any(why.startswith("together they differ from NumPy") for why in apart)
    assert "it stays apart, as together they differ" in " ".join(accel.report(full=True).split())


def test_a_program_of_several_paths_that_is_slower_is_dissolved(monkeypatch: pytest.MonkeyPatch) -> None:
    from accel.policy.speed import Speed

    fast = accel.accelerate(two_branches, name="two")
    calls = [(x,) for x in fields(0, 40)]
    play(two_branches, fast, calls)
    assert members_of(fast)
    monkeypatch.setattr(Speed, "evidence_of_slowness", lambda self: "9 us against 3 us")
    play(two_branches, fast, copy.deepcopy(calls[:2]))
    assert members_of(fast) == []
    monkeypatch.setattr(Speed, "evidence_of_slowness", lambda self: None)
    play(two_branches, fast, copy.deepcopy(calls))
    apart = [path.apart for path in target_of(fast).paths if path.stage is Stage.COMPILED]
    assert apart
    assert any("together they are slower: 9 us" in why for why in apart)


def test_calls_of_a_path_that_has_its_program_with_others_are_timed_on_numpy() -> None:
    fast = accel.accelerate(two_branches, name="two")
    play(two_branches, fast, [(x,) for x in fields(0, 40)])
    of_one_kind = [(np.full((6, 5), 1.0 + n),) for n in range(8)]
    play(two_branches, fast, of_one_kind)
    known = target_of(fast).paths
    assert known.joint is not None
    likely = known.expected(known.joint)
    assert likely is not known.joint
    before = open_ledger("two").compiled_calls
    likely.speed.wanted = CALLS_IN_A_ROW
    play(two_branches, fast, of_one_kind[:CALLS_IN_A_ROW])
    assert (likely.speed.wanted, open_ledger("two").compiled_calls) == (0, before)
    play(two_branches, fast, of_one_kind[:1])
    assert open_ledger("two").compiled_calls == before + 1


def unlike(x: Any) -> Any:
    return np.sin(np.cos(x) * 2.0) if x.mean() > 0.0 else np.sqrt(np.abs(x)) + np.tanh(x)


def test_paths_that_share_too_little_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "SMALL", 0)
    monkeypatch.setattr(merging, "MOST_GROWTH", 1.1)
    fast = accel.accelerate(unlike, name="unlike")
    play(unlike, fast, [(x,) for x in fields(0, 40)])
    assert members_of(fast) == []
    assert open_ledger("unlike").variants == 2
    assert "it stays apart, as together they have" in " ".join(accel.report(full=True).split())


# -- on disk -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unchecked")
def test_a_later_run_takes_the_whole_program_with_its_first_path(
    in_background: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joins, "MOST_JOINS", 0)  # all four have to be recorded
    first = accel.accelerate(two_branches, name="first")
    play(two_branches, first, [(x,) for x in fields(0, 80)])
    assert len(members_of(first)) == 4
    assert list(in_background.rglob(f"*{cache.TOGETHER}"))
    second = accel.accelerate(two_branches, name="second")
    # one path again and again, until it has a program: that of all four
    (x,) = [x for x in fields(1, 40) if x.mean() > 0.0 and x[0, 0] <= 0.3][:1]
    play(two_branches, second, [(x.copy(),) for _ in range(12)])
    assert len(members_of(second)) == 1
    play(two_branches, second, [(x,) for x in fields(2, 60)])
    assert len(members_of(second)) == 4
    programs = target_of(second).paths.describe()
    assert [program["found_on_disk"] for program in programs] == [True]


def of_kind(x: Any, kind: int) -> Any:
    y = x * 2.0
    if kind > 1:
        y = np.sin(y) + 1.0
    if kind % 2:
        y = np.roll(y, 1)
    return y.sum(axis=0), y


@pytest.mark.usefixtures("unchecked")
def test_paths_of_an_earlier_run_that_do_not_come_are_left_out(in_background: Path) -> None:
    first, second = (accel.accelerate(of_kind, name="kinds") for _ in range(2))
    play(of_kind, first, [(x, 2 + n % 2) for n, x in enumerate(fields(0, 40))])
    assert len(members_of(first)) == 2
    play(of_kind, second, [(x, n % 2) for n, x in enumerate(fields(1, 40))])
    assert len(target_of(second).paths) == 4 and len(members_of(second)) == 2
    play(of_kind, second, [(x, n % 4) for n, x in enumerate(fields(2, 60))])
    assert len(members_of(second)) == 4


def test_the_report_names_lines_of_this_run_where_an_earlier_text_has_left_the_program(in_background: Path) -> None:
    first = accel.accelerate(two_branches, name="first")
    play(two_branches, first, [(x,) for x in fields(0, 80)])
    edited = two_branches.__code__.replace(co_firstlineno=two_branches.__code__.co_firstlineno + 1000)
    moved = FunctionType(edited, globals())
    second = accel.accelerate(moved, name="second")
    play(moved, second, [(x,) for x in fields(1, 80)])
    (program,) = target_of(second).paths.describe()
    assert program["found_on_disk"] and program["paths"] > 1
    lines = {int(each["where"].rpartition(":")[2]) for each in program["work"]}
    assert min(lines) > edited.co_firstlineno


def weighing(size: float) -> Any:
    weights = np.linspace(0.0, size, 30).reshape(6, 5)

    def weighed(x: Any) -> Any:
        y = np.exp(-weights) * x
        return np.sin(y) + weights if x.mean() > 0.0 else y

    return weighed


@pytest.mark.usefixtures("unchecked")
def test_a_later_run_with_another_constant_array_takes_the_program(in_background: Path) -> None:
    """It is an argument of the program: nothing has to be compiled for it."""
    first = accel.accelerate(weighing(2.0), name="weighed")
    play(weighing(2.0), first, [(x,) for x in fields(0, 20)])
    (program,) = target_of(first).paths.describe()
    for size in (3.0, 4.0):
        second = accel.accelerate(weighing(size), name=f"weighed again by {size}")
        play(weighing(size), second, [(x,) for x in fields(0, 20)])
        (again,) = target_of(second).paths.describe()
        assert again["constants"] == program["constants"] == ["weighed's weights"]
        assert again["operations"] == program["operations"]


def with_names_of_sides(x: Any) -> Any:
    taken = []
    if x.mean() > 0.0:
        x = np.sin(x)
        taken.append("up")
    if x[0, 0] > 0.3:
        x = x + 1.0
        taken.append("corner")
    return x, taken


def launches_of(book: Ledger) -> int:
    return sum(each.launches for each in book.transfers)


@pytest.mark.usefixtures("unchecked")
def test_a_later_run_starts_with_a_path_that_a_program_on_disk_has_admitted(in_background: Path) -> None:
    *others, later = {tuple(with_names_of_sides(x)[1]): (x,) for x in fields(0, 40)}.values()
    first = accel.accelerate(with_names_of_sides, name="first")
    play(with_names_of_sides, first, copy.deepcopy([*others, *others, *others, *others]))
    book = open_ledger("first")
    programs, compiled, launches = book.compile_s, book.compiled_calls, launches_of(book)
    play(with_names_of_sides, first, copy.deepcopy([later] * 3))
    assert len(members_of(first)) == 4
    assert book.compile_s == programs
    assert launches_of(book) - launches >= book.compiled_calls - compiled > 0
    second = accel.accelerate(with_names_of_sides, name="second")
    play(with_names_of_sides, second, copy.deepcopy([later] * 12))
    assert len(members_of(second)) == 1
    assert [program["found_on_disk"] for program in target_of(second).paths.describe()] == [True]


def as_told(x: Any, twice: bool) -> Any:
    y = np.sin(x) + np.roll(x, 1)
    if twice:
        y = np.sin(y) * 2.0
    return y - y.mean()


@pytest.mark.usefixtures("unchecked")
def test_a_path_that_is_recorded_while_a_program_on_disk_is_loaded_joins_it(
    in_background: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (x,) = fields(0, 1)
    first = accel.accelerate(as_told, name="first")
    play(as_told, first, [(x, True), (x, False)] * 8)
    assert len(members_of(first)) == 2
    second = accel.accelerate(as_told, name="second")
    with monkeypatch.context() as loading:
        loading.setattr(paths.program.Program, "is_ready", lambda program: False)
        play(as_told, second, [(x, True)] * 12)
        play(as_told, second, [(x, False)])
    assert {path.stage for path in target_of(second).paths} == {Stage.PENDING, Stage.OBSERVING}
    play(as_told, second, [(x, True)])
    assert len(members_of(second)) == 2
    assert [program["found_on_disk"] for program in target_of(second).paths.describe()] == [True]


@pytest.mark.usefixtures("unchecked")
def test_what_an_earlier_run_has_recorded_is_wanting_until_this_one_has(in_background: Path) -> None:
    a, b, *_ = {tuple(with_names_of_sides(x)[1]): (x,) for x in fields(0, 40)}.values()
    first = accel.accelerate(with_names_of_sides, name="first")
    play(with_names_of_sides, first, copy.deepcopy([a, b] * 8))
    assert not target_of(first).paths.awaits_known_paths
    second = accel.accelerate(with_names_of_sides, name="second")
    play(with_names_of_sides, second, copy.deepcopy([a] * 12))
    assert target_of(second).paths.awaits_known_paths
    play(with_names_of_sides, second, copy.deepcopy([b]))
    assert not target_of(second).paths.awaits_known_paths


@pytest.mark.usefixtures("unchecked")
def test_a_program_on_disk_that_cannot_be_read_is_compiled_again(in_background: Path) -> None:
    first = accel.accelerate(two_branches, name="first")
    play(two_branches, first, [(x,) for x in fields(0, 80)])
    for path in in_background.rglob(f"*{cache.TOGETHER}"):
        key, suffix = path.stem, path.suffix
        assert cache.save(key, b"not a pickle", suffix) == ""
    second = accel.accelerate(two_branches, name="second")
    play(two_branches, second, [(x,) for x in fields(2, 80)])
    assert len(members_of(second)) == 4


@pytest.mark.usefixtures("unchecked")
def test_a_later_run_that_compiles_it_again_keeps_the_paths_that_it_has_not_recorded(in_background: Path) -> None:
    up, down = (sorted(fields(5, 20), key=lambda x: sign * x.mean())[0] for sign in (-1.0, 1.0))
    runs = {"first": [(0.5, up), (0.5, down)], "second": [(0.5, up), (0.7, up)], "third": [(0.7, down), (0.7, up)]}
    for name, calls in runs.items():
        fast, plain, mine = accel.accelerate(Tuned.step, name=name), Tuned(), Tuned()
        for value, x in calls:
            plain.table[2] = mine.table[2] = value
            for _ in range(12):
                np.testing.assert_allclose(fast(mine, x), plain.step(x), rtol=1e-12)
        assert open_ledger(name).state is State.COMPILED
        assert target_of(fast).paths.joint is not None
    assert [program["found_on_disk"] for program in target_of(fast).paths.describe()] == [True]
