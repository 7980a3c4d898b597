"""The disk cache: keeps compiled programs for later processes.

    <QD_JAX_CACHE_DIR>/<environment>/<key>.program      a compiled program
    <QD_JAX_CACHE_DIR>/<environment>/<key>.trace        a recorded trace's program: which one it is, and how to call it
    <QD_JAX_CACHE_DIR>/<environment>/<key>.path         what runs have learnt about a path (see experience)
    <QD_JAX_CACHE_DIR>/<environment>/<key>.together     the tape of a program of several paths (see together)
    <QD_JAX_CACHE_DIR>/<environment>/<key>.placement    where one of its paths finds what on it
    <QD_JAX_CACHE_DIR>/<environment>/<key>.recording    a recording (see recordings); .recordings: which there are
    <QD_JAX_CACHE_DIR>/<environment>/<key>.refused      what recordings took that ended at a limit (see refused)
    <QD_JAX_CACHE_DIR>/<environment>/<key>.known        what calls of a function have missed; what a program does
    <QD_JAX_CACHE_DIR>/<environment>/<key>.coming       a program that is about to be finished (see products); .begun:
                                                        how often that was begun
    <QD_JAX_CACHE_DIR>/<environment>/<key>.whole        a program that XLA compiles whole: kernels cannot have it, or
                                                        would not gain

The folder's name is a hash of everything that a compiled program depends on besides what it computes: accel's own code,
the versions of Python, NumPy, SciPy, JAX and jaxlib, XLA's flags, and the processor. So entries of other versions are
never read. Writes are atomic (a new file, then a rename), so any number of processes may share the folder. An entry
begins with a hash of its name and content, and a damaged or misplaced one is removed. No error here reaches the
program: a cache that cannot be read is treated as empty, and one that cannot be written to is only read.

An entry that is missing is looked for in the folder that QD_JAX_CACHE_SHARED names, which one user fills for many. It
is never written to.

Loading a compiled program executes code. So folders and entries are used only if nobody else can have written them.
They must belong to the user or to root; in the shared folder, the folder's owner will do too. Neither their group nor
others may be able to write to them.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import os
import pickle
import platform
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from accel.platform import config, files, interrupts, logs, own_code, processors, versions
from accel.platform.clocks import time

T = TypeVar("T")

SUFFIXES = (
    ".program .trace .path .together .placement .whole .known .recording .recordings .refused .coming .begun".split()
)
SUFFIX, TRACE, PATH, TOGETHER, PLACEMENT, WHOLE, KNOWN, RECORDING, RECORDINGS, REFUSED, COMING, BEGUN = SUFFIXES
"""Suffixes of entries: see above."""

_FOLDER_NAME = re.compile(r"programs-[0-9a-f]{16}")
_FILE_NAME = re.compile(rf"[0-9a-f]{{40}}({'|'.join(SUFFIXES)}|-\w+{files.PARTIAL})")
"""The names of accel's files. `clear` removes no others."""

_ABANDONED_S = 3600.0
"""A partial file that is older than this many seconds belongs to a process that died."""

_UNSAFE = "other users can write to it, or it belongs to another user"

_DIGEST_SIZE = hashlib.sha256().digest_size


# -- one entry ---------------------------------------------------------------------------------------------------------


def _roots() -> list[Path]:
    """The folders to read from, the user's own first."""
    settings = config.current()
    return [root for root in (settings.cache_dir, settings.cache_shared) if root is not None]


def is_used() -> bool:
    """Whether there is a folder to read from or to write to."""
    return bool(_roots())


def holds_programs() -> bool:
    """Whether any program is kept that this process could find by its traces."""
    with contextlib.suppress(OSError):
        return any(next(_folder(root).glob(f"*{TRACE}"), None) is not None for root in _roots())
    return False


def read(key: str, suffix: str = SUFFIX) -> bytes | None:
    """The payload saved under `key` (40 hexadecimal digits) in an environment like this one; None if there is none."""
    own = config.current().cache_dir
    for root in _roots():
        shared = root is not own
        content = _read(_file(root, key, suffix), trusted(root, shared=shared))
        if content is None:
            continue
        payload = payload_of(key, suffix, content)
        if payload is not None:
            return payload
        # damaged: this user's entry is removed; one in the shared folder is another's
        if not shared:
            discard(key, suffix)
    return None


