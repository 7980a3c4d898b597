"""Functions that a compiled program calls as they are, in the middle of its run."""

from __future__ import annotations

import os
import signal as signals
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import chebyshev, laguerre
from scipy import interpolate, linalg, ndimage, optimize, signal, spatial, special, stats

import accel
from accel.platform import callbacks
from accel.platform.ledger import State, open_ledger
from accel.rules import load
from accel.rules.hosted import hosted, is_plain, structure_of
from accel.rules.rule import lookup
from tests.processes import assert_found_again, starter


def fields(i: int) -> Any:
    return np.random.default_rng(i).normal(size=(12, 16))


def line(i: int) -> Any:
    return np.sin(np.linspace(0.0, 40.0, 300)) + 0.1 * np.random.default_rng(i).normal(size=300)


def labels(x: Any) -> Any:
    found, count = ndimage.label(ndimage.binary_opening(x > -0.5), structure=np.ones((3, 3)))
    sizes = ndimage.sum_labels(np.ones_like(x), found, np.arange(1, 4))
    return found + 1, count * 2.5, sizes.max(), ndimage.distance_transform_edt(x > 0.0).mean()


def parts(x: Any) -> Any:
    order = np.argpartition(x * 2.0, 3, axis=1)[:, :3]
    return np.partition(x + 1.0, 3, axis=1)[:, 3], np.take_along_axis(x, order, axis=1).sum(axis=1)


def systems(x: Any) -> Any:
    a = x[:, :5] + np.eye(12, 5)
    found, residuals, rank, singular = np.linalg.lstsq(a, x[:, 0], rcond=None)
    values = np.linalg.eigvals(a[:5] @ a[:5].T)
    q, r = linalg.qr(a, mode="economic")
    return (
        a @ found,
        residuals / 2,
        rank + 1,
        singular[0],
        np.sort(values),
        abs(q @ r) + linalg.sqrtm(np.eye(3) * 4.0)[0, 0],
    )


def smoothed(x: Any) -> Any:
    b, a = signal.butter(3, 0.2)
    y = signal.filtfilt(b, a, x * 2.0)
    f, power = signal.welch(y, fs=10.0, nperseg=64)
    return (
        y - x,
        f[np.argmax(power)],
        signal.resample(y, 50).max(),
        signal.sosfiltfilt(signal.butter(2, 0.3, output="sos"), x),
    )


def filtered(x: Any) -> Any:
    b, a = signal.butter(2, 0.3)
    y, state = signal.lfilter(b, a, x * 2.0, zi=signal.lfilter_zi(b, a))
    z = signal.sosfilt(signal.butter(2, 0.3, output="sos"), signal.detrend(y))
    envelope = np.abs(signal.hilbert(signal.medfilt(z, 5)))
    return state + 1.0, signal.savgol_filter(envelope, 7, 2), special.j0(x) + special.j1(x) * special.spence(x + 3.0)


def statistics(x: Any) -> Any:
    rows, columns = optimize.linear_sum_assignment(x[:8, :8] ** 2)
    ranks = stats.rankdata(x, axis=1)
    return x[rows, columns].sum(), ranks / 2, stats.skew(x, axis=None), special.jv(2, abs(x)), special.k0(x * x + 1.0)


def resampled(x: Any) -> Any:
    points = np.abs(x[:, :2])
    grid = interpolate.griddata((points[:, 0], points[:, 1]), x[:, 2], (points[:4, 1], points[:4, 0]), method="nearest")
    return grid + 1.0, interpolate.pchip_interpolate(np.arange(12.0), x[:, 0], np.linspace(1.0, 9.0, 7)) * 2.0


def neighbours(x: Any) -> Any:
    points = x[:, :2] * 2.0
    tree = spatial.cKDTree(points)
    distances, found = tree.query(x[:, 2:4], k=3)
    density = stats.gaussian_kde(x[:, :2].T)
    return distances.mean(axis=1), x[found, 0].sum(), tree.n + 1, density(x[:3, 2:4].T) * 2.0


