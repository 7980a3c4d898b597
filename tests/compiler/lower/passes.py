"""What the lowering's passes make of a trace, for tests of single passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accel.compiler.lower import Known, lower


def after_pass(name: str, trace: Any, known: Known | None = None) -> Sequence[Any]:
    """The operations after the pass of that name."""
    seen: dict[str, Sequence[Any]] = {}
    lower(trace, known or Known(), watch=lambda each, what, parts: seen.update({each: parts}))
    return seen[name]
