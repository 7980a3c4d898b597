"""Refolding: a program whose constants have changed takes others, and is not compiled again.

Constants are arguments of the compiled program (see accel.lower.arguments). Where all that follows from the new ones
has the shapes that it had, and decides nothing else, what computes with it is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from accel.backend.devices import import_jax
from accel.backend.executable import Executable
from accel.lower import Known, Lowerable, lower
from accel.rules.rule import Unsupported


def refolded(trace: Lowerable, executable: Executable, changed: Mapping[int, Any]) -> Executable | None:
    """The executable with these arrays in place of constants, by slot; None where that is another program.

    It shares the compiled program, and what is counted of it.
    """
    program = executable.program
    if program.fingerprint is None or executable.shards is not None:
        return None
    jax = import_jax()
    known = Known(program.known.scalars, {**program.known.arrays, **changed})
    spanned = frozenset(program.slots[at] for at in executable.spans)
    with jax.enable_x64(True):
        try:
            again = lower(trace, known, on_cpu=executable.on_cpu, spanned=spanned, precision=executable.precision)
        except Unsupported:  # an outcome that follows from constants alone is another one now
            return None
        # what repeats is stored once: of a field that was 0 everywhere, one element was enough
        if again.fingerprint != program.fingerprint or _forms(again.constants) != _forms(executable.constants):
            return None
        constants = [jax.device_put(value, executable.device) for value in again.constants]
    return replace(executable, program=replace(again, function=None), constants=constants)


def _forms(constants: Sequence[Any]) -> list[tuple[Any, Any]]:
    return [(each.shape, each.dtype) for each in constants]
