"""Vast arrays: a history of fields, a data set of which each call takes one.

Reading one takes longer than most calls take. So they are not copied or compared as a whole where that can be helped.
"""

from __future__ import annotations

import math

import numpy as np

from accel.ir.tape import Tape

VAST = 1 << 25
"""Minimum bytes of a vast array: reading one takes some milliseconds."""


def vast_slots(tape: Tape) -> frozenset[int]:
    """The slots of a tape's inputs that are vast arrays."""
    arrays = [node for node in tape.nodes if node.is_input and not node.host and node.dtype is not None]
    sizes = {node.args[0]: math.prod(node.shape) * np.dtype(node.dtype).itemsize for node in arrays}
    return frozenset(slot for slot, size in sizes.items() if size >= VAST)


def is_vast(value: object) -> bool:
    """Whether a value is a vast array."""
    return isinstance(value, np.ndarray) and value.nbytes >= VAST
