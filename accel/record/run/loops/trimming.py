"""Trimming: a loop of thousands of iterations is recorded as one of a few.

An iteration that does what an earlier one did tells nothing new about the loop. Its operations are taken off the tape,
and what recorded code holds is tied to what it held one iteration earlier. So the tape is that of a call in which the
loop makes one iteration less, while the program goes on with its own values. By the same argument by which loops are
rolled at all (accel.compiler.loops), such a call does the same from there on: the state is the same but for recorded
values.

What is left of a `range` is not the same. A loop that ends because its range does would not have ended one iteration
earlier. So such a loop is trimmed only where its iterations would be too many otherwise; and if its range then comes to
an end, the recording breaks.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from accel.ir.tape import SERIAL, Node, Outcome, Storage, Tape
from accel.ir.template import form
from accel.record.run.loops.state import Held, LoopState

if TYPE_CHECKING:
    from accel.record.run.loops.heads import Head, LoopRun
    from accel.record.state.recording import Recording


def difference(run: LoopRun, head: Head, after: LoopState) -> str:
    """Why the state after an iteration that begins at a head is another one than there; empty if it is the same."""
    if head.state is None:
        return run.unknown
    before = head.state
    if before.form != after.form:
        return "something that is not recorded changes from iteration to iteration"
    for was, now in zip(before.made, after.made, strict=True):
        # what changes must be of this call: otherwise the caller would have it in one iteration, and not in another
        is_own = min(was, now) > run.began and (now > head.serial or now in before.made)
        if was != now and not is_own:
            return "it is not the same memory in each iteration"
    if any(was - now not in (0, 1) for was, now in zip(before.counts, after.counts, strict=True)):
        return "a range gives several elements in an iteration"
    return ""


def do_the_same(one: Node, other: Node) -> bool:
    """Whether two operations do the same, with other values."""
    return one.rule is other.rule and kind_of(one) == kind_of(other) and statics(one) == statics(other)


def kind_of(node: Node) -> Hashable:
    return node.shape, node.dtype, node.scalar, node.host


def statics(node: Node) -> Hashable:
    """A key of an operation's arguments but for its values."""
    found: Hashable = form((node.args, node.kwargs), _leaf, (Node, np.ndarray))
    return found


def _leaf(leaf: object) -> Hashable:
    return (str(leaf.dtype), leaf.shape, leaf.tobytes()) if isinstance(leaf, np.ndarray) else None


KEPT = 12
"""Minimum number of heads of a passage that stay: enough for loops whose first iterations differ. Guess."""

LATE = 2048
"""Number of outcomes in a recording from which loops over ranges are trimmed, too. Guess."""

MOST_MODELS = 8
"""Maximum kinds of iterations that are told apart: more are hardly ever proved to be a loop. Guess."""

_RANGE_ENDED = "a loop whose condition depends on arrays' values made all iterations of its range: too many"


def trimmed(recording: Recording, run: LoopRun, state: LoopState | None, held: Held) -> bool:
    """Take the iteration that has just ended off the tape, if it is one that was there. Returns whether it was.

    state, held: at its end, a head at which the loop goes on.
    """
    heads, tape = run.heads, recording.writer.tape
    if len(heads) == run.passage or recording.display.texts.are_made:
        return False
    before = heads[-1]
    if before.state is None or state is None or before.state.form != state.form:
        return False
    steps = _steps(before.state, state)
    if any(steps) and len(tape.outcomes) < LATE:
        return False
    ends = replace(before, nodes=len(tape.nodes), outcomes=len(tape.outcomes), state=state)
    if not any(_does_the_same(tape, (heads[at], heads[at + 1]), (before, ends)) for at in run.models):
        if len(run.models) < MOST_MODELS:
            run.models.append(len(heads) - 1)
        return False
    if len(heads) - run.passage < KEPT or not before.is_fresh or difference(run, before, state):
        return False
    if not _can_be_tied(run, before.state, state, held):
        return False
    _tie(before.state, state, held)
    recording.joins.stop()  # they count operations that are gone
    recording.writer.rewind(before.nodes, before.outcomes)
    _forget_inner_heads(recording, before)
    run.dropped += 1
    run.passed = [passed + step for passed, step in zip(run.passed or [0] * len(steps), steps, strict=True)]
    for step, values in zip(steps, held.ranges, strict=True):
        if step:
            values.on_end = functools.partial(recording.break_, "limit.nodes", _RANGE_ENDED)
    heads[-1] = replace(before, state=replace(before.state, made=state.made), serial=next(SERIAL))
    return True


