"""Joining: which recorded paths of a target are compiled together, as one program (see accel.compiler.merge)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from accel.backend.disk import cache
from accel.dispatch.paths.path import RecordedPath
from accel.dispatch.paths.program import Program
from accel.dispatch.paths.several import folds_as_on_disk, program_of
from accel.dispatch.paths.stages import Stage
from accel.platform import config, logs


def may_join(path: RecordedPath) -> bool:
    """Whether a path may have a program with others."""
    return path.stage is not Stage.GIVEN_UP and not path.apart


def may_start(paths: Iterable[RecordedPath]) -> bool:
    """Whether no program of several paths is being compiled."""
    return all(path.program.joint is None for path in paths)


def joins_more(path: RecordedPath, paths: Iterable[RecordedPath]) -> bool:
    """Whether a path would join more paths than there are to join with it."""
    pool = list(filter(may_join, paths))
    joined = sum(other.is_joined for other in pool)
    return may_join(path) and joined > len(pool) - joined


def joint_with(path: RecordedPath, paths: Iterable[RecordedPath]) -> Program | None:
    """The program to compile of a path and others; None where it gets a program of its own.

    What earlier runs have compiled for it and other paths is taken from disk, whether the others have been recorded
    again or not. Where there is none, paths of earlier runs are left out that no call of this run has taken: a program
    of more paths takes longer to compile, and to run.
    """
    if not may_join(path):
        return None
    from accel.compiler.merge.draws import draw_alike

    others = [other for other in paths if other is not path and may_join(other)]
    pool = [path, *(other for other in others if draw_alike(path.trace, other.trace))]
    if any(other.is_joined and other not in pool for other in others):
        path.apart = "others have one program, which draws different random numbers"
        return None
    return _from_disk(path, pool) or joint_of([other for other in pool if other.is_seen])


def _from_disk(path: RecordedPath, pool: list[RecordedPath]) -> Program | None:
    # where calls wait for their programs, each run of a program computes the same as the one before, to the last bit
    if not config.current().ahead_of_time:
        return None
    if not cache.holds_programs() or path.key is None:
        return None
    from accel.backend.disk import experience, together
    from accel.compiler.merge import NotMergeable

    recorded = {other.key: other for other in pool if other.key is not None}
    joined = {other.key for other in pool if other.is_joined}
    programs = experience.read(path.key).together.items()
    fitting = [(len(keys), program, keys) for program, keys in programs if len(keys) > 1 and joined <= keys]
    found = []
    # those of most paths first: the fewer are left that they do not have
    for _, program, keys in sorted(fitting, key=lambda each: each[:2], reverse=True):
        source = together.read(program)
        if source is None:
            continue
        members = source.members_of({key: other.trace for key, other in recorded.items()})
        # an entry may be gone
        if members.keys() >= {path.key, *joined}:
            with contextlib.suppress(NotMergeable):
                trace = source.with_members(list(members.values()))
                found.append(program_of(trace, [recorded[key] for key in members], source, keys))
                if folds_as_on_disk(found[-1]):
                    return found[-1]
    return found[0] if found else None


def joint_of(pool: list[RecordedPath]) -> Program | None:
    """A program of all of these; None where there is but one, or where they share too little."""
    from accel.compiler.merge import NotMergeable, merged

    if len(pool) < 2:
        return None
    try:
        return program_of(merged([path.trace for path in pool]), pool)
    except NotMergeable as why:
        logs.LOGGER.info("%s: a path gets a program of its own: %s", pool[0].name, why)
        pool[0].apart = str(why)
        return None
