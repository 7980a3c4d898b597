"""Refolding: a program whose constants have changed takes others, and is not compiled again.

Constants are arguments of the compiled program (see accel.compiler.lower.arguments). Where all that follows from the
new ones has the shapes that it had, and decides nothing else, what computes with it is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from accel.backend.executable import Executable
from accel.compiler.lower import Known


def refolded(executable: Executable, changed: Mapping[int, Any]) -> Executable | None:
    """The executable with these arrays in place of constants, by slot; None where that is another program.

    It shares the compiled program, and what is counted of it. It takes as long as NumPy takes to compute what has
    changed. Raises accel.compiler.lower.OtherWay where another side of a branch follows from them.
    """
    program = executable.program
    if program.fingerprint is None or executable.shards is not None:
        return None
    known = Known(program.known.scalars, {**program.known.arrays, **changed})
    found = program.renewal.constants(known, changed)
    if found is None:
        return None
    constants, placed = list(program.constants), list(executable.constants)
    for place, constant in found.items():
        constants[place], placed[place] = constant, executable.placed(constant)
    return replace(executable, program=replace(program, known=known, constants=constants), constants=placed)
