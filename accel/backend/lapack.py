"""Kernels: the compiled functions of jaxlib that a program calls by name, and what they need before they are called.

jaxlib's LAPACK kernels take their functions from SciPy when such an operation is lowered, and not before. A program
that comes from disk was lowered by another process: its kernels would call a null pointer and end the process (JAX
issues 28908 and 29610; PR 33522 repairs it for `jax.export` alone). So a kept program brings the names of its kernels
with it, and they are initialised here before it is loaded.

This is the one place that knows jaxlib from inside. It trusts nothing that it does not find: where it cannot vouch for
a kernel, the program is not kept on disk, or not taken from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any

_CALL = re.compile(r'custom_call_target="([^"]*)"')

_OF_XLA = re.compile(r"__|[A-Z]")
"""How the names begin that XLA gives to calls of its own, such as `__cublas$gemm` and `TopK`: always there."""

_FAMILIES: dict[str, Callable[[Any], object] | None] = {
    "jaxlib.lapack": lambda module: module._lapack.initialize(),
    "jaxlib.gpu_solver": lambda module: module.initialize_hybrid_kernels(),
    "jaxlib.gpu_linalg": None,
    "jaxlib.gpu_sparse": None,
}
"""The modules of jaxlib whose kernels JAX's linear algebra registers, and how those are initialised that need it."""


class KernelUnavailable(Exception):
    """A program's kernels cannot be vouched for."""

    def __str__(self) -> str:
        return str(self.args[0])


def called(compiled: Any) -> frozenset[str]:
    """The names of the kernels that a compiled program calls: none, in most programs.

    compiled: a `jax.stages.Compiled`. Raises ValueError where it does not show its instructions.
    """
    text = compiled.as_text()
    if not text:
        raise ValueError("it does not show which kernels it calls")
    return frozenset(_CALL.findall(text))


def unavailable(names: Collection[str]) -> str:
    """Initialise the kernels of these names. Returns "", or why a program that calls them must not come from disk.

    LAPACK's takes 0.3 s the first time, to import SciPy's; a program that calls none pays nothing.
    """
    wanted = {name for name in names if not _OF_XLA.match(name)}
    try:
        for family, initialize in _FAMILIES.items():
            if wanted:
                wanted -= _initialized(import_module(family), initialize, wanted)
    except Exception as error:  # another jaxlib than those that were seen
        return f"its kernels cannot be initialised ({type(error).__name__}: {error})"
    return f"jaxlib has no kernel named {min(wanted)}" if wanted else ""


def _initialized(module: Any, initialize: Callable[[Any], object] | None, wanted: set[str]) -> set[str]:
    """Those of the wanted kernels that are the module's, initialised."""
    found = {name for kernels in module.registrations().values() for name, *_ in kernels} & wanted
    if found and initialize is not None:
        initialize(module)
    return found
