"""Classes of SciPy's whose objects a compiled program makes and asks itself: see accel.rules.made."""

from __future__ import annotations

METHODS: dict[str, str] = {
    "scipy.spatial.cKDTree": "query query_ball_point",
    "scipy.spatial.KDTree": "query query_ball_point",
    "scipy.spatial.ConvexHull": "",
    "scipy.spatial.Delaunay": "find_simplex",
    "scipy.interpolate.CubicSpline": "__call__ integrate",
    "scipy.interpolate.PchipInterpolator": "__call__ integrate",
    "scipy.interpolate.Akima1DInterpolator": "__call__ integrate",
    "scipy.interpolate.interp1d": "__call__",
    "scipy.interpolate.RegularGridInterpolator": "__call__",
    "scipy.interpolate.LinearNDInterpolator": "__call__",
    "scipy.interpolate.NearestNDInterpolator": "__call__",
    "scipy.interpolate.RBFInterpolator": "__call__",
    "scipy.interpolate.UnivariateSpline": "__call__ integral get_knots get_coeffs get_residual",
    "scipy.interpolate.InterpolatedUnivariateSpline": "__call__ integral",
    "scipy.interpolate.RectBivariateSpline": "__call__ ev integral",
    "scipy.stats.gaussian_kde": "__call__ evaluate pdf",
}
"""Classes whose objects are nothing but what follows from the arguments, and the methods that only compute."""
