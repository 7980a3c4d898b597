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


def unusable_folder(settings: config.Settings) -> Iterator[str]:
    """Yield a sentence if the shared cache folder that the settings name is missing, or if others may write to it."""
    shared, problem = settings.cache_shared, ""
    if shared is not None and not os.path.isdir(shared):  # accel does not create it
        problem = "is not a folder: no programs are read from there"
    elif shared is not None and hasattr(os, "geteuid") and os.stat(shared).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = "others can write to: no programs are read from there (chmod go-w)"
    if problem:
        yield f"{config.VARIABLES['cache_shared']} names {shared}, which {problem}"


@functools.cache
def warn() -> None:
    """Log, once in a process, which variables have no effect."""
    for sentence in (*unknown(os.environ), *unusable_folder(config.current())):
        logs.to_stderr_unless_configured()
        logs.LOGGER.warning("%s", sentence)
