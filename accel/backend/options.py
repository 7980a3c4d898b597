"""XLA's options: those that accel compiles with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from accel.ir.fingerprint import digest
from accel.ir.tape import Node
from accel.platform import background, jax_internals

_PLAIN_REDUCTIONS = MappingProxyType({"xla_cpu_experimental_ynn_fusion_type": ""})
"""Make reductions use XLA's own loops.

jaxlib 0.10 passes reductions to a library, together with the computation of their operands. That library does not wrap
8-bit integers (`(x * 2 + 1).max(axis=1)` of uint8 saturates) and loses NaN in minima and maxima. It is up to five times
as fast for sums, so only programs with such operands are compiled this way. A jaxlib without the option does not have
the library.
"""


_NUMPYS_ROUNDING = MappingProxyType(
    {
        "xla_allow_excess_precision": False,
        "xla_cpu_enable_fast_math": False,
        "xla_cpu_enable_fast_min_max": False,
        "xla_cpu_prefer_vector_width": 256,
    }
)
"""Keep `x.astype(np.float32).astype(np.float64)`: by itself XLA drops such a pair of conversions, and its rounding.

The others are XLA's own values, for users whose `XLA_FLAGS` have different ones. Fast arithmetic takes `x * 0.0` for 0
though x is NaN. With vectors of 512 bits, `arctan` of jaxlib 0.10.2 gives arbitrary numbers: programs pass a vector to
it in a register, and it reads an address.
"""


_MOST_AXES = 3
"""Maximum axes of arrays that the library for reductions is given. It crashed the process over seven axes, in
`(a*b).sum(3)` of float32 with shape (3, 1, 2, 2, 8, 8, 8). Of up to three axes, 150 random reductions were right. A sum
of 1000 x 1000 numbers takes 0.18 ms with it and 0.89 without."""


def options_for(platform: str, *, plain_reductions: bool) -> dict[str, Any]:
    """The options for one program."""
    if platform != "cpu":
        return {}
    return {**_NUMPYS_ROUNDING, **(_PLAIN_REDUCTIONS if plain_reductions else {})}


def need_plain_reductions(nodes: Iterable[Node]) -> bool:
    """Whether the library that jaxlib passes reductions to may get those of these operations wrong."""
    return any(
        node.rule.numerics.careful
        or len(node.shape) > _MOST_AXES
        or (node.dtype is not None and node.dtype in (np.int8, np.uint8))
        for node in nodes
    )


def compile_with(lowered: Any, options: Mapping[str, Any]) -> Any:
    """Compile the result of `jax.jit(...).lower(...)`, without those of the options that this version does not have."""
    # who listens to JAX is told of this in Python
    entered = contextlib.nullcontext() if jax_internals.has_listeners() else background.threads.compiler()
    try:
        with entered:
            return lowered.compile(compiler_options=dict(options) or None)
    except Exception as error:
        unknown = {name for name in options if f"No such compile option: '{name}'" in str(error)}
        if not unknown:
            raise
    return compile_with(lowered, {name: value for name, value in options.items() if name not in unknown})


_MOST_KEPT = 64

_kept: dict[str, Any] = {}
"""Executables of `compile_once`, at most _MOST_KEPT, by a hash of what they compute."""


def compile_once(function: Callable[..., Any], forms: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Compile a function of arrays of these forms; one that computes the same is not compiled again in this process."""
    import jax

    # without its unused arguments, the text would not say which of them the others are
    lowered = jax.jit(function, keep_unused=True).lower(*forms)
    key = digest(lowered.as_text(), sorted(options.items()))
    found = _kept.get(key)
    if found is None:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        found = _kept[key] = compile_with(lowered, options)
    return found
