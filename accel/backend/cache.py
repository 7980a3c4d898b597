"""The disk cache: compiled programs, kept for the next start.

    <QD_JAX_CACHE_DIR>/<surroundings>/<key>.program     a compiled program
    <QD_JAX_CACHE_DIR>/<surroundings>/<key>.trace       by a recorded trace: which program it is, and how it is called

The folder's name is a hash of everything that a compiled program depends on beyond what it computes: accel's own
code, the versions of Python, NumPy, JAX and jaxlib, XLA's flags, the processor. So an entry that another version made
is never looked at. Writes are atomic (a file of its own, then a rename), so any number of processes may share the
folder; an entry begins with a hash of itself, and a damaged one is removed. Nothing here ever raises into a program: a
cache that cannot be used is no cache, and one that cannot be written to is read.

What is not there is looked for in the folder that QD_JAX_CACHE_SHARED names, filled once for many users, which is
never written to.

Loading a compiled program runs what is in it. So folders and entries count only where nobody else can have put them
there: they belong to the user or to root (the shared ones, to whom the folder that was named belongs), and neither
their group nor others may write to them.
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
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from accel import config, logs

SUFFIX, TRACE, PATH = ".program", ".trace", ".path"
"""What entries end in: compiled programs, what recorded traces led to, which of the programs among it, and what is
known of recorded paths (see accel.backend.experience)."""

_PARTIAL = ".partial"
_FOLDER_NAME = re.compile(r"programs-[0-9a-f]{16}")
_FILE_NAME = re.compile(rf"[0-9a-f]{{40}}({SUFFIX}|{TRACE}|{PATH}|-\w+{_PARTIAL})")
"""What accel calls its files: `clear` touches nothing else."""

_ABANDONED_S = 3600.0
"""A partial file of this age, in seconds, belongs to a process that died."""

_UNSAFE = "others may write there, or it belongs to another user"

_DIGEST = hashlib.sha256
_DIGEST_SIZE = _DIGEST().digest_size


# -- one entry ---------------------------------------------------------------------------------------------------------


def is_used() -> bool:
    """Whether there is a folder to look into, or to keep something in."""
    settings = config.current()
    return settings.cache_dir is not None or settings.cache_shared is not None


def holds_programs() -> bool:
    """Whether anything is kept that a start in surroundings like these may find by its traces."""
    settings = config.current()
    folders = [_folder(root) for root in (settings.cache_dir, settings.cache_shared) if root is not None]
    with contextlib.suppress(OSError):
        return any(next(folder.glob(f"*{TRACE}"), None) is not None for folder in folders)
    return False


def load(key: str, suffix: str = SUFFIX) -> bytes | None:
    """What was saved under `key` (40 hexadecimal digits) in surroundings like these; None where there is nothing."""
    settings = config.current()
    for root, shared in ((settings.cache_dir, False), (settings.cache_shared, True)):
        content = None if root is None else _read(_file(root, key, suffix), _trusted(root, shared=shared))
        if content is None:
            continue
        payload = content[_DIGEST_SIZE:]
        if content[:_DIGEST_SIZE] == _DIGEST(payload).digest():
            return payload
        if not shared:
            discard(key, suffix)
    return None


def save(key: str, payload: bytes, suffix: str = SUFFIX) -> str:
    """Keep `payload` under `key`: whole or not at all, whoever else writes or reads. Returns "", or why it is not."""
    root = config.current().cache_dir
    if root is None:
        return "the disk cache is off"
    path, partial = _file(root, key, suffix), ""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_safe(path.parent.stat(), _trusted(root)):
            return f"{path.parent}: {_UNSAFE}"
        handle, partial = tempfile.mkstemp(prefix=f"{key}-", suffix=_PARTIAL, dir=path.parent)
        with open(handle, "wb") as file:
            file.write(_DIGEST(payload).digest() + payload)
        os.replace(partial, path)
        return ""
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        return f"{root} cannot be written to ({error.strerror})"


def problem() -> str:
    """Why nothing can be kept on disk; "" where it can. Makes the folder."""
    root = config.current().cache_dir
    if root is None:
        return "the disk cache is off"
    folder = _folder(root)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        return "" if _is_safe(folder.stat(), _trusted(root)) else f"{folder}: {_UNSAFE}"
    except OSError as error:
        return f"it cannot be written to ({error.strerror})"


def size_of(entries: Iterable[tuple[str, str]]) -> int:
    """Bytes on disk of what was saved under keys with suffixes, less what is not there."""
    root, size = config.current().cache_dir, 0
    if root is not None:
        for key, suffix in entries:
            with contextlib.suppress(OSError):
                size += _file(root, key, suffix).stat().st_size
    return size


def discard(key: str, suffix: str = SUFFIX) -> None:
    """Forget an entry that turned out to be of no use. What is shared stays."""
    root = config.current().cache_dir
    if root is not None:
        with contextlib.suppress(OSError):
            _file(root, key, suffix).unlink()


def _file(root: Path, key: str, suffix: str) -> Path:
    return _folder(root) / f"{key}{suffix}"


def _folder(root: Path) -> Path:
    return root / f"programs-{surroundings()}"


# -- whom to trust -----------------------------------------------------------------------------------------------------


def _read(path: Path, owners: Collection[int]) -> bytes | None:
    """What an entry holds, provided that it and its folder are safe."""
    try:
        with open(path, "rb") as file:
            if _is_safe(os.fstat(file.fileno()), owners) and _is_safe(path.parent.stat(), owners):
                return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        _tell(path.parent, error.strerror or "")
        return None
    _tell(path.parent, _UNSAFE)
    return None


@functools.cache
def _tell(folder: Path, why: str) -> None:
    """Say once why a folder's programs are not used."""
    logs.LOGGER.info("programs in %s are not used: %s", folder, why)


