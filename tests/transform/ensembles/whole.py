"""Whole programs with a loop, for ensembles. Each does for MEMBER before its loop what `perturb` does to a member."""

from __future__ import annotations

from typing import NamedTuple


class Whole(NamedTuple):
    """text: the program. perturbed: the names that differ between members, by expressions of `m`. compared: those of
    the state at the end, as the program's own names have it. around: the function that holds the loop."""

    text: str
    perturbed: dict[str, str]
    compared: dict[str, str]
    around: str = "<module>"


HEAD = "import math\nimport numpy as np\nm = MEMBER\n"

WHOLE = {
    "flat": Whole(
        """
u, k, hot, t = np.sin(np.arange(6.0)) + 0.3 * m, 0.1 + 0.02 * m, 0, 0.0
def tendency(u):
    return k * (np.roll(u, 1) - 2.0 * u + np.roll(u, -1))
for n in range(9):
    u = u + 0.5 * tendency(u) + 0.01 * n
    t += 0.5
    if u.max() > 1.2:
        hot += 1
        u *= 0.9
    if n % 4 == 0:
        print(f"step {n}: {u.max():.3f}", float(u[0]))
""",
        {"u": "np.sin(np.arange(6.0)) + 0.3 * m", "k": "0.1 + 0.02 * m"},
        {"u": "u", "hot": "hot", "t": "t"},
    ),
    "functions that assign global names": Whole(
        """
T, days = np.ones(3) * (1.0 + m), 0
def step(wind):
    global T, days
    T = T + wind - 0.1 * T * np.abs(T)
    days += 1
def warm():
    return T.mean() > 1.5
for wind in np.linspace(0.0, 1.0, 7):
    step(wind)
    if warm():
        T[0] -= 0.25
""",
        {"T": "np.ones(3) * (1.0 + m)"},
        {"T": "T", "days": "days"},
    ),
    "an object and nested functions": Whole(
        """
class Ocean:
    def __init__(self):
        self.u, self.count, self.drag = np.linspace(0.0, 1.0, 5), 0, 0.1
    def step(self, wind, dt):
        self.count += 1
        self.u = self.u + dt * (wind - self.drag * np.abs(self.u) * self.u)
        if self.u.max() > 2.0:
            self.u *= 0.5
def main():
    ocean, t, dt, end, scale = Ocean(), 0.0, 0.25, 3.0, 2.0 + m
    total = np.zeros(5)
    ocean.u += 0.5 * m
    def blow(t):
        return np.sin(t) * scale
    def add(u):
        nonlocal total
        total = total + u
    while t < end:
        ocean.step(blow(t), dt)
        add(ocean.u)
        t += dt
        ocean.u[0] = 0.0
    return ocean, total, t
ocean, total, t = main()
""",
        {"ocean.u": "np.linspace(0.0, 1.0, 5) + 0.5 * m", "scale": "2.0 + m"},
        {"ocean.u": "ocean.u", "ocean.count": "ocean.count", "total": "total", "t": "t"},
        "main",
    ),
    "views, dicts and rounds that go on early": Whole(
        """
fields = {"T": np.arange(8.0) + m, "q": np.ones(8)}
skipped = 0
for n in range(8):
    inner = fields["T"][1:-1]
    inner += 0.1 * (fields["T"][2:] - fields["T"][:-2])
    if fields["T"].sum() > 31.0:
        skipped += 1
        continue
    fields["q"] = fields["q"] * 0.5 + np.where(fields["T"] > 3.0, 1.0, 0.0)
    fields["T"][0] = n
    fields["T"][-1] += 0.25
""",
        {"fields['T']": "np.arange(8.0) + m"},
        {"fields['T']": "fields['T']", "fields['q']": "fields['q']", "skipped": "skipped"},
    ),
    "a break that all members take together": Whole(
        """
x, rate = 10.0, np.array([1.0, 2.0]) * (1.0 + 0.001 * m)
while True:
    x -= float(rate.sum())
    rate *= 0.9
    if x < 2.0:
        break
""",
        {"rate": "np.array([1.0, 2.0]) * (1.0 + 0.001 * m)"},
        {"x": "x", "rate": "rate"},
    ),
    "a test that differs, and ends all together": Whole(
        """
error, x = 1.0, np.full(4, 4.0 + 0.1 * m)
while abs(error) > 1e-9 * math.pi:
    new = 0.5 * (x + 2.0 / x)
    error = float(np.abs(new - x).max())
    x = new
""",
        {"x": "np.full(4, 4.0 + 0.1 * m)"},
        {"x": "x", "error": "error"},
    ),
}
