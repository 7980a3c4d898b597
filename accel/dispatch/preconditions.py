"""Hindrances: what keeps every call on NumPy at the moment, whatever it calculates."""

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


def hindrance(mode: str) -> Refusal | None:
    """What keeps every call on NumPy at the moment."""
    if mode == "off":
        return OFF
    short = shortfall()
    if short is not None:
        return Refusal("environment.versions", "", short)
    if forks.happened:
        return _FORKED
    if sys.gettrace() is not None:
        return _TRACED
    if any(value not in ("ignore", "warn") for value in np.geterr().values()) or _warnings_raise():
        return _RAISING
    if not (devices.is_started() or devices.has_room()):
        return _CRAMPED
    return None


def _warnings_raise() -> bool:
    """Whether a RuntimeWarning, by which NumPy tells of floating-point events, would be raised as an error."""
    for action, message, category, module, line in warnings.filters:
        if issubclass(RuntimeWarning, category):
            if action == "error":
                return True
            if message is None and module is None and not line:
                return False
    return False
