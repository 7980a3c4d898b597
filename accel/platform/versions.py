"""The supported versions of Python and of the dependencies, and checks of those in use.

pyproject.toml states the same minimum versions for pip. In another environment, accel says so in one line, and every
function stays on NumPy. A Python that the tests have not been run on is refused: recording depends on how CPython
compiles and runs functions.
"""

from __future__ import annotations

import functools
import platform
import re
import sys
import sysconfig
from importlib import util

from accel.platform import logs

FLOORS = {"numpy": "2.1", "scipy": "1.14.1", "jax": "0.8", "jaxlib": "0.8", "wrapt": "1.17"}
"""Minimum versions, by distribution. `make test-matrix` runs the tests on exactly these, and on the newest."""

OPTIONAL = {"llvmlite": "0.45", "flatbuffers": "24.3.25"}
"""Minimum versions of optional dependencies. Without llvmlite, XLA compiles the parts that accel's kernels would
compute. Without flatbuffers, JAX exports nothing: no program for several machines, no `export` of a pure function."""

PYTHONS = (3, 11), (3, 14)
"""The oldest and the newest CPython that `make test-matrix` runs the tests on."""


def installed(name: str) -> str | None:
    """Return the version of an installed distribution; None if it is missing, or its metadata have no version."""
    from importlib import metadata  # its import takes long, and a run that is left alone asks for no version

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@functools.cache
def shortfall() -> str | None:
    """Return in words which dependency is missing or too old; None if none is."""
    lacks = [_unknown_python(), *(_lack(name, floor) for name, floor in FLOORS.items())]
    return "; ".join(filter(None, lacks)) or None


def _unknown_python() -> str | None:
    """Return in words why the running Python is unsupported; None if it is supported."""
    name, version = platform.python_implementation(), sys.version_info[:2]
    oldest, newest = PYTHONS
    if name == "CPython" and sysconfig.get_config_var("Py_GIL_DISABLED"):  # accel relies on the GIL
        name = "free-threaded CPython"
    if name == "CPython" and oldest <= version <= newest:
        return None
    known = f"{oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1]}"
    return f"accel supports CPython {known}, and this is {name} {version[0]}.{version[1]}"


def _lack(name: str, floor: str) -> str | None:
    found = installed(name)
    if found is None:  # it may be installed without metadata; then its version is unknown
        return None if util.find_spec(name) else f"{name} is not installed; accel needs {floor} or newer"
    # a version that does not begin with a number is taken for new enough
    too_old = () < _numbers(found) < _numbers(floor)
    return f"{name} is {found}; accel needs {floor} or newer" if too_old else None


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version. A release candidate has those of its release.

    >>> _numbers("0.12.0rc1")
    (0, 12, 0)
    """
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


@functools.cache
def warn() -> None:
    """Log, once, which dependency is missing or too old, if any."""
    short = shortfall()
    if short is not None:
        logs.to_stderr_unless_configured()
        logs.LOGGER.warning("all functions stay on NumPy: %s", short)
