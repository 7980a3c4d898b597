"""Rolling: the loops of a recorded trace, found by their heads, become one operation each. Inner loops come first."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from accel import logs
from accel.ir.loop import Body
from accel.ir.tape import Node
from accel.loops.draft import Assumed, Draft
from accel.loops.rounds import NoLoop, Round, body_of, compared
from accel.record import Trace
from accel.record.loops.heads import Head, Run
from accel.record.outputs import Outputs
from accel.rules import core

LEAST_HEADS = 3
"""From so many heads on rounds can be compared: these are the beginnings of two rounds, and the end of the second."""

BEGINNINGS = 12
"""Rounds that are tried as the first whose state repeats. Each try compares the operations of two rounds."""

LIMITS = (1 << 12, 1 << 16, 1 << 20)
"""A loop ends after so many rounds, at the latest: the smallest number that is `MARGIN` times those recorded. Few
different ones, since the limit is a part of what is compiled."""

MARGIN = 16


class Segment(NamedTuple):
    """Heads of one passage through a loop: all but the last stay in it."""

    run: Run
    heads: Sequence[Head]


def rolled(trace: Trace) -> Trace:
    """The trace with its loops by data as one operation each."""
    runs = trace.runs
    trace.runs = []
    segments = [segment for run in runs for segment in _segments(run)]
    if not segments:
        return trace
    draft = Draft(trace.tape)
    rolling = _Rolling(draft, trace.outputs, runs)
    # inner loops are shorter than the rounds of outer ones
    for segment in sorted(segments, key=lambda each: each.heads[-1].nodes - each.heads[0].nodes):
        rolling.roll(segment)
    if not rolling.loops:
        return trace
    tape, former = draft.tape()
    return dataclasses.replace(trace, tape=tape, outputs=_with_nodes(trace.outputs, former))


def _segments(run: Run) -> Iterator[Segment]:
    """Heads that were answered alike, up to the first that was not."""
    heads, start = run.heads, 0
    for place in range(1, len(heads)):
        if heads[place].truth != heads[start].truth:
            if place - start + 1 >= LEAST_HEADS:
                yield Segment(run, heads[start : place + 1])
            start = place  # it may begin another passage, or it may not: then its state does not repeat


def _with_nodes(outputs: Outputs, former: dict[int, Node]) -> Outputs:
    """The outputs on the new tape."""
    return dataclasses.replace(
        outputs,
        arrays=[former[node.index] for node in outputs.arrays],
        numbers=[former[node.index] for node in outputs.numbers],
        changed=[(slot, former[node.index]) for slot, node in outputs.changed],
        state=[(slot, former[node.index]) for slot, node in outputs.state],
    )


class _Rolling:
    """Replaces the rounds of loops on a draft. loops: how many it has replaced."""

    def __init__(self, draft: Draft, outputs: Outputs, runs: Sequence[Run]) -> None:
        self.loops = 0
        self._draft = draft
        self._heads = sorted((head for run in runs for head in run.heads), key=lambda head: head.nodes)
        nodes = [*outputs.arrays, *outputs.numbers, *(node for _, node in (*outputs.changed, *outputs.state))]
        self._results = [node.index for node in nodes]

    def roll(self, segment: Segment) -> None:
        """Replace the rounds of one passage, from the first on whose state repeats, if there is one."""
        run, heads = segment
        why = ""
        for first in range(min(len(heads) - LEAST_HEADS + 1, BEGINNINGS)):
            try:
                rest = heads[first:]
                rounds = [compared(self._draft, run, *rest[at : at + 3]) for at in range(len(rest) - 2)]
                self._replace(run, rest, rounds)
                return
            except NoLoop as reason:
                why = str(reason)
        logs.LOGGER.debug("line %d: the loop's rounds stay a path for each number of them: %s", run.where[1], why)

    def _replace(self, run: Run, heads: Sequence[Head], rounds: list[Round]) -> None:
        draft, first, last = self._draft, heads[0], heads[-1]
        found = rounds[0]
        limit = next((each for each in LIMITS if each >= MARGIN * len(heads)), LIMITS[-1])
        limit = limit if found.most is None else min(limit, found.most)
        same = body_of(draft, found, (), first.truth, limit)
        for each in rounds[1:]:
            if body_of(draft, each, (), first.truth, limit) != same:
                raise NoLoop("rounds do not go on alike")
        last_round = draft.between(heads[-2].nodes, last.nodes)
        ended = _ended(rounds, last_round)
        used, wanted = self._used(first, last)
        extras = [place for place, number in enumerate(last_round) if number in used and number not in ended]
        gone = set(draft.between(first.nodes, last.nodes))
        if not gone & wanted <= {*ended, *last_round}:
            raise NoLoop("a value of a round is used after the loop")
        body = body_of(draft, found, [found.operations[place] for place in extras], first.truth, limit)
        *entry, loop = self._loop(run, first, found, body)
        values = [*found.moving, *(found.operations[place] for place in extras)]
        after = [*ended, *(last_round[place] for place in extras)]
        picks = {
            number: self._pick(loop, at, draft.nodes[values[at]])
            for at, number in enumerate(after)
            if number in used
        }
        held = self._truth(core.PICK, (loop, len(values)), loop)
        draft.replace(
            first.nodes,
            last.nodes,
            [*entry, loop, *picks.values(), held],
            {number: node.index for number, node in picks.items()},
        )
        stays = first.outcomes if extras else first.outcomes - 1
        draft.outcomes[stays : last.outcomes] = [None] * (last.outcomes - stays)
        draft.outcomes[last.outcomes - 1] = Assumed(held.index, True, run.where)
        self.loops += 1

    def _used(self, first: Head, last: Head) -> tuple[set[int], set[int]]:
        """What is used after the loop; and of that, what must be there: other states may look at what is not."""
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

    def _loop(self, run: Run, first: Head, found: Round, body: Body) -> list[Node]:
        """The loop, and before it what it takes that is new."""
        draft = self._draft
        asked = draft.outcomes[first.outcomes - 1]
        if asked is None or asked.expected is not first.truth:
            raise NoLoop("the loop's condition is assumed elsewhere")
        number = draft.now(asked.number)
        if number is None:
            raise NoLoop("a value of another loop's rounds is used")
        begin = draft.nodes[number]
        moving = [draft.nodes[each] for each in found.moving]
        fixed = [draft.nodes[each] for each in found.fixed]
        about = {"shape": (), "dtype": None, "scalar": None, "where": run.where, "site": hash(("loop", begin.site))}
        entry = self._entry(first, begin)
        loop = draft.add(core.LOOP, (begin, entry, moving, fixed), {"body": body}, **about)
        return [loop] if entry is None else [entry, loop]

    def _entry(self, first: Head, like: Node) -> Node | None:
        """Whether all holds that the path has assumed before the loop: rounds of another path might have no end."""
        draft = self._draft
        found: dict[int, Any] = {}
        for each in draft.outcomes[: first.outcomes - 1]:
            number = None if each is None else draft.now(each.number)
            if each is not None and number is not None and not draft.nodes[number].host:
                found[number] = each.expected
        if not found:
            return None
        return self._truth(core.AGREE, ([draft.nodes[number] for number in found], tuple(found.values())), like)

    def _truth(self, rule: Any, args: tuple[Any, ...], like: Node) -> Node:
        about = {"shape": (), "dtype": np.dtype(bool), "scalar": np.bool_, "where": like.where}
        return self._draft.add(rule, args, {}, site=hash((rule.name, like.site)), **about)

    def _pick(self, loop: Node, at: int, model: Node) -> Node:
        about = {"shape": model.shape, "dtype": model.dtype, "scalar": model.scalar, "where": loop.where}
        return self._draft.add(core.PICK, (loop, at), {}, site=hash((loop.site, at)), **about)


def _ended(rounds: Sequence[Round], last: Sequence[int]) -> list[int]:
    """What the values that move have become when the loop is left. last: the operations of the last round."""
    ended = list(rounds[0].moving)
    for each in rounds[:-1]:
        ended = [each.moving[number] for number in ended]
    # there is no round after the last to compare it with: it hands on what the one before it did
    before = rounds[-1]
    place = {number: at for at, number in enumerate(before.operations)}
    handed = [before.moving[number] for number in ended]
    return [last[place[number]] if number in place else before.moving[number] for number in handed]
