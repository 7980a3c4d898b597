"""The disk cache: compiled programs, kept for the next start.

    <QD_JAX_CACHE_DIR>/<surroundings>/<key>.program

The folder's name is a hash of everything that a compiled program depends on beyond what it computes: accel's own
code, the versions of Python, NumPy, JAX and jaxlib, XLA's flags, the processor. So an entry that another version made
is never looked at. Writes are atomic (a file of its own, then a rename), so any number of processes may share the
folder; an entry begins with a hash of itself, and a damaged one is removed. Nothing here ever raises into a program: a
cache that cannot be used is no cache.

Loading a compiled program runs what is in it, so a folder that others may write to is not used.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import re
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from accel import config, logs

SUFFIX = ".program"
_PARTIAL = ".partial"
_FOLDER_NAME = re.compile(r"programs-[0-9a-f]{16}")
_FILE_NAME = re.compile(rf"[0-9a-f]{{40}}({SUFFIX}|-\w+{_PARTIAL})")
"""What accel calls its files: `clear` touches nothing else."""

_ABANDONED_S = 3600.0
"""A partial file of this age, in seconds, belongs to a process that died."""

_DIGEST = hashlib.sha256
_DIGEST_SIZE = _DIGEST().digest_size


# -- one entry ---------------------------------------------------------------------------------------------------------


def load(key: str) -> bytes | None:
    """What was saved under `key` (40 hexadecimal digits) in surroundings like these; None where there is nothing."""
    folder = _folder()
    if folder is None or not _private(folder):
        return None
    path = folder / f"{key}{SUFFIX}"
    try:
        content = path.read_bytes()
    except OSError:
        return None
    payload = content[_DIGEST_SIZE:]
    if content[:_DIGEST_SIZE] == _DIGEST(payload).digest():
        return payload
    discard(key)
    return None


def save(key: str, payload: bytes) -> bool:
    """Keep `payload` under `key`: whole or not at all, whoever else writes or reads. Returns whether it is there."""
    folder = _folder()
    if folder is None:
        return False
    partial = ""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(folder):
            logs.LOGGER.info("no program is kept on disk: others may write to %s", folder)
            return False
        handle, partial = tempfile.mkstemp(prefix=f"{key}-", suffix=_PARTIAL, dir=folder)
        with open(handle, "wb") as file:
            file.write(_DIGEST(payload).digest() + payload)
        os.replace(partial, folder / f"{key}{SUFFIX}")
        return True
    except OSError as error:
        logs.LOGGER.info("a program could not be kept on disk: %s", error)
        with contextlib.suppress(OSError):
            os.unlink(partial)
        return False


def problem() -> str | None:
    """Why nothing can be kept on disk; None where it can. Makes the folder."""
    folder = _folder()
    if folder is None:
        return "the disk cache is off"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror})"
    return None if _private(folder) else f"others may write to {folder}"


def size_of(keys: Iterable[str]) -> int:
    """Bytes on disk of entries, those that are there."""
    folder, size = _folder(), 0
    if folder is None:
        return 0
    for key in keys:
        with contextlib.suppress(OSError):
            size += (folder / f"{key}{SUFFIX}").stat().st_size
    return size


def discard(key: str) -> None:
    """Forget an entry that turned out to be of no use."""
    folder = _folder()
    if folder is not None:
        with contextlib.suppress(OSError):
            (folder / f"{key}{SUFFIX}").unlink()


def _folder() -> Path | None:
    root = config.current().cache_dir
    return None if root is None else root / f"programs-{surroundings()}"


def _private(folder: Path) -> bool:
    """Whether nobody else can have put anything there. Where there are no POSIX owners, the system sees to that."""
    if not hasattr(os, "geteuid"):
        return True
    try:
        about = folder.stat()
    except OSError:
        return False
    return about.st_uid == os.geteuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@functools.cache
def surroundings() -> str:
    """16 hexadecimal digits for all that a compiled program depends on beyond what it computes."""
    parts = [
        sys.version,
        *(f"{name} {_version(name)}" for name in ("numpy", "scipy", "jax", "jaxlib")),
        os.environ.get("XLA_FLAGS", ""),
        os.environ.get("LIBTPU_INIT_ARGS", ""),
        platform.machine(),
        _processor(),
        _own_code(),
    ]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


def _processor() -> str:
    """The processor's model and instruction sets, for which XLA:CPU compiles."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    wanted = ("model name", "flags", "Features", "CPU part")
    return "\n".join(sorted({line for line in lines if line.startswith(wanted)}))