def splines(x: Any) -> Any:
    knots = np.arange(12.0)
    spline = interpolate.CubicSpline(knots, x[:, 0] * 2.0, bc_type="natural")
    line = interpolate.interp1d(knots, x[:, 1], kind="quadratic", fill_value="extrapolate")
    at = np.linspace(0.5, 10.5, 9) + x[0, 0] * 0.01
    return spline(at) + line(at), spline(at, 1).max(), spline.integrate(1.0, 5.0) * 2, spline(3.5)


def ties(x: Any) -> Any:
    """The order of equal elements is NumPy's own."""
    values = np.where(x > 0.0, x, -1.0).ravel()
    return np.argsort(values)[::-1][:20], np.argsort(values.reshape(12, 16), axis=1)


@pytest.mark.parametrize("work", [labels, parts, systems, statistics, resampled, neighbours, splines, ties])
def test_programs_that_call_functions(check: Any, work: Any) -> None:
    check(work, fields)


def test_filters_and_spectra(check: Any) -> None:
    check(smoothed, line)
    check(filtered, line)


def test_a_result_of_another_form_is_another_path(check: Any) -> None:
    """The number of peaks, and whether eigenvalues are complex, are what a path assumes."""

    def work(x: Any, a: Any) -> Any:
        peaks, about = signal.find_peaks(x, height=0.0, distance=5)
        return x[peaks].mean(), about["peak_heights"] * 2.0, np.linalg.eigvals(a).real

    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])

    def make(i: int) -> Any:
        return np.sin(np.linspace(0.0, 20.0 + i % 3, 200)) + i, np.eye(2) * i if i % 2 else turn

    check(work, make, calls=24, replays=8)


def test_an_exception_is_numpys(check: Any) -> None:
    def work(x: Any) -> Any:
        return np.linalg.eigvals(x[:5, :5] * 2.0).sum()

    check(work, lambda i: fields(i) * (np.nan if i == 7 else 1.0), replays=5)


def test_in_loops_branches_and_under_masks(check: Any) -> None:
    def work(x: Any) -> Any:
        total = np.zeros(5)
        for row in x[:6]:
            total = total + np.partition(row, 4)[:5]
        if total[0] > -10.0:
            total = total * stats.rankdata(total)
        chosen = x[x > 0.0]
        return total, np.partition(chosen, 2)[:2]

    check(work, lambda i: fields(i % 2), calls=14, replays=4)


def test_what_the_function_is_given_stays_as_it_is(check: Any) -> None:
    def work(x: Any) -> Any:
        y = x * 2.0
        found = stats.zscore(y)
        return y, found

    check(work, fields)


def test_parameters_by_which_it_writes_are_refused(check: Any) -> None:
    def work(x: Any) -> Any:
        found = np.zeros(x.shape, np.int32)
        count = ndimage.label(x > 0.0, output=found)
        return found, count

    check(work, fields, reason="rule.parameter")


def test_a_tree_of_points_that_move_stays_on_numpy(check: Any) -> None:
    """It looks at the memory that it was given, while its own order stays."""

    def work(x: Any) -> Any:
        points = x[:, :2] * 2.0
        tree = spatial.cKDTree(points)
        points[0] = 50.0
        return tree.query(x[:, 2:4])[0]

    check(work, fields, reason="call.opaque")


class Field:
    def __init__(self) -> None:
        self.tree: Any = None


def test_an_object_that_is_kept_stays_on_numpy(check: Any) -> None:
    """A later call would find one that no program has made."""

    def work(held: Field, x: Any) -> Any:
        held.tree = spatial.cKDTree(x)
        return held.tree.query(x + 0.1)[0]

    def worlds() -> Any:
        held = Field()
        return lambda i: (held, fields(i)[:, :2])

    twice = check(lambda x: (interpolate.CubicSpline(np.arange(12.0), x[:, 0]), x * 2.0)[1], fields)
    assert twice.ledger.compiled_calls
    held = accel.accelerate(work, name="keeping")
    make = worlds()
    for i in range(6):
        keeper, x = make(i)
        np.testing.assert_array_equal(held(keeper, x), spatial.cKDTree(x).query(x + 0.1)[0])
        assert type(keeper.tree) is spatial.cKDTree
        np.testing.assert_array_equal(keeper.tree.data, x)
    assert not open_ledger("keeping").compiled_calls


