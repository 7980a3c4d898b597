"""Hindrances: what keeps every call on NumPy at the moment, whatever it calculates."""

from __future__ import annotations

import os
import sys
import warnings

import numpy as np

from accel.ledger import current_run
from accel.reasons import Refusal
from accel.versions import shortfall

_OFF, _TRACED, _RAISING = (Refusal(reason) for reason in ("mode.off", "environment.traced", "fp.errstate"))
_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True
    current_run().note("a forked child process stays on NumPy: JAX's threads do not survive a fork")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def hindrance(mode: str) -> Refusal | None:
    """What keeps every call on NumPy at the moment."""
    if _forked or mode == "off":
        return _OFF
    short = shortfall()
    if short is not None:
        return Refusal("environment.versions", "", short)
    if sys.gettrace() is not None:
        return _TRACED
    if any(value not in ("ignore", "warn") for value in np.geterr().values()) or _warnings_raise():
        return _RAISING
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
