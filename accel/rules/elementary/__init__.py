"""Elementary functions of float64 arrays on the CPU, of operations that XLA computes with vector instructions.

XLA:CPU calls the C library for logarithms, powers and the like, element by element, which takes two to eight times as
long as NumPy's own loops. Here they are made of sums, products, quotients, selections and operations on bits, by
published formulas. Each says how far it may be from the true value.

There are no derivatives of them: programs that are differentiated keep jax.numpy's functions (see `choice`).

choice         which function an operation gets
bits           exponents, powers of two, leading digits, polynomials
logarithms     log, log2, log10, log1p, logaddexp
exponentials   sinh, cosh, and the exponential that others need
powers         power, cbrt
circular       arctan, arctan2, arcsin, arccos
areas          arcsinh, arctanh
trigonometric  sin, cos, tan
"""

from accel.rules.elementary.choice import FUNCTIONS, chosen

__all__ = ["FUNCTIONS", "chosen"]
