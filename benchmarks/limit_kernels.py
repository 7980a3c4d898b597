"""The loops of `limit.py`: the arithmetic of the miniature's `time_step`, by numba, in four passes over the fields.

A pass takes a row through all that it can before it goes to the next one, so that what lies between two stencils stays
in the nearest cache. No loop has one array on both sides of `=` under two names: LLVM would not vectorise it. Without
numba these are plain Python, the same numbers and very slow. Fields are (n_lat, n_lon) float64; what depends on the row
alone is (n_lat,). The last column is the first again (`close_seam`).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

LARGEST = float(np.finfo(float).max)

# Of exp: e^x = 2^k e^r with |r| <= ln(2) / 2. Adding ROUNDER leaves k in the lowest bits of the sum.
ROUNDER = 1.5 * 2.0**52
PER_LN2 = 1.4426950408889634
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10

OPEN, CLOSED, WINDS, POSITIVE, SHARE = range(5)
"""What is done to a finished row: nothing; its seam is closed; before that the wind is capped, and stops at the poles;
or negative values become 0; or all values are brought into 0 to 1."""


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """By numba where it is installed. A product and a sum may be one instruction; no other fast maths is allowed."""
    if importlib.util.find_spec("numba") is None:
        return function
    import numba

    jitted: Callable[..., Any] = numba.njit(function, fastmath={"contract"}, error_model="numpy", cache=True)
    return jitted


class Surface(NamedTuple):
    """Numbers of the surface's pass, from the model's parameters.

    warming: K of air per m of h. sw_clear, sw_cloud, tau0, k_tau, eps_land, sensible, onset, share: 1. vapour: kg/m3.
    moisture: kg/m2, of the moist layer. gust2: m2/s2. C_*: J/m2/K. volume: J/m3, of ice that melts. dt: s. Others: SI.
    """

    dt: float
    t_reference: float
    warming: float
    sigma: float
    sw_clear: float
    sw_cloud: float
    tau0: float
    k_tau: float
    eps_land: float
    sensible: float
    vapour: float
    moisture: float
    gust2: float
    onset: float
    share: float
    latent: float
    land_factor: float
    ice_factor: float
    c_ocean: float
    c_land: float
    c_ice: float
    t_freeze: float
    t_floor: float
    conductivity: float
    h_min: float
    volume: float


# --- exponentials and bits ------------------------------------------------------------------------------------------


@compiled
def exponentials(x, shifted):
    """x becomes e^x, in place, to 1e-15; |x| at most 700. shifted: as long as x, overwritten.

    numba calls the C library for each `exp`; these loops become vector instructions.
    """
    for i in range(x.size):
        shifted[i] = x[i] * PER_LN2 + ROUNDER
        k = shifted[i] - ROUNDER
        x[i] = taylor((x[i] - k * LN2_HIGH) - k * LN2_LOW)
    bits, powers = x.view(np.int64), shifted.view(np.int64)
    for i in range(x.size):
        bits[i] += powers[i] << 52  # times 2^k


@compiled
def taylor(r):
    """e^r for |r| <= ln(2) / 2."""
    p = r * (1.0 / 479001600.0) + 1.0 / 39916800.0
    p = (p * r + 1.0 / 3628800.0) * r + 1.0 / 362880.0
    p = (p * r + 1.0 / 40320.0) * r + 1.0 / 5040.0
    p = (p * r + 1.0 / 720.0) * r + 1.0 / 120.0
    p = (p * r + 1.0 / 24.0) * r + 1.0 / 6.0
    return ((p * r + 0.5) * r + 1.0) * r + 1.0


@compiled
def clean(x):
    """One number as `nan_to_num` gives it."""
    x = x if x == x else 0.0
    x = LARGEST if x > LARGEST else x
    return -LARGEST if x < -LARGEST else x


@compiled
def saturated(exponential):
    """Specific humidity, kg/kg, at 1e5 Pa for the exponential in Bolton's formula."""
    e_s = min(611.2 * exponential, 0.5e5)
    return 0.622 * e_s / (1.0e5 - 0.378 * e_s)


