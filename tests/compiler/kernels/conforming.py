"""Cases of the rules' rows as kernels: built without XLA, run on edge values, compared with NumPy bit by bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from accel.backend import segmented
from accel.backend.executable import Executable
from accel.backend.job import samples_of
from accel.compiler.lower import PACKS, Known, LoweredProgram, lower
from accel.dispatch.replay import GuardFailure, HostError, Matcher, StagedOutputs, Variant
from accel.dispatch.replay.commit import commit
from accel.rules.rule import Unsupported
from tests.rounding.bits import arrays_in, differs
from tests.rules.cases import SHAPES, Names, Row, names_in, numbers
from tests.rules.oracle import Job, difference, expression, record_job, run

DTYPES = tuple("? b B h H i I q Q f d".split())
"""What kernels compute with."""

LAYOUTS = {
    **SHAPES,
    "wide": lambda draw: draw((3, 37)),
    "strided": lambda draw: draw((4, 46))[::2, 1:-1:2],
    "repeated": lambda draw: np.broadcast_to(draw((1, 21)), (4, 21)),
    "column": lambda draw: np.broadcast_to(draw((4, 1)), (4, 21)),
    "long": lambda draw: draw((300,)),
}
"""Rows of more and of fewer elements than vectors have lanes, and every order in memory."""

IN_ORDER_OF_C = frozenset({"matrix", "vector", "wide", "long", "one", "0-d", "empty"})
"""Of these, NumPy's sums go through memory from its start to its end."""

SEEDS = 0, 1, 2, 3
"""The last two have special values."""


class Drawn(Names):
    """Values of a case's names. With a special seed, NaN, infinities, zeros, extremes and subnormals are among them."""

    def __init__(self, dtype: str, layout: str, seed: int, tame: bool) -> None:
        super().__init__(dtype, "matrix", seed, tame)
        self.make, self.special = LAYOUTS[layout], seed >= 2 and not tame
        self.extreme = seed == 3

    def draw(self, shape: tuple[int, ...]) -> Any:
        values = np.asarray(numbers(self.rng, self.dtype, shape, self.special), dtype=self.dtype)
        if not self.special or not self.extreme or values.dtype.kind != "f":
            return values
        info = np.finfo(values.dtype)
        small = [info.smallest_subnormal, info.tiny, info.tiny / 3, info.max, info.eps, info.max / 2]
        chosen = self.rng.choice(np.array([*small, *(-each for each in small)], values.dtype), shape)
        return np.where(self.rng.random(shape) < 0.3, chosen, values).astype(self.dtype)


def job_of(row: Row, text: str, dtype: str, layout: str) -> Job:
    """One case, recorded."""
    names = names_in(text)

    def make(seed: int) -> tuple[Any, ...]:
        drawn = Drawn(dtype, layout, seed, row.tame)
        return tuple(drawn.value(name) for name in names)

    job = Job(f"{text} [{dtype} {layout}]", expression(text, names), make, row.loose)
    record_job(job)
    return job


def in_kernels(trace: Any) -> Variant | str:
    """Recorded calls as kernels and calls on the host; or why they are not: "", or what XLA has to compute."""
    import jax

    values = samples_of(trace)
    try:
        program = lower(trace, Known())
        assert program.for_kernels is not None
        with jax.enable_x64(True):
            made = segmented.built(program.for_kernels, _forms(program, values), {})
    except Unsupported:
        return ""
    except segmented.NotWorthwhile as error:
        return str(error).rpartition("XLA's: ")[-1]
    if segmented.of_xla(made):
        return "XLA"
    return Variant(trace, Executable(program, made, program.constants, 0.0, True, {}))


def _forms(program: LoweredProgram, values: Sequence[Any]) -> Any:
    import jax

    given = [jax.ShapeDtypeStruct(values[slot].shape, values[slot].dtype) for slot in program.slots]
    constants = [jax.ShapeDtypeStruct(np.shape(each), each.dtype) for each in program.constants]
    packs = {pack: jax.ShapeDtypeStruct((len(nodes),), PACKS[pack]) for pack, nodes in program.scalars.items() if nodes}
    return given, constants, packs


def problems(job: Job, variant: Variant, units: float | None) -> Iterator[str]:
    """What replays of a job in kernels give otherwise than NumPy.

    units: allowed in the last place; None: as far as XLA's.
    """
    hits = 0
    # close to the largest numbers, another order of a sum overflows elsewhere
    for seed in SEEDS[:-1] if units is None else SEEDS:
        args = job.make(seed)
        values = Matcher(variant.trace).match(args, {})
        if isinstance(values, GuardFailure):
            continue
        expected = run(job.function, job.make(seed))
        with np.errstate(all="ignore"):
            try:
                staged = variant.run(values)
            except HostError:
                continue
        if not isinstance(staged, StagedOutputs):
            continue  # an outcome differs: the call would be recorded anew
        hits += 1
        if not all(np.isfinite(each).all() for each in staged.finite):
            yield f"{job.name} {seed}: an array with NaN or infinity is known to be finite"
        if expected.error is not None:
            yield f"{job.name} {seed}: the replay did not raise {expected.error!r}"
            continue
        found, wanted = (commit(staged), args), (expected.result, expected.args)
        if units is None:
            told = [difference(wanted, found, exact=False, loose=job.loose)]
        else:
            told = list(differences(found, wanted, units))
        yield from (f"{job.name} {seed}: {each}" for each in told if each)
    if not hits:
        yield f"{job.name}: no replay went through"


def differences(found: Any, expected: Any, units: float = 0.0) -> Iterator[str]:
    """The arrays in `found` that are not NumPy's. units: allowed in the last place."""
    for mine, theirs in zip(arrays_in(found), arrays_in(expected), strict=True):
        if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
            yield f"{mine.dtype}{mine.shape}, not {theirs.dtype}{theirs.shape}"
            continue
        if theirs.dtype.kind not in "biufc":
            continue
        wrong = differs(mine, theirs)
        if units and theirs.dtype.kind == "f":
            wrong &= ~_is_near(mine, theirs, units)
        if wrong.any():
            yield f"{mine[wrong].ravel()[:3]}, not {theirs[wrong].ravel()[:3]}"


def _is_near(found: Any, expected: Any, units: float) -> Any:
    with np.errstate(all="ignore"):
        return (np.abs(found - expected) <= units * np.spacing(np.abs(expected))) & (expected != 0.0)