def _trusted(root: Path, *, shared: bool = False) -> frozenset[int]:
    """The users whose entries under `root` are used: oneself and root, and whoever owns a folder that is shared.

    A shared folder that others may write to has no owner to speak of: what is in it may be anyone's.
    """
    owners: set[int] = {0, *([os.geteuid()] if hasattr(os, "geteuid") else ())}
    if shared:
        with contextlib.suppress(OSError):
            about = root.stat()
            owners = owners | {about.st_uid} if _is_safe(about, {about.st_uid}) else set()
    return frozenset(owners)


def _is_safe(about: os.stat_result, owners: Collection[int]) -> bool:
    """Whether these users alone can write to a file or folder. Without POSIX owners the system sees to that."""
    if not hasattr(os, "geteuid"):
        return True
    return about.st_uid in owners and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


# -- surroundings ------------------------------------------------------------------------------------------------------


@functools.cache
def surroundings() -> str:
    """16 hexadecimal digits for all that a compiled program depends on beyond what it computes."""
    parts = [
        sys.version,
        *(f"{name} {_version(name)}" for name in ("numpy", "scipy", "jax", "jaxlib")),
        os.environ.get("XLA_FLAGS", ""),
        os.environ.get("LIBTPU_INIT_ARGS", ""),
        os.environ.get("NPROC", ""),
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
    here = Path(__file__).parents[1]
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

    @property
    def is_program(self) -> bool:
        return self.path.suffix == SUFFIX


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
                        yield Entry(path, about.st_size, about.st_mtime, path.suffix != _PARTIAL)


def clear(root: Path) -> tuple[int, int]:
    """Remove all entries, and the folders that are empty then. Returns how many and how many bytes.

    A file that a living process is writing stays. Raises OSError where something cannot be removed.
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


# -- the command -------------------------------------------------------------------------------------------------------

USAGE = "usage: python -m accel cache info|clear\n"


def main(args: Sequence[str]) -> int:
    """`python -m accel cache info|clear`: 0 when done, 1 when the folder does not let us, 2 for anything else asked."""
    from accel.cli.options import BAD_INPUT, refuse

    verbs = {"info": _info, "clear": _clear}
    if list(args) in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    if len(args) != 1 or args[0] not in verbs:
        sys.stderr.write(f"accel: cache {' '.join(args)!r} is no command; possible: {', '.join(verbs)}\n")
        return BAD_INPUT
    try:
        settings = config.current()
    except config.SettingError as error:
        return refuse(error)
    try:
        sys.stdout.write(verbs[args[0]](settings))
    except OSError as error:
        sys.stderr.write(f"accel: {error.filename}: {error.strerror}\n")
        return 1
    return 0


_OFF = "The disk cache is off (QD_JAX_CACHE_DIR).\n"


def _info(settings: config.Settings) -> str:
    own = _OFF if settings.cache_dir is None else _about("folder", settings.cache_dir)
    return own if settings.cache_shared is None else f"{own}\n{_about('shared', settings.cache_shared)}"


def _about(name: str, root: Path) -> str:
    found = [entry for entry in entries(root) if entry.is_program]
    current = sum(entry.path.parent.name == f"programs-{surroundings()}" for entry in found)
    lines = [(name, str(root)), ("programs", str(len(found)))]
    if found:
        lines += [
            ("usable now", f"{current} (the others are of other versions, settings or machines)"),
            ("size", _megabytes(sum(entry.bytes for entry in found))),
            ("oldest", _when(min(entry.written for entry in found))),
            ("newest", _when(max(entry.written for entry in found))),
        ]
    return "".join(f"{name:<10}  {value}\n" for name, value in lines)


def _clear(settings: config.Settings) -> str:
    if settings.cache_dir is None:
        return _OFF
    count, size = clear(settings.cache_dir)
    return f"removed {count} program{'' if count == 1 else 's'}, {_megabytes(size)}, from {settings.cache_dir}\n"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