@compiled
def bolton(T):
    """The exponent in Bolton's formula."""
    bounded = min(max(T, 150.0), 350.0)
    return 17.67 * (bounded - 273.15) / (bounded - 29.65)


# --- first pass: radiation, turbulent fluxes, vapour, surface, ice ---------------------------------------------------


@compiled
def surface(c, u, v, h, T_s, q, cloud, h_ice, isr, albedo, land, T_new, q_new, ice_new, evaporated, condensed):
    """From the fields and land (bool) to the last five arrays; c is a `Surface`."""
    n_lat, n = h.shape
    powers, scale, flux = np.empty(3 * n), np.empty(3 * n), np.empty(n)
    for j in range(n_lat):
        surface_exponents(c, h[j], T_s[j], cloud[j], powers)
        exponentials(powers, scale)
        moisture_row(c, u[j], v[j], T_s[j], q[j], land[j], h_ice[j], powers, q_new[j], evaporated[j], condensed[j])
        radiation_row(c, h[j], T_s[j], cloud[j], isr[j], albedo[j], land[j], h_ice[j], powers, flux)
        turbulence_row(c, u[j], v[j], h[j], T_s[j], evaporated[j], flux)
        surface_row(c, flux, T_s[j], h_ice[j], land[j], T_new[j], ice_new[j])


@compiled
def surface_exponents(c, h, T_s, cloud, powers):
    """A row's exponents: of saturation at the ground and in the air, of the air's transmission."""
    n = h.size
    for i in range(n):
        powers[i] = bolton(T_s[i])
        powers[n + i] = bolton(c.t_reference + c.warming * h[i])
        powers[2 * n + i] = -(c.tau0 + c.k_tau * min(max(cloud[i], 0.0), 1.0))


@compiled
def moisture_row(c, u, v, T_s, q, land, h_ice, powers, q_new, evaporated, condensed):
    """Evaporation and condensation."""
    n = q.size
    to_q, to_rain = c.dt / c.moisture, c.moisture / c.dt
    for i in range(n):
        factor = c.ice_factor if h_ice[i] > 1e-6 else 1.0
        factor = c.land_factor if land[i] else factor
        wind = np.sqrt(u[i] * u[i] + v[i] * v[i] + c.gust2)
        E = c.vapour * wind * max(saturated(powers[i]) - q[i], 0.0) * factor
        moist = q[i] + E * to_q
        fallen = c.share * max(moist - c.onset * saturated(powers[n + i]), 0.0)
        evaporated[i] = E
        condensed[i] = fallen * to_rain
        q_new[i] = moist - fallen


@compiled
def radiation_row(c, h, T_s, cloud, isr, albedo, land, h_ice, powers, flux):
    """Light and infrared that the surface keeps, W/m2, into flux."""
    n = h.size
    for i in range(n):
        entering = isr[i] - isr[i] * albedo[i]
        sunlight = entering - min(max(c.sw_clear + c.sw_cloud * cloud[i], 0.0), 1.0) * entering
        eps = 0.98 + 0.01 * min(max(h_ice[i] * 2.0, 0.0), 1.0)
        eps = c.eps_land if land[i] else eps
        T_a = c.t_reference + c.warming * h[i]
        ground, air = T_s[i] * T_s[i], T_a * T_a
        down = (1.0 - powers[2 * n + i]) * c.sigma * air * air
        flux[i] = sunlight + eps * (down - c.sigma * ground * ground)


@compiled
def turbulence_row(c, u, v, h, T_s, evaporated, flux):
    """Less what the air takes as heat and as vapour."""
    for i in range(h.size):
        T_a = c.t_reference + c.warming * h[i]
        sensible = c.sensible * (np.sqrt(u[i] * u[i] + v[i] * v[i]) + 1.0) * (T_s[i] - T_a)
        flux[i] -= sensible + c.latent * evaporated[i]


