"""Comparing a replay with NumPy: what counts as equal, what rounding explains, and what does not."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from accel.backend.compile import compile_trace
from accel.compiler.lower import Known
from accel.dispatch.comparing import comparison as comparing
from accel.dispatch.comparing import monte_carlo
from accel.dispatch.comparing.comparison import Comparison
from accel.dispatch.comparing.errors import Tolerance, Verdict, relative_errors
from accel.dispatch.comparing.monte_carlo import explanation
from accel.dispatch.comparing.snapshot import Snapshot
from accel.dispatch.replay import StagedOutputs, Variant
from accel.record import record


def residue(x: Any) -> Any:
    """What is left of 1 - exp(-x) for tiny x: a few units in the last place of 1."""
    return 1.0 - np.exp(-x)


def in_place(x: Any) -> Any:
    x += 1.0
    return x * 2.0


def step(state: Any, x: Any) -> Any:
    state.field = state.field + x
    return float(state.field.max()), x


def run(function: Any, *args: Any) -> tuple[Variant, StagedOutputs, Snapshot, Any]:
    """A variant, a run on `args`, and NumPy's own call on them."""
    import copy

    recorded = record(function, copy.deepcopy(args), {}, max_nodes=1000)
    assert recorded.refusal is None, recorded.refusal
    values, failed = recorded.trace.inputs.fetch(args, {})
    assert failed is None, failed
    variant = Variant(recorded.trace, compile_trace(recorded.trace, Known(), values))
    staged = variant.run(values)
    assert isinstance(staged, StagedOutputs)
    snapshot = Snapshot(staged)
    return variant, staged, snapshot, function(*args)


def test_an_equal_replay_shows_no_difference() -> None:
    _variant, staged, snapshot, result = run(in_place, np.arange(5.0))
    assert Comparison(staged, result, snapshot, Tolerance(1e-9)).differences == []


def test_a_wrong_element_is_named_with_both_values() -> None:
    _variant, staged, snapshot, result = run(residue, np.linspace(0.1, 1.0, 12).reshape(3, 4))
    staged.made[0][1, 2] *= 1.0 + 1e-6
    comparison = Comparison(staged, result, snapshot, Tolerance(1e-9))
    assert comparison.differences
    assert comparison.error == pytest.approx(1e-6, rel=1e-3)
    assert comparison.differences[0].detail.startswith("the result[1, 2]: NumPy ")
    assert repr(result[1, 2]) in comparison.differences[0].detail
    assert explanation(staged, snapshot, Tolerance(1e-9)) is Verdict.MISMATCH


def test_a_dropped_mutation_is_a_difference() -> None:
    variant, staged, snapshot, result = run(in_place, np.arange(5.0))
    variant.trace.outputs.changed.clear()
    staged.changed.clear()
    comparison = Comparison(staged, result, Snapshot(replace(staged, values=snapshot.values)), Tolerance(1e-9))
    assert comparison.differences[0].detail == "x: was changed in place by NumPy, not by the replay"
    assert comparison.error == np.inf


def test_a_wrong_dtype_is_a_difference() -> None:
    _variant, staged, snapshot, result = run(residue, np.linspace(0.1, 1.0, 4))
    staged.made[0] = staged.made[0].astype(np.float32)
    comparison = Comparison(staged, result, snapshot, Tolerance(1e-9))
    assert "NumPy gives float64[4], the replay float32[4]" in comparison.differences[0].detail


def test_attributes_and_types_and_identity_are_compared() -> None:
    state, x = SimpleNamespace(field=np.arange(3.0)), np.ones(3)
    _variant, staged, snapshot, result = run(step, state, x)
    assert Comparison(staged, result, snapshot, Tolerance(1e-9)).differences == []
    copied = (np.float64(result[0]), x.copy())
    comparison = Comparison(staged, copied, snapshot, Tolerance(1e-9))
    assert comparison.error == np.inf
    state.field = state.field + 1.0
    comparison = Comparison(staged, result, snapshot, Tolerance(1e-9))
    assert "state.field" in comparison.differences[0].detail


