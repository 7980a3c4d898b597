"""Joining: which recorded paths of a target are compiled together, as one program (see accel.merge)."""

from __future__ import annotations

from collections.abc import Iterable

from accel import logs
from accel.backend import cache
from accel.dispatch.joint import JointPath
from accel.dispatch.paths import Path, Stage

COMPILE_S, COMPILE_NODE_S = 0.1, 0.004
"""What compiling takes, about: in all, and for each operation."""


def expected_compile_s(path: Path) -> float:
    """Seconds that compiling a path takes, before any program has shown it."""
    return COMPILE_S + COMPILE_NODE_S * len(path.trace.tape.nodes)


def may_join(path: Path) -> bool:
    """Whether a path may have a program with others."""
    return path.stage is not Stage.GIVEN_UP and not path.apart


def joins_more(path: Path, paths: Iterable[Path]) -> bool:
    """Whether a path would join more paths than there are to join with it."""
    pool = list(filter(may_join, paths))
    joined = sum(other.stage is Stage.JOINED for other in pool)
    return may_join(path) and joined > len(pool) - joined


def partners(path: Path, paths: Iterable[Path]) -> list[Path] | None:
    """The paths to compile together, this one among them; None while more of them should be waited for.

    What earlier runs have compiled is on disk, for just the paths that they had recorded then. So these are taken, or
    waited for as long as it would take to compile others.
    """
    if not may_join(path):
        return [path]
    pool = [path, *(other for other in paths if other is not path and may_join(other))]
    if not cache.is_used() or path.key is None or not cache.holds_programs():
        return pool
    from accel.backend import experience

    together = experience.read(path.key).together
    by_key = {other.key: other for other in pool}
    joined = {other.key for other in pool if other.stage is Stage.JOINED}
    there = [keys for keys in together if keys <= by_key.keys() and (joined <= keys or keys == {path.key})]
    if there:
        return [by_key[key] for key in sorted(max(there, key=len))]
    return None if together and path.waited_s < expected_compile_s(path) else pool


def joint_of(pool: list[Path], name: str) -> JointPath | None:
    """A path of all of these; None where there is but one, or where they share too little. name: the target's."""
    from accel.merge import NotMergeable, merged

    if len(pool) < 2:
        return None
    try:
        return JointPath(merged([path.trace for path in pool]), pool, name)
    except NotMergeable as why:
        logs.LOGGER.info("%s: a path gets a program of its own: %s", name, why)
        pool[0].apart = str(why)
        return None
