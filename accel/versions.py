"""The oldest versions that accel works with of what it stands on, and whether those installed are new enough.

pip holds to the same floors, which pyproject.toml states. Where a program's environment came about in another way,
accel says so in one line, and every function stays on NumPy.
"""

from __future__ import annotations

import functools
import re
from importlib import metadata, util

from accel import logs

FLOORS = {"numpy": "2.1", "scipy": "1.14.1", "jax": "0.8", "jaxlib": "0.8", "wrapt": "1.17"}
"""By distribution. `make test-matrix` runs the tests on just these, and on the newest."""


@functools.cache
def shortfall() -> str | None:
    """What is missing or too old, in words; None where everything is as it should be."""
    return "; ".join(filter(None, (_lack(name, floor) for name, floor in FLOORS.items()))) or None


def _lack(name: str, floor: str) -> str | None:
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:  # perhaps put there without pip; then its version is anybody's guess
        return None if util.find_spec(name) else f"{name} is not installed; accel needs {floor} or newer"
    too_old = () < _numbers(str(found)) < _numbers(floor)
    return f"{name} is {found}; accel needs {floor} or newer" if too_old else None


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with, those of a release candidate as those of the release.

    >>> _numbers("0.12.0rc1")
    (0, 12, 0)
    """
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


@functools.cache
def warn() -> None:
    """Say, once, what is missing or too old, if anything is."""
    short = shortfall()
    if short is not None:
        logs.to_stderr_unless_configured()
        logs.LOGGER.warning("all functions stay on NumPy: %s", short)