def test_what_an_object_holds_is_compared_once_however_it_is_reached() -> None:
    class State:
        def __init__(self) -> None:
            self.field, self.items = np.arange(3.0), [1.0, 2.0]

        def doubled(self) -> Any:
            return self.field * 2.0

    def work(state: Any) -> Any:
        state.field = state.doubled() + len(state.items)
        return state.field.sum()

    state = State()
    _variant, staged, snapshot, result = run(work, state)
    assert Comparison(staged, result, snapshot, Tolerance(1e-9)).differences == []
    state.items.append(3.0)
    state.other = 5.0  # type: ignore[attr-defined]
    found = Comparison(staged, result, snapshot, Tolerance(1e-9)).differences
    assert {difference.field for difference in found} == {"state.other", "state.items[2]"}
    assert {difference.what for difference in found} == {"was set by NumPy, not by the replay"}


def test_rounding_explains_what_cancellation_leaves() -> None:
    _variant, staged, snapshot, _ = run(residue, np.full(40, 3e-16))
    staged.made[0][...] += 1.1102230246251565e-16
    assert explanation(staged, snapshot, Tolerance(1e-9)) is Verdict.ROUNDING
    staged.made[0][7] += 1e-12
    assert explanation(staged, snapshot, Tolerance(1e-9)) is Verdict.MISMATCH


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_rounding_explains_the_last_places_of_short_types(dtype: Any) -> None:
    def work(x: Any) -> Any:
        return x * x * x - x / 3

    x = (np.linspace(0.5, 2.0, 40) * (1 + (0.5j if dtype is np.complex64 else 0))).astype(dtype)
    _variant, staged, snapshot, _ = run(work, x)
    staged.made[0][...] *= dtype(1) + np.float32(2e-7)
    assert explanation(staged, snapshot, Tolerance(1e-9, exact=False)) is Verdict.ROUNDING
    # NumPy fuses products of complex numbers
    assert (explanation(staged, snapshot, Tolerance(1e-9)) is Verdict.ROUNDING) is (dtype is np.complex64)
    staged.made[0][-1] *= 1.001
    assert explanation(staged, snapshot, Tolerance(1e-9, exact=False)) is Verdict.MISMATCH


@pytest.mark.parametrize("function", [np.sign, np.abs], ids=lambda each: each.__name__)
def test_rounding_explains_sizes_of_complex_numbers_only(function: Any) -> None:
    """NumPy computes the size in a sign otherwise than its `abs`, which differs between processors."""
    for x in (np.array([3 - 4j, 1 + 1j], np.complex64), np.array([-1.5, 2.0], np.float32)):
        _variant, staged, snapshot, _ = run(lambda x: function(x), x)
        staged.made[0][...] *= np.float32(1) + np.float32(2e-7)
        assert (explanation(staged, snapshot, Tolerance(1e-9)) is Verdict.ROUNDING) is (x.dtype.kind == "c")


def products(a: Any, b: Any) -> Any:
    return a * b - b * a


def total(a: Any, b: Any) -> Any:
    return (a * b).sum()


@pytest.mark.parametrize(
    ("function", "exact", "expected"),
    [
        (products, True, Verdict.MISMATCH),
        (products, False, Verdict.ROUNDING),
        (total, True, Verdict.ROUNDING),
        (total, False, Verdict.ROUNDING),
    ],
)
def test_what_cancels_in_arithmetic_is_explained_where_that_is_not_exact(
    function: Any, exact: bool, expected: Verdict
) -> None:
    """And what cancels inside a sum everywhere: its order may differ."""
    a = np.linspace(0.1, 1.0, 40)
    _variant, staged, snapshot, _ = run(function, a, np.repeat([1.0, -1.0], 20) * a[::-1])
    if function is products:
        staged.made[0][7] = 1e-17
    else:
        staged.numbers[0] += 1e-16
    assert explanation(staged, snapshot, Tolerance(1e-9, exact=exact)) is expected


