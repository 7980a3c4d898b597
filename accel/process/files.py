"""Files that are written as a whole."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

PARTIAL = ".partial"
"""Suffix of a file that is being written."""


def replace(path: Path, content: bytes) -> None:
    """Write a file atomically, into a folder that exists. Raises OSError, and leaves nothing behind then."""
    # beside its final place: a rename is atomic within one file system only
    partial = path.with_name(f"{path.stem}-{os.urandom(8).hex()}{PARTIAL}")
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        os.replace(partial, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
