"""Kernels: initialises the compiled functions of jaxlib that a program from disk calls by name.

jaxlib's LAPACK kernels get their functions from SciPy when such an operation is lowered, and not before. A program from
disk was lowered by another process, so its kernels would call a null pointer and crash the process. (JAX issues 28908
and 29610; PR 33522 fixes it for `jax.export` only.) So a program is saved with the names of its kernels, and they are
initialised before it is loaded.

No other module uses jaxlib's internals. If a kernel cannot be shown to be initialised, the program is not saved to
disk, or not loaded from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any

from accel.platform import callbacks

_CALL = re.compile(r'custom_call_target="([^"]*)"')

_OF_XLA = re.compile(r"__|[A-Z]")
"""The beginnings of the names of XLA's own calls, such as `__cublas$gemm` and `TopK`, which need no initialising."""

_FAMILIES: dict[str, Callable[[Any], object] | None] = {
    "jaxlib.lapack": lambda module: module._lapack.initialize(),
    "jaxlib.gpu_solver": lambda module: module.initialize_hybrid_kernels(),
    "jaxlib.gpu_linalg": None,
    "jaxlib.gpu_sparse": None,
}
"""jaxlib's modules with the kernels of JAX's linear algebra, and how to initialise those that need it."""


class KernelUnavailable(Exception):
    """A kernel that a program calls is missing or cannot be initialised."""

    def __str__(self) -> str:
        return str(self.args[0])


def called(compiled: Any) -> frozenset[str]:
    """The names of the kernels that a compiled program calls. Most programs call none.

    compiled: a `jax.stages.Compiled`. Raises ValueError if it does not show its instructions.
    """
    text = compiled.as_text()
    if not text:
        raise ValueError("it does not show which kernels it calls")
    return frozenset(_CALL.findall(text))


def unavailable(names: Collection[str]) -> str:
    """Initialise the kernels with these names. Returns "", or why a program that calls them cannot be on disk.

    Initialising LAPACK imports SciPy's, which takes 0.3 s the first time. A program that calls no kernel pays nothing.
    """
    wanted = {name for name in names if not _OF_XLA.match(name)}
    try:
        if callbacks.NAME in wanted:
            callbacks.register()
            wanted.remove(callbacks.NAME)
        for family, initialize in _FAMILIES.items():
            if wanted:
                wanted -= _initialized(import_module(family), initialize, wanted)
    except Exception as error:  # a version of jaxlib whose internals differ
        return f"its kernels cannot be initialised ({type(error).__name__}: {error})"
    return f"jaxlib has no kernel named {min(wanted)}" if wanted else ""


def _initialized(module: Any, initialize: Callable[[Any], object] | None, wanted: set[str]) -> set[str]:
    """Initialise the module's kernels if any is wanted. Returns the names of those that are."""
    names = {name for kernels in module.registrations().values() for name, *_ in kernels} & wanted
    if names and initialize is not None:
        initialize(module)
    return names
