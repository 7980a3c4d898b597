"""Experience: what runs have learnt about a recorded path, kept on disk beside its programs for later runs.

Which inputs a run folds depends on the calls that it happens to observe. A later run that decided afresh might look for
programs that no earlier run has compiled. So it decides as earlier runs did.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import CodeType

from accel.backend.disk import cache

MOST_RECORDINGS = 16
"""Maximum number of recordings kept for one target. A later run reads all of them at its first calls."""


@dataclass(frozen=True, slots=True)
class Experience:
    """Knowledge from earlier runs about one path.

    varied: slots of numbers and arrays that some run did not fold, because they changed. threads: the number of threads
    that its programs were compiled for, 0 for all; None if it is not known. together: by the key of a program, the keys
    of the recorded paths that it computes, this one among them. lost_s: seconds that its calls have lost in all runs so
    far, as it had no program.
    """

    varied: frozenset[int] = frozenset()
    threads: int | None = None
    together: Mapping[str, frozenset[str]] = field(default_factory=dict)
    lost_s: float = 0.0


def read(key: str) -> Experience:
    """Read what is known about a path. key: its name on disk."""
    return cache.load(key, cache.PATH, Experience) or Experience()


def save(key: str, known: Experience) -> None:
    """Save what is known about a path, if the disk cache can be written to."""
    cache.keep(key, cache.PATH, known)


def note_together(program: str, paths: Collection[str]) -> None:
    """Note for each of these paths that there is a program of all of them. All by their keys."""
    for key in paths:
        known = read(key)
        before = known.together.get(program, frozenset())
        if not before.issuperset(paths):
            save(key, replace(known, together={**known.together, program: before.union(paths)}))


def note_lost(key: str, lost_s: float) -> None:
    """Note what calls of a path have lost in all runs so far, in seconds. key: the path's."""
    known = read(key)
    if known.lost_s != lost_s:
        save(key, replace(known, lost_s=lost_s))


def key_of_code(name: str, code: CodeType) -> str:
    """The name on disk of what a target runs, wherever its file is."""
    parts = name, str(code.co_firstlineno), code.co_code.hex(), repr(code.co_names)
    return hashlib.sha1("\0".join(parts).encode(), usedforsecurity=False).hexdigest()


def recordings_of(target: str) -> tuple[str, ...]:
    """The keys of the recordings that are kept of a target, the last first. target: its own key."""
    return cache.load(target, cache.RECORDINGS, tuple) or ()


def note_recording(target: str, key: str) -> None:
    """Note that a recording of a target is kept, in place of the oldest where there are many."""
    kept = (key, *(each for each in recordings_of(target) if each != key))
    cache.keep(target, cache.RECORDINGS, kept[:MOST_RECORDINGS])


def missed_s(key: str) -> float:
    """Seconds that calls of a target have missed in earlier runs; infinite if one of these has begun to compile it.

    key: of its code.
    """
    return cache.load(key, cache.KNOWN, float) or 0.0


def note_missed(key: str, seconds: float) -> None:
    """Note what calls of a target have missed in all runs so far; infinitely much once it is being compiled."""
    if missed_s(key) < seconds:
        cache.keep(key, cache.KNOWN, seconds)