@compiled
def surface_row(c, flux, T_s, h_ice, land, T_new, ice_new):
    """Temperature and ice; there is no ice on land at the end of a step."""
    for i in range(flux.size):
        wet, frozen = not land[i], h_ice[i] > 0.0
        rate = c.dt / c.c_ice if frozen else c.dt / c.c_ocean
        rate = rate if wet else c.dt / c.c_land
        conducted = c.conductivity * (c.t_freeze - T_s[i]) / max(h_ice[i], c.h_min)
        conducted = conducted if wet and frozen else 0.0
        T = T_s[i] + (flux[i] + conducted) * rate
        ice = h_ice[i] + max(conducted, 0.0) * c.dt / c.volume
        freezes, melts = wet and not frozen and c.t_freeze > T, wet and frozen and c.t_freeze < T
        capacity = c.c_ice if melts else c.c_ocean
        ice = ice + capacity * (c.t_freeze - T) / c.volume if freezes or melts else ice
        T = c.t_freeze if freezes or melts else T
        gone = melts and ice < 0.0
        T = c.t_freeze - ice * c.volume / c.c_ocean if gone else T
        T_new[i] = max(T, c.t_floor)
        ice_new[i] = 0.0 if gone or not wet else ice


# --- second pass: advection ------------------------------------------------------------------------------------------


@compiled
def advect(u, v, h, q, rows_per_wind, columns_per_wind, u_new, v_new, h_new, q_new):
    """The four fields where parcels came from, bilinear: one search and one set of weights for all.

    rows_per_wind: float, columns_per_wind (n_lat,): cells in a step per m/s. Winds have to be finite.
    """
    n_lat, n = u.shape
    corner, north, east = np.empty(n, np.int32), np.empty(n), np.empty(n)
    corners = corner.view(np.uint32)  # without a sign there is no negative index to look for
    flat = u.reshape(-1), v.reshape(-1), h.reshape(-1), q.reshape(-1)
    for j in range(n_lat):
        origins(j, n_lat, u[j], v[j], rows_per_wind, columns_per_wind[j], corner, north, east)
        interpolate(flat[0], flat[1], corners, north, east, u_new[j], v_new[j])
        interpolate(flat[2], flat[3], corners, north, east, h_new[j], q_new[j])


@compiled
def origins(j, n_lat, u, v, rows_per_wind, columns_per_wind, corner, north, east):
    """The cell from which a row's parcels came: its corner's index, and the shares of its north and its east."""
    n = u.size
    period = n - 1.0
    for i in range(n):
        row = min(max(j - v[i] * rows_per_wind, 0.0), n_lat - 1.0)
        column = i - u[i] * columns_per_wind
        column = column - period * np.floor(column / period) if column < 0.0 or column > period else column
        south, west = min(np.floor(row), n_lat - 2.0), min(np.floor(column), n - 2.0)
        north[i], east[i] = row - south, column - west
        corner[i] = np.int32(south * n + west)


@compiled
def interpolate(a, b, corner, north, east, a_new, b_new):
    """Two flat fields into a row of each."""
    right, up = np.uint64(1), np.uint64(corner.size)
    for i in range(corner.size):
        k, y, x = corner[i], north[i], east[i]
        a_new[i] = between(between(a[k], a[k + right], x), between(a[k + up], a[k + up + right], x), y)
        b_new[i] = between(between(b[k], b[k + right], x), between(b[k + up], b[k + up + right], x), y)


@compiled
def between(a, b, share):
    """The share of the way from a to b."""
    return a + share * (b - a)


# --- third pass: waves and relaxation --------------------------------------------------------------------------------


class Rows(NamedTuple):
    """What the waves need to know of each row, (n_lat,), for one sub-step.

    rise_zonal, rise_north: m of h per m/s of wind's difference. cos_lat: 1. push_east, push_north: m/s per m of h's
    difference. coriolis: 1. turn: s/m, of the wind along a parallel.
    """

    rise_zonal: np.ndarray
    rise_north: np.ndarray
    cos_lat: np.ndarray
    push_east: np.ndarray
    push_north: np.ndarray
    coriolis: np.ndarray
    turn: np.ndarray


