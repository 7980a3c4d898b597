"""What JAX itself takes of memory: a process that imports it, starts its CPU and compiles one tiny program.

Less what Python with NumPy takes. No accelerated program can take less than this more than it takes on NumPy.
"""

from __future__ import annotations

import functools
import subprocess
import sys

from benchmarks import harness
from benchmarks.lockstep import environment

PLAIN = "import numpy"
WITH_JAX = (
    f"{PLAIN}; import jax; jax.config.update('jax_platforms', 'cpu'); "
    "jax.block_until_ready(jax.jit(lambda x: x + 1.0)(numpy.ones(8)))"
)
TOLD = "; from benchmarks.harness import peak_rss_mb; print(peak_rss_mb())"


@functools.cache
def jax_mb() -> float:
    """Peak resident memory of such a process beyond a plain one's, MB; measured once."""
    return _peak_mb(WITH_JAX) - _peak_mb(PLAIN)


def _peak_mb(source: str) -> float:
    command = [sys.executable, "-c", source + TOLD]
    done = subprocess.run(
        command, cwd=harness.REPOSITORY, env=environment({}), capture_output=True, text=True, check=True
    )
    return float(done.stdout)


if __name__ == "__main__":
    print(f"{jax_mb():.0f} MB")