def _own_code() -> str:
    """A hash of accel's source, which decides what a tape is lowered to."""
    here = Path(__file__).parent
    found = hashlib.blake2b(digest_size=20)
    for path in sorted(here.rglob("*.py")):
        found.update(str(path.relative_to(here)).encode())
        found.update(path.read_bytes())
    return found.hexdigest()


# -- all entries -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of accel's. bytes: its size. written: seconds since the epoch. complete: False while being written."""

    path: Path
    bytes: int
    written: float
    complete: bool


def entries(root: Path) -> Iterator[Entry]:
    """Every file that accel put under `root`, and no other. Raises OSError where it cannot look."""
    if not root.is_dir():
        return
    for folder in sorted(root.iterdir()):
        if _FOLDER_NAME.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
            for path in sorted(folder.iterdir()):
                if _FILE_NAME.fullmatch(path.name) and not path.is_symlink():
                    with contextlib.suppress(FileNotFoundError):  # another process may remove it
                        about = path.stat()
                        yield Entry(path, about.st_size, about.st_mtime, path.suffix == SUFFIX)


def clear(root: Path) -> tuple[int, int]:
    """Remove all entries, and the folders that are empty then. Returns how many and how many bytes.

    A file that a living process is writing stays. Raises OSError where something cannot be removed.
    """
    count = size = 0
    for entry in list(entries(root)):
        if entry.complete or time.time() - entry.written > _ABANDONED_S:
            entry.path.unlink(missing_ok=True)
            count, size = count + entry.complete, size + entry.bytes
    if root.is_dir():
        for folder in [each for each in root.iterdir() if _FOLDER_NAME.fullmatch(each.name)]:
            with contextlib.suppress(OSError):  # something else is in it
                folder.rmdir()
    return count, size


# -- the command -------------------------------------------------------------------------------------------------------

USAGE = "usage: python -m accel cache info|clear\n"


def main(args: Sequence[str]) -> int:
    """`python -m accel cache info|clear`: 0 when done, 1 when the folder does not let us, 2 for anything else asked."""
    from accel.commandline import BAD_INPUT, refuse

    verbs = {"info": _info, "clear": _clear}
    if list(args) in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    if len(args) != 1 or args[0] not in verbs:
        sys.stderr.write(f"accel: cache {' '.join(args)!r} is no command; possible: {', '.join(verbs)}\n")
        return BAD_INPUT
    try:
        root = config.current().cache_dir
    except config.SettingError as error:
        return refuse(error)
    if root is None:
        sys.stdout.write("The disk cache is off (QD_JAX_CACHE_DIR).\n")
        return 0
    try:
        sys.stdout.write(verbs[args[0]](root))
    except OSError as error:
        sys.stderr.write(f"accel: {error.filename or root}: {error.strerror}\n")
        return 1
    return 0


def _info(root: Path) -> str:
    found = [entry for entry in entries(root) if entry.complete]
    current = sum(entry.path.parent.name == f"programs-{surroundings()}" for entry in found)
    lines = [("folder", str(root)), ("programs", str(len(found)))]
    if found:
        lines += [
            ("usable now", f"{current} (the others are of other versions, settings or machines)"),
            ("size", _megabytes(sum(entry.bytes for entry in found))),
            ("oldest", _when(min(entry.written for entry in found))),
            ("newest", _when(max(entry.written for entry in found))),
        ]
    return "".join(f"{name:<10}  {value}\n" for name, value in lines)


def _clear(root: Path) -> str:
    count, size = clear(root)
    return f"removed {count} program{'' if count == 1 else 's'}, {_megabytes(size)}, from {root}\n"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
