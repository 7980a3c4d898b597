"""Preconditions: the state of the process under which calls may be compiled, whatever they compute."""

from __future__ import annotations

import sys
import warnings

import numpy as np

from accel.backend import devices
from accel.process import forks
from accel.reasons import Refusal
from accel.reports.ledger import current_run
from accel.versions import shortfall

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
    if any(value not in ("ignore", "warn") for value in np.geterr().values()) or _warnings_raise():
        return _RAISING
    # under a low `ulimit -v`, JAX's start could crash the program
    if not (devices.is_started() or devices.has_room()):
        return _CRAMPED
    return None


def _warnings_raise() -> bool:
    """Whether a RuntimeWarning, NumPy's warning of floating-point events, would be raised as an error.

    The first filter that applies decides. A filter for some messages, modules or lines alone does not settle the
    others, so the search goes on after it.
    """
    for action, message, category, module, line in warnings.filters:
        if issubclass(RuntimeWarning, category):
            if action == "error":
                return True
            if message is None and module is None and not line:
                return False
    return False
