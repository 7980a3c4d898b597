"""Random bodies of loops as kernels: all their recorded paths as one program, against NumPy bit by bit."""

from __future__ import annotations

import contextlib
import copy
import random
from collections import Counter
from collections.abc import Iterator
from unittest import mock

import numpy as np

from accel.backend import segmented
from accel.compiler.kernels import helpers, sharing
from accel.compiler.merge import NotMergeable, merged
from tests.compiler.kernels.bodies import SHAPES, body_calls, body_of, random_body
from tests.compiler.kernels.conforming import differences, in_kernels
from tests.compiler.merge.runs import Replayed, identities, traces_of

RECORDED, REPLAYED = 12, 12
"""Calls of a body."""


def try_body(draw: random.Random) -> Counter[str]:
    """Compare a program of the recorded paths of one body with NumPy. Raises AssertionError where a bit differs."""
    shape, seed = draw.choice(SHAPES), draw.randrange(2**30)
    source = random_body(draw, shape)
    function = body_of(source)
    with np.errstate(all="ignore"), all_in_kernels(threads=draw.choice((1, 2))):
        try:
            traces = traces_of(function, body_calls(shape, seed, RECORDED))
            trace = merged(traces) if len(traces) > 1 else traces[0] if traces else None
        except NotMergeable:
            return Counter(apart=1)
        if trace is None:
            return Counter(refused=1)
        variant = in_kernels(trace)
        if isinstance(variant, str):
            return Counter({f"XLA {variant}": 1})
        program, taken = Replayed(trace, variant.executable), 0
        for each in body_calls(shape, seed + 1, REPLAYED):
            twin = copy.deepcopy(each)
            is_known, result = program.run(each)
            if is_known:
                taken += 1
                expected = function(*twin)
                found, wanted = (result, vars(each[0])), (expected, vars(twin[0]))
                wrong = list(differences([*found[0], *found[1].values()], [*wanted[0], *wanted[1].values()], 0.0))
                assert not wrong, f"{shape}: {wrong}\n{source}"
                assert identities((each, result)) == identities((twin, expected)), source
    return Counter(merged=int(len(traces) > 1), paths=len(traces), replayed=taken)


@contextlib.contextmanager
def all_in_kernels(threads: int) -> Iterator[None]:
    """Leave nothing to XLA because it is small, and divide loops of small arrays among threads."""
    with contextlib.ExitStack() as stack:
        for module, name, value in (
            (segmented, "_LEAST_OF_SEGMENTS", 0),
            (segmented, "_STEPS_PER_PART", 0),
            (segmented, "_MOST_SEGMENTS", 10_000),
            (sharing, "_CHUNK_COST", 500),
            (helpers, "threads_for", lambda chunks: min(threads, max(chunks, 1))),
        ):
            stack.enter_context(mock.patch.object(module, name, value))
        yield
