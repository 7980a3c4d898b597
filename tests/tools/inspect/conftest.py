"""Programs for the doctor: a package with all that real ones have, and small NumPy programs, each in a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent.parent

CLIMATE = {
    "climate/__init__.py": "from .core import Model\n",
    "climate/core.py": """
        import numpy as np
        from dataclasses import dataclass, field

        from .physics import radiation

        @dataclass
        class Model:
            n: int
            t: np.ndarray = field(init=False)
            log: list = field(default_factory=list)

            def __post_init__(self):
                self.t = np.linspace(250.0, 300.0, self.n * self.n).reshape(self.n, self.n)

            def step(self, dt):
                self.t = self.t + dt * (self.diffuse(self.t) + radiation.net(self.t))
                self.t[0] = self.t[1]

            @staticmethod
            def diffuse(t):
                return np.roll(t, 1, 0) + np.roll(t, -1, 0) + np.roll(t, 1, 1) + np.roll(t, -1, 1) - 4.0 * t

            @classmethod
            def of_size(cls, n):
                return cls(n)

            @property
            def mean(self):
                return float((self.t * self.t).mean())

            def noisy(self):
                return self.t + np.random.bytes(1)[0]

            def tell(self):
                m = np.sqrt((self.t * self.t).mean())
                print("mean", m)
                return m
        """,
    "climate/physics/__init__.py": "",
    "climate/physics/radiation.py": """
        import numpy as np

        SIGMA = 5.67e-8
        FAST = True

        def net(t):
            return 1e-3 * (240.0 - SIGMA * t**4) + 1e-9 * np.exp(-t / 100.0)

        if FAST:
            def scale(t):
                return t * np.sqrt(np.abs(t) + 1.0)
        else:
            def scale(t):
                import numba
                return numba.njit(t)

        def cells(t):
            out = np.zeros_like(t)
            for i in range(t.shape[0]):
                for j in range(t.shape[1]):
                    out[i, j] = 2.0 * t[i, j]
            return out

        def rows(t):
            for row in t:
                yield np.sort(row)

        def made(k):
            def inner(t):
                return k * np.tanh(t) * np.cosh(t / 300.0)
            return inner

        def sizes(t):
            return np.fromiter(np.round(t), float)
        """,
    "climate/broken.py": "def f(:\n",
    "climate/run.py": """
        import sys

        from climate import Model
        from climate.physics import radiation

        def main(steps=40):
            model = Model.of_size(900)  # `mean` must take more than doctor's WORTH_S, on a fast machine too
            inner = radiation.made(2.0)
            for _ in range(steps):
                model.step(0.1)
                model.tell()
                model.noisy()
                radiation.scale(model.t)
                inner(model.t)
                model.mean
                list(radiation.rows(model.t[:4]))
            print("argument", sys.argv[1:])

        if __name__ == "__main__":
            main()
        """,
}

SCRIPT = {
    "nbody.py": """
        import sys
        import numpy as np

        def acceleration(x):
            d = x[None, :, :] - x[:, None, :]
            return (d / ((d * d).sum(axis=-1) + 1e-3)[:, :, None] ** 1.5).sum(axis=1)

        def step(x, v, dt):
            v += dt * acceleration(x)
            x += dt * v

        x = np.random.default_rng(1).normal(size=(200, 3))
        v = np.zeros_like(x)
        for _ in range(20):
            step(x, v, 1e-3)
        if "fail" in sys.argv:
            raise ValueError("the sun went out")
        if "stop" in sys.argv:
            raise KeyboardInterrupt
        if "fork" in sys.argv:
            import os
            child = os.fork()
            sys.exit(3 if child else 5)
        sys.exit(int(sys.argv[1]) if sys.argv[1:] else 0)
        """
}


class Bench:
    """A folder with a program, and a way to run accel's commands in it."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        import textwrap

        self.folder = folder
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")

    def python(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the folder."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("QD_")}
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        environment = {**inherited, "PYTHONPATH": paths, "QD_JAX_CACHE_DIR": "off", "QD_JAX_AOT": "0"}
        command = [sys.executable, *args]
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    def doctor(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run `python -m accel doctor`, warnings being errors."""
        return self.python("-W", "error", "-m", "accel", "doctor", *args)


@pytest.fixture(scope="session")
def bench_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, str]], Bench]:
    """Make a bench of files."""
    return lambda files: Bench(tmp_path_factory.mktemp("bench"), files)


@pytest.fixture(scope="session")
def climate(bench_of: Callable[[dict[str, str]], Bench]) -> Bench:
    """The package, made once."""
    return bench_of(CLIMATE)


@pytest.fixture(scope="session")
def script(bench_of: Callable[[dict[str, str]], Bench]) -> Bench:
    """The script, made once."""
    return bench_of(SCRIPT)
