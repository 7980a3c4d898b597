"""XLA's options: those that this version has, and what happens to others."""

from __future__ import annotations

from typing import Any

import pytest

from accel.backend.options import compile_with, options_for
from tests.processes import said_by

EIGHT_BITS = """
import jax, numpy as np, jax.numpy as jnp
from accel.backend.options import compile_with, options_for
jax.config.update("jax_enable_x64", True)
x = np.full((300, 300), 3, np.uint8)
x[5, 7] = 200
y = np.random.default_rng(0).standard_normal((700, 700))
y[350, 350] = np.nan
careful = lambda lowered: compile_with(lowered, options_for("cpu", plain_reductions=True))
largest = careful(jax.jit(lambda x: jnp.max(x * 2 + 1, axis=1)).lower(x))(x)
total = careful(jax.jit(lambda x: (x * 2 + 1).astype("f8").sum(1)).lower(x))(x)
least = careful(jax.jit(lambda y: jnp.min(jnp.sin(y))).lower(y))(y)
print(int(largest[5]), float(total[5]), bool(jnp.isnan(least)))
"""


FLAGS_OF_THE_USER = """
import os
os.environ["XLA_FLAGS"] = "--xla_cpu_enable_fast_math=true --xla_cpu_prefer_vector_width=512"
import jax, numpy as np, jax.numpy as jnp
from accel.backend.options import compile_with, options_for
usual = lambda f: compile_with(jax.jit(f).lower(x), options_for("cpu", plain_reductions=False))(x)
x = np.linspace(0.1, 0.9, 1000, dtype=np.float32)
print(np.allclose(usual(jnp.arctan), np.arctan(x), rtol=1e-6))
x = np.full(1000, np.nan, np.float32)
print(np.isnan(usual(lambda x: x * 0)).all())
"""


class Lowered:
    """A program of a jaxlib that has none of these options, or fails otherwise."""

    def __init__(self, error: str, *unknown: str) -> None:
        self.error = error
        self.unknown = unknown

    def compile(self, compiler_options: dict[str, Any] | None = None) -> Any:
        for name in self.unknown:
            if name in (compiler_options or {}):
                raise ValueError(self.error.format(name))
        return compiler_options


def test_reductions_of_a_program_compiled_with_care_are_right() -> None:
    assert said_by(EIGHT_BITS) == "145 2238.0 True"


def test_flags_that_the_user_has_set_do_not_change_numbers() -> None:
    assert said_by(FLAGS_OF_THE_USER).split() == ["True", "True"]


def test_options_that_a_version_does_not_have_are_left_out() -> None:
    text = "INVALID_ARGUMENT: No such compile option: '{}'"
    assert compile_with(Lowered(text, "a", "c"), {"a": 1, "b": 2, "c": 3}) == {"b": 2}
    assert compile_with(Lowered(text, "a"), {"a": 1}) is None
    with pytest.raises(ValueError, match="out of memory"):
        compile_with(Lowered("out of memory", "a"), {"a": 1})


def test_only_programs_for_a_cpu_have_options() -> None:
    always = options_for("cpu", plain_reductions=False)
    assert always["xla_allow_excess_precision"] is False
    assert list(options_for("cpu", plain_reductions=True)) == [*always, "xla_cpu_experimental_ynn_fusion_type"]
    assert options_for("gpu", plain_reductions=True) == {}
