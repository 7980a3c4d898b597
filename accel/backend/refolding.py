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
from accel.lower import Known, Lowerable, Program, lower
from accel.rules.rule import Unsupported


def refolded(trace: Lowerable, executable: Executable, changed: Mapping[int, Any]) -> Executable | None:
    """The executable with these arrays in place of constants, by slot; None where that is another program.

    It shares the compiled program, and what is counted of it. The first time takes as long as lowering does, all others
    as long as NumPy takes to compute what has changed.
    """
    program = executable.program
    if program.fingerprint is None or executable.shards is not None:
        return None
    known = Known(program.known.scalars, {**program.known.arrays, **changed})
    jax = import_jax()
    with jax.enable_x64(True):
        renewed = _renewed(program, known, changed) or _lowered_again(trace, executable, known)
        if renewed is None:
            return None
        again, places = renewed
        constants = list(executable.constants)
        for place in places:
            constants[place] = jax.device_put(again.constants[place], executable.device)
    return replace(executable, program=again, constants=constants)


def _renewed(program: Program, known: Known, changed: Mapping[int, Any]) -> tuple[Program, Sequence[int]] | None:
    """The program with what is known now, and the positions of the constants that are others."""
    found = None if program.renewal is None else program.renewal.constants(known, changed)
    if found is None:
        return None
    constants = [found.get(place, constant) for place, constant in enumerate(program.constants)]
    return replace(program, known=known, constants=constants), list(found)


def _lowered_again(trace: Lowerable, executable: Executable, known: Known) -> tuple[Program, Sequence[int]] | None:
    program = executable.program
    spanned = frozenset(program.slots[at] for at in executable.spans)
    try:
        again = lower(trace, known, on_cpu=executable.on_cpu, spanned=spanned, precision=executable.precision)
    except Unsupported:  # an outcome that follows from constants alone is another one now
        return None
    # what repeats is stored once: of a field that was 0 everywhere, one element was enough
    if again.fingerprint != program.fingerprint or _forms(again.constants) != _forms(executable.constants):
        return None
    return replace(again, function=None), range(len(again.constants))


def _forms(constants: Sequence[Any]) -> list[tuple[Any, Any]]:
    return [(each.shape, each.dtype) for each in constants]
