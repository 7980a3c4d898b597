"""The program's own settings: the table `[tool.accel]` of the `pyproject.toml` in its folder, or in one above it.

The first `pyproject.toml` on the way up counts. A file of another user is not read, because it may name a catalogue,
which is code.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from accel.platform import files

FILE = "pyproject.toml"
TABLE = "tool.accel"

_home: str | None = None


class Project(NamedTuple):
    """The `[tool.accel]` table of a file. table: by key. problem: why the file cannot be read, or ""."""

    path: Path
    table: dict[str, Any]
    problem: str = ""


def set_home(folder: str | None) -> None:
    """Set the program's folder. None: the folder of the running script, or the current one."""
    global _home
    _home = folder


def home() -> str:
    """Return the program's folder."""
    if _home is not None:
        return _home
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.dirname(files.resolved(script)) if isinstance(script, str) else files.current_folder()


def find() -> Project | None:
    """Return the `[tool.accel]` table of the program's file; None if there is no such file or table."""
    try:
        folder = Path(home())
        path = next((each / FILE for each in (folder, *folder.parents) if (each / FILE).is_file()), None)
        if path is None or not _is_trusted(path, folder):
            return None
        found = path.stat()
        return _read(path, (found.st_mtime_ns, found.st_size, found.st_ino))
    except OSError:  # also: the current folder is gone
        return None


@functools.lru_cache(maxsize=4)
def _read(path: Path, version: tuple[int, ...]) -> Project | None:
    """Return the `[tool.accel]` table of a file. Raises OSError.

    version: differs for each content of the file, so that the result can be cached: settings, the catalogue and `accel
    info` all ask for it as a program starts.
    """
    text = path.read_bytes()
    # most programs have no such table, and need no parser
    if b"accel" not in text:
        return None
    import tomllib

    try:
        content = tomllib.loads(text.decode("utf-8"))
    except ValueError as error:  # also: it is no text
        return Project(path, {}, str(error)) if f"[{TABLE}]".encode() in text else None
    tools = content.get("tool")
    table = tools.get("accel") if isinstance(tools, dict) else None
    return Project(path, table) if isinstance(table, dict) else None


def _is_trusted(path: Path, folder: Path) -> bool:
    """Return whether the file belongs to the user, to root, or to the owner of the program's folder.

    The code of that owner runs anyway.
    """
    if not hasattr(os, "getuid"):
        return True
    return path.stat().st_uid in (os.getuid(), 0, folder.stat().st_uid)