def _tie(before: LoopState, after: LoopState, held: Held) -> None:
    for holder, node, now in zip(held.values, before.nodes, after.nodes, strict=True):
        if now is not node:
            holder.tie(node)


def _steps(before: LoopState, after: LoopState) -> list[int]:
    """Number of elements that each range has given in an iteration."""
    return [was - now for was, now in zip(before.counts, after.counts, strict=True)]


def _forget_inner_heads(recording: Recording, before: Head) -> None:
    """Heads of other loops, inside the iteration: what is left of those is all that they may refer to."""

    for run in recording.heads.runs:
        run.heads[:] = [each for each in run.heads if each.serial <= before.serial and each.nodes <= before.nodes]
        run.passage = min(run.passage, len(run.heads))
        run.models[:] = [at for at in run.models if at + 1 < len(run.heads)]


def _can_be_tied(run: LoopRun, before: LoopState, after: LoopState, held: Held) -> bool:
    """Whether recorded code can hold again the values of one iteration before: nothing else may hold them, too."""
    tied: dict[int, Node] = {}
    for holder, node, now in zip(held.values, before.nodes, after.nodes, strict=True):
        if tied.setdefault(id(holder), node) is not node:
            return False
        if now is not node and not isinstance(holder, Storage) and now.index < run.heads[run.passage].nodes:
            return False  # a number from before the loop: the caller may have it
    return True


def _does_the_same(tape: Tape, model: tuple[Head, Head], other: tuple[Head, Head]) -> bool:
    """Whether one iteration does what another one does, with the values that are there. Each ends as it began in
    form."""
    (start, stop), (begin, end) = model, other
    if start.state is None or stop.state is None or begin.state is None or end.state is None:
        return False
    if start.state.form != begin.state.form:
        return False
    here: dict[int, int] = {}
    for theirs, mine in zip(start.state.nodes, begin.state.nodes, strict=True):
        if here.setdefault(theirs.index, mine.index) != mine.index:
            return False
    theirs_all, mine_all = tape.nodes[start.nodes : stop.nodes], tape.nodes[begin.nodes : end.nodes]
    if len(theirs_all) != len(mine_all):
        return False
    for theirs, mine in zip(theirs_all, mine_all, strict=True):
        if theirs.is_input or not _is_like(theirs, mine, here):
            return False
        here[theirs.index] = mine.index
    if _steps(start.state, stop.state) != _steps(begin.state, end.state):
        return False
    assumed = [_assumed(each, here) for each in tape.outcomes[start.outcomes : stop.outcomes]]
    return assumed == [_assumed(each, {}) for each in tape.outcomes[begin.outcomes : end.outcomes]] and all(
        here.get(theirs.index, theirs.index) == mine.index
        for theirs, mine in zip(stop.state.nodes, end.state.nodes, strict=True)
    )


def _is_like(theirs: Node, mine: Node, here: dict[int, int]) -> bool:
    operands = [here.get(each.index, each.index) for each in theirs.operands()]
    return do_the_same(theirs, mine) and operands == [each.index for each in mine.operands()]


def _assumed(outcome: Outcome, here: dict[int, int]) -> tuple[int, str]:
    index = outcome.node.index
    return here.get(index, index), repr(outcome.expected)