def test_no_more_runs_than_it_takes_to_explain(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Any] = []
    run_tape = monte_carlo.run_tape
    monkeypatch.setattr(monte_carlo, "run_tape", lambda *given: (runs.append(given), run_tape(*given))[1])
    _variant, staged, snapshot, _ = run(residue, np.full(40, 3e-16))
    staged.made[0][...] += 1.1102230246251565e-16
    assert explanation(staged, snapshot, Tolerance(1e-9)) is Verdict.ROUNDING
    assert len(runs) == 2, "as it is, and once with perturbed rounding"
    staged.made[0][7] += 1e-12
    assert explanation(staged, snapshot, Tolerance(1e-9)) is Verdict.MISMATCH
    assert len(runs) == 2 + 1 + 2 * len(monte_carlo.SEEDS), "what they do not explain is tried with all of them"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_perturbed_rounding_gives_a_neighbour(dtype: Any) -> None:
    top = np.finfo(dtype)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, top.max, top.tiny, top.smallest_subnormal]
    values = np.tile(np.array([*special, *np.linspace(-3, 3, 30)], dtype), (50, 1))[:, ::2]
    with np.errstate(all="ignore"):
        neighbours = [np.nextafter(values, dtype(way)) for way in (np.inf, -np.inf)]
        moved = monte_carlo._Rounding(0, {}, 0.0, None)._moved(values)
    assert moved.dtype == values.dtype
    stays = (values == 0) | ~np.isfinite(values)
    np.testing.assert_array_equal(moved[stays], values[stays])
    ups, downs = (((moved == each) & ~stays).sum() for each in neighbours)
    assert ups + downs == (~stays).sum()
    assert 0.4 < ups / (ups + downs) < 0.6


def test_what_rounding_explained_once_is_not_explained_again(monkeypatch: pytest.MonkeyPatch) -> None:
    _variant, staged, snapshot, result = run(residue, np.linspace(0.1, 1.0, 40))
    asked: list[float] = []

    def explain(*given: Any) -> Verdict:
        asked.append(given[3])
        return Verdict.ROUNDING

    monkeypatch.setattr(comparing, "explanation", explain)
    explained: dict[str, float] = {}

    def judged(error: float) -> int:
        """How often has been asked for an explanation after one more comparison that is so far off."""
        staged.made[0][...] = result
        staged.made[0][-1] *= 1.0 + error
        assert Comparison(staged, result, snapshot, Tolerance(1e-9)).judge(explained) is Verdict.ROUNDING
        return len(asked)

    assert [judged(5e-9), judged(4e-9), judged(9e-9), judged(4e-8), judged(7e-8)] == [1, 1, 1, 2, 2]
    assert [judged(0.5), judged(0.4), judged(9e-7), judged(0.4)] == [3, 4, 4, 5], "large errors are explained each time"


def test_rounding_does_not_explain_a_wrong_integer() -> None:
    def count(x: Any) -> Any:
        return np.floor(x).astype(int)

    _variant, staged, snapshot, _ = run(count, np.array([0.5, 1.5, 2.5]))
    staged.made[0][1] += 1
    assert explanation(staged, snapshot, Tolerance(1e-9)) is Verdict.MISMATCH


def reciprocal(a: Any, b: Any) -> Any:
    return 1.0 / (np.exp(a) * b - b * np.exp(a))


def root(a: Any, b: Any) -> Any:
    return np.sqrt(np.exp(a) * b - b * np.exp(a))


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(
    ("function", "replayed"),
    [(reciprocal, 1e17), (reciprocal, -np.inf), (reciprocal, np.nan), (root, np.nan), (root, np.inf)],
    ids=["finite for infinite", "other infinity", "NaN for infinite", "NaN for 0", "infinite for 0"],
)
@pytest.mark.parametrize("exact", [True, False])
def test_rounding_explains_no_nan_and_no_infinity(function: Any, replayed: float, exact: bool) -> None:
    """However sensitive NumPy's own value is: it is infinite in one run and 1e17 in the next."""
    args = np.linspace(0.5, 2.0, 40), np.linspace(3.0, 4.0, 40)
    _variant, staged, snapshot, result = run(function, *args)
    staged.made[0][...] = result
    staged.made[0][7] = replayed
    assert explanation(staged, snapshot, Tolerance(1e-9, exact=exact)) is Verdict.MISMATCH
    explained = {"the result": 1e-3}
    assert Comparison(staged, result, snapshot, Tolerance(1e-9)).judge(explained) is Verdict.MISMATCH


