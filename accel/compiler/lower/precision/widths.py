"""Widths: which operations of a traced program are computed in float32, and the dtypes that follow from that.

"Wide" dtypes are float64 and complex128, "narrow" ones float32 and complex64 in the place of these. A value that was
float32 in NumPy already is neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from accel.platform import jax_internals
from accel.platform.config import MIXED

DType: TypeAlias = "np.dtype[Any]"

NARROW: dict[DType, DType] = {
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}
"""The narrow dtype in the place of each wide one."""

ARITHMETIC = frozenset(
    """
    acos acosh add add_any asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt cos cosh digamma div erf erf_inv erfc
    exp exp2 expm1 integer_pow lgamma log log1p logistic mul pow rsqrt sin sinh sqrt square sub tan tanh
    """.split()
)
"""Narrow where the result is an array, or an operand is narrow."""

COMPARED = frozenset(
    """
    argmax argmin ceil clamp cummax cummin eq eq_to floor ge gt is_finite le le_to lt lt_to max min ne reduce reduce_max
    reduce_min rem round sign
    """.split()
)
"""Narrow where an operand is narrow: they choose, compare or jump, and round nothing."""

MOVED = frozenset(
    """
    abs broadcast_in_dim complex concatenate conj copy copy_p dynamic_slice dynamic_update_slice expand_dims gather imag
    neg pad real reshape rev scatter scatter-max scatter-min select_n slice squeeze stack stop_gradient transpose
    unstack
    """.split()
)
"""Narrow where all operands are narrow."""

ACCUMULATED = frozenset(
    """
    cholesky conv_general_dilated cumlogsumexp cumprod cumsum dot_general eigh fft geqrf householder_product lu qr
    reduce_prod reduce_sum reduce_window_sum scatter-add scatter-mul svd triangular_solve tridiagonal_solve
    """.split()
)
"""Narrow; where precision is mixed, wide."""

EACH_ITS_OWN = frozenset("optimization_barrier sort".split())
"""Operations of which each result has the width of its own operand."""

INLINED = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}
"""Operations that call a function: by name, the parameter that holds it."""


def function_of(eqn: Any) -> Any:
    """Return the traced function that an operation stands for; None if it is an operation of its own."""
    parameter = INLINED.get(eqn.primitive.name)
    return jax_internals.expanded(eqn) if parameter is None else eqn.params[parameter]


def is_wide(var: Any) -> bool:
    """Whether an operand or result is wide as it was traced."""
    return getattr(var.aval, "dtype", None) in NARROW


def is_literal(var: Any) -> bool:
    return hasattr(var, "val")


def is_narrow(dtype: DType) -> bool:
    return dtype in NARROW.values()


class Widths:
    """The dtypes that the values of traced programs come to.

    Of a loop's iterations and a branch's sides they are known by this before any of them is evaluated.
    """

    def __init__(self, precision: str) -> None:
        self._mixed = precision == MIXED
        self._known: dict[tuple[Any, tuple[DType, ...]], tuple[Any, list[DType]]] = {}

    def of(self, closed: Any, given: Sequence[DType]) -> list[DType]:
        """The dtypes of what a closed jaxpr gives, from those of its arguments."""
        key = id(closed.jaxpr), tuple(given)
        if key not in self._known:
            # with the jaxpr, so that its id is given to no other
            self._known[key] = closed.jaxpr, self._of(closed.jaxpr, closed.consts, given)
        return list(self._known[key][1])

    def _of(self, jaxpr: Any, consts: Sequence[Any], given: Sequence[DType]) -> list[DType]:
        dtypes: dict[Any, DType] = dict(zip(jaxpr.invars, given, strict=True))
        dtypes.update((var, np.dtype(const.dtype)) for var, const in zip(jaxpr.constvars, consts, strict=True))

        def read(var: Any) -> DType:
            return var.aval.dtype if is_literal(var) else dtypes[var]

        for eqn in jaxpr.eqns:
            dtypes.update(zip(eqn.outvars, self.after(eqn, [read(var) for var in eqn.invars]), strict=True))
        return [read(var) for var in jaxpr.outvars]

    def after(self, eqn: Any, given: Sequence[DType]) -> list[DType]:
        """The dtypes that an operation gives, from those of its operands."""
        name, inner = eqn.primitive.name, function_of(eqn)
        if inner is not None:
            return self.of(inner, given)
        if self.has_sides(eqn):
            return self.of_choice(eqn, given[1:])
        if self.is_loop(eqn):
            return self._of_loop(eqn, given)
        if name == "convert_element_type":
            return [self.converted(eqn, given[0])]
        if name in EACH_ITS_OWN:
            return list(given)
        narrow = self.is_narrowed(eqn, given)
        return [NARROW[var.aval.dtype] if narrow and is_wide(var) else var.aval.dtype for var in eqn.outvars]

    def is_narrowed(self, eqn: Any, given: Sequence[DType]) -> bool:
        """Whether an operation is computed in narrow dtypes. given: those of its operands."""
        name = eqn.primitive.name
        # a literal takes the width of what it meets
        ours = [dtype for dtype, var in zip(given, eqn.invars, strict=True) if is_wide(var) and not is_literal(var)]
        if name in ARITHMETIC:
            wide = is_wide(eqn.outvars[0])
            return wide and (bool(eqn.outvars[0].aval.shape) or any(map(is_narrow, ours)))
        if name in COMPARED:
            return any(map(is_narrow, ours))
        if name == "broadcast_in_dim" and not ours:
            return fits_narrow(eqn.invars[0])
        if name in MOVED:
            return bool(ours) and all(map(is_narrow, ours))
        return name in ACCUMULATED and not self._mixed and any(map(is_wide, eqn.invars))

    def converted(self, eqn: Any, given: DType) -> DType:
        """The dtype that a conversion gives. From a float to float64, it is a matter of width alone."""
        dtype = np.dtype(eqn.params["new_dtype"])
        return NARROW[dtype] if dtype in NARROW and is_narrow(given) else dtype

    # -- control flow -------------------------------------------------------------------------------------------------

    def has_sides(self, eqn: Any) -> bool:
        """Whether an operation is a choice of several sides. One by platform has sides that not every platform has."""
        return eqn.primitive.name == "cond" and eqn.params.get("branches_platforms") is None

    def is_loop(self, eqn: Any) -> bool:
        """Whether an operation is a loop whose iterations are examined. A loop accumulates: in float64 if mixed."""
        return eqn.primitive.name in ("scan", "while") and not self._mixed

    def of_choice(self, eqn: Any, given: Sequence[DType]) -> list[DType]:
        """The dtypes that a choice gives: of each result the widest that a side has."""
        sides = [self.of(branch, given) for branch in eqn.params["branches"]]
        return [max(each, key=lambda dtype: dtype.itemsize) for each in zip(*sides, strict=True)]

    def _of_loop(self, eqn: Any, given: Sequence[DType]) -> list[DType]:
        params = eqn.params
        if eqn.primitive.name == "while":
            _, consts, carry = parted(given, params["cond_nconsts"], params["body_nconsts"])
            return self.settled(params["body_jaxpr"], consts, carry, [])
        consts, carry, moving = parted(given, *scan_counts(eqn))
        carry = self.settled(params["jaxpr"], consts, carry, moving)
        return [*carry, *self.of(params["jaxpr"], [*consts, *carry, *moving])[len(carry) :]]

    def settled(
        self, body: Any, consts: Sequence[DType], carry: Sequence[DType], moving: Sequence[DType]
    ) -> list[DType]:
        """The dtypes of what a loop carries: narrow where its iterations hand on what is narrow."""
        while True:
            after = self.of(body, [*consts, *carry, *moving])
            narrowed = [
                now if before in NARROW and is_narrow(now) else before
                for before, now in zip(carry, after, strict=False)
            ]
            if narrowed == list(carry):
                return narrowed
            carry = narrowed


def scan_counts(eqn: Any) -> tuple[int, int]:
    """Return the number of operands that a scan keeps constant, and the number that it carries.

    By the axes: what moves has one less in an iteration. The parameters that say so have other names from JAX 0.11 on.
    """
    body = eqn.params["jaxpr"]
    carry = sum(var.aval.ndim == inner.ndim for var, inner in zip(eqn.outvars, body.out_avals, strict=True))
    moving = sum(var.aval.ndim != inner.ndim for var, inner in zip(eqn.invars, body.in_avals, strict=True))
    return len(eqn.invars) - carry - moving, carry


def parted(values: Sequence[Any], first: int, second: int) -> tuple[list[Any], list[Any], list[Any]]:
    """The first values, the second ones, and the others."""
    return list(values[:first]), list(values[first : first + second]), list(values[first + second :])


def fits_narrow(var: Any) -> bool:
    """Whether an operand is a wide literal, a number that the narrow dtype holds as it is."""
    if not is_literal(var) or not is_wide(var):
        return False
    with np.errstate(all="ignore"):
        wide = np.asarray(var.val, var.aval.dtype)
        return bool(np.array_equal(wide, wide.astype(NARROW[wide.dtype]), equal_nan=True))


class AsTraced(Widths):
    """Widths as traced: each value keeps its dtype."""

    def is_narrowed(self, eqn: Any, given: Sequence[DType]) -> bool:
        return False

    def converted(self, eqn: Any, given: DType) -> DType:
        dtype: DType = np.dtype(eqn.params["new_dtype"])
        return dtype
