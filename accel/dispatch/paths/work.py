"""Estimated work inside a compiled program, by group of operations: where the seconds of its calls go."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from accel.ir.tape import Node
from accel.platform.reasons import source_line
from accel.rules.columns import fact

ARITHMETIC = "arithmetic"

LIBRARY = "NumPy's and SciPy's own code"
"""The group of functions that a program calls as they are."""

GROUPS = {
    LIBRARY: re.compile(", by itself$"),
    "transforms and products": re.compile(r"fft|dct|dst|matmul|dot|einsum|linalg|convolve|correlate|lfilter"),
    "gathers": re.compile(r"gather|scatter|take|choose|searchsorted|interp|map_coordinates|selected|packed|sort"),
    "exponentials": re.compile(r"\.(?:exp(?!and)|log(?!ical)|pow|float_power|arc|sin|cos|tan|hypot|cbrt|erf|gamma)"),
    "stencils": re.compile(r"ndimage|roll|gradient|diff|pad|write|concatenate|stack"),
    "sums and extremes": re.compile(r"\.(?:nan)?(?:sum|prod|mean|std|var|a?max$|a?min$|arg|median|quantile|any|all)"),
}
"""Groups by the names of their functions; the first that matches. All else is arithmetic."""

EXPONENTIAL = 20.0
"""Work of an exponential, for each element, in simple operations."""

MOST = 3
"""Maximum number of groups of a program to name."""


Place = tuple[str, str, int]
"""Group, file and line."""


def group_of(name: str) -> str:
    """Return the group of the function with this name, such as numpy.exp."""
    return next((group for group, pattern in GROUPS.items() if pattern.search(name)), ARITHMETIC)


def groups(nodes: Iterable[Node]) -> list[dict[str, Any]]:
    """Return the groups with most work: their shares of it (0 to 1), and the line of each that has most.

    The estimate is the number of elements times the work that the function's row gives for one.
    """
    from accel.rules.core import READ  # with all that recording needs

    work: dict[Place, float] = defaultdict(float)
    for node in nodes:
        if not (node.host or node.constant or node.is_input or node.rule is READ):
            elements = max(math.prod(each.shape) for each in (node, *node.operands()))
            cost = fact(node.rule.cost.work, node)
            # by its exponent, a power may be a multiplication
            is_simple = callable(node.rule.cost.work) and cost < EXPONENTIAL
            work[ARITHMETIC if is_simple else group_of(node.rule.name), *node.where] += elements * cost
    total, shares = sum(work.values()), dict[str, float]()
    for (group, *_), each in work.items():
        shares[group] = shares.get(group, 0.0) + each / total
    most = sorted(shares, key=lambda group: -shares[group])[:MOST]
    return [{"group": group, "share": shares[group], "where": _line_of(group, work)} for group in most]


def _line_of(group: str, work: dict[Place, float]) -> str:
    return source_line(*max((place for place in work if place[0] == group), key=lambda place: work[place])[1:])
