"""jaxlib's kernels: which ones a program calls, and that none is called before it is initialised.

The first tests hold jaxlib to what `accel.backend.lapack` takes for granted of its inside: a jaxlib that changed it
fails here and not in a user's process.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import accel
from accel.backend import lapack

ROOT = Path(accel.__file__).parents[1]
CHOLESKY = "lapack_dpotrf_ffi"


def child(code: str) -> str:
    """What a fresh process prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    return done.stdout.strip()


def compiled(function: Any, *arguments: Any) -> Any:
    """A function compiled by JAX for arguments like these."""
    import jax

    with jax.enable_x64(True):
        return jax.jit(function).lower(*arguments).compile()


# -- jaxlib ------------------------------------------------------------------------------------------------------------


def test_jaxlib_registers_and_initialises_lapack_as_expected() -> None:
    private = import_module("jaxlib.lapack")
    assert callable(private._lapack.initialize)
    names = [name for name, *_ in private.registrations()["cpu"]]
    assert CHOLESKY in names
    assert len(names) > 40


@pytest.mark.parametrize("family", lapack._FAMILIES)
def test_jaxlib_has_every_family_of_kernels(family: str) -> None:
    registrations = import_module(family).registrations()
    assert isinstance(registrations, dict)
    for kernels_of_platform in registrations.values():
        assert all(isinstance(name, str) for name, *_ in kernels_of_platform)


def test_jaxlib_initialises_the_hybrid_kernels_of_gpus() -> None:
    import_module("jaxlib.gpu_solver").initialize_hybrid_kernels()


def test_a_program_shows_the_names_of_its_kernels() -> None:
    import numpy as np
    from jax import numpy as jnp

    assert lapack.called(compiled(jnp.linalg.cholesky, np.eye(3))) == {CHOLESKY}
    assert lapack.called(compiled(jnp.sin, np.eye(3))) == set()


# -- accel -------------------------------------------------------------------------------------------------------------


def test_kernels_of_lapack_and_of_xla_are_made_ready() -> None:
    assert lapack.unavailable([CHOLESKY, "__cublas$gemm", "TopK"]) == ""


def test_a_program_without_kernels_does_not_import_scipy() -> None:
    code = "import sys; from accel.backend import lapack; print(repr(lapack.unavailable([])), 'scipy' in sys.modules)"
    assert child(code) == "'' False"


def test_a_kernel_that_jaxlib_does_not_have_is_not_vouched_for() -> None:
    assert lapack.unavailable(["my_kernel_ffi", CHOLESKY]) == "jaxlib has no kernel named my_kernel_ffi"


@pytest.mark.parametrize(
    "private", [SimpleNamespace(), SimpleNamespace(registrations=lambda: {"cpu": [(CHOLESKY, 0)]})]
)
def test_another_jaxlib_means_that_nothing_is_vouched_for(monkeypatch: pytest.MonkeyPatch, private: Any) -> None:
    monkeypatch.setitem(sys.modules, "jaxlib.lapack", private)
    assert "its kernels cannot be initialised (AttributeError" in lapack.unavailable([CHOLESKY])
    assert lapack.unavailable([]) == ""


def test_a_program_that_does_not_show_its_instructions_is_told() -> None:
    with pytest.raises(ValueError, match="does not show"):
        lapack.called(SimpleNamespace(as_text=lambda: None))
