"""Programs of several paths on disk: data for a later run that has not yet recorded all of the paths.

The tape of such a program is kept as it was compiled. For each path, by its key, an entry says where the path finds its
values on that tape. There are entries for paths that the program was made of, and for others that it computes as well.
A later run that has recorded some of the paths takes the whole tape. It takes the other paths once it has recorded
them; the program on disk is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from accel.backend.disk import cache, experience
from accel.backend.job import Job
from accel.compiler.lower import Known
from accel.compiler.merge import Member, MergedTrace, Placement, reassembled
from accel.ir.fingerprint import digest
from accel.record import Trace


@dataclass(slots=True)
class SavedTrace:
    """A merged trace on disk. names: of its slots."""

    job: Job
    names: list[str]


def save(path: str, job: Job, trace: MergedTrace, paths: Sequence[str]) -> str:
    """Save a merged trace. path: the key of its own path. paths: those of its members. Returns its program's key.

    Later runs find it by these paths once `experience.note_together` has noted that there is this program of theirs.
    """
    names = _names_of(trace)
    program = _program(path, names)
    cache.keep(program, cache.TOGETHER, SavedTrace(replace(job, trial=None), names))
    _save_placements(program, trace, paths)
    return program


def note_members(path: str, trace: MergedTrace, paths: Sequence[str]) -> None:
    """Let later runs find a saved trace by each of these paths, and its place there. Arguments as of `save`."""
    program = _program(path, _names_of(trace))
    _save_placements(program, trace, paths)
    experience.note_together(program, paths)


def _save_placements(program: str, trace: MergedTrace, paths: Sequence[str]) -> None:
    for key, member in zip(paths, trace.members, strict=True):
        cache.keep(digest(program, key), cache.PLACEMENT, member.placement)


class TraceOnDisk:
    """A merged trace from disk. known: what its program takes for constant."""

    def __init__(self, program: str, saved: SavedTrace) -> None:
        self.known: Known = saved.job.known
        self._program = program
        self._plain = saved.job.trace()
        self._names = saved.names

    def placement_of(self, path: str | None) -> Placement | None:
        """Return a path's placement, by the path's key; None if it is not one of its paths."""
        return None if path is None else cache.load(digest(self._program, path), cache.PLACEMENT, Placement)

    def with_members(self, members: list[Member]) -> MergedTrace:
        """The merged trace with those of its paths that have been recorded. Raises NotMergeable.

        Its tape is always the same object: a program of it serves whatever members it has.
        """
        plain = self._plain
        return reassembled(plain.tape, plain.outputs, plain.pinned, plain.draws, members, self._names)

    def members_of(self, traces: Mapping[str, Trace]) -> dict[str, Member]:
        """Return its members among these traces. Both are by the keys of their paths."""
        placed = ((path, trace, self.placement_of(path)) for path, trace in traces.items())
        return {path: Member(trace, placement) for path, trace, placement in placed if placement is not None}


def read(program: str) -> TraceOnDisk | None:
    """The merged trace on disk, if it is there and can be read. program: its key, from the experience of its paths."""
    saved = cache.load(program, cache.TOGETHER, SavedTrace)
    return None if saved is None else TraceOnDisk(program, saved)


def _program(path: str, names: Sequence[str]) -> str:
    # what other inputs go into is another program: its paths find theirs by these names
    return digest(path, names)


def _names_of(trace: MergedTrace) -> list[str]:
    return [slot.name for slot in trace.inputs.slots]
