"""Linear algebra: products of vectors and matrices, decompositions, norms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.rules import complexes, filling, products
from accel.rules.core import cast, in_common_dtype
from accel.rules.derivatives import derived_from
from accel.rules.lowering import Array, axes_of, extreme, jnp, lax, tree, where
from accel.rules.rule import Unsupported, add_rule, rewritten, rule
from accel.rules.special import Finite, OfArray
from accel.rules.tracing import current

_function: Any

# -- products ---------------------------------------------------------------------------------------------------------


def _precise(name: str, *positional: str) -> Callable[..., Any]:
    """A product at full precision: accelerators would shorten float32 operands otherwise.

    Of truths: whether any of the products that are summed is true.
    """

    def lower(**bound: object) -> Any:
        given = [jnp.asarray(bound.pop(parameter)) for parameter in positional]
        given = in_common_dtype(*given)
        if name == "dot" and products.is_worth_a_call(*given):
            return products.matmul(*given)
        if given[0].dtype == np.bool_:
            counted = getattr(jnp, name)(*(part.astype(np.int32) for part in given), **bound)
            return counted != 0
        return getattr(jnp, name)(*given, **bound, precision=lax.Precision.HIGHEST)

    return lower


add_rule(np.dot, _precise("dot", "a", "b"), "a b", work=20.0)
for _function in (np.inner, np.vdot):
    add_rule(_function, _precise(_function.__name__, "a", "b"), "a b", work=20.0)
add_rule(np.tensordot, _precise("tensordot", "a", "b"), "a b | axes", work=20.0)
add_rule(np.linalg.tensordot, _precise("tensordot", "x1", "x2"), "x1 x2 | axes", work=20.0)


@rewritten(np.linalg.vecdot, "x1 x2 | axis")
def linalg_vecdot(x1: Any, x2: Any, axis: int = -1) -> Any:
    if axis != -1:
        raise Unsupported("rule.parameter", "numpy.linalg.vecdot: axis")
    return np.vecdot(x1, x2)


@rule(np.kron, "a b")
def kron(*, a: Array, b: Array) -> Any:
    a, b = jnp.asarray(a), jnp.asarray(b)
    return _product(jnp.kron, a, b)


def _product(function: Any, a: Any, b: Any) -> Any:
    a, b = in_common_dtype(a, b)
    if a.dtype == np.bool_:
        return function(a.astype(np.int8), b.astype(np.int8)) != 0
    return function(a, b)


def _crosses_rows(bound: Mapping[str, Any], is_rows: Callable[[object], bool]) -> bool:
    """Whether it takes the last axes of selected rows, and of nothing else that has rows."""
    return len(bound) == 2 and all(getattr(each, "ndim", 1) == 1 + is_rows(each) for each in bound.values())


@rule(np.cross, "a b | axisa axisb axisc axis", rowwise=_crosses_rows)
def cross(*, a: Array, b: Array, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """Of vectors of two or three components; what a vector has not is left out, as zeros times NaN would be NaN."""
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = in_common_dtype(a, b)
    a0, a1, *a2 = jnp.moveaxis(a, axisa, 0)
    b0, b1, *b2 = jnp.moveaxis(b, axisb, 0)
    last = a0 * b1 - a1 * b0
    if not a2 and not b2:
        return last
    if not a2:
        first, second = a1 * b2[0], -(a0 * b2[0])
    elif not b2:
        first, second = -(a2[0] * b1), a2[0] * b0
    else:
        first, second = a1 * b2[0] - a2[0] * b1, a2[0] * b0 - a0 * b2[0]
    return jnp.stack([first, second, last], axis=axisc)


@rule(np.linalg.cross, "x1 x2 | axis")
def linalg_cross(*, x1: Array, x2: Array, axis: int = -1) -> Any:
    return cross(a=x1, b=x2, axis=axis)


def _sum_of_diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """By the sum of the diagonal alone, in NumPy's order."""
    return np.sum(np.diagonal(a, offset, axis1, axis2), -1, dtype)


for _function, _names, _calls in (
    (np.trace, "a | offset axis1 axis2 dtype", _sum_of_diagonal),
    (np.linalg.trace, "x | offset", lambda x, offset=0: np.trace(x, offset, -2, -1)),
    (np.linalg.diagonal, "x | offset", lambda x, offset=0: np.diagonal(x, offset, -2, -1)),
    (np.linalg.matmul, "x1 x2", lambda x1, x2: np.matmul(x1, x2)),
    (np.linalg.matrix_transpose, "x", lambda x: np.swapaxes(x, -1, -2)),
):
    rewritten(_function, _names)(_calls)
