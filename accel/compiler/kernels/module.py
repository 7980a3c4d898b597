"""A module: one function that runs the stages of a graph in order, on pointers to arrays."""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from accel.compiler.kernels import accumulators, indexing, machine_code, reductions, sharing
from accel.compiler.kernels.graph import (
    CALLS,
    HALO,
    HALOED,
    INPUT,
    PIECES,
    RESHAPE,
    SCATTER,
    VIEW,
    Axis,
    Graph,
    KernelNode,
    strides_of,
)
from accel.compiler.kernels.memory import Location, Pointer
from accel.compiler.kernels.nest import LoopNest
from accel.compiler.kernels.plan import NestStage, planned

ENTRY = "run"
"""Name of the function. It takes the address of a pointer table (inputs, outputs, `Size.room` bytes of memory, and
counters as in accel.compiler.kernels.sharing), the number of the calling thread, and the number of threads that call
it."""

_ALIGNED = 64

_SLACK = 64
"""Number of spare elements behind a stored value."""

_MOST_LANES = 16
"""Maximum vector lanes for small elements. Guess."""


_LOOPS = 'noinline nounwind "prefer-vector-width"="512"'
"""Attributes of functions with loops.

Loop nests have `optnone` as well, which takes a third off LLVM's time. Their code is as fast where a register holds a
vector of all lanes. With two registers of AVX2 for each it is a tenth slower: so only small nests have it there.
"""

_ATTRIBUTES = (
    f"attributes #0 = {{ {_LOOPS} }}",
    "attributes #1 = { noinline nounwind optnone }",
    f"attributes #2 = {{ {_LOOPS} optnone }}",
)


class Size(NamedTuple):
    """room: bytes of scratch memory that a run needs; the first of them becomes 1 if a checked output has NaN or
    infinity. steps: number of functions that are run one after the other. chunks: number of chunks into which these are
    divided, but for those of a single one."""

    room: int
    steps: int
    chunks: int


class Module(NamedTuple):
    """A graph as LLVM IR: texts to compile each by itself.

    reused: inputs and outputs, by their numbers, that may be one array: the module writes to it once it has read it.
    checked: numbers of the outputs that are checked for NaN and infinity.
    """

    units: Sequence[str]
    size: Size
    reused: Sequence[tuple[int, int]]
    checked: Sequence[int]


def module_of(
    graph: Graph, inputs: Sequence[KernelNode], outputs: Sequence[KernelNode], checked: Collection[int] = ()
) -> Module:
    """Return the module that computes these outputs. checked: numbers of those to check for NaN and infinity."""
    # an input that is given back, and a value that is asked for twice, are copied
    wanted = [_own(graph, node) for node in outputs]
    stages = planned(graph, [each for each in wanted if each.size])
    return _Writer(inputs, wanted, stages, checked).module()


def _unshaped(node: KernelNode) -> KernelNode:
    """Return the node whose elements, in the order of C, a node shows in another shape."""
    while node.op == RESHAPE or (node.op == VIEW and _only_adds_axes(node)):
        node = node.operands[0]
    return node


def _only_adds_axes(view: KernelNode) -> bool:
    """Whether a view differs from its source in axes of length 1 alone."""
    source = view.operands[0]
    axes = [axis for axis, length in zip(view.about, source.shape, strict=True) if length != 1]
    own = [Axis(dim, 1, 0) for dim, length in enumerate(view.shape) if length != 1]
    return axes == own and view.size == source.size


def _own(graph: Graph, node: KernelNode) -> KernelNode:
    return graph.make("copy", (node,), node.shape, node.dtype) if node.op in (INPUT, HALOED) else node


@dataclass(slots=True)
class _Step:
    """Calls that one thread makes one after the other; pointers: those that they take."""

    calls: list[str]
    pointers: set[Pointer]
    chunks: int

    def add(self, other: _Step) -> None:
        self.calls += other.calls
        self.pointers |= other.pointers


