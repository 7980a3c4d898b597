"""`accel cache`: show, or empty, the folder of compiled programs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from accel.backend.disk import cache
from accel.platform import config
from accel.platform.clocks import time
from accel.platform.options import Parser, refuse


def main(args: Sequence[str]) -> int:
    """`accel cache info|clear`. Returns the exit code: 1 if the folder cannot be used, 2 for bad input."""
    parser = Parser(
        prog="accel cache",
        usage="accel cache info|clear",
        description="Show, or empty, the folder of compiled programs (QD_JAX_CACHE_DIR).",
        epilog="info: which folder it is, how many programs it holds, and how large they are\n"
        "clear: delete these programs, and nothing else that may be in the folder",
    )
    verbs = {"info": _info, "clear": _clear}
    parser.add_argument("verb", metavar="info|clear", choices=verbs, help=argparse.SUPPRESS)
    verb = parser.parse_args(args).verb
    try:
        settings = config.current()
    except config.SettingError as error:
        return refuse(error)
    try:
        sys.stdout.write(verbs[verb](settings))
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
