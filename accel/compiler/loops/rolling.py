"""Rolling: the loops of a recorded trace, found by their heads, become one operation each. Inner loops come first."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from accel.compiler.loops.bodies import Bodies
from accel.compiler.loops.draft import Assumed, Draft
from accel.compiler.loops.iterations import NoLoop, Passage, kinds_of, require
from accel.compiler.lower.program import refilled, with_values
from accel.ir.loop import LoopBody
from accel.ir.tape import Node, needed_by, nodes_in
from accel.platform import interrupts, logs
from accel.record import Trace
from accel.record.run.loops.heads import Head, LoopRun
from accel.rules import core

BEGINNINGS = 6
"""Iterations that are tried as the first whose state repeats."""

LIMITS = (1 << 12, 1 << 16, 1 << 20)
"""Maximum number of iterations after which a loop ends: the smallest that is `MARGIN` times those recorded. Only a few
values, as the limit is a part of what is compiled."""

MARGIN = 16

_BOUND_ONCE = frozenset({"arg", "kwarg", "draw"})
"""Kinds of inputs that recorded code cannot read again: it has them in variables."""


class RolledSegment(NamedTuple):
    """Heads of one passage through a loop: all but the last are followed by another one."""

    run: LoopRun
    heads: Sequence[Head]


def rolled(trace: Trace) -> Trace:
    """The trace with its loops by data as one operation each. A fault of ours leaves it as it is."""
    runs, trace.runs = trace.runs, []
    try:
        return _rolled(trace, runs)
    except Exception as error:
        interrupts.pass_on(error)
        logs.LOGGER.warning("loops stay a path for each number of iterations: %s: %s", type(error).__name__, error)
        return trace


def _rolled(trace: Trace, runs: Sequence[LoopRun]) -> Trace:
    segments = [segment for run in runs for segment in _segments(run)]
    if not segments:
        return trace
    entries = trace.inputs.entries()
    draft = Draft(trace.tape, frozenset(slot for key, slot in entries if key[0] not in _BOUND_ONCE))
    rolling = _Rolling(draft, trace, runs)
    # inner loops are shorter than the iterations of outer ones
    for segment in sorted(segments, key=lambda each: each.heads[-1].nodes - each.heads[0].nodes):
        rolling.roll(segment)
    if not rolling.loops:
        return trace
    rolling.guard()
    tape, former = draft.tape()

    def now(node: Node) -> Node:
        return former[node.index]

    draws = [refilled(draw, now) for draw in trace.draws]
    if any(node.rule is core.LOOP for node in needed_by(nodes_in([(each.args, each.kwargs) for each in draws]))):
        logs.LOGGER.debug("loops stay a path for each number of iterations: what is drawn depends on what they compute")
        return trace
    # states at joins name operations that are gone
    outputs = dataclasses.replace(trace.outputs, **with_values(trace.outputs, now))
    return dataclasses.replace(trace, tape=tape, outputs=outputs, draws=draws, joins=[])


def _segments(run: LoopRun) -> Iterator[RolledSegment]:
    """Heads at which the loop went on, up to the one at which it was left, or after which its range came to an end."""
    heads, start = run.heads, 0
    for place, head in enumerate(heads):
        if head.is_last:
            if place > start:
                yield RolledSegment(run, heads[start : place + 1])
            start = place + 1


class _Rolling:
    """Replaces the iterations of loops on a draft.

    loops: those that it has made, by number, each with how many outcomes the path had before it.
    """

    def __init__(self, draft: Draft, trace: Trace, runs: Sequence[LoopRun]) -> None:
        self.loops: dict[int, int] = {}
        self._draft = draft
        self._heads = sorted((head for run in runs for head in run.heads), key=lambda head: head.nodes)
        outputs, drawn = trace.outputs, nodes_in([(draw.args, draw.kwargs) for draw in trace.draws])
        nodes = [*outputs.arrays, *outputs.numbers, *(node for _, node in (*outputs.changed, *outputs.state)), *drawn]
        self._results = [node.index for node in nodes]

    def roll(self, segment: RolledSegment) -> None:
        """Replace the iterations of one passage, from the first on whose state repeats, if there is one."""
        run, heads = segment
        why = ""
        for first in range(min(len(heads) - 1, BEGINNINGS)):
            try:
                passage = Passage(self._draft, run, heads[first:])
                self._replace(passage)
                return
            except NoLoop as reason:
                why = str(reason)
        logs.LOGGER.debug("line %d: the loop's iterations stay a path for each number of them: %s", run.where[1], why)

    def _replace(self, passage: Passage) -> None:
        draft, heads = self._draft, passage.heads
        first, last = heads[0], heads[-1]
        bodies = Bodies(passage, kinds_of(passage))
        room = last.outcomes - first.outcomes - len(bodies.on_host)
        require(room > last.ran_out, "too few iterations to tell how it ended")
        ended = [column[-1] for column in passage.moving]
        used, wanted = self._used(last)
        gone = set(draft.between(first.nodes, last.nodes))
        entered = [draft.nodes[number] for number in sorted(gone) if draft.nodes[number].is_input]
        gone.difference_update(node.index for node in entered)
        require(gone & wanted <= {*ended, *bodies.in_place}, "a value of an iteration is used after the loop")
        require(set(ended) <= gone, "a value that changes is one from before the loop in the end")
        require(len(set(ended)) == len(ended), "two values that change are one in the end")
        loop = self._loop(passage, bodies.fixed, bodies.body(first.truth, _limit(passage)))
        picks = {number: self._pick(loop, at, draft.nodes[number]) for at, number in enumerate(ended) if number in used}
        held = self._truth(core.PICK, (loop, len(ended)), loop)
        in_place = {number: node.index for number, node in picks.items()} | {
            number: made for number, made in bodies.in_place.items() if number in used and number not in picks
        }
        ended_by = [Assumed(held.index, not last.ran_out, passage.run.where)]
        truths = [held]
        if last.ran_out:  # that the condition has not ended it may also be an iteration of an unrecorded kind
            truths.append(self._truth(core.PICK, (loop, len(ended) + 1), loop))
            ended_by.append(Assumed(truths[-1].index, True, passage.run.where))
        draft.replace(first.nodes, last.nodes, [*entered, *bodies.hoisted, loop, *picks.values(), *truths], in_place)
        # that the loop is entered stays an outcome: it tells such paths from those that leave the loop here
        draft.outcomes[first.outcomes : last.outcomes] = [None] * (last.outcomes - first.outcomes)
        draft.outcomes[last.outcomes - len(ended_by) : last.outcomes] = ended_by
        for place, each in enumerate(bodies.on_host, first.outcomes):
            draft.outcomes[place] = each
        self.loops[loop.index] = first.outcomes

    def _used(self, last: Head) -> tuple[set[int], set[int]]:
        """Return the values used after the loop, and those of them that must exist: other states may look at missing
        ones."""
        draft = self._draft
        wanted: set[int | None] = set()
        for number in draft.since(last.nodes):
            wanted.update(draft.operands(number))
        wanted.update(draft.now(each.number) for each in draft.outcomes[last.outcomes :] if each is not None)
        wanted.update(draft.now(number) for number in self._results)
        seen = set(wanted)
        for head in self._heads:
            if head.nodes > last.nodes and head.state is not None:
                seen.update(draft.now(node.index) for node in head.state.nodes)
        return {number for number in seen if number is not None}, {each for each in wanted if each is not None}

    def _loop(self, passage: Passage, fixed: Sequence[int], body: LoopBody) -> Node:
        draft, first, where = self._draft, passage.heads[0], passage.run.where
        asked = draft.outcomes[first.outcomes - 1]
        number = None if asked is None else draft.now(asked.number)
        if asked is None or number is None or asked.expected is not first.truth:
            raise NoLoop("the loop's condition is assumed elsewhere")
        begin = draft.nodes[number]
        moving = [draft.nodes[column[0]] for column in passage.moving]
        about = {"shape": (), "dtype": None, "scalar": None, "where": where, "site": hash(("loop", begin.site))}
        return draft.add(
            core.LOOP, (begin, None, moving, [draft.nodes[each] for each in fixed]), {"body": body}, **about
        )

    def guard(self) -> None:
        """Let loops be entered only if all holds that the path has assumed before: else one may have no end."""
        draft = self._draft
        for number in draft.since(0):
            before = self.loops.get(number)
            if before is None:
                continue
            found: dict[int, Any] = {}
            for each in draft.outcomes[:before]:
                known = None if each is None else draft.now(each.number)
                if each is not None and known is not None and not draft.nodes[known].host:
                    found[known] = each.expected
            if found:
                given = [draft.nodes[known] for known in found], tuple(found.values())
                draft.guard(number, self._truth(core.AGREE, given, draft.nodes[number]))

    def _truth(self, rule: Any, args: tuple[Any, ...], like: Node) -> Node:
        about = {"shape": (), "dtype": np.dtype(bool), "scalar": np.bool_, "where": like.where}
        return self._draft.add(rule, args, {}, site=hash((rule.name, like.site)), **about)

    def _pick(self, loop: Node, at: int, model: Node) -> Node:
        about = {"shape": model.shape, "dtype": model.dtype, "scalar": model.scalar, "where": loop.where}
        return self._draft.add(core.PICK, (loop, at), {}, site=hash((loop.site, at)), **about)


def _limit(passage: Passage) -> int:
    """The most iterations that the loop may have."""
    iterations = len(passage.heads) + passage.run.dropped
    limit = next((each for each in LIMITS if each >= MARGIN * iterations), LIMITS[-1])
    return limit if passage.most is None else min(limit, passage.most)
