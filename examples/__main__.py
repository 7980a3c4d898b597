"""Run one of the examples: `python -m examples shallow_water [STEPS]`."""

from __future__ import annotations

import sys
import time
from importlib import import_module

NAMES = ("shallow_water", "lattice_boltzmann", "image_filter")

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(f"usage: python -m examples NAME [STEPS]; names: {', '.join(NAMES)}")
    program = import_module(f"examples.{sys.argv[1]}")
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else program.STEPS
    start = time.perf_counter()
    print(program.describe(program.run(steps)))
    print(f"{steps} steps in {time.perf_counter() - start:.1f} s")
