"""Certificates: where one recording may go on as another did, because the program held the same there.

At two joins of the same *class* everything that the program holds is the same except recorded values. The frames are at
the same instructions, and variables and containers have the same form, with the same texts, flags and counts. Hidden
state (see accel.record.state.joins) is the same, too: it follows from an earlier join of one class and from equal
outcomes since.

So a call that came to the one join, as one recording says, might go on as the other recording says. It then has its own
values in the place of the other's: `substitution` gives these. The relation is not symmetric. The other recording must
have told apart what is different here, and must have written what is written here. It must not depend on whether two
arrays are one.

What a recording did after a join is a function of the state and of the outcomes since: it was recorded so. Guards of
both recordings have to hold.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from accel.ir.tape import Node, Tape
from accel.ir.template import form, leaves
from accel.merge.alignment import static_form
from accel.record import Trace
from accel.record.state.inputs import Inputs
from accel.record.state.joins import ConstantKey, Entered, Inherited, Join, Memory, NumberSymbol, View
from accel.record.state.leaves import FromSlot, all_leaves


class Substitution(NamedTuple):
    """Substitution, at a join, for the values of the recording that goes on.

    values: by index of its node, the node of the recording before, or the merged slot of an input. memories: its
    arrays, each with the number of the one before. doubtful: numbers of its arrays that are shared with others, or are
    the program's own, in only one of both recordings. With each, the merged slot that holds it here, if any.
    """

    values: dict[int, Node | int]
    memories: list[tuple[Memory, int]]
    doubtful: dict[int, int | None]


_LEAVES = (NumberSymbol, View, Entered, ConstantKey)


class Classes:
    """The classes of joins of some recordings, as numbers. slots: of each recording, the merged slots of its own."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of(self, trace: Trace, slots: Sequence[int]) -> list[int]:
        """The class of each join of a recording."""
        found: list[int] = []
        constants: dict[int, Hashable] = {}

        def leaf(each: Any) -> Hashable:
            if isinstance(each, NumberSymbol):
                return "value", *_form(each.node), self._constant(each.node, constants)
            if isinstance(each, View):
                memory = state.memories[each.memory]
                return "view", each.chain, memory.layout, self._constant(memory.version, constants)
            return ("slot", slots[each.slot]) if isinstance(each, Entered) else each.key

        for join in trace.joins:
            state = join.state
            written = [(slots[owner], name, form(value, leaf, _LEAVES)) for owner, name, value in state.written]
            hidden = None if join.hidden is None else self._hidden(trace, join.hidden, found)
            key = join.point, form(state.template, leaf, _LEAVES), tuple(written), hidden
            found.append(self._numbers.setdefault(key, len(self._numbers)))
        return found

    def _hidden(self, trace: Trace, hidden: Inherited, found: list[int]) -> Hashable:
        """Return a key of the hidden values at a join: of the earlier join, and of the assumptions since."""
        start = trace.joins[hidden.join] if hidden.join >= 0 else None
        outcomes = trace.tape.outcomes[start.outcomes if start else 0 : hidden.outcomes]
        reused = trace.reused[start.reused if start else 0 : hidden.reused]
        expected = expected_of(trace.tape)
        assumed = [(outcome.where, outcome.node.site, repr(outcome.expected)) for outcome in outcomes]
        again = [(node.site, repr(expected[node.index])) for node in reused]
        return found[hidden.join] if start else -1, tuple(assumed), tuple(again)

    def _constant(self, node: Node, known: dict[int, Hashable]) -> Hashable:
        """Return the value that a node computes from literals alone, as a number; None if it depends on inputs."""
        if not node.constant:
            return None
        if node.index not in known:

            def operand(each: Node) -> Hashable:
                return self._constant(each, known)

            key = id(node.rule), static_form(node.args, operand), static_form(node.kwargs, operand), *_form(node)
            known[node.index] = self._numbers.setdefault(key, len(self._numbers))
        return known[node.index]


def likeness(join: Join) -> Hashable:
    """Equal for joins at one place where the program holds recorded values of the same forms; texts may differ."""
    return join.point, tuple(_form(node) for node, _ in values_at(join))


def _form(node: Node) -> tuple[Hashable, ...]:
    return node.shape, node.dtype, node.scalar


def expected_of(tape: Tape) -> dict[int, Any]:
    """Return a recording's assumptions, by index of the node."""
    return {outcome.node.index: outcome.expected for outcome in tape.outcomes}


def values_at(join: Join) -> list[tuple[Node, Memory | None]]:
    """The nodes of what a state holds, of arrays with the memory. Their order is that of the class."""
    found: list[tuple[Node, Memory | None]] = []
    for each in leaves((join.state.template, [value for _, _, value in join.state.written]), (*_LEAVES,)):
        if isinstance(each, NumberSymbol):
            found.append((each.node, None))
        elif isinstance(each, View):
            memory = join.state.memories[each.memory]
            found.append((memory.version, memory))
    return found


