"""Programs: one or several recorded paths that are compiled as one, on the way from recording to executable."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, cast

from accel.dispatch.paths.path import RecordedPath
from accel.dispatch.paths.refolding import Refolds
from accel.dispatch.paths.stages import TRANSITIONS, Backoff, Stage
from accel.platform.ledger import current_run, open_ledger
from accel.policy.account import expected_gain_s

if TYPE_CHECKING:
    from accel.backend.disk.together import TraceOnDisk
    from accel.backend.executable import Executable
    from accel.backend.underway.pending import PendingProgram
    from accel.compiler.merge import MergedTrace
    from accel.dispatch.replay import SideExit, StagedOutputs, Variant


class Program:
    """One recorded path or several, compiled as one: guards, an executable once there is one, and its state.

    whole: what is compiled: the only path, or the merged trace of several with figures of all their calls.
    paths: the recorded paths, in the order of a merged trace's members. Which of them a run has taken, its outcomes
    show. Times, replays and comparisons are counted for each of them apart.
    stage: see TRANSITIONS.
    pending: what is being compiled. In stage COMPILED, it is to replace the executable in use: inputs take the place of
    constants that change often. joint: the program of several paths that is being compiled, because the path of this
    one needs a program.
    found_on_disk, kept, unkept: of its executable (see `PendingProgram`).
    refolded: slots of the constants that have been replaced. refolds: how often, and how long that took.
    backoff: of runs that were discarded.
    source, on_disk, key_on_disk: of several paths: the trace on disk that it was made from, the keys of the paths that
    its program is known to compute, and the key of its own trace.
    """

    def __init__(self, whole: RecordedPath, paths: Sequence[RecordedPath] = ()) -> None:
        """paths: those of a merged trace."""
        self.whole = whole
        self.paths = list(paths) or [whole]
        self.is_merged = bool(paths)
        # what several share goes with its last path: large recordings are not left to the garbage collector
        whole.program = weakref.proxy(self) if paths else self
        self.name = whole.name
        self.stage = Stage.OBSERVING
        self.pending: PendingProgram | None = None
        self.joint: Program | None = None
        self.found_on_disk = False
        self.kept: tuple[tuple[str, str], ...] = ()
        self.unkept = ""
        self.refolded: set[int] = set()
        self.refolds = Refolds()
        self.backoff = Backoff()
        self.source: TraceOnDisk | None = None
        self.on_disk: frozenset[str] = frozenset()
        self.key_on_disk: str | None = None
        self._variant: Variant | None = None
        self._is_slower = False  # which is why it was given up

    @property
    def has_program(self) -> bool:
        """Whether there is an executable, in use or given up."""
        return self._variant is not None

    @property
    def variant(self) -> Variant:
        """The executable, with what it commits. There is one in stage COMPILED."""
        assert self._variant is not None
        return self._variant

    @property
    def placed(self) -> list[tuple[RecordedPath, list[int]]]:
        """Each of several paths, with the slots of the whole that hold its own; nothing of one path alone."""
        if not self.is_merged:
            return []
        members = cast("MergedTrace", self.whole.trace).members
        return [(path, each.placement.slots) for path, each in zip(self.paths, members, strict=True)]

    def taken(self, staged: StagedOutputs) -> RecordedPath:
        """The recorded path that a run has taken."""
        return next(path for path in self.paths if path.trace is staged.trace)

    def left_at(self, exit: SideExit) -> Hashable:
        """The place in the user's program where a call has left its paths."""
        return "what was drawn" if exit.on_host else self.variant.executable.program.outcomes[exit.position].where

    def wait(self, seconds: float, calls: int = 1) -> None:
        """Add the time of calls that had no program to run."""
        self.whole.waited_s += seconds
        self.whole.lost_s += expected_gain_s(seconds, calls)
        if self.pending is not None:
            self.pending.add_missed(seconds)

    # -- compiling ----------------------------------------------------------------------------------------------------

    def is_ready(self) -> bool:
        """Whether compiling has ended, with an executable or with an error."""
        return self.pending is not None and self.pending.done()

    def install(self, made: PendingProgram) -> None:
        """Let the calls of all its paths be replayed. Raises what compiling raised.

        The first replays are compared, whatever those of an earlier executable showed.
        """
        self.use(made.result())
        undivided = self.variant.executable.undivided
        if undivided:
            current_run().note(f"{self.name} runs on one device: {undivided}")
        self.found_on_disk, self.kept, self.unkept = made.found_on_disk, made.kept, made.unkept
        self.key_on_disk = made.path if made.kept else None
        self.refolds = Refolds()
        if self.stage is Stage.OBSERVING:  # one path of several was PENDING
            self.enter(Stage.PENDING)
        if self.stage is not Stage.COMPILED:  # as it is if an executable takes the place of another
            self.enter(Stage.COMPILED)
        self.forget_replays()

    def use(self, executable: Executable) -> None:
        """Launch this one from now on. What launches of one that was in its place have moved stays counted."""
        from accel.dispatch.paths.transfers import Transfers
        from accel.dispatch.replay import Variant

        before, self._variant = self._variant, Variant(self.whole.trace, executable)
        there = [] if before is None else before.executable.constants
        open_ledger(self.name).transfers.append(Transfers(self.whole.trace, self._variant, there))

    def take(self, *paths: RecordedPath) -> None:
        """Replay the calls of these paths from now on, in place of the programs that they had."""
        for path in paths:
            before, path.program = path.program, self
            if not before.is_merged:
                if before.pending is not None and before.joint is None:
                    before.pending.withdraw()
                before._variant = before.pending = before.joint = None

    def forget_replays(self) -> None:
        """A new executable."""
        for path in {*self.paths, self.whole}:
            path.forget_replays()

    # -- giving it up -------------------------------------------------------------------------------------------------

    def withdraw(self) -> bool:
        """Cancel any pending replacement of the executable in use. Returns whether that was possible."""
        if self.pending is not None and not self.pending.withdraw():
            return False
        self.pending = None
        return True

    def drop_program(self) -> None:
        """Forget the executable: another one is to be compiled."""
        self.withdraw()
        self._variant = self.pending = None
        self.enter(Stage.OBSERVING)

    def observe_again(self) -> bool:
        """Stop compiling, before there is an executable. Returns whether that was possible."""
        if self.stage is not Stage.PENDING or self.pending is None or not self.pending.withdraw():
            return False
        self.pending = self.joint = None
        self.enter(Stage.OBSERVING)
        return True

    def give_up(self, *, is_slower: bool = False) -> None:
        """Keep its calls on NumPy; for good, or until `try_again` where its program is slower."""
        self.withdraw()
        self.pending = None  # even if it is too late to cancel it: nobody is to use it
        self._is_slower = is_slower
        self.enter(Stage.GIVEN_UP)

    def try_again(self) -> None:
        """Use its executable again if it was given up as slower: it is timed and judged anew."""
        if self.stage is Stage.GIVEN_UP and self._is_slower:
            self.enter(Stage.COMPILED)
            self.whole.speed.begin_anew()

    def enter(self, stage: Stage) -> None:
        """Go on to this stage, which must be one of those that may follow."""
        assert stage in TRANSITIONS[self.stage], f"from {self.stage} to {stage}"
        self.stage = stage