@compiled
def waves(u, v, h, rows, drag, warmth, relaxed, scale, offset):
    """One sub-step, in place. Then h goes the share `relaxed` of its way to scale warmth + offset.

    drag: 1, (n_lat, n_lon). The rows of h run one ahead of those of the wind, and two ahead of its relaxation.
    """
    n_lat = h.shape[0]
    rise(u, v, h, 1, rows)
    accelerate(0, u[0], v[0], h[0], h[0], h[1], rows, drag[0])
    for j in range(1, n_lat - 1):
        if j + 1 < n_lat - 1:
            rise(u, v, h, j + 1, rows)
        accelerate(j, u[j], v[j], h[j], h[j - 1], h[j + 1], rows, drag[j])
        relax(h[j - 1], warmth[j - 1], relaxed, scale, offset)
    last = n_lat - 1
    accelerate(last, u[last], v[last], h[last], h[last], h[last], rows, drag[last])
    relax(h[last - 1], warmth[last - 1], relaxed, scale, offset)
    relax(h[last], warmth[last], relaxed, scale, offset)


@compiled
def rise(u, v, h, j, rows):
    """Continuity in row j; a pole beside it takes the row's mean divergence."""
    n_lat, n = h.shape
    zonal, meridional = rows.rise_zonal[j], rows.rise_north[j]
    north, south = meridional * rows.cos_lat[j + 1], meridional * rows.cos_lat[j - 1]
    before = h[j].sum() if j in (1, n_lat - 2) else 0.0
    row, wind, above, below = h[j], u[j], v[j + 1], v[j - 1]
    row[0] += zonal * (wind[1] - wind[n - 2]) + north * above[0] - south * below[0]
    for i in range(1, n - 1):
        row[i] += zonal * (wind[i + 1] - wind[i - 1]) + north * above[i] - south * below[i]
    row[n - 1] += zonal * (wind[1] - wind[n - 2]) + north * above[n - 1] - south * below[n - 1]
    if j == 1:
        h[0] += (row.sum() - before) / n
    if j == n_lat - 2:
        h[n_lat - 1] += (row.sum() - before) / n


@compiled
def accelerate(j, u, v, h, south, north, rows, drag):
    """Pressure, Coriolis force and friction on a row of wind."""
    n = h.size
    east, up, coriolis, turn = rows.push_east[j], rows.push_north[j], rows.coriolis[j], rows.turn[j]
    seam = east * (h[1] - h[n - 2])
    step(0, u, v, seam, up * (north[0] - south[0]), coriolis, turn, drag)
    for i in range(1, n - 1):
        step(i, u, v, east * (h[i + 1] - h[i - 1]), up * (north[i] - south[i]), coriolis, turn, drag)
    step(n - 1, u, v, seam, up * (north[n - 1] - south[n - 1]), coriolis, turn, drag)


@compiled
def step(i, u, v, push_east, push_north, coriolis, turn, drag):
    """One point of the wind, implicit in turning and drag."""
    turning = coriolis + u[i] * turn
    x, y = u[i] - push_east, v[i] - push_north
    per = 1.0 / (drag[i] * drag[i] + turning * turning)
    u[i] = (drag[i] * x + turning * y) * per
    v[i] = (drag[i] * y - turning * x) * per


@compiled
def relax(h, warmth, relaxed, scale, offset):
    """A row of h on its way to the equilibrium."""
    for i in range(h.size):
        h[i] += relaxed * (scale * warmth[i] + offset - h[i])


# --- fourth pass: hyperdiffusion, caps, seam -------------------------------------------------------------------------


class Bands(NamedTuple):
    """The Laplacian by rows, 1/m2, and k4 dt, m4: zonal, north, south, middle, strength. Pole rows are not read."""

    zonal: np.ndarray
    north: np.ndarray
    south: np.ndarray
    middle: np.ndarray
    strength: np.ndarray


