"""Programs that spend their time in compiled code: later runs of them are left alone."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from accel.backend.disk import cache


def _key() -> str | None:
    """The name on disk of this program with these arguments; None for one that has no file."""
    try:
        source = Path(sys.argv[0]).read_bytes()
    except (OSError, IndexError, ValueError):
        return None
    parts = b"hopeless", source, *(each.encode(errors="replace") for each in sys.argv)
    return hashlib.sha1(b"\0".join(parts), usedforsecurity=False).hexdigest()


def earlier() -> str | None:
    """The sentence that an earlier run has kept about this program, or None."""
    key = _key()
    if key is None or not cache.is_used():
        return None
    return cache.parsed(key, cache.KNOWN, lambda text: text.decode() or None)


def keep(sentence: str) -> None:
    """Keep for later runs what takes the time of this program."""
    key = _key()
    if key is not None:
        cache.save(key, sentence.encode(), cache.KNOWN)
