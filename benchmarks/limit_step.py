"""The miniature's `time_step` by hand, with default settings, as one function from state to state.

Its loops are in `limit_kernels.py`. Here is what surrounds them: all that the grid alone decides, computed once, and
the filters of every 6th, 12th and 24th step, with NumPy's FFT as the miniature has them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks import limit_kernels
from benchmarks.limit_kernels import CLOSED, OPEN, POSITIVE, SHARE, WINDS, Bands, Rows, Surface
from benchmarks.peers import Array

NAMES = ("u", "v", "h", "T_s", "q", "cloud_cover", "h_ice", "E_flux", "P_cond")
FILTER_EVERY, SPECTRAL_EVERY, SHAPIRO_EVERY, PRINT_EVERY = 6, 12, 24, 200
SIGMA4 = 0.004


@dataclass(frozen=True)
class State:
    """What a step changes: the fields of the model's docstring, and how many steps there were. h_start: mean h, m."""

    u: Array
    v: Array
    h: Array
    T_s: Array
    q: Array
    cloud_cover: Array
    h_ice: Array
    E_flux: Array
    P_cond: Array
    steps: int
    h_start: float

    def after(self, steps: int) -> State:
        """The same after another number of steps."""
        return replace(self, steps=steps)

    @classmethod
    def of(cls, model: Any) -> State:
        """The model's own arrays."""
        none = np.zeros_like(model.u)  # no step yet: nothing evaporated, nothing condensed
        arrays: dict[str, Array] = {name: getattr(model, name, none) for name in NAMES}
        return cls(**arrays, steps=model._step_counter, h_start=getattr(model, "_h_start", float(np.mean(model.h))))


# --- the step --------------------------------------------------------------------------------------------------------


class Step:
    """The miniature's `time_step` with default settings and a fixed dt, as one function from state to state."""

    def __init__(self, model: Any, dt: float) -> None:
        from pygcm import constants, dynamics

        lat = np.deg2rad(model.grid.lat)
        self._surface = surface_of(model, dt)
        self._land = np.ascontiguousarray(model.land_mask == 1)
        self._rows_per_wind = dt / (constants.RADIUS * model.grid.dlat_rad)
        self._columns_per_wind = dt / (constants.RADIUS * floored(lat) * model.grid.dlon_rad)
        self._substeps = substeps(model.grid, dt)
        self._rows = rows_of(model.grid, dt / self._substeps)
        self._drag = 1.0 + dt / self._substeps * model.friction_map
        self._relaxed = dt / dynamics.TAU_RELAX
        self._scale = constants.R_DRY / constants.GRAVITY
        self._offset = -constants.T_REFERENCE * self._scale
        self._bands = bands_of(model.grid)
        self._cap = dynamics.WIND_CAP
        self._kept_waves = kept_waves(model.grid)
        self._legendre, self._band = model._legendre, model._band
        self._fine = SPECTRAL_EVERY * dt / dynamics.TAU_FINE_SCALES

    def __call__(self, state: State, warmth: Array, albedo: Array, isr: Array) -> State:
        """The state one step later, in new arrays. warmth: the air's equilibrium temperature, K."""
        new = self._after_waves(state, warmth, albedo, isr)
        if any(new.steps % every == 0 for every in (FILTER_EVERY, PRINT_EVERY)):
            self._smooth_and_filter(new)
        else:
            self._smooth(new)
        return new

    def _after_waves(self, state: State, warmth: Array, albedo: Array, isr: Array) -> State:
        """Surface, advection and waves: the first three passes. The clouds are finished."""
        u, v, h, q_moist, T_s, q, cloud, h_ice, evaporated, condensed = (np.empty_like(state.u) for _ in range(10))
        now = state.u, state.v, state.h, state.T_s, state.q, state.cloud_cover, state.h_ice
        limit_kernels.surface(self._surface, *now, isr, albedo, self._land, T_s, q_moist, h_ice, evaporated, condensed)
        limit_kernels.advect(
            state.u, state.v, state.h, q_moist, self._rows_per_wind, self._columns_per_wind, u, v, h, q
        )
        for left in reversed(range(self._substeps)):
            relaxed = 0.0 if left else self._relaxed
            limit_kernels.waves(u, v, h, self._rows, self._drag, warmth, relaxed, self._scale, self._offset)
        cloud[:] = state.cloud_cover
        limit_kernels.diffuse(cloud, self._bands, SHARE, cloud, 0.0)
        return State(u, v, h, T_s, q, cloud, h_ice, evaporated, condensed, state.steps + 1, state.h_start)

    def _smooth(self, new: State) -> None:
        """The fourth pass where nothing comes between diffusion and the caps."""
        limit_kernels.diffuse(new.u, self._bands, OPEN, new.u, 0.0)
        limit_kernels.diffuse(new.v, self._bands, WINDS, new.u, self._cap)
        limit_kernels.diffuse(new.h, self._bands, CLOSED, new.h, 0.0)
        limit_kernels.diffuse(new.q, self._bands, POSITIVE, new.q, 0.0)
        self._close(new)

    def _smooth_and_filter(self, new: State) -> None:
        """The same with filters, or with the line that is printed, between."""
        for field in (new.u, new.v, new.h, new.q):
            limit_kernels.diffuse(field, self._bands, OPEN, field, 0.0)
        if new.steps % FILTER_EVERY == 0:
            for field in (new.u, new.v, new.h):
                zonal_filter(field, self._kept_waves)
        if new.steps % SPECTRAL_EVERY == 0:
            new.h[:] -= self._fine * (new.h - large_scale(new.h, self._legendre, self._band))
        if new.steps % SHAPIRO_EVERY == 0:
            new.q[:] = shapiro(new.q)
        fastest = np.sqrt(np.max(new.u * new.u + new.v * new.v)) if new.steps % PRINT_EVERY == 0 else 0.0
        for field, kind in ((new.v, WINDS), (new.h, CLOSED), (new.q, POSITIVE)):
            limit_kernels.finish(field, new.u, kind, self._cap)
        self._close(new)
        if new.steps % PRINT_EVERY == 0:
            print(
                f"air: step {new.steps}, T_s {np.min(new.T_s):.1f} to {np.max(new.T_s):.1f} K, "
                f"wind to {fastest:.1f} m/s, mean h {np.mean(new.h) - new.h_start:+.1f} m from start"
            )

    def _close(self, new: State) -> None:
        """The seam of the fields that only the first pass changes."""
        for field in (new.T_s, new.h_ice):
            field[:, -1] = field[:, 0]