@compiled
def diffuse(field, bands, kind, other, cap):
    """field, less k4 dt of the Laplacian of its Laplacian, and `kind`; in place. other: for WINDS, the finished u.

    Two rows of the field are ahead of the row that is finished, one of the first Laplacian.
    """
    n_lat, n = field.shape
    last = n_lat - 1
    ring, pole = np.empty((4, n)), np.empty(n)
    for j in range(3):
        clean_row(field[j])
    ring_row(field, 1, bands, ring)
    for j in range(1, last):
        if j + 1 < last:
            clean_row(field[j + 2])
            ring_row(field, j + 1, bands, ring)
        south, row, north = ring[(j - 1) % 4], ring[j % 4], ring[(j + 1) % 4]
        if j in (1, last - 1):
            at = 0 if j == 1 else last
            laplacian_row(south, row, north, j, bands, pole)
            field[at] -= bands.strength[at] * pole.mean()
            finish_row(field[at], other[at], kind, cap, True)
        diffuse_row(south, row, north, j, bands, field[j])
        finish_row(field[j], other[j], kind, cap, False)


@compiled
def ring_row(field, j, bands, ring):
    """The first Laplacian of row j, and of the pole beside it, which takes the row's mean."""
    last = field.shape[0] - 1
    out = ring[j % 4]
    laplacian_row(field[j - 1], field[j], field[j + 1], j, bands, out)
    if j == 1:
        ring[0, :] = clean(out.mean())
    if j == last - 1:
        ring[last % 4, :] = clean(out.mean())
    clean_row(out)


@compiled
def clean_row(row):
    """A row as `nan_to_num` gives it, in place."""
    for i in range(row.size):
        row[i] = clean(row[i])


@compiled
def laplacian_row(south, row, north, j, bands, out):
    """The Laplacian of a row between two."""
    n = row.size
    a, b, c, d = bands.zonal[j], bands.north[j], bands.south[j], bands.middle[j]
    out[0] = a * (row[1] + row[n - 2]) + b * north[0] + c * south[0] - d * row[0]
    for i in range(1, n - 1):
        out[i] = a * (row[i + 1] + row[i - 1]) + b * north[i] + c * south[i] - d * row[i]
    out[n - 1] = a * (row[1] + row[n - 2]) + b * north[n - 1] + c * south[n - 1] - d * row[n - 1]


@compiled
def diffuse_row(south, row, north, j, bands, out):
    """out less its share of the Laplacian of a row between two."""
    n, k = row.size, bands.strength[j]
    a, b, c, d = k * bands.zonal[j], k * bands.north[j], k * bands.south[j], k * bands.middle[j]
    out[0] -= a * (row[1] + row[n - 2]) + b * north[0] + c * south[0] - d * row[0]
    for i in range(1, n - 1):
        out[i] -= a * (row[i + 1] + row[i - 1]) + b * north[i] + c * south[i] - d * row[i]
    out[n - 1] -= a * (row[1] + row[n - 2]) + b * north[n - 1] + c * south[n - 1] - d * row[n - 1]


@compiled
def finish(field, other, kind, cap):
    """What `kind` says, row by row, where it could not be done in the pass of `diffuse`."""
    n_lat = field.shape[0]
    for j in range(n_lat):
        finish_row(field[j], other[j], kind, cap, j in (0, n_lat - 1))


@compiled
def finish_row(row, other, kind, cap, pole):
    """What `kind` says, and the seam. cap: m/s."""
    n = row.size
    if kind == OPEN:
        return
    if kind == WINDS:
        if pole:
            row[:] = 0.0
            other[:] = 0.0
        else:
            cap_row(other, row, cap)
        other[n - 1] = other[0]
    elif kind == POSITIVE:
        for i in range(n):
            row[i] = 0.0 if row[i] < 0.0 else row[i]
    elif kind == SHARE:
        for i in range(n):
            row[i] = min(max(row[i], 0.0), 1.0)
    row[n - 1] = row[0]


@compiled
def cap_row(u, v, cap):
    """Winds beyond cap (m/s) are slowed to it; there are hardly ever any."""
    above = 0
    for i in range(u.size):
        above += u[i] * u[i] + v[i] * v[i] > cap * cap
    if above:
        for i in range(u.size):
            speed = np.sqrt(u[i] * u[i] + v[i] * v[i])
            if speed > cap:
                u[i] *= cap / speed
                v[i] *= cap / speed
