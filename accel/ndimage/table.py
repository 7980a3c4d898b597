"""Functions of `scipy.ndimage` that this package covers, and why it leaves the rest to SciPy: the one list of names.

It can be read without importing JAX: `lowering` imports a function's module when it is asked for.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

_COVERED = {
    "filters.extremes": "maximum_filter maximum_filter1d minimum_filter minimum_filter1d",
    "filters.gradients": """gaussian_filter gaussian_filter1d gaussian_gradient_magnitude gaussian_laplace laplace
    prewitt sobel""",
    "filters.linear": "convolve convolve1d correlate correlate1d uniform_filter uniform_filter1d",
    "filters.rank": "median_filter percentile_filter rank_filter",
    "interpolation.spline": "spline_filter spline_filter1d",
    "interpolation.transforms": "affine_transform map_coordinates rotate shift zoom",
}

COVERED: dict[str, str] = {
    name: f"accel.ndimage.{module}" for module, names in _COVERED.items() for name in names.split()
}
"""SciPy's name -> module of the lowering, which has the same name."""


def lowering(name: str) -> Callable[..., Any]:
    """A covered function on JAX arrays: SciPy's parameters (`output`: None or a dtype), a JAX array out."""
    function: Callable[..., Any] = getattr(import_module(COVERED[name]), name)
    return function


_REFUSED = {
    "it calls a Python function for every window": "generic_filter generic_filter1d vectorized_filter",
    "it calls a Python function": "generic_gradient_magnitude generic_laplace geometric_transform",
    "it multiplies a Fourier transform that the program made elsewhere; SciPy's cost is negligible beside that": (
        "fourier_ellipsoid fourier_gaussian fourier_shift fourier_uniform"
    ),
    "its result depends on labels whose number is known only from the data": """center_of_mass extrema find_objects
    histogram label labeled_comprehension maximum_position median minimum_position value_indices watershed_ift""",
    "it iterates over a structuring element until the data stop changing": """binary_fill_holes binary_hit_or_miss
    binary_propagation distance_transform_bf distance_transform_cdt distance_transform_edt iterate_structure""",
    "it is made of others: the rules have it, in accel.rules.tables.scipy.ndimage": """binary_closing binary_dilation
    binary_erosion binary_opening black_tophat generate_binary_structure grey_closing grey_dilation grey_erosion
    grey_opening maximum mean minimum morphological_gradient morphological_laplace standard_deviation sum sum_labels
    variance white_tophat""",
}

REFUSED: dict[str, str] = {name: why for why, names in _REFUSED.items() for name in names.split()}
"""SciPy's name -> why there is no lowering here. The engine leaves these calls to SciPy, unless it has own rows."""