# --- what depends on the grid alone ----------------------------------------------------------------------------------


def floored(lat: Array) -> Array:
    """The cosine of lat (rad) that the miniature divides by."""
    from pygcm.grid import COS_LAT_FLOOR

    return np.maximum(np.cos(lat), COS_LAT_FLOOR)


def surface_of(model: Any, dt: float) -> Surface:
    """The numbers of the surface's pass."""
    from pygcm import constants, energy

    knobs, moist = model.energy_params, model.humidity_params
    return Surface(
        dt=dt,
        t_reference=constants.T_REFERENCE,
        warming=constants.GRAVITY / constants.R_DRY,
        sigma=constants.STEFAN_BOLTZMANN,
        sw_clear=knobs.sw_absorbed_clear,
        sw_cloud=knobs.sw_absorbed_cloud,
        tau0=float(-np.log(1.0 - knobs.lw_eps0)),
        k_tau=0.7,
        eps_land=0.96,
        sensible=constants.RHO_AIR * constants.C_P * 1.5e-3,
        vapour=moist.rho_a * moist.C_E,
        moisture=moist.rho_a * moist.h_mbl,
        gust2=moist.gust**2,
        onset=moist.rh_onset,
        share=float(1.0 - np.exp(-dt / moist.tau_cond)),
        latent=moist.L_v,
        land_factor=moist.land_factor,
        ice_factor=moist.ice_factor,
        c_ocean=knobs.c_surface,
        c_land=knobs.c_land,
        c_ice=knobs.c_ice,
        t_freeze=constants.T_FREEZE_SEA,
        t_floor=knobs.t_floor,
        conductivity=energy.ICE_CONDUCTIVITY,
        h_min=energy.ICE_H_MIN,
        volume=constants.RHO_ICE * constants.LATENT_HEAT_FUSION,
    )


def substeps(grid: Any, dt: float) -> int:
    """How many the fastest wave needs."""
    from pygcm import constants, dynamics

    speed = np.sqrt(constants.GRAVITY * dynamics.EQUIVALENT_DEPTH)
    shortest = constants.RADIUS * grid.dlon_rad * floored(np.array(np.pi / 2))
    return max(1, int(np.ceil(speed * dt / (dynamics.COURANT_MAX * shortest))))


