"""Files that are written as a whole, and paths where the current folder has been removed."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

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


def known(path: Path | None) -> dict[str, Any]:
    """Return what a file of `keep_known` holds; {} if there is none that can be read."""
    import json  # not for every program that imports accel

    try:
        content = {} if path is None else json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def keep_known(path: Path, content: dict[str, Any], most: int) -> None:
    """Write the last `most` entries to a file, as JSON, in a folder that is made if needed. Raises nothing."""
    import json

    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace(path, json.dumps(dict(list(content.items())[-most:])).encode())


def current_folder() -> str:
    """Return the path of the current folder; "" if it has been removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def absolute(path: str) -> str:
    """Return the path with the current folder before it, unless that has been removed."""
    return os.path.normpath(os.path.join(current_folder(), path))


def resolved(path: str) -> str:
    """Return the path without symbolic links; the path itself if the current folder, where it begins, is removed."""
    try:
        return os.path.realpath(path)
    except OSError:
        return path


def import_folders() -> list[str]:
    """Return the entries of `sys.path` that Python imports from, as absolute paths."""
    return [absolute(entry) for entry in sys.path if isinstance(entry, str)]
