"""Programs of several paths: made from what is known of each, and extended by paths that they compute as well."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from accel.dispatch.paths.constants import have_one_form
from accel.dispatch.paths.path import RecordedPath
from accel.dispatch.paths.program import Program
from accel.dispatch.paths.stages import Stage
from accel.ir.bits import same_value
from accel.platform import logs

if TYPE_CHECKING:
    from accel.backend.disk.together import TraceOnDisk
    from accel.compiler.merge import MergedTrace
    from accel.record import Trace


def program_of(
    trace: MergedTrace, paths: Iterable[RecordedPath], source: TraceOnDisk | None = None, on_disk: Collection[str] = ()
) -> Program:
    """The program of a merged trace, with what has been observed of its paths.

    source: what is on disk of it, if it is there: then no more is folded than it folds. on_disk: the keys of the paths
    that the program there is known to compute.
    """
    by_trace = {id(path.trace): path for path in paths}
    own = [by_trace[id(member.trace)] for member in trace.members]
    # what compiling needs of a trace, both have
    whole = RecordedPath(cast("Trace", trace), own[0].name, _foldable(trace, own))
    program = Program(whole, own)
    for path, slots in program.placed:
        whole.constants.inherit(path.constants, slots)
        whole.observed = max(whole.observed, path.observed)
        whole.waited_s += path.waited_s
        whole.lost_s += path.lost_s
        whole.numpy_call_s = max(whole.numpy_call_s, path.numpy_call_s)
    program.source, program.on_disk = source, frozenset(on_disk)
    if source is not None:
        _adopt(whole, {**source.known.scalars, **source.known.arrays})
    return program


def _foldable(trace: MergedTrace, paths: Sequence[RecordedPath]) -> frozenset[int]:
    # what any side writes is folded on none
    excluded = {slot for slot, _ in (*trace.outputs.state, *trace.outputs.changed)}
    found: set[int] = set()
    for path, member in zip(paths, trace.members, strict=True):
        slots, candidates = member.placement.slots, path.constants.candidates
        found.update(slots[slot] for slot in candidates)
        read = {*path.trace.array_slots, *path.trace.scalar_slots} - candidates
        excluded.update(slots[slot] for slot in read)
    return frozenset(found - excluded)


def _adopt(whole: RecordedPath, known: Mapping[int, Any]) -> None:
    """Take for constant what an earlier run did, but for numbers that are known to be others here.

    An array may be another one: its program goes on with that (see `refold`).
    """
    # what no call has shown yet is taken from there: it is compared before a run
    values, varying = whole.constants.values, whole.constants.varying
    whole.constants.values = {
        slot: values.get(slot, value)
        for slot, value in known.items()
        if have_one_form(values.get(slot, value), value)
        or (slot not in varying and same_value(values.get(slot, value), value))
    }


def folds_as_on_disk(program: Program) -> bool:
    """Whether what the program on disk takes for constant is so here, too, as far as is known.

    Nothing has to be compiled then.
    """
    known = None if program.source is None else program.source.known
    return known is not None and program.whole.constants.values.keys() == {*known.scalars, *known.arrays}


def fold_no_more_than(program: Program, other: Program) -> None:
    """Take for constant nothing that another program of several paths of the same target reads as an input.

    It may have changed in calls of paths that did not know yet, or in an earlier run.
    """
    read, theirs, mine = set[int](), other.whole, program.whole
    if other.has_program:  # else it is to be compiled again, and what has changed is known to vary
        known = other.variant.executable.program.known
        read = {*theirs.trace.array_slots, *theirs.trace.scalar_slots}.difference(known.scalars, known.arrays)
    names = {theirs.trace.inputs.name(slot) for slot in read | theirs.constants.varying}
    mine.constants.rule_out(slot for slot in mine.constants.candidates if mine.trace.inputs.name(slot) in names)


def admit(program: Program, path: RecordedPath) -> bool:
    """Replay the calls of one more path, if the program in use computes that path, too. Returns whether it does."""
    if program.stage is not Stage.COMPILED:
        return False
    from accel.compiler.merge import Member, NotMergeable

    whole, merged = program.whole, cast("MergedTrace", program.whole.trace)
    placement = None if program.source is None else program.source.placement_of(path.key)
    try:
        member = Member(path.trace, placement or merged.placement_of(path.trace))
        trace = merged.with_member(member)
    except NotMergeable as why:
        logs.LOGGER.debug("%s: its program does not have the new path: %s", program.name, why)
        return False
    program.paths.append(path)
    whole.read_as(cast("Trace", trace))
    whole.constants.candidates = _foldable(trace, program.paths)
    program.use(program.variant.executable)
    program.take(path)
    path.forget_replays()
    _note_members(program, trace)
    return True


def _note_members(program: Program, trace: MergedTrace) -> None:
    """Let later runs find the program on disk by all of the paths that it has by now."""
    known = [path.key for path in program.paths if path.key is not None]
    if program.key_on_disk is not None and len(known) == len(program.paths):
        from accel.backend.disk import together

        together.note_members(program.key_on_disk, trace, known)
