"""Twins: generators of accel's own that start where one of the program's did, to try what a replay would draw."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from accel.record.values.draws.generators import KINDS, is_same_state


def twin_of(generator: Any, state: Any) -> Any:
    """A generator of the same kind, in a state that this one was in."""
    kind = type(generator)
    if kind is random.Random:
        made: Any = random.Random(0)
    else:
        bits = generator.bit_generator if kind is np.random.Generator else generator._bit_generator
        made = kind(type(bits)(0))
    KINDS[kind].put_back(made, state)
    return made


def tried(generator: Any, state: Any, draw: Callable[[Any], Any]) -> Any:
    """What another draw gives in the place of the one that a generator has just made; None if the streams part.

    state: the generator's before that draw.
    """
    twin = twin_of(generator, state)
    made = draw(twin)
    get = KINDS[type(generator)].state
    return made if is_same_state(get(twin), get(generator)) else None
