"""Lowering: a tape with what is known of its inputs becomes one pure function over jax.numpy.

What depends on constants alone is computed here, once, by NumPy itself (*folding*). What depends on scalars alone
stays with Python (*host*). The rest is the program. Each operation's result is checked against the shape and dtype
that NumPy produced at that line.

written     what of an array that a call changes in place the program gives
program     what comes out, and what is taken for constant
folding     which inputs may be constant, which numbers should be, and the values that follow from them
renewing    its constants for other values of what is taken for constant, without lowering it again
lowering    from a trace to a program: what the program needs, the passes, and the function that JAX traces
pipeline    what is done to the operations before JAX traces them; `accel explain --passes` prints each step
  passes/   positions, nesting (both by rewriting) and aliasing replace operations; branches and arrange find
            conditionals and loops
listing     operations as text
operations  one operation, by its rule or by NumPy
exact       which operations NumPy computes where the settings ask for its bits
arguments   what the device is given instead of computing it
looping     loops by data, as `lax.while_loop`
precision   the traced function in float32, where the settings say so
rounding    the traced function with NumPy's rounding, where they do not
accurate    functions of which XLA gives hundreds of wrong units in the last place
values      the values of operations while the function is traced
"""

from accel.compiler.lower.lowering import lower
from accel.compiler.lower.program import PACKS, Known, Lowerable, LoweredProgram, agrees
from accel.compiler.lower.renewing import ConstantsAnew, OtherWay

__all__ = ["PACKS", "ConstantsAnew", "Known", "Lowerable", "LoweredProgram", "OtherWay", "agrees", "lower"]
