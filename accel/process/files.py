"""Files that are written as a whole."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

PARTIAL = ".partial"
"""Suffix of a file that is being written."""


def replace(path: Path, content: bytes) -> None:
    """Write a file atomically, into a folder that exists. Raises OSError, and leaves nothing behind then."""
    # beside its final place: a rename is atomic within one file system only
    handle, partial = tempfile.mkstemp(prefix=f"{path.stem}-", suffix=PARTIAL, dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(content)
        os.replace(partial, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
