"""XLA's options for tests of thousands of tiny programs, where compiling is all the work."""

from __future__ import annotations

import functools
from collections.abc import Mapping

Option = bool | int


def known(options: Mapping[str, Option]) -> dict[str, Option]:
    """Those of the options that this version of XLA has: it refuses to compile with any other."""
    return {name: value for name, value in options.items() if _is_known(name, value)}


@functools.cache
def _is_known(name: str, value: Option) -> bool:
    import jax

    try:
        jax.jit(lambda x: x + 1, compiler_options={name: value})(1)
    except (jax.errors.JaxRuntimeError, TypeError, RuntimeError):
        return False
    return True
