"""Programs of several paths on disk: what a later run needs to use one before it has recorded all of its paths.

The tape of such a program is kept as it was compiled, and for each path, by its key, where on that tape it finds what.
A later run that has recorded some of the paths takes the whole tape. The others it takes once it has recorded them; the
program on disk is the same.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from accel import logs
from accel.backend.disk import cache
from accel.backend.job import Job
from accel.lower import Known
from accel.merge import Member, MergedTrace, Placement, reassembled
from accel.record import Trace

T = TypeVar("T")


@dataclass(slots=True)
class SavedTrace:
    """A merged trace on disk. placements: of its paths, by their keys. names: of its slots."""

    job: Job
    placements: dict[str, Placement]
    names: list[str]


def save(key: str, job: Job, trace: MergedTrace, paths: Sequence[str]) -> None:
    """Save a merged trace under the key of its path. paths: the keys of its members.

    Where this run has not recorded all of the paths that an earlier one did, those stay: the tape is the same.
    """
    names = [slot.name for slot in trace.inputs.slots]
    earlier = _read(key, lambda saved: saved)
    placements = {} if earlier is None or earlier.names != names else dict(earlier.placements)
    placements.update((path, member.placement) for path, member in zip(paths, trace.members, strict=True))
    cache.save(key, pickle.dumps(SavedTrace(job, placements, names)), cache.TOGETHER)


class TraceOnDisk:
    """A merged trace from disk. known: what its program takes for constant."""

    def __init__(self, saved: SavedTrace) -> None:
        self.known: Known = saved.job.known
        self._plain = saved.job.trace()
        self._placements, self._names = saved.placements, saved.names

    @property
    def paths(self) -> Collection[str]:
        """The keys of its paths."""
        return self._placements.keys()

    def placement_of(self, path: str | None) -> Placement | None:
        """Where a path, by its key, finds what, if it is one of its paths."""
        return None if path is None else self._placements.get(path)

    def with_members(self, traces: Mapping[str, Trace]) -> MergedTrace:
        """The merged trace with those of its paths that have been recorded, by their keys. Raises NotMergeable.

        Its tape is always the same object: a program of it serves whatever members it has.
        """
        members = [Member(trace, self._placements[path]) for path, trace in traces.items()]
        plain = self._plain
        return reassembled(plain.tape, plain.outputs, plain.pinned, plain.draws, members, self._names)


def read(key: str) -> TraceOnDisk | None:
    """The merged trace on disk under the key of its path, if it is there and can be read."""
    return _read(key, TraceOnDisk)


def _read(key: str, kind: Callable[[SavedTrace], T]) -> T | None:
    text = cache.read(key, cache.TOGETHER)
    try:
        return None if text is None else kind(pickle.loads(text))
    except Exception as error:
        logs.LOGGER.info("a program of several paths on disk cannot be used: %s: %s", type(error).__name__, error)
        return None
