"""`accel cache`: show, or empty, the folder of compiled programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from accel.backend.disk import cache
from accel.platform import config
from accel.platform.clocks import time
from accel.platform.options import BAD_INPUT, refuse
from accel.platform.spelling import did_you_mean

USAGE = """usage: accel cache info|clear

Show, or empty, the folder of compiled programs (QD_JAX_CACHE_DIR).

  info   which folder it is, how many programs it holds, and how large they are
  clear  delete these programs, and nothing else that may be in the folder
"""


def main(args: Sequence[str]) -> int:
    """`accel cache info|clear`. Returns the exit code: 1 if the folder cannot be used, 2 for bad input."""
    verbs = {"info": _info, "clear": _clear}
    if list(args) in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    if len(args) != 1 or args[0] not in verbs:
        if not args:
            sys.stderr.write(f"accel: accel cache needs a command; expected: {', '.join(verbs)}\n")
            return BAD_INPUT
        near = did_you_mean(args[0], verbs) if len(args) == 1 else ""
        sys.stderr.write(f"accel: unknown command {' '.join(['cache', *args])!r}{near}; expected: {', '.join(verbs)}\n")
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
    if settings.cache_dir is not None and (why := cache.problem(makes=False)):
        own += f"No program can be kept there: {why}.\n"
    return own if settings.cache_shared is None else f"{own}\n{_about('shared', settings.cache_shared, shared=True)}"


def _about(name: str, root: Path, *, shared: bool = False) -> str:
    kept = list(cache.entries(root))
    programs = [entry for entry in kept if entry.is_program]
    current = sum(entry.path.parent.name == f"programs-{cache.environment_hash()}" for entry in programs)
    others = "the others are for other versions, settings or machines"
    if shared and not cache.trusted(root, shared=True):
        current, others = 0, "others can write to the folder: chmod go-w makes it one that is read"
    lines = [(name, str(root)), ("programs", str(len(programs)))]
    if programs:
        lines += [
            ("usable now", f"{current} ({others})"),
            ("size", f"{cache.size_text(sum(entry.bytes for entry in kept))}, with what is known of them"),
            ("oldest", _when(min(entry.written for entry in programs))),
            ("newest", _when(max(entry.written for entry in programs))),
        ]
    return "".join(f"{name:<10}  {value}\n" for name, value in lines)


def _clear(settings: config.Settings) -> str:
    if settings.cache_dir is None:
        return _OFF
    count, size = cache.clear(settings.cache_dir)
    return f"removed {count} program{'' if count == 1 else 's'}, {cache.size_text(size)}, from {settings.cache_dir}\n"


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