def payload_of(key: str, suffix: str, content: bytes) -> bytes | None:
    """The payload of an entry's content; None if it is damaged, or that of another entry."""
    payload = content[_DIGEST_SIZE:]
    return payload if content[:_DIGEST_SIZE] == _digest(key, suffix, payload) else None


def _digest(key: str, suffix: str, payload: bytes) -> bytes:
    return hashlib.sha256(f"{key}{suffix}\0".encode() + payload).digest()


def parsed(key: str, suffix: str, parse: Callable[[bytes], T]) -> T | None:
    """Parse the payload of an entry.

    Returns None if there is no entry, or if `parse` fails, which removes the entry.
    """
    payload = read(key, suffix)
    try:
        return None if payload is None else parse(payload)
    except Exception as error:
        interrupts.pass_on(error)
        logs.LOGGER.info("an entry of the disk cache cannot be used: %s: %s", type(error).__name__, error)
        discard(key, suffix)
        return None


def load(key: str, suffix: str, kind: type[T]) -> T | None:
    """The object that `keep` has saved under `key`; None if there is none of this type."""
    found = parsed(key, suffix, pickle.loads)
    return found if isinstance(found, kind) else None


makes_folders = True
"""Whether a folder is made where there is none. Not once the program has ended: who has removed it since, meant it."""


def save(key: str, payload: bytes, suffix: str = SUFFIX) -> str:
    """Save `payload` under `key`, atomically. Returns "", or why it could not be saved."""
    root = config.current().cache_dir
    if root is None:
        return "the disk cache is off"
    path = _file(root, key, suffix)
    try:
        if makes_folders:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_safe(path.parent.stat(), trusted(root)):
            return f"{path.parent}: {_UNSAFE}"
        files.replace(path, _digest(key, suffix, payload) + payload)
        return ""
    except OSError as error:
        return f"cannot write to {root} ({error.strerror})"


def keep(key: str, suffix: str, value: object) -> str:
    """Save an object under `key`, as `save` does."""
    from accel.platform import pickling  # it imports NumPy, which a process that only looks may not need

    return save(key, pickling.dumps(value), suffix)


def problem(*, makes: bool = True) -> str:
    """Why nothing can be saved to disk; "" if it can. makes: whether to make the folder where there is none."""
    root = config.current().cache_dir
    if root is None:
        return "the disk cache is off"
    folder = _folder(root)
    try:
        if not makes and not folder.exists():
            nearest = next(each for each in folder.parents if each.exists())
            return "" if nearest.is_dir() and os.access(nearest, os.W_OK) else f"it cannot be written to ({nearest})"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        return "" if _is_safe(folder.stat(), trusted(root)) else f"{folder}: {_UNSAFE}"
    except OSError as error:
        return f"it cannot be written to ({error.strerror})"


@functools.cache
def warn() -> None:
    """Log, once in a process, that compiled programs cannot be saved, if so."""
    root = config.current().cache_dir
    why = problem(makes=False) if root is not None else ""
    if why:
        logs.to_stderr_unless_configured()
        logs.LOGGER.warning("results are unaffected, but no program can be kept in %s: %s", root, why)


def size_of(entries: Iterable[tuple[str, str]]) -> int:
    """The bytes on disk of these entries, given as key and suffix, wherever they are. Missing ones count as 0."""
    size = 0
    for entry in entries:
        for root in _roots():
            with contextlib.suppress(OSError):
                size += _file(root, *entry).stat().st_size
                break
    return size


def shared_with(entries: Iterable[tuple[str, str]]) -> Path | None:
    """The shared folder, if these entries are in it and not all in the user's own; else None."""
    settings = config.current()
    own, shared = settings.cache_dir, settings.cache_shared
    if shared is None or (own is not None and all(os.path.exists(_file(own, *each)) for each in entries)):
        return None
    return shared if any(os.path.exists(_file(shared, *each)) for each in entries) else None


def discard(key: str, suffix: str = SUFFIX) -> None:
    """Remove an entry that turned out to be unusable. Entries in the shared folder stay."""
    root = config.current().cache_dir
    if root is not None:
        with contextlib.suppress(OSError):
            _file(root, key, suffix).unlink()


def _file(root: Path, key: str, suffix: str) -> Path:
    return _folder(root) / f"{key}{suffix}"


def _folder(root: Path) -> Path:
    return root / f"programs-{environment_hash()}"


# -- trust -------------------------------------------------------------------------------------------------------------


