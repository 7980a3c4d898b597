"""The Bessel functions J0 and J1, as SciPy has them: by the rational approximations of the Cephes library.

Stephen L. Moshier, Methods and Programs for Mathematical Functions, 1989: up to 5 in x**2, with the first two zeros
taken out; beyond in 25 / x**2, for the modulus and the phase. jax.scipy.special has neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from accel.rules.core import cast
from accel.rules.lowering import jnp, lax

if TYPE_CHECKING:
    from jax import Array


class _Coefficients(NamedTuple):
    """Polynomials by falling powers. below: the zeros' squares, numerator and denominator up to 5. p, q: beyond."""

    zeros: tuple[float, float]
    below: tuple[tuple[float, ...], tuple[float, ...]]
    p: tuple[tuple[float, ...], tuple[float, ...]]
    q: tuple[tuple[float, ...], tuple[float, ...]]
    phase: float


_J0 = _Coefficients(
    (5.78318596294678452118e0, 3.04712623436620863991e1),
    (
        (-4.79443220978201773821e9, 1.95617491946556577543e12, -2.49248344360967716204e14, 9.70862251047306323952e15),
        (
            *(1.0, 4.99563147152651017219e2, 1.73785401676374683123e5, 4.84409658339962045305e7),
            *(1.11855537045356834862e10, 2.11277520115489217587e12, 3.10518229857422583814e14),
            *(3.18121955943204943306e16, 1.71086294081043136091e18),
        ),
    ),
    (
        (
            *(7.96936729297347051624e-4, 8.28352392107440799803e-2, 1.23953371646414299388e0, 5.44725003058768775090e0),
            *(8.74716500199817011941e0, 5.30324038235394892183e0, 9.99999999999999997821e-1),
        ),
        (
            *(9.24408810558863637013e-4, 8.56288474354474431428e-2, 1.25352743901058953537e0, 5.47097740330417105182e0),
            *(8.76190883237069594232e0, 5.30605288235394617618e0, 1.00000000000000000218e0),
        ),
    ),
    (
        (
            *(-1.13663838898469149931e-2, -1.28252718670509318512e0, -1.95539544257735972385e1),
            *(-9.32060152123768231369e1, -1.77681167980488050595e2, -1.47077505154951170175e2),
            *(-5.14105326766599330220e1, -6.05014350600728481186e0),
        ),
        (
            *(1.0, 6.43178256118178023184e1, 8.56430025976980587198e2, 3.88240183605401609683e3),
            *(7.24046774195652478189e3, 5.93072701187316984827e3, 2.06209331660327847417e3, 2.42005740240291393179e2),
        ),
    ),
    np.pi / 4,
)

_J1 = _Coefficients(
    (1.46819706421238932572e1, 4.92184563216946036703e1),
    (
        (-8.99971225705559398224e8, 4.52228297998194034323e11, -7.27494245221818276015e13, 3.68295732863852883286e15),
        (
            *(1.0, 6.20836478118054335476e2, 2.56987256757748830383e5, 8.35146791431949253037e7),
            *(2.21511595479792499675e10, 4.74914122079991414898e12, 7.84369607876235854894e14),
            *(8.95222336184627338078e16, 5.32278620332680085395e18),
        ),
    ),
    (
        (
            *(7.62125616208173112003e-4, 7.31397056940917570436e-2, 1.12719608129684925192e0, 5.11207951146807644818e0),
            *(8.42404590141772420927e0, 5.21451598682361504063e0, 1.00000000000000000254e0),
        ),
        (
            *(5.71323128072548699714e-4, 6.88455908754495404082e-2, 1.10514232634061696926e0, 5.07386386128601488557e0),
            *(8.39985554327604159757e0, 5.20982848682361821619e0, 9.99999999999999997461e-1),
        ),
    ),
    (
        (
            *(5.10862594750176621635e-2, 4.98213872951233449420e0, 7.58238284132545283818e1, 3.66779609360150777800e2),
            *(7.10856304998926107277e2, 5.97489612400613639965e2, 2.11688757100572135698e2, 2.52070205858023719784e1),
        ),
        (
            *(1.0, 7.42373277035675149943e1, 1.05644886038262816351e3, 4.98641058337653607651e3),
            *(9.56231892404756170795e3, 7.99704160447350683650e3, 2.82619278517639096600e3, 3.36093607810698293419e2),
        ),
    ),
    3 * np.pi / 4,
)


def _ratio(parts: tuple[tuple[float, ...], tuple[float, ...]], z: Any) -> Any:
    above, below = (jnp.polyval(np.array(each), z, unroll=len(each)) for each in parts)
    return above / below


def _evaluated(of: _Coefficients, x: Any, factor: Any) -> Any:
    """For x that are not negative. factor: of the value up to 5."""
    z = x * x
    inner = factor * (z - of.zeros[0]) * (z - of.zeros[1]) * _ratio(of.below, jnp.minimum(z, 25.0))
    far = jnp.maximum(x, 5.0)
    w = 5.0 / far
    angle = far - of.phase
    waves = _ratio(of.p, w * w) * jnp.cos(angle) - w * _ratio(of.q, w * w) * jnp.sin(angle)
    return jnp.where(x <= 5.0, inner, waves * np.sqrt(2 / np.pi) / jnp.sqrt(far))


def j0(x: Array) -> Any:
    far = abs(cast(x, np.dtype(float)))
    found = jnp.where(far < 1e-5, 1.0 - far * far / 4.0, _evaluated(_J0, far, 1.0))
    return cast(found, x.dtype)


def j1(x: Array) -> Any:
    wide = cast(x, np.dtype(float))
    found = _evaluated(_J1, abs(wide), abs(wide))
    return cast(jnp.where(jnp.signbit(wide), lax.neg(found), found), x.dtype)
