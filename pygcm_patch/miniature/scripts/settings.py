"""The user's settings in the environment, read once and checked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pygcm.constants import DAY

# Read inside the steps, where they are used, as (name, default, lowest, highest); checked here before the first one.
STEP_KNOBS = (
    ("QD_ENERGY_W", 0.0, 0.0, 1.0),  # share of the air's own energy budget against relaxation
    ("QD_SEAICE", 1, 0, 1),  # 0: the surface has one heat capacity and never freezes
    ("QD_SIGMA4", 0.004, 0.0, 0.02),  # hyperdiffusion; unstable above
    ("QD_FILTER_EVERY", 6, 0, 1e6),  # steps between polar filters, 0: never
    ("QD_OCEAN_SHAPIRO_EVERY", 8, 0, 1e6),  # steps between filters of the sea, 0: never
    ("QD_OCEAN_CD", 1.3e-3, 0.0, 0.01),  # drag coefficient of the wind on the sea
    ("QD_OCEAN_KH", 2000.0, 0.0, 1e5),  # m2/s, mixing of sea temperature
    ("QD_TRACER_KH", 1500.0, 0.0, 1e5),  # m2/s, mixing of tracers
    ("QD_P_BETA_DIV", 0.4, 0.0, 10.0),  # weight of convergence in the rain's pattern
    ("QD_EPS_LAND", 0.96, 0.5, 1.0),  # longwave emissivity of land
    ("QD_ICE_CONDUCTIVITY", 2.2, 0.0, 10.0),  # W/m/K
    ("QD_LW_TAU0", 1.6, 0.0, 10.0),  # optical depth of clear air
    ("QD_LW_KTAU", 0.7, 0.0, 10.0),  # optical depth of full cloud
    ("QD_LW_BOOST", 1.0, 0.0, 2.0),  # factor of the clear-sky emissivity that diagnostics use
    ("QD_TUNE_RATE_EPS", 2e-6, 0.0, 1e-3),  # per W/m2, how fast the greenhouse is tuned
    ("QD_TUNE_RATE_KC", 1e-6, 0.0, 1e-3),
)


class SettingError(ValueError):
    """An environment variable that holds no usable value."""


def read_number(name: str, default: float, low: float, high: float) -> float:
    """The environment's `name` as a number within [low, high], or `default` where it is unset or empty."""
    text = os.getenv(name, "").strip()
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        raise SettingError(f"{name}={text!r} is not a number; possible: {low:g} to {high:g}") from None
    if not low <= value <= high:
        raise SettingError(f"{name}={text} is out of range; possible: {low:g} to {high:g}")
    return value


def read_count(name: str, default: int, low: int, high: int) -> int:
    """As `read_number`, for whole numbers."""
    value = read_number(name, default, low, high)
    if value != int(value):
        raise SettingError(f"{name}={os.environ[name]} is not a whole number; possible: {low} to {high}")
    return int(value)


@dataclass(frozen=True)
class Settings:
    """A run's settings. Times in s unless named otherwise."""

    n_lat: int
    n_lon: int
    sim_days: float
    dt: float
    plot_every_days: float
    plot: bool
    diag_every: int
    n_tracers: int
    seed: int
    land_fraction: float
    output_dir: Path
    restart_in: Path | None
    restart_out: Path

    @property
    def n_steps(self) -> int:
        """Steps of dt in sim_days planet days of 20 h."""
        return round(self.sim_days * DAY / self.dt)

    @property
    def plot_interval(self) -> int:
        """Steps between plots; 0: only one, at the end."""
        return round(self.plot_every_days * DAY / self.dt)


def read_settings() -> Settings:
    """The settings that the environment gives; raises SettingError, naming variable, value and what is possible."""
    for knob in STEP_KNOBS:
        read_number(*knob)
    output_dir = Path(os.getenv("QD_OUTPUT_DIR") or "output")
    restart_in = os.getenv("QD_RESTART_IN")
    return Settings(
        n_lat=read_count("QD_N_LAT", 121, 9, 2001),
        n_lon=read_count("QD_N_LON", 240, 16, 4001),
        sim_days=read_number("QD_SIM_DAYS", 5.0, 0.0, 1e6),
        dt=read_number("QD_DT_SECONDS", 300.0, 1.0, 3600.0),
        plot_every_days=read_number("QD_PLOT_EVERY_DAYS", 0.0, 0.0, 1e6),
        plot=bool(read_count("QD_PLOT", 1, 0, 1)),
        diag_every=read_count("QD_DIAG_EVERY", 200, 1, 10**9),
        n_tracers=read_count("QD_TRACERS", 2, 0, 50),
        seed=read_count("QD_SEED", 42, 0, 2**31),
        land_fraction=read_number("QD_LAND_FRAC", 0.29, 0.01, 0.9),
        output_dir=output_dir,
        restart_in=Path(restart_in) if restart_in else None,
        restart_out=Path(os.getenv("QD_RESTART_OUT") or output_dir / "restart.nc"),
    )