class Stations:
    def __init__(self, kind: Any) -> None:
        self.xy = abs(fields(0)[:, :2])
        self.tree = kind(self.xy)

    def near(self, x: Any) -> Any:
        distances, found = self.tree.query(x[:, 2:4] * 2.0, k=3)
        return distances.mean(axis=1), self.xy[found].sum(), found, self.tree.n + 1


@pytest.mark.parametrize("kind", [spatial.cKDTree, spatial.KDTree])
def test_a_tree_that_the_program_holds_stays_on_numpy(check: Any, kind: Any) -> None:
    held = Stations(kind)
    check(Stations.near, lambda i: (held, fields(i)), reason="call.opaque")


def test_polynomials_masks_and_other_distances(check: Any) -> None:
    def work(x: Any) -> Any:
        a, b = x[:, 0] > -9.0, x[0] > 9.0
        y = x.copy()
        y[np.ix_(a, [0, 2])] *= 0.5
        y[np.ix_(a, b)] = 7.0
        between = spatial.distance.pdist(abs(x), "braycurtis")
        across = spatial.distance.cdist(x, x + 1.0, metric="canberra")
        return y, laguerre.lagvander(x[0], 3) @ np.arange(4.0), chebyshev.chebval(x, x[0, :3]), between * 2.0, across

    check(work, fields)


def test_numbers_stay_numbers(check: Any) -> None:
    """A function may tell a number of Python's from an array without axes."""

    def work(x: Any, n: int, limit: float) -> Any:
        peaks, _ = signal.find_peaks(x, distance=n, height=limit)
        return peaks[:3], special.jv(n, limit), special.jv(1, x.mean())

    check(work, lambda i: (line(3), 4 + i, -0.5 + 0.01 * i), replays=0)


def test_kinds_of_results() -> None:
    assert is_plain((np.ones(2), 1, {"a": 2.0, "b": None}))
    assert is_plain(np.linalg.eig(np.eye(2)))
    assert not is_plain(stats.linregress([0.0, 1.0, 2.0], [0.0, 1.0, 1.0]))  # it holds more than its elements
    assert not is_plain((np.ones(2), {1, 2}))
    assert not is_plain(True)


def test_numpys_evaluation_gives_the_same_forms() -> None:
    load()
    rule = lookup(np.linalg.eigvals)
    assert rule is not None
    dtype = np.linalg.eigvals(np.eye(2)).dtype  # complex from NumPy 2.5 on, whatever the values
    about = (((2,), dtype.str),), (None,), structure_of(np.ones(2))
    values, ended = hosted(rule).function(about, a=np.diag([2.0, 1.0]))
    assert ended
    np.testing.assert_array_equal(values, [2.0, 1.0])
    values, ended = hosted(rule).function(about, a=np.diag([np.nan, 1.0]))
    assert not ended
    np.testing.assert_array_equal(values, [0.0, 0.0])


def test_a_signal_that_arrives_meanwhile_is_not_lost() -> None:
    """Its handler runs after the program, in the main thread, and what it raises is the program's."""

    class Stop(Exception):
        pass

    def handler(*_: object) -> None:
        raise Stop

    calls = 0

    def work(x: Any) -> Any:
        return np.partition(x * 2.0, 3)

    fast = accel.accelerate(work, name="interrupted")
    for i in range(6):
        fast(fields(i))
    assert open_ledger("interrupted").compiled_calls
    rule = lookup(np.partition)
    assert rule is not None

    before, plain = signals.signal(signals.SIGUSR1, handler), rule.function

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            os.kill(os.getpid(), signals.SIGUSR1)
        return plain(*args, **kwargs)

    try:
        object.__setattr__(rule, "function", interrupted)
        with pytest.raises(Stop):
            fast(fields(7))
    finally:
        object.__setattr__(rule, "function", plain)
        signals.signal(signals.SIGUSR1, before)
    np.testing.assert_array_equal(fast(fields(8)), work(fields(8)))