for _function, _names, _calls in (
    (np.outer, "a b", lambda a, b: np.multiply(np.expand_dims(np.ravel(a), 1), np.expand_dims(np.ravel(b), 0))),
    (np.linalg.outer, "x1 x2", lambda x1, x2: np.multiply(np.expand_dims(x1, 1), np.expand_dims(x2, 0))),
):
    rewritten(_function, _names, kind=OfArray)(_calls)


# -- matrices ---------------------------------------------------------------------------------------------------------


def _matrix(name: str, *positional: str, symmetric: bool = False) -> Callable[..., Any]:
    """jax.numpy.linalg's function, in double precision as NumPy's, whole numbers as floats.

    symmetric: NumPy's reads one triangle of the first operand.
    """

    def lower(*, UPLO: str = "L", **bound: Any) -> Any:
        given = [_floating(jnp.asarray(bound.pop(parameter))) for parameter in positional]
        if not all(part.size for part in given):
            raise Unsupported("rule.parameter", f"numpy.linalg.{name} of nothing")
        given = in_common_dtype(*given)

        def by_xla(*given: Array) -> Any:
            first, *others = given
            if symmetric or bound.get("hermitian"):
                first = from_triangle(first, UPLO in "Uu" or bound.get("upper", False))
            return _in_double(_OWN.get(name) or getattr(jnp.linalg, name), first, *others, **bound)

        if current().for_kernels and filling.are_allowed():
            import jax

            form = jax.eval_shape(by_xla, *given)
            if hasattr(form, "shape"):  # one result
                options = {**bound, **({"UPLO": UPLO} if name == "eigvalsh" else {})}
                return filling.filled(_Called(name, tuple(options.items())), given, form.shape, form.dtype, by_xla)
        return by_xla(*given)

    return lower


def pivots_of(a: Array) -> tuple[Array, Array]:
    """The pivots of square matrices, and whether an odd number of rows was swapped."""
    factors, rows, _ = lax.linalg.lu(a)
    swaps = (rows != jnp.arange(rows.shape[-1], dtype=rows.dtype)).sum(axis=-1)
    return jnp.diagonal(factors, axis1=-2, axis2=-1), swaps % 2 == 1


def _slogdet(a: Array) -> Any:
    """By the pivots; of small matrices, JAX's forms products of elements, which overflow or vanish."""
    diagonal, swapped = pivots_of(a)
    sign, size = jnp.prod(complexes.sign(diagonal), axis=-1), jnp.log(abs(diagonal)).sum(axis=-1)
    found = jnp.linalg.slogdet(a)
    return type(found)(derived_from(jnp.where(swapped, -sign, sign), found[0]), derived_from(size, found[1]))


def _det(a: Array) -> Any:
    """NumPy's way, by logarithms."""
    sign, size = _slogdet(a)
    return derived_from(sign * jnp.exp(size), jnp.linalg.det(a))


_OWN: dict[str, Callable[..., Any]] = {"det": _det, "slogdet": _slogdet}


@dataclass(frozen=True)
class _Called:
    """A call of NumPy's own function from a program of kernels, which XLA need not compile then.

    Its LAPACK takes as long as XLA's. options: its other arguments.
    """

    name: str
    options: tuple[tuple[str, Any], ...]

    def __call__(self, *arrays: NDArray[Any]) -> None:
        *given, result = arrays
        result[...] = getattr(np.linalg, self.name)(*given, **dict(self.options))


def _in_double(function: Callable[..., Any], *given: Array, **bound: object) -> Any:
    """Compute in double precision, and give the dtype that NumPy gives."""
    wide = [cast(part, np.result_type(part.dtype, np.float64)) for part in given]
    found = function(*wide, **bound)
    return found if given[0].dtype == wide[0].dtype else tree.map(_single, found)


def _single(x: Array) -> Any:
    return cast(x, np.dtype(np.complex64 if x.dtype.kind == "c" else np.float32))


def from_triangle(a: Any, above: bool) -> Any:
    """The symmetric or Hermitian matrix of which `a` holds one triangle; jax.numpy would take the mean of both."""
    half = jnp.triu(a, 1) if above else jnp.tril(a, -1)
    both = half + jnp.swapaxes(half, -1, -2).conj()
    return where(jnp.eye(a.shape[-1], dtype=bool), cast(a.real, a.dtype), both)


