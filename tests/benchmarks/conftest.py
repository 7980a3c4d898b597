"""A toy checkout, so that the lockstep benchmarks are tested in seconds and without the real model."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
if str(REPOSITORY) not in sys.path:
    sys.path.insert(0, str(REPOSITORY))

TOY = {
    "pygcm/__init__.py": "",
    "pygcm/grid.py": """
        class SphericalGrid:
            def __init__(self, n_lat, n_lon):
                self.n_lat, self.n_lon = n_lat, n_lon
    """,
    "pygcm/dynamics.py": """
        import numpy as np

        class SpectralModel:
            def __init__(self, grid):
                self.T_s = 280.0 + np.arange(grid.n_lat * grid.n_lon, dtype=float).reshape(grid.n_lat, grid.n_lon)
                self.u = np.zeros_like(self.T_s)

            def time_step(self, dt):
                self.u += dt * np.sin(self.T_s)
                self.T_s = self.T_s + 1e-3 * self.u
    """,
    "pygcm/ocean.py": """
        class WindDrivenSlabOcean:
            def __init__(self, surface):
                self.Ts = surface.copy()

            def step(self, surface):
                self.Ts += 0.5 * (surface - self.Ts)
    """,
    "scripts/__init__.py": "",
    "scripts/run_simulation.py": """
        import os
        from pygcm.dynamics import SpectralModel
        from pygcm.grid import SphericalGrid
        from pygcm.ocean import WindDrivenSlabOcean

        def plot_state():
            raise RuntimeError("plots are to be left out")

        def main():
            from tqdm import tqdm
            gcm = SpectralModel(SphericalGrid(n_lat=9, n_lon=12))
            ocean = WindDrivenSlabOcean(gcm.T_s)
            bar = tqdm(range(round(240 * float(os.environ["QD_SIM_DAYS"]))))
            for i in bar:
                if i == int(os.getenv("TOY_FAIL_AT", "-1")):
                    raise ArithmeticError("the toy broke")
                gcm.time_step(0.1)
                ocean.step(gcm.T_s)
                if i % 100 == 0:
                    bar.set_description(f"step {i}")
                plot_state()
            os.makedirs("output")
            print("written to", os.getcwd())

        if __name__ == "__main__":
            main()
    """,
}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A folder with the packages `pygcm` and `scripts`, as a PyGCM checkout has them, of a few lines each."""
    for name, text in TOY.items():
        path = tmp_path / "toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return tmp_path / "toy"
