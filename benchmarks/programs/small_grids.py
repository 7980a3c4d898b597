"""Many small functions on a tiny grid, as the test suite of a small model calls them.

One step is one test: a fresh 8 x 16 planet with numbers of its own, and each of the 60 functions called once. The
functions are far too short to gain anything from being compiled; what they show is the cost of trying.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.programs.decorating import accelerate

N_LAT, N_LON = 8, 16
STEPS = 10**7
"""More than anyone runs: who starts the program ends it."""

FUNCTIONS: list[Any] = []
"""The functions under test, in the order in which a test calls them."""

RADIUS, OMEGA, GRAVITY = 6.4e6, 7.3e-5, 9.81  # m, 1/s, m/s2
R_DRY, C_P, LATENT, SIGMA, P0 = 287.0, 1004.0, 2.5e6, 5.67e-8, 1e5  # J/kg/K, J/kg/K, J/kg, W/m2/K4, Pa


def tested(function: Any) -> Any:
    """Decorate a function of the planet and have every test call it."""
    FUNCTIONS.append(accelerate(function))
    return FUNCTIONS[-1]


@dataclass
class Planet:
    """What a test sets up. Fields (8, 16): T K, q kg/kg, p Pa, u, v m/s, h m, ice m; lat, lon rad; dt s."""

    lat: np.ndarray
    lon: np.ndarray
    T: np.ndarray
    q: np.ndarray
    p: np.ndarray
    u: np.ndarray
    v: np.ndarray
    h: np.ndarray
    ice: np.ndarray
    land: np.ndarray
    dt: float
    kappa: float
    steps: int = 0


def planet(seed: int) -> Planet:
    """A planet whose numbers follow from `seed`."""
    rng = np.random.default_rng(seed)
    lat = np.linspace(-np.pi / 2, np.pi / 2, N_LAT)[:, None]
    noise = rng.standard_normal((6, N_LAT, N_LON))
    return Planet(
        lat=lat,
        lon=np.linspace(0.0, 2.0 * np.pi, N_LON, endpoint=False)[None, :],
        T=300.0 - 50.0 * np.sin(lat) ** 2 + noise[0],
        q=1e-3 * np.exp(0.3 * noise[1]),
        p=P0 + 500.0 * noise[2],
        u=10.0 * noise[3],
        v=10.0 * noise[4],
        h=100.0 * noise[5],
        ice=np.maximum(noise[0] - 0.5, 0.0),
        land=noise[1] > 0.6,
        dt=300.0 + 10.0 * (seed % 7),
        kappa=1e5 * (1 + seed % 3),
    )


# --- the sphere -------------------------------------------------------------------------------------------------------


@tested
def cos_lat(planet):
    return np.maximum(np.cos(planet.lat), 0.05)


@tested
def coriolis(planet):
    return 2.0 * OMEGA * np.sin(planet.lat)


@tested
def beta(planet):
    return 2.0 * OMEGA * np.cos(planet.lat) / RADIUS


@tested
def area_weights(planet):
    weights = np.broadcast_to(cos_lat(planet), planet.T.shape)
    return weights / weights.sum()


@tested
def global_mean(planet):
    return float(np.sum(planet.T * area_weights(planet)))


@tested
def zonal_mean(planet):
    return planet.T.mean(axis=1)


@tested
def zonal_anomaly(planet):
    return planet.T - planet.T.mean(axis=1, keepdims=True)


@tested
def meridional_profile(planet):
    return np.interp(np.linspace(-1.0, 1.0, 11), planet.lat[:, 0], planet.u.mean(axis=1))


@tested
def east_derivative(planet):
    step = RADIUS * cos_lat(planet) * (2.0 * np.pi / N_LON)
    return (np.roll(planet.h, -1, axis=1) - np.roll(planet.h, 1, axis=1)) / (2.0 * step)


@tested
def north_derivative(planet):
    out = np.zeros_like(planet.h)
    out[1:-1] = (planet.h[2:] - planet.h[:-2]) / (2.0 * RADIUS * np.pi / (N_LAT - 1))
    return out


@tested
def divergence(planet):
    du = np.gradient(planet.u, axis=1) / cos_lat(planet)
    dv = np.gradient(planet.v * cos_lat(planet), axis=0) / cos_lat(planet)
    return (du + dv) / RADIUS


@tested
def vorticity(planet):
    dv = np.gradient(planet.v, axis=1) / cos_lat(planet)
    du = np.gradient(planet.u * cos_lat(planet), axis=0) / cos_lat(planet)
    return (dv - du) / RADIUS


@tested
def laplacian(planet):
    F = planet.T
    out = np.roll(F, 1, axis=1) + np.roll(F, -1, axis=1) - 2.0 * F
    out[1:-1] += F[2:] + F[:-2] - 2.0 * F[1:-1]
    return out


@tested
def great_circle(planet):
    lat, lon = planet.lat, planet.lon
    cosine = np.sin(lat) * np.sin(0.3) + np.cos(lat) * np.cos(0.3) * np.cos(lon - 1.0)
    return RADIUS * np.arccos(np.clip(cosine, -1.0, 1.0))


# --- air --------------------------------------------------------------------------------------------------------------


@tested
def saturation(planet):
    e_s = 611.0 * np.exp(17.27 * (planet.T - 273.15) / (planet.T - 35.85))
    return 0.622 * e_s / np.maximum(planet.p - e_s, 1.0)


@tested
def relative_humidity(planet):
    return np.clip(planet.q / saturation(planet), 0.0, 1.2)


@tested
def dew_point(planet):
    e = np.maximum(planet.q * planet.p / 0.622, 1e-3)
    logs = np.log(e / 611.0)
    return 273.15 + 237.3 * logs / (17.27 - logs)


@tested
def potential_temperature(planet):
    return planet.T * (P0 / planet.p) ** (R_DRY / C_P)


@tested
def virtual_temperature(planet):
    return planet.T * (1.0 + 0.61 * planet.q)


@tested
def density(planet):
    return planet.p / (R_DRY * virtual_temperature(planet))


@tested
def wind_speed(planet):
    return np.hypot(planet.u, planet.v)


@tested
def wind_direction(planet):
    return np.degrees(np.arctan2(-planet.u, -planet.v)) % 360.0


@tested
def kinetic_energy(planet):
    return 0.5 * (planet.u**2 + planet.v**2)


@tested
def geostrophic_wind(planet):
    f = coriolis(planet)
    f = np.where(np.abs(f) < 1e-5, 1e-5, f)
    return -GRAVITY / f * north_derivative(planet), GRAVITY / f * east_derivative(planet)


@tested
def rossby_number(planet):
    return np.abs(vorticity(planet)) / np.maximum(np.abs(coriolis(planet)), 1e-6)


@tested
def courant_number(planet):
    return float(np.max(wind_speed(planet)) * planet.dt / (RADIUS * np.pi / N_LAT))


@tested
def substeps(planet):
    return max(1, int(np.ceil(1e3 * courant_number(planet))))


@tested
def advect(planet):
    flux = planet.u * planet.dt / RADIUS
    upwind = np.where(flux > 0, planet.q - np.roll(planet.q, 1, 1), np.roll(planet.q, -1, 1) - planet.q)
    return planet.q - flux * upwind


@tested
def diffuse(planet):
    n = 2
    F = planet.T.copy()
    for _ in range(n):
        F += planet.kappa * planet.dt / n / 1e10 * (np.roll(F, 1, 1) + np.roll(F, -1, 1) - 2.0 * F)
    return F


@tested
def condense(planet):
    excess = np.maximum(planet.q - saturation(planet), 0.0)
    return planet.q - 0.5 * excess, LATENT * 0.5 * excess / C_P


@tested
def lifted_index(planet):
    return np.where(planet.q > 2e-3, planet.T - 6.5 * 5.0, planet.T - 9.8 * 5.0)


@tested
def scale_height(planet):
    return R_DRY * planet.T / GRAVITY


@tested
def pressure_at(planet):
    return planet.p * np.exp(-1000.0 / scale_height(planet))


@tested
def damp(planet):
    u = planet.u.copy()
    u[[0, -1], :] = 0.0
    u *= 1.0 - planet.dt / 86400.0
    return u


# --- radiation and clouds ---------------------------------------------------------------------------------------------


@tested
def hour_angle(planet):
    return planet.lon + 2.0 * np.pi * (planet.steps * planet.dt / 86400.0) - np.pi


@tested
def zenith_cosine(planet):
    tilt = 0.41
    cosine = np.sin(planet.lat) * np.sin(tilt) + np.cos(planet.lat) * np.cos(tilt) * np.cos(hour_angle(planet))
    return np.maximum(cosine, 0.0)


@tested
def insolation(planet):
    return 1361.0 * zenith_cosine(planet)


@tested
def albedo(planet):
    base = np.where(planet.land, 0.25, 0.07)
    return base + (0.6 - base) * np.clip(planet.ice / 0.5, 0.0, 1.0)


@tested
def shortwave(planet):
    return insolation(planet) * (1.0 - albedo(planet))


@tested
def emitted(planet):
    return 0.95 * SIGMA * planet.T**4


@tested
def greenhouse(planet):
    emissivity = np.clip(0.6 + 0.05 * np.log1p(1e3 * planet.q), 0.0, 0.98)
    return emissivity * SIGMA * (planet.T - 20.0) ** 4


@tested
def net_radiation(planet):
    return shortwave(planet) + greenhouse(planet) - emitted(planet)


@tested
def imbalance(planet):
    return float(np.average(net_radiation(planet), weights=area_weights(planet)))


@tested
def cloud_cover(planet):
    return 1.0 / (1.0 + np.exp(-12.0 * (relative_humidity(planet) - 0.8)))


@tested
def cloud_mean(planet):
    cover = cloud_cover(planet)
    return float(cover.mean()), float(cover.max()), int(np.argmax(cover))


@tested
def optical_depth(planet):
    return 1.0 + 0.7 * cloud_cover(planet) + 0.3 * np.sqrt(planet.q / 1e-3)


# --- sea, land and ice ------------------------------------------------------------------------------------------------


@tested
def freeze(planet):
    cold = (planet.T < 271.35) & ~planet.land
    ice = planet.ice.copy()
    ice[cold] += 1e-3 * (271.35 - planet.T[cold])
    return ice


@tested
def melt(planet):
    ice = planet.ice - np.maximum(planet.T - 273.15, 0.0) * 1e-3
    return np.where(ice > 0.0, ice, 0.0)


@tested
def ice_area(planet):
    return float(np.sum(area_weights(planet)[planet.ice > 0.15]))


@tested
def ice_edge(planet):
    rows = np.where((planet.ice > 0.15).any(axis=1))[0]
    return float(planet.lat[rows[0], 0]) if rows.size else float("nan")


@tested
def heat_capacity(planet):
    capacity = np.full(planet.T.shape, 2e8)
    capacity[planet.land] = 2e6
    return capacity


@tested
def warm(planet):
    return planet.T + net_radiation(planet) * planet.dt / heat_capacity(planet)


@tested
def evaporate(planet):
    deficit = np.maximum(saturation(planet) - planet.q, 0.0)
    return 1.3e-3 * density(planet) * wind_speed(planet) * deficit * np.where(planet.land, 0.3, 1.0)


@tested
def wind_stress(planet):
    drag = 1.3e-3 * density(planet) * wind_speed(planet)
    return drag * planet.u, drag * planet.v


@tested
def mixed_layer(planet):
    if np.any(planet.ice > 2.0):
        return 20.0 * np.ones_like(planet.T)
    return 50.0 + 10.0 * np.tanh(wind_speed(planet) / 10.0)


@tested
def runoff(planet):
    water = 1e4 * planet.q
    return np.where(planet.land & (water > 12.0), water - 12.0, 0.0)


# --- looking at it ----------------------------------------------------------------------------------------------------


@tested
def spectrum(planet):
    return np.abs(np.fft.rfft(planet.T, axis=1)) ** 2


@tested
def smooth(planet):
    kernel = np.array([0.25, 0.5, 0.25])
    return sum(weight * np.roll(planet.T, shift, axis=1) for weight, shift in zip(kernel, (-1, 0, 1), strict=True))


@tested
def quantiles(planet):
    return np.percentile(planet.T, [10.0, 50.0, 90.0])


@tested
def correlation(planet):
    return float(np.corrcoef(planet.T.ravel(), planet.q.ravel())[0, 1])


def run_test(number: int) -> float:
    """One test: a planet, every function called on it, and a number that depends on all results."""
    subject = planet(number % 64)
    total = 0.0
    for function in FUNCTIONS:
        result = function(subject)
        parts = result if isinstance(result, tuple) else (result,)
        total += sum(float(np.nansum(np.tanh(part))) for part in parts)
    return total


def main() -> float:
    """Test after test until the bar ends; their sum."""
    from tqdm import tqdm

    return sum(run_test(number) for number in tqdm(range(STEPS)))


if __name__ == "__main__":
    total = main()
