"""What accel uses of JAX that is not public: all of it is here, and tests/test_jax_internals.py fails where it is gone.
(Of jaxlib, see accel.backend.lapack.)

Nothing here imports JAX, and nothing raises: what a version of JAX does not have is answered with the careful answer.
"""

from __future__ import annotations

import atexit
import sys
from typing import Any


def _part(module: str, name: str) -> Any:
    """A part of JAX; None where JAX is not imported, or has no such part."""
    return getattr(sys.modules.get(f"jax._src.{module}"), name, None)


def backends_are_initialized() -> bool:
    """Whether JAX's clients for its devices have been started. Where JAX does not tell, they are taken to be."""
    initialized = _part("xla_bridge", "backends_are_initialized")
    return bool(initialized()) if callable(initialized) else "jax" in sys.modules


def leave_without_cleaning_up() -> None:
    """Have JAX do nothing when this process ends.

    For a forked child: what JAX does then ends its clients and takes locks that another thread may have held.
    """
    clean_up = _part("api", "clean_up")
    if callable(clean_up):
        atexit.unregister(clean_up)


_PLAIN_REDUCTIONS = {"xla_cpu_experimental_ynn_fusion_type": ""}
"""XLA's option by which reductions on the CPU are its own loops again."""


def compiled_with_care(lowered: Any) -> Any:
    """Compile what `jax.jit(...).lower(...)` gave, reductions on the CPU by XLA's own loops.

    jaxlib 0.10 hands reductions, with what computes their operands, to a library that does not wrap integers of 8 bits
    (`(x * 2 + 1).max(axis=1)` of uint8 saturates) and loses NaN in extremes. Its loops are up to five times as fast
    for sums, so that only programs with such operands are compiled this way. A jaxlib without the option has no such
    library.
    """
    try:
        return lowered.compile(compiler_options=_PLAIN_REDUCTIONS)
    except Exception as error:
        if "No such compile option" not in str(error):
            raise
        return lowered.compile()