def _read(path: Path, owners: Collection[int]) -> bytes | None:
    """An entry's content; None if it is missing, or if it or its folder is not safe."""
    try:
        with open(path, "rb", opener=_open) as file:
            # the open file is examined, not its name: the name could lead to another file a moment later
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                return None
            if _is_safe(about, owners) and _is_safe(path.parent.stat(), owners):
                return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        _tell(path.parent, error.strerror or "")
        return None
    _tell(path.parent, _UNSAFE)
    return None


def _open(path: str, flags: int) -> int:
    """Open without waiting, as a named pipe would."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


@functools.cache
def _tell(folder: Path, why: str) -> None:
    """Log, once, why a folder's programs are not used."""
    logs.LOGGER.info("programs in %s are not used: %s", folder, why)


def trusted(root: Path, *, shared: bool = False) -> frozenset[int]:
    """The ids of the users whose entries under `root` are used: this user, root, and the owner of a shared folder.

    Nobody is trusted in a shared folder that others can write to, because its entries may be anyone's.
    """
    owners: set[int] = {0, *([os.geteuid()] if hasattr(os, "geteuid") else ())}
    if shared:
        with contextlib.suppress(OSError):
            about = root.stat()
            owners = owners | {about.st_uid} if _is_safe(about, {about.st_uid}) else set()
    return frozenset(owners)


def _is_safe(about: os.stat_result, owners: Collection[int]) -> bool:
    """Whether only these users can write to a file or folder. Always true on systems without POSIX owners."""
    if not hasattr(os, "geteuid"):
        return True
    return about.st_uid in owners and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


# -- the environment ---------------------------------------------------------------------------------------------------


@functools.cache
def environment_hash() -> str:
    """16 hexadecimal digits for everything that a compiled program depends on besides what it computes."""
    parts = [
        sys.version,
        *(f"{name} {versions.installed(name) or 'none'}" for name in ("numpy", "scipy", "jax", "jaxlib", "llvmlite")),
        # what XLA compiles depends on these three
        os.environ.get("XLA_FLAGS", ""),
        os.environ.get("LIBTPU_INIT_ARGS", ""),
        os.environ.get("NPROC", ""),
        platform.machine(),
        processors.description(),
        _own_code(),
    ]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()


def _own_code() -> str:
    """A hash of accel's source, which decides what a tape is lowered to."""
    source_hash = hashlib.blake2b(digest_size=20)
    for path in sorted(own_code.PACKAGE.rglob("*.py")):
        source_hash.update(str(path.relative_to(own_code.PACKAGE)).encode())
        source_hash.update(path.read_bytes())
    return source_hash.hexdigest()


# -- all entries -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CacheFile:
    """One file of the cache. bytes: its size. written: seconds since the epoch. complete: False while being written."""

    path: Path
    bytes: int
    written: float
    complete: bool

    @property
    def is_program(self) -> bool:
        return self.path.suffix == SUFFIX


def entries(root: Path) -> Iterator[CacheFile]:
    """Every file of accel's under `root`, and no other. Raises OSError if a folder cannot be read."""
    if not root.is_dir():
        return
    for folder in sorted(root.iterdir()):
        if _FOLDER_NAME.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
            for path in sorted(folder.iterdir()):
                if _FILE_NAME.fullmatch(path.name) and not path.is_symlink():
                    with contextlib.suppress(FileNotFoundError):  # another process may remove it
                        about = path.stat()
                        yield CacheFile(path, about.st_size, about.st_mtime, path.suffix != files.PARTIAL)


def clear(root: Path) -> tuple[int, int]:
    """Remove all entries, and folders that are then empty. Returns the number of programs and the bytes of all entries.

    A file that a living process is writing stays. Raises OSError if something cannot be removed.
    """
    count = size = 0
    for entry in list(entries(root)):
        if entry.complete or time.time() - entry.written > _ABANDONED_S:
            entry.path.unlink(missing_ok=True)
            count, size = count + entry.is_program, size + entry.bytes
    if root.is_dir():
        for folder in [each for each in root.iterdir() if _FOLDER_NAME.fullmatch(each.name)]:
            with contextlib.suppress(OSError):  # something else is in it
                folder.rmdir()
    return count, size


def size_text(size: int) -> str:
    """A number of bytes as users read it: 12.3 MB, 84 kB."""
    return f"{size / 1e6:.1f} MB" if size >= 999_500 else f"{math.ceil(size / 1e3)} kB"
