"""Warn about environment variables without effect: misspelt ones, and folders that are missing."""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Iterator, Mapping

from accel.platform import config, logs
from accel.platform.spelling import did_you_mean

_PREFIX = "QD_JAX_"


def unknown(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each variable that has the prefix of accel's variables but that nothing reads.

    >>> list(unknown({"QD_JAX_MODUS": "off"}))
    ["accel does not read QD_JAX_MODUS, so setting it changes nothing of accel's (did you mean QD_JAX_MODE?)"]
    """
    known = config.VARIABLES.values()
    for name in sorted(name for name in environ if name.startswith(_PREFIX) and name not in known):
        hint = did_you_mean(name, known, alike=0.8) or " (see accel docs settings)"
        yield f"accel does not read {name}, so setting it changes nothing of accel's{hint}"


def missing_folders(settings: config.Settings) -> Iterator[str]:
    """Yield a sentence if the shared cache folder that the settings name does not exist: accel does not create it."""
    shared = settings.cache_shared
    if shared is not None and not os.path.isdir(shared):
        name = config.VARIABLES["cache_shared"]
        yield f"{name} names {shared}, which is not a folder: no programs are read from there"


def unsafe_folders(settings: config.Settings) -> Iterator[str]:
    """Yield a sentence if others may write to the shared cache folder: no program is then read from it."""
    shared = settings.cache_shared
    if shared is None or not hasattr(os, "geteuid") or not os.path.isdir(shared):
        return
    if os.stat(shared).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        name = config.VARIABLES["cache_shared"]
        yield f"{name} names {shared}, which others can write to: no programs are read from there (chmod go-w)"


@functools.cache
def warn() -> None:
    """Log, once in a process, which variables have no effect."""
    for sentence in (*unknown(os.environ), *missing_folders(config.current()), *unsafe_folders(config.current())):
        logs.to_stderr_unless_configured()
        logs.LOGGER.warning("%s", sentence)