class Recorded:
    """Data of one recording that certificates need. slots: the merged slots of its own.

    changed, arrays: merged slots of the arrays from outside that it writes to, and of all that it reads.
    """

    def __init__(self, trace: Trace, slots: Sequence[int]) -> None:
        self.tape, self.joins = trace.tape, trace.joins
        self.slots = slots
        aliases = {slot for pair in trace.aliases for slot in pair}
        inputs = trace.inputs.slots
        # an argument is read once; under another name, if it has one, it is an alias
        self._arguments = {
            position
            for position, slot in enumerate(inputs, Inputs.ROOTS)
            if slot.fetch.parent is not None and slot.fetch.parent < Inputs.ROOTS and position not in aliases
        }
        outputs = trace.outputs
        self.changed = {slots[slot] for slot, _ in outputs.changed}
        self.arrays = {slots[slot] for slot in trace.array_slots}
        self._computed = {node.index for node in outputs.arrays} | {node.index for _, node in outputs.changed}
        self._handed_on = {slot for slot, _ in outputs.changed}
        values = [template for write in outputs.writes for _, template in write.values()]
        for template in (outputs.result, *values):
            self._handed_on.update(leaf.slot for leaf in all_leaves(template) if isinstance(leaf, FromSlot))

    def may_be_read_again(self, node: Node) -> bool:
        """Whether a node is an input that the program can reach under its own name at any time."""
        return node.is_input and node.args[0] not in self._arguments

    def origin(self, memory: Memory) -> int | None:
        """The merged slot of an array from outside."""
        return None if memory.origin is None else self.slots[memory.origin]

    def leaves_alone(self, memory: Memory, origin: int | None) -> bool:
        """Whether an array might as well be another one, which is in a merged slot if `origin` is one.

        So it is while nothing is written to either of them, and it is no part of what the call returns or leaves.
        """
        return not memory.rewritten and not self.hands_on(memory) and origin not in self.changed

    def hands_on(self, memory: Memory) -> bool:
        """Whether an array is a part of what the call returns or leaves."""
        return memory.version.index in self._computed or memory.origin in self._handed_on


class Alone(Recorded):
    """A tape by itself, without joins: that of a loop's iteration."""

    def __init__(self, tape: Tape, slots: Sequence[int]) -> None:
        self.tape, self.joins, self.slots = tape, [], slots

    def may_be_read_again(self, node: Node) -> bool:
        return False


def substitution(before: Recorded, join: Join, after: Recorded, other: Join) -> Substitution | None:
    """Return the substitution for recording `after` if a call goes on as it did from `other`.

    The call has come to `join` as recording `before` did. None if it may not go on so. Both joins are of one class.
    """
    found: dict[int, Node | int] = {}
    memories: dict[int, tuple[Memory, Memory]] = {}
    for (here, memory), (there, other_memory) in zip(values_at(join), values_at(other), strict=True):
        if memory is not None and other_memory is not None:
            known = memories.setdefault(id(other_memory), (other_memory, memory))
            if known[1] is not memory:
                return None  # one array there, two here
        if not _fits(before, here, after, there) or found.setdefault(there.index, here) is not here:
            return None
    pairs = list(memories.values())
    doubtful = _doubtful(before, after, pairs)
    if doubtful is None or not _same_writes(before, join, after, other, found):
        return None
    return Substitution(found, [(there, here.number) for there, here in pairs], doubtful)


def _fits(before: Recorded, here: Node, after: Recorded, there: Node) -> bool:
    if there.host and not here.host:
        return False
    if after.may_be_read_again(there):
        return here.is_input and before.slots[here.args[0]] == after.slots[there.args[0]]
    return True


def _doubtful(before: Recorded, after: Recorded, pairs: list[tuple[Memory, Memory]]) -> dict[int, int | None] | None:
    """Return the arrays that are shared with others, or are the program's own, in only one of both recordings.

    See `Substitution`. None where that makes a difference to what comes after.
    """
    found: dict[int, int | None] = {}
    stood_for: dict[int, list[Memory]] = {}
    for there, here in pairs:
        stood_for.setdefault(id(here), []).append(there)
    for there, here in pairs:
        alike, origin = stood_for[id(here)], before.origin(here)
        is_relabelled = origin != after.origin(there)
        if not is_relabelled and len(alike) == 1:
            continue
        found[there.number] = origin
        if is_relabelled and not after.leaves_alone(there, origin):
            return None
        if there.rewritten or sum(map(after.hands_on, alike)) > 1:
            return None
    return found


def _same_writes(before: Recorded, join: Join, after: Recorded, other: Join, found: dict[int, Node | int]) -> bool:
    """Whether each array written to here counts as written to there, so that the call stores it in the end."""
    here = {before.origin(each): each for each in join.state.memories if each.origin is not None}
    there = {after.origin(each): each for each in other.state.memories if each.origin is not None}
    for origin, memory in here.items():
        if memory.written and not (origin in there and there[origin].written):
            return False
    for origin, memory in there.items():
        if memory.written:
            assert origin is not None
            value: Node | int = here[origin].version if origin in here else origin
            if found.setdefault(memory.version.index, value) is not value:
                return False
    return True
