"""Refolding: a program whose constants have changed takes others, and is not compiled again.

Constants are arguments of the compiled program (see accel.lower.arguments). Where all that follows from the new ones
has the shapes that it had, and decides nothing else, what computes with it is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from accel.backend.devices import import_jax
from accel.backend.executable import Executable
from accel.lower import Known, Lowerable, lower


def renewable(trace: Lowerable, executable: Executable) -> Executable | None:
    """The executable with what is needed to give it other constants; None where it cannot be given any.

    Where another process has compiled it, all of it is lowered again for that.
    """
    program = executable.program
    if program.fingerprint is None or executable.shards is not None:
        return None
    if program.renewal is not None:
        return executable
    spanned = frozenset(program.slots[at] for at in executable.spans)
    with import_jax().enable_x64(True):
        again = lower(trace, program.known, on_cpu=executable.on_cpu, spanned=spanned, precision=executable.precision)
    if again.fingerprint != program.fingerprint:
        return None
    return replace(executable, program=replace(program, renewal=again.renewal))


def refolded(executable: Executable, changed: Mapping[int, Any]) -> Executable | None:
    """A renewable executable with these arrays in place of constants, by slot; None where that is another program.

    It shares the compiled program, and what is counted of it. It takes as long as NumPy takes to compute what has
    changed. Raises accel.lower.OtherWay where another side of a branch follows from them.
    """
    program = executable.program
    assert program.renewal is not None
    known = Known(program.known.scalars, {**program.known.arrays, **changed})
    found = program.renewal.constants(known, changed)
    if found is None:
        return None
    jax = import_jax()
    constants, placed = list(program.constants), list(executable.constants)
    with jax.enable_x64(True):
        for place, constant in found.items():
            constants[place], placed[place] = constant, jax.device_put(constant, executable.device)
    return replace(executable, program=replace(program, known=known, constants=constants), constants=placed)
