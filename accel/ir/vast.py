"""Vast arrays: a history of fields, a data set of which each call takes one.

Reading one takes longer than most calls take. So they are not copied or compared as a whole where that can be helped.
"""

from __future__ import annotations

import numpy as np

VAST = 1 << 25
"""Minimum bytes of a vast array: reading one takes some milliseconds."""


def is_vast(value: object) -> bool:
    """Whether a value is a vast array."""
    return isinstance(value, np.ndarray) and value.nbytes >= VAST