def test_runs_that_give_nan_or_infinity_excuse_nothing() -> None:
    """The perturbed runs are infinite where NumPy and the replay are finite, and differ by a factor of 3."""
    value, replayed = np.full(40, 1e17), np.full(40, 3e17)
    assert not monte_carlo._within(replayed, value, (np.full(40, np.inf), np.full(40, np.nan)), 1e-9)
    assert monte_carlo._within(replayed, value, (np.full(40, np.inf), np.full(40, 2e17)), 1e-9)


@pytest.mark.parametrize("unit", [1.0, 1.0j])
def test_rounding_explains_another_sign_of_what_is_noise_alone(unit: complex) -> None:
    def scaled(x: Any) -> Any:
        return (1.0 - np.exp(-x)) * unit

    _variant, staged, snapshot, result = run(scaled, np.full(40, 1.2e-16))
    assert np.abs(result).max() == 1.1102230246251565e-16
    staged.made[0][...] = -result
    assert explanation(staged, snapshot, Tolerance(1e-9)) is Verdict.ROUNDING
    _variant, staged, snapshot, result = run(scaled, np.full(40, 3e-15))
    staged.made[0][...] = result * 1.2
    assert explanation(staged, snapshot, Tolerance(1e-9)) is Verdict.ROUNDING, "as large an error of the same sign"
    staged.made[0][...] = -result
    assert explanation(staged, snapshot, Tolerance(1e-9)) is Verdict.MISMATCH


def above(x: Any) -> Any:
    return x * x > 2.0


def exponential_above(x: Any) -> Any:
    return np.exp(x) > 2.0


@pytest.mark.parametrize(
    ("function", "threshold", "exact", "expected"),
    [
        (above, np.sqrt(2.0), True, Verdict.MISMATCH),
        (above, np.sqrt(2.0), False, Verdict.THRESHOLD),
        (exponential_above, np.log(2.0), True, Verdict.THRESHOLD),
    ],
    ids=["arithmetic", "arithmetic that is not exact", "exponential"],
)
def test_another_answer_near_a_threshold_needs_a_function_whose_last_place_may_differ(
    function: Any, threshold: float, exact: bool, expected: Verdict
) -> None:
    x = np.linspace(0.1, 3.0, 40)
    x[7] = threshold * (1.0 + 1e-13)
    _variant, staged, snapshot, result = run(function, x)
    staged.made[0][...] = result
    staged.made[0][7] ^= True
    assert explanation(staged, snapshot, Tolerance(1e-9, exact=exact)) is expected
    staged.made[0][8] ^= True
    assert explanation(staged, snapshot, Tolerance(1e-9, exact=exact)) is Verdict.MISMATCH


@pytest.mark.parametrize(
    ("replayed", "actual", "expected"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.nan, 1.0], [0.0, 1.0], np.inf),
        ([np.inf, 1.0], [-np.inf, 1.0], np.inf),
        ([1.0 + 1e-8], [1.0], 1e-8),
        ([1.0, 1e-6], [1.0, 0.0], 1e-3),  # nothing else differs, and 0 has no magnitude
        ([1e36, 3.0], [1e36, 0.0], 3.0),
        ([1e-6], [0.0], 1e-6),
        ([1.0 + 1e-12, 1e-6], [1.0, 2e-6], 1e-3),  # relative to 1e-3 of the largest magnitude that differs
        ([1e36, 3.0], [1e36, 1.0], 2.0),  # a fill value justifies nothing
        ([1.0, 0.0], [1.0, 1e-310], 1e-307),  # flushed
        ([0.0, 1.0], [1e-310, 1.0], 0.0),  # XLA flushes subnormal numbers to 0
        ([0.0, 4e-320], [3e-308, 0.0], 1.0),
        ([True, False], [True, True], np.inf),
        ([1, 2], [1, 3], np.inf),
        ([], [], 0.0),
    ],
)
def test_relative_error(replayed: Any, actual: Any, expected: float) -> None:
    errors = relative_errors(np.asarray(replayed), np.asarray(actual))
    assert (0.0 if errors is None else errors.max()) == pytest.approx(expected, rel=1e-6)