def rows_of(grid: Any, sub: float) -> Rows:
    """The rows' factors in a sub-step of `sub` s."""
    from pygcm import constants, dynamics

    lat = np.deg2rad(grid.lat)
    radius, spread = constants.RADIUS, 2.0 * constants.RADIUS * floored(lat)
    push_east = sub * constants.GRAVITY / (spread * grid.dlon_rad)
    push_north = np.full_like(lat, sub * constants.GRAVITY / (2.0 * grid.dlat_rad * radius))
    for push in (push_east, push_north):
        push[[0, -1]] = 0.0
    return Rows(
        rise_zonal=-sub * dynamics.EQUIVALENT_DEPTH / (spread * grid.dlon_rad),
        rise_north=-sub * dynamics.EQUIVALENT_DEPTH / (spread * grid.dlat_rad),
        cos_lat=np.cos(lat),
        push_east=push_east,
        push_north=push_north,
        coriolis=sub * grid.coriolis_param[:, 0],
        turn=sub * np.clip(np.tan(lat), -10.0, 10.0) / radius,
    )


def bands_of(grid: Any) -> Bands:
    """The Laplacian's factors, and what a step of the hyperdiffusion takes of its square: dt cancels."""
    from pygcm.constants import RADIUS

    lat = np.deg2rad(grid.lat)
    cos_lat = floored(lat)
    half = np.cos(0.5 * (lat[1:] + lat[:-1]))
    per = 1.0 / (cos_lat * (grid.dlat_rad * RADIUS) ** 2)
    zonal = 1.0 / (cos_lat * grid.dlon_rad * RADIUS) ** 2
    north, south = per * np.append(half, 0.0), per * np.append(0.0, half)
    spacing = RADIUS * np.minimum(grid.dlon_rad * cos_lat, grid.dlat_rad)
    return Bands(zonal, north, south, 2.0 * zonal + north + south, SIGMA4 * spacing**4)


# --- filters, which few steps have -----------------------------------------------------------------------------------


def kept_waves(grid: Any, cutoff: float = 0.75, damp: float = 0.5) -> Array:
    """What the zonal filter leaves of each wave, (n_lat, n_waves), 1."""
    n_waves = (grid.n_lon - 1) // 2 + 1
    shrink = np.minimum(np.maximum(np.cos(np.deg2rad(grid.lat)), 0.0) / 0.5, 1.0)
    too_short = np.arange(n_waves)[None, :] > (cutoff * (n_waves - 1) * shrink)[:, None]
    polar = (np.abs(grid.lat) > 60.0)[:, None]
    return np.where(too_short, np.where(polar, 0.0, 1.0 - damp), 1.0)


def zonal_filter(field: Array, kept: Array) -> None:
    """Take short zonal waves out of a field, in place."""
    n = field.shape[1] - 1
    field[:, :-1] = np.fft.irfft(np.fft.rfft(field[:, :-1], axis=1) * kept, n=n, axis=1)
    field[:, -1] = field[:, 0]


def large_scale(field: Array, legendre: Array, band: Array) -> Array:
    """What the spherical harmonics of the model's truncation hold of a field."""
    n, orders = field.shape[1] - 1, len(legendre)
    waves = np.fft.rfft(field[:, :-1], axis=1)
    weighted = (band[:, None] * waves[:, :orders]).T[:, :, None]
    held = np.matmul(legendre.transpose(0, 2, 1), np.matmul(legendre, weighted))[:, :, 0].T
    waves[:, :orders], waves[:, orders:] = held, 0.0
    unique = np.fft.irfft(waves, n=n, axis=1)
    return np.concatenate([unique, unique[:, :1]], axis=1)


def shapiro(field: Array) -> Array:
    """One pass of the (1, 2, 1)/4 filter in both directions; both ends of a row are its neighbours."""
    out = field + 0.25 * (np.roll(field, 1, axis=1) - 2.0 * field + np.roll(field, -1, axis=1))
    padded = np.pad(out, ((1, 1), (0, 0)), mode="edge")
    return out + 0.25 * (padded[:-2] - 2.0 * out + padded[2:])
