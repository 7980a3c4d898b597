"""Preconditions: the state of the process under which calls may be compiled, whatever they compute."""

from __future__ import annotations

import sys
import warnings

import numpy as np

from accel.backend import devices
from accel.platform import forks
from accel.platform.filters import makes_no_error
from accel.platform.ledger import current_run
from accel.platform.reasons import Refusal
from accel.platform.versions import shortfall

OFF, _TRACED, _RAISING, _FORKED, _CRAMPED = map(
    Refusal, ("mode.off", "environment.traced", "fp.errstate", "environment.forked", "environment.memory")
)


@forks.in_child
def _note_fork() -> None:
    current_run().note("a forked child process stays on NumPy: JAX's threads do not survive a fork")


def unmet_precondition(mode: str) -> Refusal | None:
    """Why every call stays on NumPy at present; None if calls may be compiled. mode: the target's."""
    if mode == "off":
        return OFF
    short = shortfall()
    if short is not None:
        return Refusal("environment.versions", "", short)
    if forks.happened:
        return _FORKED
    # a debugger or coverage tool wants to see every line run
    if sys.gettrace() is not None:
        return _TRACED
    # a compiled program computes infinities and NaNs in silence: it could not raise at `1.0 / array` as NumPy would
    warns = makes_no_error(warnings.filters, RuntimeWarning)  # NumPy's warning of floating-point events
    if not warns or any(value not in ("ignore", "warn") for value in np.geterr().values()):
        return _RAISING
    # under a low `ulimit -v`, JAX's start could crash the program
    if not (devices.is_started() or devices.has_room()):
        return _CRAMPED
    return None
