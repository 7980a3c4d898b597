"""A module: one function that runs the stages of a graph in order, on pointers to arrays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accel.kernels import indexing, machine_code, reductions
from accel.kernels.graph import CALLS, HALO, HALOED, INPUT, SCATTER, Graph, KernelNode, strides_of
from accel.kernels.memory import Location
from accel.kernels.nest import LoopNest
from accel.kernels.plan import NestStage, planned

ENTRY = "run"
"""Name of the function. It takes the address of a pointer table: inputs, outputs, and `Module.room` bytes of memory."""

_ALIGNED = 64

_SLACK = 64
"""Number of spare elements behind a stored value."""

_MOST_LANES = 16
"""Maximum vector lanes for small elements. Guess."""


@dataclass(frozen=True, slots=True)
class Module:
    """A compiled graph. text: LLVM IR. room: bytes of scratch memory that a run needs."""

    text: str
    room: int


def module_of(graph: Graph, inputs: Sequence[KernelNode], outputs: Sequence[KernelNode]) -> Module:
    """Return the module that computes these outputs."""
    # an input that is given back, and a value that is asked for twice, are copied
    wanted = [_own(graph, node) for node in outputs]
    stages = planned(graph, [each for each in wanted if each.size])
    return _Writer(inputs, wanted, stages).module()


def _own(graph: Graph, node: KernelNode) -> KernelNode:
    return graph.make("copy", (node,), node.shape, node.dtype) if node.op in (INPUT, HALOED) else node


class _Writer:
    def __init__(
        self, inputs: Sequence[KernelNode], outputs: Sequence[KernelNode], stages: Sequence[NestStage]
    ) -> None:
        self._stages = stages
        self._places: dict[int, Location] = {
            node.index: Location(n, strides_of(node.shape)) for n, node in enumerate(inputs)
        }
        self._results: dict[int, list[Location]] = defaultdict(list)
        self._room: dict[int, int] = {}  # offsets of own memory, by number of the pointer
        self._count = len(inputs)
        for node in outputs:
            self._results[node.index].append(Location(self._count, strides_of(node.shape)))
            self._count += 1
        self._last = self._count
        self._size = self._allocated()
        self._places.update({index: places[0] for index, places in self._results.items()})

    def module(self) -> Module:
        functions: dict[str, str] = {}
        declared: set[str] = {reductions.DECLARED}
        calls = []
        for number, stage in enumerate(self._stages):
            if stage.stored[0].op in CALLS:
                calls += self._call(stage.stored[0], functions)
                continue
            lanes = min(machine_code.lanes(max(node.dtype.itemsize for node in stage.stored)), _MOST_LANES)
            nest = LoopNest(f"nest{number}", stage, self._places, self._results, lanes)
            text, pointers = nest.text()
            functions[f"nest{number}"] = text
            functions.update(nest.functions)
            declared |= nest.declared
            calls.append(f"call void @nest{number}({', '.join(f'ptr %p{each}' for each in pointers)})")
        text = "\n".join(
            [
                *sorted(declared),
                *functions.values(),
                f"define void @{ENTRY}(ptr %table) {{",
                *self._pointers(),
                *calls,
                "ret void",
                "}",
                'attributes #0 = { noinline nounwind "prefer-vector-width"="512" }',
            ]
        )
        return Module(text, self._size)

    def _call(self, node: KernelNode, functions: dict[str, str]) -> list[str]:
        about = indexing if node.op == SCATTER else reductions
        name, functions[name] = about.function_of(node)
        sources = ", ".join(f"ptr %p{self._places[each.index].number}" for each in node.operands)
        counts = ", ".join(f"i64 {each}" for each in about.lengths_of(node))
        return [f"call void @{name}({sources}, ptr %p{place.number}, {counts})" for place in self._results[node.index]]

    def _pointers(self) -> list[str]:
        lines = []
        for number in range(self._last + 1):
            lines.append(f"%t{number} = getelementptr ptr, ptr %table, i64 {number}")
            lines.append(f"%{'room' if number == self._last else f'p{number}'} = load ptr, ptr %t{number}")
        lines += [f"%p{number} = getelementptr i8, ptr %room, i64 {offset}" for number, offset in self._room.items()]
        return lines

    def _allocated(self) -> int:
        """Allocate scratch memory for each stored value that is no output. Returns its total size in bytes."""
        last_read = self._last_reads()
        free: list[tuple[int, int]] = []  # size, offset
        ends: dict[int, list[tuple[int, int]]] = defaultdict(list)
        size = 0
        for number, stage in enumerate(self._stages):
            for node in stage.stored:
                if node.index in self._results:
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
                self._count += 1
                self._room[self._count] = offset
                self._results[node.index].append(Location(self._count, strides, HALO if row else 0))
                ends[last_read.get(node.index, number)].append((bytes_needed, offset))
            free += ends.pop(number, [])
        return size

    def _last_reads(self) -> Mapping[int, int]:
        """Return, by value, the number of the last stage that reads it."""
        return {index: number for number, stage in enumerate(self._stages) for index in stage.reads}
