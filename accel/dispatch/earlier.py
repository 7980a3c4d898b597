"""Earlier runs' recordings: a target takes them up at its first calls, and keeps those that lead to a program.

So a second run of a program records nothing that an earlier one has recorded, and has its programs as soon as they are
loaded. What ended at a limit, it records again only if it runs long enough to pay for that.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, WeakValueDictionary

from accel.backend.disk import cache, experience, refused
from accel.backend.disk.refused import RefusedRecordings
from accel.dispatch import late
from accel.dispatch.paths.path import RecordedPath
from accel.dispatch.paths.stages import Stage
from accel.platform import config, gain, tuning
from accel.platform.bodies import as_written
from accel.platform.clocks import time
from accel.platform.ledger import open_ledger
from accel.platform.reasons import Refusal
from accel.policy import budget

if TYPE_CHECKING:
    from accel.record import Trace


TARGETS: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Targets by name: recordings on disk name those that ran inside them."""

_WORTH_KEEPING = (Stage.PENDING, Stage.COMPILED)


class Earlier:
    """Recordings of one target that are on disk.

    function: the recorded one. code: that its calls run, if it is not the function's own. effects: whether replays may
    show text. looked: whether the disk was searched.
    """

    def __init__(self, name: str, function: FunctionType, code: CodeType | None, effects: bool) -> None:
        self._name = name
        self._function = function
        self._code = code
        self._effects = effects
        self.looked = False
        self._kept: WeakSet[RecordedPath] = WeakSet()
        self._refused_before: RefusedRecordings | None = None  # of earlier runs, once they have been looked for
        self._refused = refused.NONE  # with this run's

    def take_up(self) -> Iterator[Trace]:
        """The recordings on disk."""
        self.looked = True
        # where calls wait for their programs, each run of a program computes the same as the one before; and one that
        # compiles for later runs is to see all there is
        if budget.for_later_runs or not config.current().ahead_of_time or not cache.is_used():
            return
        started = time.perf_counter()
        if experience.recordings_of(self._key):
            late.import_now()
            from accel.backend.disk import recordings

            yield from recordings.read(self._key, self._own, TARGETS.get)
        open_ledger(self._name).charge("loading", time.perf_counter() - started)

    def note_taken(self, path: RecordedPath) -> None:
        """The recording of a path is from there. What earlier runs have lost without its program counts for it."""
        self._kept.add(path)
        if path.key is not None:
            path.lost_s = experience.read(path.key).lost_s
            gain.potential_gain.add(path.lost_s)

    def keep_for_later_runs(self, paths: Iterable[RecordedPath]) -> None:
        """At the end of the process: keep recordings that nothing was compiled of, and what their calls have lost."""
        self.keep(paths, [Stage.OBSERVING])
        for path in paths:
            if path.stage is Stage.OBSERVING and path.key is not None:
                experience.note_lost(path.key, path.lost_s)

    @tuning.rare_garbage_collection()
    def keep(self, paths: Iterable[RecordedPath], stages: Collection[Stage] = _WORTH_KEEPING) -> bool:
        """Keep the recordings of paths in these stages. Returns whether there were any new."""
        found = [path for path in paths if (path.is_joined or path.stage in stages) and path not in self._kept]
        for path in found:
            self._kept.add(path)
            if path.key is None:
                continue
            from accel.backend.disk import recordings

            recordings.save(self._key, path.key, path.trace, self._own)
        return bool(found)

    def why_wait(self, call_s: float, total_s: float, telling: int) -> Refusal | None:
        """Why earlier runs' recordings ended at a limit, where one more would not pay yet; None if it may be made.

        call_s, total_s: what this run's last call, and what all its calls so far, have taken on NumPy, in seconds.
        telling: the least number of recordings that says something of other calls.
        """
        known = self._read_refused()
        return known.refusal if known.count >= telling and known.holds(call_s, total_s) else None

    def _read_refused(self) -> RefusedRecordings:
        if self._refused_before is None:
            self._refused_before = refused.read(self._key) if cache.is_used() else refused.NONE
            self._refused = self._refused_before
        return self._refused_before

    def note_refused(self, refusal: Refusal, seconds: float, call_s: float, trace: Trace | None) -> None:
        """Note for later runs a recording that ended at a limit, or took long. trace: as far as it got.

        seconds: of the recording. call_s: of a call on NumPy.
        """
        if refusal.reason != "limit.nodes" and seconds - call_s < refused.LONG_S:
            return
        self._read_refused()
        self._refused = self._refused.with_another(seconds, call_s, refusal)
        nodes = () if trace is None else trace.tape.nodes
        files = {self._own[1].co_filename, *(node.where[0] for node in nodes)}
        refused.save(self._key, self._refused, sorted(files))

    def forget_refused(self) -> None:
        """A recording has succeeded: later runs need not wait for one."""
        if self._refused.seconds:
            self._refused_before = self._refused = refused.NONE
            refused.forget(self._key)

    @functools.cached_property
    def _key(self) -> str:
        from accel.ir.fingerprint import code_number, digest

        # with `exact`, calls are recorded that otherwise are not
        return digest(self._name, code_number(self._own[1]), self._effects, config.current().exact)

    @property
    def _own(self) -> tuple[FunctionType, CodeType]:
        return self._function, self._code or as_written(self._function.__code__)
