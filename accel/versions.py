"""The oldest versions of its dependencies that accel works with, and whether the installed ones are new enough.

pyproject.toml states the same floors for pip. In an environment that was made in another way and is too old, accel
says so in one line, and every function stays on NumPy.
"""

from __future__ import annotations

import functools
import re
from importlib import metadata, util

from accel import logs

FLOORS = {"numpy": "2.1", "scipy": "1.14.1", "jax": "0.8", "jaxlib": "0.8", "wrapt": "1.17"}
"""The floors, by distribution. `make test-matrix` runs the tests on exactly these versions, and on the newest."""


def installed(name: str) -> str | None:
    """The version of an installed distribution; None if there is none, or none that its metadata tell."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@functools.cache
def shortfall() -> str | None:
    """What is missing or too old, in words; None if nothing is."""
    return "; ".join(filter(None, (_lack(name, floor) for name, floor in FLOORS.items()))) or None


def _lack(name: str, floor: str) -> str | None:
    found = installed(name)
    if found is None:  # it may be installed without metadata; then its version is unknown
        return None if util.find_spec(name) else f"{name} is not installed; accel needs {floor} or newer"
    # a version that does not begin with a number is taken for new enough
    too_old = () < _numbers(found) < _numbers(floor)
    return f"{name} is {found}; accel needs {floor} or newer" if too_old else None


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version. A release candidate has those of its release.

    >>> _numbers("0.12.0rc1")
    (0, 12, 0)
    """
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


@functools.cache
def warn() -> None:
    """Log, once, what is missing or too old, if anything is."""
    short = shortfall()
    if short is not None:
        logs.to_stderr_unless_configured()
        logs.LOGGER.warning("all functions stay on NumPy: %s", short)
