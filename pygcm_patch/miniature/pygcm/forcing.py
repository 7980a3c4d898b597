"""Insolation at the top of the atmosphere from both stars, and the temperature that it would sustain."""

from __future__ import annotations

import numpy as np

from pygcm.constants import AXIAL_TILT, DAY, STEFAN_BOLTZMANN
from pygcm.grid import SphericalGrid
from pygcm.orbital import OrbitalSystem

EMISSIVITY_PLANET = 0.61  # effective emissivity of a planet with a mild greenhouse, 1
# A local radiative equilibrium has twice the pole-to-equator contrast of a planet with winds; motion unresolved here
# (eddies, the meridional overturning) is taken into account by this share.
CONTRAST_SHARE = 0.45
T_EQ_MIN = 225.0  # K, what the polar night still receives from warmer latitudes


class ThermalForcing:
    """Insolation maps for a grid under an orbital system. Everything returned has shape (n_lat, n_lon)."""

    def __init__(self, grid: SphericalGrid, orbital: OrbitalSystem):
        self.grid = grid
        self.orbital = orbital

    def calculate_insolation(self, t):
        """Both stars together, W/m2, at time t (s)."""
        ins_a, ins_b = self.calculate_insolation_components(t)
        return ins_a + ins_b

    def calculate_insolation_components(self, t):
        """Star A's and star B's insolation, W/m2, at time t (s)."""
        (flux_a, vector_a), (flux_b, vector_b) = self.orbital.star_vectors(t)
        return (
            self._get_single_star_insolation(t, flux_a, vector_a),
            self._get_single_star_insolation(t, flux_b, vector_b),
        )

    def _get_single_star_insolation(self, t, flux, star_vector):
        """flux * max(0, cos Z), W/m2; cos Z = sin lat sin d + cos lat cos d cos H (Hartmann, ch. 2).

        t: s. flux: W/m2. star_vector: (3,), unit vector from planet to star in the orbital plane. The axis leans
        towards +x, so the declination is d = asin(sin(tilt) x).
        """
        declination = np.arcsin(np.sin(AXIAL_TILT) * star_vector[0])
        right_ascension = np.arctan2(star_vector[1], star_vector[0])
        lat = np.deg2rad(self.grid.lat_mesh)
        hour_angle = np.deg2rad(self.grid.lon_mesh) + 2.0 * np.pi * t / DAY - right_ascension
        cos_zenith = np.sin(lat) * np.sin(declination) + np.cos(lat) * np.cos(declination) * np.cos(hour_angle)
        return flux * np.maximum(cos_zenith, 0.0)

    def calculate_equilibrium_temp(self, t, albedo):
        """Temperature K that the air relaxes to: a grey body in balance with the daily mean insolation.

        t: s. albedo: (n_lat, n_lon) or scalar, 1. The mean along a latitude circle at one instant is the daily mean.
        """
        daily = np.mean(self.calculate_insolation(t)[:, :-1], axis=1, keepdims=True)
        absorbed = daily * (1.0 - albedo)
        local = (absorbed / (EMISSIVITY_PLANET * STEFAN_BOLTZMANN)) ** 0.25
        mean_absorbed = 0.25 * self.orbital.calculate_total_flux(t) * (1.0 - np.mean(albedo))
        mean = (mean_absorbed / (EMISSIVITY_PLANET * STEFAN_BOLTZMANN)) ** 0.25
        t_eq = mean + CONTRAST_SHARE * (local - mean)
        t_eq = t_eq + np.zeros((self.grid.n_lat, self.grid.n_lon))
        t_eq[t_eq < T_EQ_MIN] = T_EQ_MIN
        return t_eq