class _Writer:
    def __init__(
        self,
        inputs: Sequence[KernelNode],
        outputs: Sequence[KernelNode],
        stages: Sequence[NestStage],
        checked: Collection[int],
    ) -> None:
        self._places: dict[int, Location] = {
            node.index: Location(n, strides_of(node.shape)) for n, node in enumerate(inputs)
        }
        self._results: dict[int, list[Location]] = defaultdict(list)
        self._room: dict[int, int] = {}  # offsets of own memory, by number of the pointer
        self._count = len(inputs)
        for node in outputs:
            self._results[node.index].append(Location(self._count, strides_of(node.shape)))
            self._count += 1
        self._inputs, self._last = len(inputs), self._count
        self._stages = self._without_copies(stages)
        self._written = self._written_again()
        self._flag = self._own_memory(0)
        self._room_size = self._allocated()
        self._checked = {
            self._inputs + number for number in checked if outputs[number].dtype.kind == "f"
        } - self._unchecked()
        self._places.update({index: places[0] for index, places in self._results.items()})

    def module(self) -> Module:
        functions: dict[str, str] = {}
        declared: set[str] = {accumulators.DECLARED}
        steps: list[_Step] = []
        read: dict[int, int] = {}  # by number of a pointer, the last stage that is given it
        for number, stage in enumerate(self._stages):
            step = self._call(stage.stored[0], functions)
            if step is None:
                lanes = min(machine_code.lanes(max(node.dtype.itemsize for node in stage.stored)), _MOST_LANES)
                chunks = sharing.chunks_of(stage)
                nest = LoopNest(stage, self._places, self._results, lanes, chunks > 1, self._checked, self._flag)
                name, functions[name], pointers = nest.text()
                self._check(stage, pointers)
                functions.update(nest.emitter.functions)
                declared |= nest.emitter.declared
                given = ", ".join([*map(_given, pointers), "i64 %chunk", "i64 %chunks"])
                step = _Step([f"call void @{name}({given})"], set(pointers), chunks)
            read.update((each.number, number) for each in step.pointers)
            if steps and step.chunks == steps[-1].chunks == 1:
                steps[-1].add(step)
            else:
                steps.append(step)
        entry = [
            *itertools.chain.from_iterable(
                [
                    f"define internal void @step{number}(ptr %table, i64 %chunk, i64 %chunks) #1 {{",
                    *self._pointers(step.pointers),
                    *step.calls,
                    "ret void",
                    "}",
                ]
                for number, step in enumerate(steps)
            ),
            sharing.text(ENTRY, [step.chunks for step in steps], counters=self._last + 1),
        ]
        shared = sum(step.chunks for step in steps if step.chunks > 1)
        units = units_of({**functions, ENTRY: "\n".join(entry)}, declared, _ATTRIBUTES)
        checked = [each - self._inputs for each in sorted(self._checked)]
        return Module(units, Size(self._room_size, len(steps), shared), list(self._reused(read)), checked)

    def _unchecked(self) -> set[int]:
        """Return the numbers of locations that others than the innermost loop of a nest write to."""
        stages = [each for each in self._stages if each.stored[0].op in CALLS or not each.shape]
        return {place.number for each in stages for node in each.stored for place in self._results.get(node.index, ())}

    def _own_memory(self, offset: int) -> int:
        """Return the number of a new pointer to scratch memory."""
        self._count += 1
        self._room[self._count] = offset
        return self._count

    def _reused(self, read: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """Yield inputs that are read for the last time where updates of them are stored in an output."""
        for number, stage in enumerate(self._stages):
            node = stage.stored[0]
            if node.op != SCATTER or node.operands[0].op != INPUT:
                continue
            source, (result, *others) = self._places[node.operands[0].index], self._results[node.index]
            is_once = node.operands[0] not in node.operands[1:] and read[source.number] == number and not others
            if is_once and self._inputs <= result.number < self._last:
                yield source.number, result.number - self._inputs

    def _written_again(self) -> dict[int, int]:
        """Return the stored values to which a scatter writes as their last reader, by the last of such scatters.

        All of these have one memory.
        """
        last_read, found = self._last_reads(), dict[int, int]()
        for number, stage in reversed([*enumerate(self._stages)]):
            node = stage.stored[0]
            if node.op != SCATTER:
                continue
            source, *others = node.operands
            last = found.get(node.index, node.index)
            is_own = source.op not in (INPUT, HALOED) and source.index not in self._results
            is_last_read = last_read.get(source.index) == number and source not in others
            if is_own and is_last_read and len(self._results.get(last, ())) < 2:
                found[source.index] = last
        return found

    def _check(self, stage: NestStage, pointers: Iterable[Pointer]) -> None:
        """Raise RuntimeError if a nest takes own memory for other values than planned: it may hold others by then."""
        planned = {*stage.reads, *(node.index for node in stage.stored)}
        known = {place.number for index in planned for place in self._results.get(index, ())} | {self._flag}
        if self._room.keys() & {each.number for each in pointers} - known:
            raise RuntimeError("a kernel's loop nest reads a value that was not planned")

    def _call(self, node: KernelNode, functions: dict[str, str]) -> _Step | None:
        """Return the step of a value that a function of its own computes; None for others."""
        if node.op not in CALLS:
            return None
        about = indexing if node.op == SCATTER else reductions
        name, functions[name] = about.function_of(node)
        sources = [Pointer(self._places[each.index].number, 0) for each in node.operands]
        results = [Pointer(place.number, 0) for place in self._results[node.index]]
        given = ", ".join(map(_given, sources))
        counts = ", ".join(f"i64 {each}" for each in about.lengths_of(node))
        return _Step(
            [f"call void @{name}({given}, {_given(each)}, {counts})" for each in results], {*sources, *results}, 1
        )

    def _without_copies(self, stages: Sequence[NestStage]) -> list[NestStage]:
        """Let values be computed where they stand in an output that is made of them alone. Returns the stages left."""
        stored = {node.index: node for stage in stages for node in stage.stored}
        # functions of their own take contiguous arrays by their first element
        by_calls = {each.index for node in stored.values() if node.op in CALLS for each in (node, *node.operands)}
        found: set[int] = set()
        for node in stored.values():
            if node.op != PIECES or len(self._results.get(node.index, ())) != 1:
                continue
            parts = [_unshaped(part) for part in node.operands]
            own = [part.index for part in parts if part.index in stored and part.op != HALOED]
            taken = self._results.keys() | by_calls
            dim, ends = node.about
            if len({*own} - taken) == len(parts) and math.prod(node.shape[:dim]) == 1:
                (whole,) = self._results[node.index]
                for part, start in zip(parts, (0, *ends), strict=False):
                    place = Location(whole.number, strides_of(part.shape), start * whole.strides[dim])
                    self._results[part.index].append(place)
                found.add(node.index)
        left = [replace(each, stored=tuple(node for node in each.stored if node.index not in found)) for each in stages]
        return [each for each in left if each.stored]

    def _pointers(self, used: set[Pointer]) -> list[str]:
        """Load addresses from the table, and compute the pointers."""
        # own memory is a part of the room, whose address is the last
        places = {each: (self._last, self._room[each.number]) for each in used if each.number in self._room}
        lines = []
        for number in sorted({places.get(each, each)[0] for each in used}):
            lines.append(f"%t{number} = getelementptr ptr, ptr %table, i64 {number}")
            lines.append(f"%b{number} = load ptr, ptr %t{number}")
        for each in sorted(used):
            base, at = places.get(each, (each.number, 0))
            lines.append(f"{each.name} = getelementptr i8, ptr %b{base}, i64 {at + each.offset}")
        return lines

    def _allocated(self) -> int:
        """Allocate scratch memory for each stored value that is no output. Returns its total size in bytes."""
        last_read = self._last_reads()
        free: list[tuple[int, int]] = []  # size, offset
        ends: dict[int, list[tuple[int, int]]] = defaultdict(list)
        size = _ALIGNED
        for number, stage in enumerate(self._stages):
            for node in stage.stored:
                if node.index in self._results:
                    continue
                last = self._written.get(node.index, node.index)
                if last in self._results:
                    self._results[node.index].append(self._results[last][0])
                    continue
                row = node.shape[-1] + 2 * HALO if node.op == HALOED else 0
                strides = strides_of(node.shape, row)
                count = (strides[0] * node.shape[0] if node.shape else 1) + _SLACK
                bytes_needed = -(-count * node.dtype.itemsize // _ALIGNED) * _ALIGNED
                fitting = [each for each in free if each[0] == bytes_needed]
                if fitting:
                    offset = fitting[-1][1]
                    free.remove(fitting[-1])
                else:
                    offset, size = size, size + bytes_needed
                place = Location(self._own_memory(offset), strides, HALO if row else 0)
                self._results[node.index].append(place)
                ends[last_read.get(last, number)].append((bytes_needed, offset))
                if last != node.index:
                    self._results[last].append(self._results[node.index][0])
            free += ends.pop(number, [])
        return size

    def _last_reads(self) -> Mapping[int, int]:
        """Return, by value, the number of the last stage that reads it."""
        return {index: number for number, stage in enumerate(self._stages) for index in stage.reads}


def _given(pointer: Pointer) -> str:
    return f"ptr {pointer.name}"


# -- units: parts of a module that are compiled each by itself --------------------------------------------------------


_NAMES = re.compile(r"@([\w.]+)")
_LOCAL_NAMES = re.compile(r"( noalias)? %\w+")


def units_of(functions: Mapping[str, str], declared: Iterable[str], attributes: Sequence[str]) -> list[str]:
    """Return a text for each function, with declarations of the others that it calls.

    functions: definitions by name; one may follow others that it alone calls. declared: declarations of intrinsics and
    of the C library's functions.
    """
    known = {name: line for text in declared for line in text.splitlines() for name in _NAMES.findall(line)}
    heads = {name: _head(name, text) for name, text in functions.items()}
    known.update({name: f"declare {_LOCAL_NAMES.sub('', head)}" for name, head in heads.items()})
    return [
        "\n".join(
            [
                *(known[each] for each in sorted({*_NAMES.findall(text)} & known.keys() - {name})),
                text.replace(f"define internal {heads[name]}", f"define {heads[name]}"),
                *attributes,
            ]
        )
        for name, text in functions.items()
    ]


def _head(name: str, text: str) -> str:
    """Return a function's type, name and arguments."""
    found = re.search(rf"^define (?:internal )?(.* @{re.escape(name)}\(.*?\))", text, re.MULTILINE)
    assert found is not None, f"{name} is not defined"
    return found[1]
