"""Programs of several paths on disk: what a later run needs to use one before it has recorded all of its paths.

The tape of such a program is kept as it was compiled, and for each path, by its key, where on that tape it finds what.
A later run that has recorded some of the paths takes the whole tape. The others it takes once it has recorded them; the
program on disk is the same.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accel import logs
from accel.backend import cache
from accel.backend.job import Job
from accel.lower import Known
from accel.merge import Member, MergedTrace, Placement, reassembled
from accel.record import Trace


@dataclass(slots=True)
class SavedTrace:
    """A merged trace on disk. placements: of its paths, by their keys. names: of its slots."""

    job: Job
    placements: dict[str, Placement]
    names: list[str]


def save(key: str, job: Job, trace: MergedTrace, paths: Sequence[str]) -> None:
    """Save a merged trace under the key of its path. paths: the keys of its members."""
    placements = {path: member.placement for path, member in zip(paths, trace.members, strict=True)}
    names = [slot.name for slot in trace.inputs.slots]
    cache.save(key, pickle.dumps(SavedTrace(job, placements, names)), cache.TOGETHER)


def read(key: str, traces: Mapping[str, Trace]) -> tuple[MergedTrace, Known] | None:
    """A merged trace of which some paths have been recorded, and what its program on disk takes for constant.

    key: of its path. traces: the recorded ones, by their keys. None if it is not there or is of no use here.
    """
    text = cache.read(key, cache.TOGETHER)
    if text is None:
        return None
    try:
        saved = pickle.loads(text)
        members = [Member(trace, saved.placements[path]) for path, trace in traces.items()]
        plain = saved.job.trace()
        return reassembled(plain.tape, plain.outputs, plain.pinned, members, saved.names), saved.job.known
    except Exception as error:
        logs.LOGGER.info("a program of several paths on disk cannot be used: %s: %s", type(error).__name__, error)
        return None