def _floating(x: Array) -> Any:
    return x if x.dtype.kind in "fc" else x.astype(float)


def _finite(**operands: Any) -> Any:
    """NumPy's eigenvalue and singular value routines raise for infinities and NaN, or do not converge."""
    found: Any = True
    for name, value in operands.items():
        if name in ("a", "x", "A", "b") and hasattr(value, "dtype") and value.dtype.kind in "fc":
            found = found & (abs(value) < np.inf).all()
    return found


add_rule(np.linalg.eigvalsh, _matrix("eigvalsh", "a", symmetric=True), "a | UPLO", holds=_finite)
add_rule(np.linalg.eigh, _matrix("eigh", "a", symmetric=True), "a | UPLO", holds=_finite)
add_rule(np.linalg.qr, _matrix("qr", "a"), "a | mode", holds=_finite)
add_rule(np.linalg.svd, _matrix("svd", "a"), "a | full_matrices compute_uv hermitian", holds=_finite)
# 1e-15 is NumPy's own default
add_rule(np.linalg.pinv, lambda **bound: _matrix("pinv", "a")(rtol=1e-15, **bound), "a | hermitian", holds=_finite)
add_rule(np.linalg.svdvals, _matrix("svdvals", "x"), "x", holds=_finite)
add_rule(np.linalg.det, _matrix("det", "a"), "a", holds=_finite)
add_rule(np.linalg.slogdet, _matrix("slogdet", "a"), "a", holds=_finite)
add_rule(np.linalg.inv, _matrix("inv", "a"), "a", special=Finite(), work=20.0)
add_rule(np.linalg.solve, _matrix("solve", "a", "b"), "a b", special=Finite(), work=20.0)
add_rule(np.linalg.cholesky, _matrix("cholesky", "a", symmetric=True), "a | upper", special=Finite(), work=20.0)


def _norm_holds(*, x: Array | NDArray[Any], shape: tuple[int, ...], ord: object = None, **rest: object) -> Any:
    return True if ord in (None, 1, -1, np.inf, -np.inf, 0, "fro") else _finite(x=x)


def _extreme_norm(sizes: Array, ord: float, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The largest or smallest of a vector's elements, or of the sums of a matrix's rows (ord inf) or columns (1)."""
    if len(axes) == 1:
        return extreme(sizes, axes, largest=ord > 0, keepdims=keepdims)
    summed, compared = axes if abs(ord) == 1 else axes[::-1]
    found = extreme(jnp.sum(sizes, axis=summed, keepdims=True), compared, largest=ord > 0, keepdims=True)
    return found if keepdims else jnp.squeeze(found, axes)


def _norm(
    *, x: Array, ord: float | str | None = None, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> Any:
    """Vectors by their sums, matrices by their singular values, which are found in double precision."""
    if x.dtype == np.float16 or (isinstance(ord, (int, float)) and x.size == 0):
        raise Unsupported("rule.parameter", "the norm of halves, or of nothing")
    x = _floating(x)
    axes = x.ndim if axis is None else np.size(axis)
    if ord in (2, -2, "nuc") and axes == 2:
        return _in_double(jnp.linalg.norm, x, ord=ord, axis=axis, keepdims=keepdims)
    if ord in (np.inf, -np.inf) or (ord in (1, -1) and axes == 2):
        return _extreme_norm(abs(x), ord, axes_of(axis, x.ndim), keepdims)
    return jnp.linalg.norm(x, ord=ord, axis=axis, keepdims=keepdims)


add_rule(
    np.linalg.norm,
    _norm,
    "x | ord axis keepdims",
    holds=_norm_holds,
    rowwise=lambda bound, is_rows: "ord" not in bound and bound["x"].ndim == 2 and bound.get("axis") in (1, -1),
)


@rewritten(np.linalg.vector_norm, "x | axis keepdims ord")
def vector_norm(x: Any, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    if axis is None:
        if keepdims:
            raise Unsupported("rule.parameter", "numpy.linalg.vector_norm: keepdims of all axes")
        return np.linalg.norm(np.ravel(x), ord, 0)
    if not isinstance(axis, int):
        raise Unsupported("rule.parameter", "numpy.linalg.vector_norm: several axes")
    return np.linalg.norm(x, ord, axis, keepdims)


@rewritten(np.linalg.matrix_norm, "x | keepdims ord")
def matrix_norm(x: Any, keepdims: bool = False, ord: Any = "fro") -> Any:
    return np.linalg.norm(x, ord, (-2, -1), keepdims)
