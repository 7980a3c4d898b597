"""`accel info`: the versions, settings and devices that a bug report needs. Contains nothing of the user's program."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import accel
from accel import catalogue
from accel.backend import devices
from accel.backend.disk import cache
from accel.platform import config, processors, project, variables, versions
from accel.platform.config import SettingError
from accel.tools.cli import enable

_OF_OTHERS = ("JAX_", "XLA_", "CUDA_VISIBLE", "OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NPROC")
"""Prefixes of the environment variables of JAX and of thread pools that change what accel does."""


def text() -> str:
    """Return the lines, each a name and a value."""
    return "".join(f"{name:<14}{value}\n" for name, value in _lines())


def _lines() -> Iterator[tuple[str, str]]:
    yield "accel", f"{accel.__version__}, in {Path(accel.__file__).parent}"
    yield "Python", f"{platform.python_version()} ({platform.python_implementation()}), {sys.executable}"
    for name in (*versions.FLOORS, *versions.OPTIONAL):
        yield name, versions.installed(name) or "not installed"
    yield "problem", versions.shortfall() or "none: all packages are new enough"
    yield "system", f"{platform.platform()}, {platform.machine()}"
    yield "processor", f"{processors.model()}, {os.cpu_count()} cores, of which {processors.usable()} may be used"
    yield "devices", _devices()
    yield "catalogues", ", ".join(f"{each.name} ({len(each.rows)} rows)" for each in catalogue.discover()) or "none"
    found = project.find()
    if found is not None:
        yield "project", f"{found.path}: {found.problem or found.table}"
    yield from _own_catalogue()
    yield "enabled", enable.state()
    yield "disk cache", _cache()
    chosen = {name: value for name, value in sorted(os.environ.items()) if _matters(name)}
    yield "environment", " ".join(f"{name}={value!r}" for name, value in chosen.items()) or "no variable is set"
    for sentence in variables.unknown(os.environ):
        yield "note", sentence


def _own_catalogue() -> Iterator[tuple[str, str]]:
    """Yield the name of the catalogue that the project's settings name, if any."""
    try:
        own = catalogue.named_by_project()
    except SettingError as error:
        yield "catalogue", str(error)
    else:
        if own is not None:
            yield "catalogue", f"{own.name} ({len(own.rows)} rows), the project's own, instead of those installed"


def _devices() -> str:
    """Return the devices that JAX finds, or why it finds none."""
    try:
        return ", ".join(str(device) for device in devices.import_jax().devices())
    except Exception as error:  # whatever is wrong with the installation: this is what the command is for
        return f"none: {type(error).__name__}: {error}".splitlines()[0]


def _cache() -> str:
    try:
        settings = config.current()
    except config.SettingError as error:
        return f"unknown: {error}"
    own = "off" if settings.cache_dir is None else str(settings.cache_dir)
    if settings.cache_dir is not None and (why := cache.problem(makes=False)):
        own += f" ({why})"
    return own if settings.cache_shared is None else f"{own}; shared: {settings.cache_shared}"


def _matters(name: str) -> bool:
    return name.startswith(("QD_JAX_", *_OF_OTHERS)) or name == config.VARIABLES["enabled"]
