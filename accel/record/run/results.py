"""What recording a call may give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accel.reasons import Refusal
from accel.record.run.trace import Trace


@dataclass(slots=True)
class Recorded:
    """The call went through and gave `result`.

    refusal: why the trace is no program; it then tells only which calls are like this one.
    """

    result: Any
    trace: Trace | None
    refusal: Refusal | None


@dataclass(slots=True)
class Undone:
    """What the call wrote was put back: the caller runs it again, on NumPy.

    refusal: why. trace: as far as it got; None after a fault of accel's.
    """

    refusal: Refusal
    trace: Trace | None


@dataclass(slots=True)
class Raised:
    """The program's own code raised `error`, and what it did before cannot be undone: the caller raises the error.

    refusal: why the tape broke.
    """

    error: BaseException
    refusal: Refusal | None


Result = Recorded | Undone | Raised
