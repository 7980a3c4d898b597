"""What this package covers of `scipy.ndimage`, one row a function, and why it leaves the rest to SciPy."""

from collections.abc import Callable

from jax import Array

from accel.ndimage.filters import gradients, linear, rank
from accel.ndimage.interpolation import spline, transforms

# SciPy's name -> lowering: jax arrays in, jax array out, SciPy's parameters (`output`: None or a dtype).
TABLE: dict[str, Callable[..., Array]] = {
    function.__name__: function
    for function in (
        linear.convolve,
        linear.convolve1d,
        linear.correlate,
        linear.correlate1d,
        gradients.gaussian_filter,
        gradients.gaussian_filter1d,
        gradients.gaussian_gradient_magnitude,
        gradients.gaussian_laplace,
        gradients.generic_gradient_magnitude,
        gradients.generic_laplace,
        gradients.laplace,
        gradients.prewitt,
        gradients.sobel,
        linear.uniform_filter,
        linear.uniform_filter1d,
        transforms.affine_transform,
        transforms.geometric_transform,
        transforms.map_coordinates,
        transforms.rotate,
        transforms.shift,
        transforms.zoom,
        rank.maximum_filter,
        rank.maximum_filter1d,
        rank.median_filter,
        rank.minimum_filter,
        rank.minimum_filter1d,
        rank.percentile_filter,
        rank.rank_filter,
        spline.spline_filter,
        spline.spline_filter1d,
    )
}

_CALLBACK = "it calls a Python function for every window"
_FOURIER = "it multiplies a Fourier transform that the program made elsewhere; SciPy's cost is negligible beside that"
_LABELS = "its result depends on labels whose number is known only from the data"
_MORPHOLOGY = "it iterates over a structuring element until the data stop changing"

# SciPy's name -> why there is no lowering. The engine leaves these calls to SciPy.
REFUSED: dict[str, str] = {
    **dict.fromkeys(("generic_filter", "generic_filter1d", "vectorized_filter"), _CALLBACK),
    **dict.fromkeys(("fourier_ellipsoid", "fourier_gaussian", "fourier_shift", "fourier_uniform"), _FOURIER),
    **dict.fromkeys(
        (
            "center_of_mass",
            "extrema",
            "find_objects",
            "histogram",
            "label",
            "labeled_comprehension",
            "maximum",
            "maximum_position",
            "mean",
            "median",
            "minimum",
            "minimum_position",
            "standard_deviation",
            "sum",
            "sum_labels",
            "value_indices",
            "variance",
            "watershed_ift",
        ),
        _LABELS,
    ),
    **dict.fromkeys(
        (
            "binary_closing",
            "binary_dilation",
            "binary_erosion",
            "binary_fill_holes",
            "binary_hit_or_miss",
            "binary_opening",
            "binary_propagation",
            "black_tophat",
            "distance_transform_bf",
            "distance_transform_cdt",
            "distance_transform_edt",
            "generate_binary_structure",
            "grey_closing",
            "grey_dilation",
            "grey_erosion",
            "grey_opening",
            "iterate_structure",
            "morphological_gradient",
            "morphological_laplace",
            "white_tophat",
        ),
        _MORPHOLOGY,
    ),
}
