"""Joint paths: several recorded paths of a target that have one program (see accel.compiler.merge)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import NDArray

from accel.dispatch.paths.constants import Refold, as_known, have_one_form
from accel.dispatch.paths.path import Path, Stage
from accel.ir.bits import same_value
from accel.platform import logs

if TYPE_CHECKING:
    from accel.backend.disk.together import TraceOnDisk
    from accel.backend.executable import Executable
    from accel.compiler.lower import Known
    from accel.compiler.merge import MergedTrace
    from accel.dispatch.replay import Matcher, StagedOutputs, Variant
    from accel.record import Trace


class JointPath(Path):
    """A path of which several recorded ones are the sides. members: those. on_disk: the keys of the paths that the
    program on disk is known to compute. is_on_disk_as_it_is: whether what that program takes for constant is so here,
    too, as far as is known: nothing has to be compiled.

    Which of them a run has taken, its outcomes show. Times, replays and comparisons are counted for each of them apart.
    """

    trace: MergedTrace  # type: ignore[assignment]  # what compiling needs of a trace, both have

    def __init__(
        self,
        trace: MergedTrace,
        members: Sequence[Path],
        name: str,
        source: TraceOnDisk | None = None,
        on_disk: Collection[str] = (),
    ) -> None:
        """source: what is on disk of the program, if it is there: then no more is folded than it folds."""
        self.members = list(members)
        self.on_disk = frozenset(on_disk)
        self._by_trace = {id(path.trace): path for path in members}
        super().__init__(cast("Trace", trace), name)
        self._inherit()
        self._source = source
        self.is_on_disk_as_it_is = False
        self._key_on_disk: str | None = None  # that of its own path
        if source is not None:
            folded = {**source.known.scalars, **source.known.arrays}
            self._adopt(folded)
            self.is_on_disk_as_it_is = self.constants.values.keys() == folded.keys()

    def _matcher(self) -> Matcher:
        from accel.dispatch.replay import Matcher

        return Matcher(self.trace)

    def _foldable(self) -> frozenset[int]:
        # what any side writes is folded on none
        excluded = {slot for slot, _ in (*self.trace.outputs.state, *self.trace.outputs.changed)}
        found: set[int] = set()
        for member in self.trace.members:
            candidates = self._by_trace[id(member.trace)].constants.candidates
            found.update(member.placement.slots[slot] for slot in candidates)
            read = {*member.trace.array_slots, *member.trace.scalar_slots} - candidates
            excluded.update(member.placement.slots[slot] for slot in read)
        return frozenset(found - excluded)

    def _inherit(self) -> None:
        """Take over the members' observations."""
        for member in self.trace.members:
            path = self._by_trace[id(member.trace)]
            self.constants.inherit(path.constants, member.placement.slots)
            self.observed = max(self.observed, path.observed)
            self.waited_s += path.waited_s
            self.numpy_call_s = max(self.numpy_call_s, path.numpy_call_s)

    def _adopt(self, known: Mapping[int, Any]) -> None:
        """Take for constant what an earlier run did, but for numbers that are known to be others here.

        An array may be another one: its program goes on with that (see `refold`).
        """
        # what no call has shown yet is taken from there: it is compared before a run
        values, varying = self.constants.values, self.constants.varying
        self.constants.values = {
            slot: values.get(slot, value)
            for slot, value in known.items()
            if have_one_form(values.get(slot, value), value)
            or (slot not in varying and same_value(values.get(slot, value), value))
        }

    def fold_no_more_than(self, other: JointPath) -> None:
        """Take for constant nothing that the program of another joint path of the same target reads as an input.

        It may have changed in calls of paths that did not know yet, or in an earlier run.
        """
        read, name = set[int](), other.trace.inputs.name
        if other.has_program:  # else it is to be compiled again, and what has changed is known to vary
            known = other.variant.executable.program.known
            read = {*other.trace.array_slots, *other.trace.scalar_slots}.difference(known.scalars, known.arrays)
        names = {name(slot) for slot in read | other.constants.varying}
        self.constants.rule_out(slot for slot in self.constants.candidates if self.trace.inputs.name(slot) in names)

    def _foldable_now(self) -> Known:
        return super()._foldable_now() if self._source is None else as_known(self.constants.values)

    def admit(self, path: Path) -> bool:
        """Replay the calls of one more path, if the program in use computes that path, too. Returns whether it does."""
        if self.stage is not Stage.COMPILED:
            return False
        from accel.compiler.merge import Member, NotMergeable

        placement = None if self._source is None else self._source.placement_of(path.key)
        try:
            member = Member(path.trace, placement or self.trace.placement_of(path.trace))
            trace = self.trace.with_member(member)
        except NotMergeable as why:
            logs.LOGGER.debug("%s: its program does not have the new path: %s", self.name, why)
            return False
        self.members.append(path)
        self._by_trace[id(path.trace)] = path
        self.trace = trace
        self.matcher = self._matcher()
        self.constants.candidates = self._foldable()
        self._use(self.variant.executable)
        path.join()
        self._note_members()
        return True

    def _note_members(self) -> None:
        """Let later runs find the program on disk by all of the paths that it has by now."""
        keys = [self._by_trace[id(member.trace)].key for member in self.trace.members]
        known = [key for key in keys if key is not None]
        if self._key_on_disk is not None and len(known) == len(keys):
            from accel.backend.disk import together

            together.note_members(self._key_on_disk, self.trace, known)

    def refold(self, changed: Mapping[int, NDArray[Any]]) -> Refold:
        found = super().refold(changed)
        if found is not Refold.GOES_ON:
            return found
        # what they take for constant, their next program does
        for member in self.trace.members:
            values, slots = self._by_trace[id(member.trace)].constants.values, member.placement.slots
            copies = {slot: self.constants.values[slots[slot]] for slot in values if slots[slot] in changed}
            values.update(copies)
        return found

    def vary(self, changed: Collection[int]) -> None:
        super().vary(changed)
        # nor does a program that they have with further paths
        for member in self.trace.members:
            path, slots = self._by_trace[id(member.trace)], member.placement.slots
            path.constants.rule_out([slot for slot in path.constants.values if slots[slot] in changed])

    def taken(self, staged: StagedOutputs) -> Path:
        return self._by_trace[id(staged.trace)]

    def install(self, made: Any) -> None:
        """Put the program in place of those of the members. Raises what compiling raised."""
        if self.stage is Stage.OBSERVING:
            self._enter(Stage.PENDING)
        self._install(made)
        self._key_on_disk = made.path if made.kept else None
        for path in self.members:
            if path.stage is not Stage.JOINED:
                path.join()

    def forget_replays(self) -> None:
        super().forget_replays()
        for path in self.members:
            path.forget_replays()

    def _launchable(self, executable: Executable) -> Variant:
        from accel.dispatch.replay import Variant

        return Variant(self.trace, executable)

    def branches(self) -> list[dict[str, Any]]:
        """Return, for the report, where the paths part and how many replays went which way."""
        found: dict[tuple[Any, str], int] = {}
        for path in self.members:
            for outcome in path.trace.tape.outcomes:
                key = outcome.where, repr(outcome.expected)
                found[key] = found.get(key, 0) + path.replays
        sides: dict[Any, dict[str, int]] = {}
        for (where, expected), replays in found.items():
            sides.setdefault(where, {})[expected] = replays
        return [{"line": where[1], "sides": each} for where, each in sides.items() if len(each) > 1]

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "paths": len(self.members), "branches": self.branches()}
