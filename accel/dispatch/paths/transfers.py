"""Transfers: bytes that a program's launches hand to the device and fetch from it, by field and source line.

Bytes handed over belong to the line that reads the array first, fetched bytes to the line that computes it last. For
`self.u = self.u + du` that is this line in both cases.

They are counted in launches: guards fix every shape, so the bytes of one launch are known before it. On a CPU nothing
is copied; the counts say what a device with a memory of its own would be given.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from accel.compiler.lower import PACKS, LoweredProgram
from accel.compiler.lower.program import Packed
from accel.compiler.lower.written import View, size_of
from accel.compiler.merge import MergedTrace
from accel.dispatch.comparing.snapshot import part_name
from accel.dispatch.replay.variant import Launches, Variant, constant_bytes
from accel.ir.tape import Node
from accel.record import Trace
from accel.record.state.changes import Write
from accel.record.state.leaves import NewArray, all_leaves
from accel.record.state.recording import place_text

NUMBERS, RESULT = "numbers and outcomes", "the result"
"""The names of what is no array, and of what is returned."""


class Transfers:
    """Bytes moved by one program's launches. It holds counts and names, and neither the program nor its trace.

    there: constants on the device that a program before this one has left to it.
    """

    def __init__(self, trace: Trace | MergedTrace, variant: Variant, there: Sequence[Any] = ()) -> None:
        program = variant.executable.program
        self._launches: Launches = variant.launches
        self._taken = _taken(trace, program)
        self._handed = _handed(self._taken, program)
        fetched = _fetched(trace)
        written = program.written
        sizes = [_size(node, written.get(position)) for position, (_, node) in enumerate(fetched)]
        self._fetched = [(name, size) for (name, _), size in zip(fetched, sizes, strict=True)]
        self._lines = _reading_lines(trace, program), {name: place_text(node.where) for name, node in fetched}
        self._each_fetches = _packed(program)
        self._constants = constant_bytes(program.constants, variant.executable.constants, there)

    @property
    def constants(self) -> int:
        """Bytes of constants that were put on the device: once, when the program was loaded, and as they changed."""
        return self._constants + self._launches.renewed

    @property
    def launches(self) -> int:
        return self._launches.count

    def handed(self) -> Counter[str]:
        """Bytes to the device, by field."""
        found = Counter({name: nbytes * self._launches.count for name, nbytes in self._handed.items()})
        for position, times in self._launches.spared.items():
            name, nbytes = self._taken[position]
            found[name] -= times * nbytes
        return found

    def fetched(self) -> Counter[str]:
        """Bytes from the device, by field."""
        found: Counter[str] = Counter()
        for positions, times in self._launches.fetched.items():
            for position in positions:
                name, nbytes = self._fetched[position]
                found[name] += times * nbytes
        found[NUMBERS] += self._each_fetches * self._launches.count
        return found

    def lines(self) -> tuple[dict[str, str], dict[str, str]]:
        """file:line of what asked for each field: to the device, and from it. Numbers and outcomes have none."""
        return self._lines

    def begin_again(self) -> None:
        """Count anew."""
        self._launches.count = self._launches.renewed = 0
        self._launches.fetched.clear()
        self._launches.spared.clear()


def _size(node: Node, views: Sequence[View] | None = None) -> int:
    """Bytes of an array, or of those views of it that a program gives."""
    count = math.prod(node.shape) if views is None else size_of(views, node.shape)
    return count * np.dtype(node.dtype).itemsize


def _taken(trace: Trace | MergedTrace, program: LoweredProgram) -> list[tuple[str, int]]:
    """Name and bytes of each array that the program takes, in order."""
    sizes = {node.args[0]: _size(node) for node in trace.tape.nodes if node.is_input and not node.host}
    return [(trace.inputs.name(slot), sizes[slot]) for slot in program.slots]


def _handed(taken: list[tuple[str, int]], program: LoweredProgram) -> Counter[str]:
    """Bytes that one launch hands over, by field."""
    found: Counter[str] = Counter()
    for name, nbytes in taken:
        found[name] += nbytes
    found[NUMBERS] += sum(len(nodes) * PACKS[pack].itemsize for pack, nodes in program.scalars.items())
    return found


def _packed(program: LoweredProgram) -> int:
    """Bytes of numbers and outcomes that each launch gives, whatever it shows."""
    numbers = {number for number in program.numbers if isinstance(number, Packed)}
    return sum(PACKS[number.pack].itemsize for number in numbers) + PACKS["f"].itemsize * len(program.outcomes)


def _reading_lines(trace: Trace | MergedTrace, program: LoweredProgram) -> dict[str, str]:
    """The line that reads each array first, by field: that of the first operation on it, or where it entered."""
    wanted, places = set(program.slots), {}
    for node in trace.tape.nodes:
        if node.is_input:
            places[node.args[0]] = node.where
            continue
        for operand in node.operands():
            if operand.is_input and operand.args[0] in wanted:
                wanted.discard(operand.args[0])
                places[operand.args[0]] = node.where
    lines: dict[str, str] = {}
    for slot in program.slots:
        lines.setdefault(trace.inputs.name(slot), place_text(places[slot]))
    return lines


def _fetched(trace: Trace | MergedTrace) -> list[tuple[str, Node]]:
    """Name and node of each array that the program gives, new ones before changed ones."""
    names: dict[int, str] = {}
    if isinstance(trace, MergedTrace):
        for member in trace.members:
            own, places = _names(member.trace), member.placement.outputs.arrays
            for index, position in enumerate(places):
                names.setdefault(position, own.get(index, RESULT))
    else:
        names = _names(trace)
    new = [(names.get(position, RESULT), node) for position, node in enumerate(trace.outputs.arrays)]
    return new + [(trace.inputs.name(slot), node) for slot, node in trace.outputs.changed]


def _names(trace: Trace) -> dict[int, str]:
    """Return the use of each new array of a path: the attribute or item that it is stored in, or the result."""
    found: dict[int, str] = {}
    for change in trace.outputs.writes:
        if isinstance(change, Write) and isinstance(change.name, (str, int)):
            name = part_name(trace, change.owner, change.name, is_item=change.is_item)
        else:
            name = trace.inputs.name(change.owner)
        for _, template in change.values():
            _note(found, template, name)
    result = trace.outputs.result
    if isinstance(result, (tuple, list)):
        for position, part in enumerate(result):
            _note(found, part, f"{RESULT}[{position}]")
    else:
        _note(found, result, RESULT)
    return found


def _note(found: dict[int, str], template: Any, name: str) -> None:
    for leaf in all_leaves(template):
        if isinstance(leaf, NewArray):
            found.setdefault(leaf.index, name)
