"""XLA's options for tests of thousands of tiny programs, where compiling takes most of the time."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from accel.backend.options import options_for
from tests.helpers import LONG

Option = bool | int

QUICK: dict[str, Option] = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_parallel_codegen_split_count": 1,
}
"""XLA's own passes are what can change a result; LLVM's only cost time here."""

QUICKEST: dict[str, Option] = {**QUICK, "xla_cpu_use_fusion_emitters": False}
"""Also XLA's earlier emitters, which write the same operations in half the time, where XLA still has them."""


def quickest_options_for(platform: str, *, plain_reductions: bool) -> dict[str, Any]:
    """Accel's options with LLVM's optimizations left out: the same sums and products are contracted."""
    usual = options_for(platform, plain_reductions=plain_reductions)
    return {**usual, **QUICKEST} if platform == "cpu" else usual


def compile_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have JAX compile with `QUICKEST` what it is given no options for, and so each operation outside of programs.

    The long form of the tests compiles as for users. One MLIR context serves a thread of a test: making one takes a
    quarter of the time of compiling an operation.
    """
    if LONG:
        return
    from jax._src import compiler
    from jax._src.interpreters import mlir

    usual, context = compiler.get_compile_options, mlir.make_ir_context
    context_of = functools.cache(lambda thread: context())

    def options(*args: Any, env_options_overrides: Mapping[str, Any] | None = None, **others: Any) -> Any:
        return usual(*args, env_options_overrides=env_options_overrides or known(QUICKEST), **others)

    monkeypatch.setattr(compiler, "get_compile_options", options)
    monkeypatch.setattr(mlir, "make_ir_context", lambda: context_of(threading.get_ident()))


def quick_flags(devices: int = 1) -> str:
    """XLA_FLAGS for a process: all of XLA's passes, few of LLVM's. devices: virtual ones of the CPU."""
    options = {**known(QUICKEST), "xla_force_host_platform_device_count": devices}
    return " ".join(f"--{name}={str(value).lower()}" for name, value in options.items())


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
