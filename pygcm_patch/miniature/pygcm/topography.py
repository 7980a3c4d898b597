"""A random but repeatable planet surface: continents, sea level, albedo and roughness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class TopographyParams:
    """Parameters of `generate_elevation_map`."""

    n_continents: int = 7
    n_ridges: int = 30
    relief: float = 2500.0  # m, height of a continent's middle


def _great_circle_distance_rad(lat_deg, lon_deg, lat0_deg, lon0_deg):
    """Angle in rad between (lat, lon) and (lat0, lon0), degrees, by the haversine formula."""
    lat, lon, lat0, lon0 = (np.deg2rad(x) for x in (lat_deg, lon_deg, lat0_deg, lon0_deg))
    half = np.sin((lat - lat0) / 2.0) ** 2 + np.cos(lat) * np.cos(lat0) * np.sin((lon - lon0) / 2.0) ** 2
    return 2.0 * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0)))


def _weighted_quantile(values, weights, q):
    """The value below which a share q (1) of the total weight lies. values, weights: same shape."""
    order = np.argsort(values, axis=None)
    cumulated = np.cumsum(np.ravel(weights)[order])
    cumulated /= cumulated[-1]
    return float(np.ravel(values)[order][np.searchsorted(cumulated, q)])


def generate_elevation_map(grid, seed=42, params=None):
    """Elevation in m, (n_lat, n_lon): wide Gaussian continents and narrow ridges at random places."""
    params = params or TopographyParams()
    rng = np.random.default_rng(seed)
    elevation = np.zeros((grid.n_lat, grid.n_lon))
    for count, width, height in (
        (params.n_continents, 0.45, params.relief),
        (params.n_ridges, 0.10, 0.4 * params.relief),
    ):
        for _ in range(count):
            # Uniform on the sphere, not on the map.
            lat0 = np.rad2deg(np.arcsin(rng.uniform(-0.95, 0.95)))
            lon0 = rng.uniform(0.0, 360.0)
            size = width * rng.uniform(0.6, 1.4)
            angle = _great_circle_distance_rad(grid.lat_mesh, grid.lon_mesh, lat0, lon0)
            elevation += height * rng.uniform(0.5, 1.0) * np.exp(-((angle / size) ** 2))
    return elevation


def create_land_sea_mask_from_elevation(elevation_m, grid, target_land_frac=0.29):
    """Int mask, 1 on land: the highest share target_land_frac (of area, 1) of the map elevation_m (m)."""
    weights = np.maximum(np.cos(np.deg2rad(grid.lat_mesh)), 0.0)
    sea_level = _weighted_quantile(elevation_m, weights, 1.0 - target_land_frac)
    mask = (elevation_m > sea_level).astype(int)
    # Both ends of a row are one meridian.
    mask[:, -1] = mask[:, 0]
    share = float(np.sum(mask * weights) / np.sum(weights))
    print(f"topography: sea level {sea_level:.0f} m, land {100 * share:.1f} % of the area")
    return mask


def create_land_sea_mask(grid, target_land_frac=0.29, seed=42, params=None):
    """As `create_land_sea_mask_from_elevation`, on a map drawn with `seed`."""
    return create_land_sea_mask_from_elevation(generate_elevation_map(grid, seed, params), grid, target_land_frac)


def generate_base_properties(mask, elevation=None, grid=None):
    """(albedo of the bare surface 1, surface friction 1/s), (n_lat, n_lon), from the land mask and elevation (m)."""
    land = mask == 1
    albedo = np.where(land, 0.22, 0.08)
    friction = np.where(land, 1.2e-5, 5.0e-6)
    if elevation is not None:
        height = np.where(land, np.maximum(elevation - np.min(elevation[land], initial=np.inf), 0.0), 0.0)
        friction += 2.0e-6 * np.minimum(height / 1000.0, 3.0)
    if grid is not None:
        # Dark forests at the equator, bright tundra near the poles.
        albedo += np.where(land, 0.08 * np.sin(np.deg2rad(grid.lat_mesh)) ** 2, 0.0)
    return albedo, friction