def test_a_signal_that_arrives_before_a_callback_waits_for_the_programs_end(by_xla: None) -> None:
    """What its handler raised was lost, and results were an earlier run's, or the process crashed."""
    kept = []

    def handler(*_: object) -> None:
        kept.append(np.float64(5e-324) * 1.0 > 0.0)
        raise TimeoutError

    def work(x: Any) -> Any:
        least = np.partition(x[:20], 3)[0]
        return np.partition(np.cos(np.cos(np.cos(np.cos(x - least)))), 3)

    fast, arrays = accel.accelerate(work, name="ringing"), np.random.default_rng(1).normal(size=(2, 300_000))
    for _ in range(6):
        fast(arrays[0])
    assert open_ledger("ringing").compiled_calls
    rule, calls = lookup(np.partition), iter([True])
    assert rule is not None
    before, plain = signals.signal(signals.SIGVTALRM, handler), rule.function

    def ringing(*args: Any, **kwargs: Any) -> Any:
        if next(calls, False):
            signals.setitimer(signals.ITIMER_VIRTUAL, 0.004)
        return plain(*args, **kwargs)

    try:
        object.__setattr__(rule, "function", ringing)
        with pytest.raises(TimeoutError):
            fast(arrays[1])
    finally:
        object.__setattr__(rule, "function", plain)
        signals.signal(signals.SIGVTALRM, before)
    assert kept == [True]
    np.testing.assert_allclose(fast(arrays[1]), work(arrays[1]), rtol=1e-12)


def test_derivatives_are_refused() -> None:
    with pytest.raises(accel.Refused, match="partition has no derivative"):
        accel.grad(lambda x: np.partition(x * 2.0, 2).sum())(np.arange(5.0))


def in_a_process() -> dict[str, Any]:
    """For a process of its own: what compiled programs give."""
    found = {}
    for work, make in ((labels, fields), (systems, fields), (smoothed, line)):
        fast = accel.accelerate(work, name=work.__name__)
        for i in range(5):
            found[f"{work.__name__} {i}"] = fast(make(i))
        assert open_ledger(work.__name__).compiled_calls, work
    return found


def test_another_process_finds_such_programs_on_disk(tmp_path: Path) -> None:
    start = starter(tmp_path / "cache")
    assert_found_again(start(in_a_process), start(in_a_process))


def test_parameters_that_a_row_has_not(check: Any) -> None:
    """The row's own lowering is for the usual ones."""

    def work(x: Any) -> Any:
        a = x[:5, :5] @ x[:5, :5].T
        b = np.eye(5) * 2.0 + abs(x[0, 0])
        values = linalg.eigh(a, b, eigvals_only=True)
        return (
            np.sqrt(abs(values[:3])),
            abs(linalg.eigh(a, subset_by_index=[0, 1])[1]),
            linalg.solve(b, a, assume_a="pos"),
        )

    check(work, fields)


def test_the_interface_of_xla_is_one_that_is_known() -> None:
    assert callbacks.version() in callbacks.KNOWN, "compare accel/platform/callbacks.py with c_api.h of this JAX"


def test_with_another_interface_the_call_stays_on_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "version", lambda: (1, 0))

    def labelled(x: Any) -> Any:
        return ndimage.label(np.sin(x) > 0.5)[0] * 2

    fast = accel.accelerate(labelled, name="labelled")
    x = np.random.default_rng(0).normal(size=(20, 20))
    for _ in range(12):
        np.testing.assert_array_equal(fast(x), labelled(x))
    assert open_ledger("labelled").state is not State.COMPILED
    assert "cannot be called by programs of this version of JAX" in " ".join(accel.report(full=True).split())
