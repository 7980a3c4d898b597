"""Small programs as scientists write them: results, changed arguments, state and exceptions are NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.helpers import some

COUNTER = {"calls": 0}


# -- numerical programs -----------------------------------------------------------------------------------------------


def heat(u: Any, steps: int) -> Any:
    for _ in range(steps):
        new = u.copy()
        new[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
        u, new = new, u
    return u


def swapped_buffers(a: Any, b: Any) -> Any:
    for _ in range(10):
        b[1:-1] = 0.5 * (a[:-2] + a[2:])
        a, b = b, a
    return a


def poisson_by_fft(f: Any) -> Any:
    n = f.shape[0]
    k = np.fft.fftfreq(n) * 2 * np.pi * n
    kx, ky = np.meshgrid(k, k, indexing="ij")
    square = kx**2 + ky**2
    square[0, 0] = 1.0
    spectrum = np.fft.fft2(f) / -square
    spectrum[0, 0] = 0.0
    return np.real(np.fft.ifft2(spectrum))


def k_means(points: Any, centres: Any) -> Any:
    for _ in range(4):
        distance = np.sqrt(((points[:, None, :] - centres[None]) ** 2).sum(axis=2))
        label = distance.argmin(axis=1)
        for k in range(len(centres)):
            weight = (label == k).astype(float)
            centres[k] = (weight[:, None] * points).sum(axis=0) / max(weight.sum(), 1.0)
    return centres, label


def kalman(x: Any, p: Any, zs: Any) -> Any:
    f = np.array([[1.0, 0.1], [0.0, 1.0]])
    h = np.array([[1.0, 0.0]])
    seen = []
    for z in zs:
        x = f @ x
        p = f @ p @ f.T + 0.01 * np.eye(2)
        s = h @ p @ h.T + 0.1
        gain = p @ h.T @ np.linalg.inv(s)
        x = x + gain @ (z - h @ x)
        p = (np.eye(2) - gain @ h) @ p
        seen.append(x[0])
    return np.array(seen), p


def gauss_seidel(a: Any, b: Any) -> Any:
    a = a @ a.T + 10 * np.eye(len(a))
    x = np.zeros_like(b)
    for _ in range(5):
        for i in range(len(b)):
            x[i] = (b[i] - a[i, :i] @ x[:i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


def cholesky_by_rows(a: Any) -> Any:
    a = a @ a.T + len(a) * np.eye(len(a))
    lower = np.zeros_like(a)
    for i in range(len(a)):
        for j in range(i + 1):
            s = a[i, j] - np.dot(lower[i, :j], lower[j, :j])
            lower[i, j] = np.sqrt(s) if i == j else s / lower[j, j]
    return lower


def life(cells: Any) -> Any:
    for _ in range(3):
        neighbours = sum(
            np.roll(np.roll(cells, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
        )
        cells = ((neighbours == 3) | (cells.astype(bool) & (neighbours == 2))).astype(np.uint8)
    return cells


def blurred(image: Any) -> Any:
    kernel = np.outer([1, 2, 1], [1, 2, 1]) / 16.0
    padded = np.pad(image, 1, mode="reflect")
    out = np.zeros_like(image, dtype=float)
    for dy in range(3):
        for dx in range(3):
            out += kernel[dy, dx] * padded[dy : dy + image.shape[0], dx : dx + image.shape[1]]
    return np.clip(out, 0, 255).astype(np.uint8)


def trajectory(x: Any, v: Any) -> Any:
    path = np.empty((40, 2))
    for i in range(40):
        v -= 0.01 * x
        x += 0.01 * v
        path[i] = x
    return path


def thomas(a: Any, b: Any, c: Any, d: Any) -> Any:
    n = len(d)
    for i in range(1, n):
        w = a[i - 1] / b[i - 1]
        b[i] = b[i] - w * c[i - 1]
        d[i] = d[i] - w * d[i - 1]
    x = b
    x[-1] = d[-1] / b[-1]
    for i in range(n - 2, -1, -1):
        x[i] = (d[i] - c[i] * x[i + 1]) / b[i]
    return x


def power_iteration(a: Any) -> Any:
    v = np.ones(len(a))
    for _ in range(30):
        v = a @ v
        v /= np.linalg.norm(v)
    return v, v @ a @ v


def upwind(q: Any, u: Any) -> Any:
    flux = np.where(u > 0, u * q, u * np.roll(q, -1))
    q -= 0.1 * (flux - np.roll(flux, 1))
    q[q < 0] = 0
    return q


def mandel(c: Any) -> Any:
    z, n = np.zeros_like(c), np.zeros(c.shape, int)
    for i in range(12):
        inside = np.abs(z) < 2
        z[inside] = z[inside] ** 2 + c[inside]
        n[inside] = i
    return z, n


def float32_state(x: Any) -> Any:
    x = x.astype(np.float32)
    y = x * 0.1 + 1
    y += np.float64(0.5)
    return y, y.mean(), (y * np.float64(2.0)).dtype == np.float32


def overflow(i: Any) -> Any:
    small = (i * 100).astype(np.int8)
    small += 100
    return small, small.astype(np.uint8) * 3, np.abs(small), small.sum(), small // 7, small % 7


def with_nan(x: Any) -> Any:
    x[0, 0] = np.nan
    x[1, 1] = np.inf
    return (
        np.nanmean(x, axis=0),
        np.nanmax(x),
        np.isnan(x).sum(),
        np.maximum(x, 0),
        np.fmin(x, 1.0),
        x.max(),
        x.argmax(),
    )


def lists_of_arrays(fields: list[Any]) -> Any:
    total = [f * 2 for f in fields]
    fields[0] += 1
    fields.append(total[0])
    fields[1] = fields[0]
    return total, fields[-1]


def dict_state(state: dict[str, Any]) -> Any:
    state["t"] += 0.5
    state["u"] = state["u"] + state["v"] * state["t"]
    state["v"] *= 0.9
    state.setdefault("w", state["u"].copy())
    return {key: value for key, value in state.items() if key != "t"}


def recursive(x: Any, depth: int) -> Any:
    return x if depth == 0 else recursive(np.sin(x) + depth, depth - 1)


def with_closures(x: Any) -> Any:
    scale = x.max()

    def norm(y: Any) -> Any:
        return y / scale

    doubled = map(lambda part: norm(part) * 2, x)  # noqa: C417
    return list(doubled), sorted([float(p.sum()) for p in x])


def tried(x: Any) -> Any:
    try:
        root = np.linalg.inv(x)
    except np.linalg.LinAlgError:
        root = np.zeros_like(x)
    finally:
        x[0] = 0
    return root


def early(x: Any) -> Any:
    if x.sum() > 0:
        return x * 2
    if x[0, 0] > 0:
        return -x
    return None


def chunks(x: Any) -> Iterator[Any]:
    for i in range(0, len(x), 2):
        yield x[i : i + 2]


def through_a_generator(x: Any) -> Any:
    return sum(part.sum() for part in chunks(x)), [part * 2 for part in chunks(x)]


def counted(x: Any) -> Any:
    COUNTER["calls"] += 1
    return x + COUNTER["calls"]


def remembers(x: Any, seen: list[Any] = []) -> Any:  # noqa: B006
    seen.append(float(x.sum()))
    return len(seen), seen[-1] + x


def views_of_views(x: Any) -> Any:
    row = x[1]
    tail = row[2:]
    tail[:] = tail[::-1].copy()
    x.T[0] += 1
    x.reshape(-1)[::5] = 7
    return row, tail, x[:, ::-1][0]


def overlapping_assignment(x: Any) -> Any:
    x[1:] = x[:-1]
    x[:, 1:] += x[:, :-1]
    x[::-1] -= x
    return x


def in_place_chain(x: Any, y: Any) -> Any:
    np.add(x, y, out=x)
    np.multiply(x, 2, x)
    x[:] = x - x.mean(axis=1, keepdims=True)
    x[...], y[...] = y + 1, x + 1
    return x is y


def masked_updates(x: Any, y: Any) -> Any:
    hot = x > 0.5
    x[hot] -= y[hot] * 0.5
    y[~hot & (y < 0)] *= -1
    x[np.where(x < -1)] = -1
    np.putmask(y, y > 1, 1)
    return hot.sum(), x[hot].mean() if hot.any() else 0.0


def histogram_by_hand(x: Any) -> Any:
    index = np.floor((np.clip(x, -2, 1.99) + 2) * 2).astype(int)
    counts = np.bincount(index.ravel(), minlength=8)
    np.add.at(counts, index[0], 2)
    return counts, np.cumsum(counts), index.max()


def complex_wave(z: Any) -> Any:
    z = z + 1j * z[::-1]
    z *= np.exp(1j * np.pi / 3)
    z.imag[0] = 0
    z.real += 1
    return z, np.abs(z), np.angle(z), z.conj().T @ z, (z * z.conj()).real


def monte_carlo(u: Any) -> Any:
    x, y = u[:, 0], u[:, 1]
    inside = x * x + y * y <= 1
    return 4 * inside.mean(), int(inside.sum()), np.percentile(x, [5, 50, 95]), np.corrcoef(x, y)


def while_converging(x: Any) -> Any:
    change, rounds = 1.0, 0
    while change > 0.5:
        new = 0.5 * (x + np.roll(x, 1))
        change = np.abs(new - x).max()
        x, rounds = new, rounds + 1
        if rounds > 20:
            break
    return x, rounds


def polynomials(x: Any) -> Any:
    fit = np.polyfit(np.arange(len(x)), x[:, 0], 2)
    return np.polyval(fit, x), np.trapezoid(x, axis=0), np.interp(0.3, [0, 1], [2, 3]) + x, np.diff(x, n=2, axis=0)


def square(i: int) -> tuple[Any, ...]:
    return (some(i, 6, 6),)


PROGRAMS: dict[Callable[..., Any], Callable[[int], tuple[Any, ...]]] = {
    heat: lambda i: (some(i, 8, 8), 9),
    swapped_buffers: lambda i: (some(i, 12), some(i + 50, 12)),
    poisson_by_fft: square,
    k_means: lambda i: (some(i, 20, 2), some(i + 50, 3, 2)),
    kalman: lambda i: (some(i, 2), np.eye(2), some(i + 50, 9)),
    gauss_seidel: lambda i: (some(i, 6, 6), some(i + 50, 6)),
    cholesky_by_rows: square,
    life: lambda i: ((some(i, 8, 8) > 0).astype(np.uint8),),
    blurred: lambda i: (np.random.default_rng(i).integers(0, 256, (6, 7)).astype(np.uint8),),
    trajectory: lambda i: (some(i, 2), some(i + 50, 2)),
    thomas: lambda i: (some(i, 11), some(i + 1, 12) + 5, some(i + 2, 11), some(i + 3, 12)),
    power_iteration: lambda i: (some(i, 5, 5) ** 2 + np.eye(5),),
    upwind: lambda i: (some(i, 9) ** 2, some(i + 50, 9)),
    mandel: lambda i: (some(i, 5, 5) + 1j * some(i + 50, 5, 5),),
    float32_state: square,
    overflow: lambda i: (np.random.default_rng(i).integers(-5, 5, (3, 4)),),
    with_nan: square,
    lists_of_arrays: lambda i: ([some(i, 3), some(i + 1, 3)],),
    dict_state: lambda i: ({"t": 0.5 * i, "u": some(i, 4), "v": some(i + 1, 4)},),
    recursive: lambda i: (some(i, 3), 4),
    with_closures: square,
    tried: lambda i: (some(i, 3, 3) if i != 5 else np.zeros((3, 3)),),
    early: square,
    through_a_generator: square,
    views_of_views: square,
    overlapping_assignment: square,
    in_place_chain: lambda i: (some(i, 4, 5), some(i + 50, 4, 5)),
    masked_updates: lambda i: (some(i, 4, 5), some(i + 50, 4, 5)),
    histogram_by_hand: square,
    complex_wave: square,
    monte_carlo: lambda i: (np.random.default_rng(i).random((30, 2)),),
    while_converging: lambda i: (some(i, 12),),
    polynomials: square,
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(check: Any, program: Any) -> None:
    check(program, PROGRAMS[program], replays=0)


# -- state ------------------------------------------------------------------------------------------------------------


@dataclass
class Ocean:
    temperature: Any
    salt: Any
    time: float = 0.0
    history: list[float] = field(default_factory=list)

    @property
    def density(self) -> Any:
        return 1.0 - 0.1 * self.temperature + 0.2 * self.salt

    def step(self, wind: Any) -> Any:
        self.time += 0.25
        self.temperature += 0.1 * wind
        self.salt = np.maximum(self.salt - 0.01 * self.density, 0.0)
        self.history.append(float(self.temperature.mean()))
        if self.time > 1.0:
            self.time = 0.0
        return self.density


def test_an_object_with_state(check: Any) -> None:
    def worlds() -> Any:
        ocean = Ocean(some(0, 4), some(1, 4) ** 2)
        return lambda i: (ocean, some(i, 4))

    check(Ocean.step, worlds=worlds, calls=14, replays=0)


@pytest.mark.parametrize("function", [counted, remembers])
def test_what_is_kept_between_calls(check: Any, function: Any) -> None:
    """Counters and default lists go on as they would; a plain and an accelerated world share them here."""
    import accel

    accelerated = accel.accelerate(function, name=f"kept.{function.__name__}")
    COUNTER["calls"] = 0
    for i in range(10):
        result = accelerated(some(i, 3))
        if function is counted:
            assert COUNTER["calls"] == i + 1
            np.testing.assert_allclose(result, some(i, 3) + i + 1)
        else:
            assert result[0] == i + 1
            np.testing.assert_allclose(result[1], some(i, 3) + some(i, 3).sum())


def test_fitting_polynomials(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        line = np.polyfit(x, y, 1)
        return line, np.polyval(np.polyfit(x, y, 3), x), np.polyfit(x, y, 2, w=abs(y) + 1.0), line[0].tolist()

    def make(i: int) -> Any:
        generator = np.random.default_rng(i)
        return np.linspace(-1.0, 1.0, 9) * (1 + i), generator.normal(size=9)

    check(work, make)


def test_fitting_polynomials_to_whole_numbers(check: Any) -> None:
    def work(x: Any, y: Any, w: Any) -> Any:
        fixed = np.polyval(np.polyfit(np.arange(9), y, 3), 3.0)
        return fixed, np.polyfit(x, y, 1), np.polyfit(x.astype(np.int32), w, 2, w=w)

    def make(i: int) -> Any:
        generator = np.random.default_rng(i)
        return np.arange(9) * (1 + i), generator.normal(size=9), generator.integers(1, 9, size=9)

    check(work, make)


def test_a_fit_that_several_polynomials_share(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        return np.polyfit(x, y, 1)

    def make(i: int) -> Any:
        return (np.arange(4.0) if i != 6 else np.arange(4.0) + np.nan), np.arange(4.0) * i

    check(work, make, replays=2)


def test_lists_of_computed_numbers(check: Any) -> None:
    def work(x: Any) -> Any:
        numbers = (x * 2).tolist()
        return numbers, [sum(row) for row in (x.reshape(2, 2) + 1).tolist()], x.sum().tolist()

    check(work, lambda i: np.arange(4.0) + i)
