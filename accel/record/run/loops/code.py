"""Facts about a position in a function, from its bytecode.

A position is *bare* if the stack of values holds nothing there but the iterators of the `for` statements around it.
Then a frame's variables and these iterators are all that the rest of the frame's code depends on.
"""

from __future__ import annotations

import bisect
import dis
import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType

from accel.record.state.instructions import SUSPENDED, ControlFlow, accesses, effect

_ASKING = {"TO_BOOL": 1, "UNARY_NOT": 1, "COMPARE_OP": 1, "CALL": 1}
"""Instructions that ask for a truth before a jump does, and what they leave on the stack. Jumps leave nothing."""


@dataclass(frozen=True, slots=True)
class Position:
    """Facts about an instruction that asks a loop's condition.

    stays: the truth for which the loop goes on; for the other one it is left.
    iterators: for each `for` statement around it, from the outermost, the offset of its `GET_ITER`, and whether control
    may come back here by way of its next element; else it stays in an inner loop.
    live: variables that may still be read.
    counted: variables that the innermost loop sets, and uses in arithmetic and comparisons alone.
    targets: the variables that the `for` statements around it set, with the offset of the `GET_ITER`.
    loops: where the loops around it begin, the innermost first.
    range_at: the offset of the innermost loop's `GET_ITER`; None for a `while`.
    """

    stays: bool
    iterators: tuple[tuple[int, bool], ...]
    live: frozenset[str]
    counted: frozenset[str]
    targets: dict[str, int]
    loops: tuple[int, ...]
    range_at: int | None


class _Code(ControlFlow):
    """One code object: its loops, the depth of its stack, and its handlers."""

    def __init__(self, code: CodeType) -> None:
        super().__init__(code)
        self.offsets = list(self.positions)
        self._handlers = _handlers_of(code)
        self.depths = self._find_depths()
        self._before = self._predecessors()
        self.loops = self._find_loops()
        self._live: list[int] | None = None

    def place(self, offset: int) -> int:
        """The instruction at an offset, or the one whose inline cache that is."""
        return bisect.bisect_right(self.offsets, offset) - 1

    def handlers(self, place: int) -> Iterator[tuple[int, int]]:
        """The handlers of what an instruction may raise, and how deep the stack is there."""
        offset = self.offsets[place]
        for start, end, target, depth in self._handlers:
            if start <= offset < end and target in self.positions:
                yield self.positions[target], depth

    def _find_depths(self) -> list[int | None]:
        """Depth of the stack before each instruction; None for unreachable ones."""
        depths: list[int | None] = [None] * len(self.instructions)
        waiting = [(0, 0)]
        while waiting:
            place, depth = waiting.pop()
            if depths[place] is not None:
                continue
            depths[place] = depth
            target = self.target(place)
            for after in self.following[place]:
                waiting.append((after, depth + effect(self.instructions[place], jump=after == target)))
            waiting.extend(self.handlers(place))
        return depths

    def values_above_iterators(self, place: int) -> int:
        """Number of values on the stack before an instruction, besides the iterators of the `for` loops around it."""
        inside = [first for first, inside in self.loops.items() if place in inside]
        return (self.depths[place] or 0) - sum(self.instructions[first].opname == "FOR_ITER" for first in inside)

    def _predecessors(self) -> list[list[int]]:
        before: list[list[int]] = [[] for _ in self.instructions]
        for place in range(len(self.instructions)):
            if self.depths[place] is not None:
                for after in self.following[place]:
                    before[after].append(place)
        return before

    def _find_loops(self) -> dict[int, frozenset[int]]:
        """The natural loops by their first instruction, the smallest first: what leads to a jump back to that."""
        loops: dict[int, set[int]] = {}
        for place in range(len(self.instructions)):
            first = self.target(place)
            if first is None or first > place or self.depths[place] is None:
                continue
            inside, waiting = loops.setdefault(first, {first}), [place]
            while waiting:
                each = waiting.pop()
                if each not in inside:
                    inside.add(each)
                    waiting += self._before[each]
        return {first: frozenset(inside) for first, inside in sorted(loops.items(), key=lambda each: len(each[1]))}

    def stays(self, place: int) -> bool | None:
        """The truth for which the innermost loop goes on; None where the instruction does not decide that."""
        inside = next((inside for inside in self.loops.values() if place in inside), frozenset())
        truth = True
        while self.instructions[place].opname in _ASKING:
            truth ^= self.instructions[place].opname == "UNARY_NOT"
            place += 1
        name, target = self.instructions[place].opname, self.target(place)
        if target is None or not name.startswith("POP_JUMP") or not name.endswith(("_IF_TRUE", "_IF_FALSE")):
            return None
        goes_on = target in inside
        if goes_on == (place + 1 in inside):
            return None
        return (name.endswith("_IF_TRUE") == goes_on) == truth

    def counted(self, inside: frozenset[int]) -> frozenset[str]:
        """The local variables that some instructions set, and use in arithmetic and comparisons alone."""
        touched = [access for place in inside for access in accesses(self.instructions[place])]
        found = set() if self.reads_all else {name for name, is_read in touched if not is_read}
        for place in inside:
            for name, is_read in accesses(self.instructions[place]):
                if is_read and not self._is_computed_with(place):
                    found.discard(name)
        return frozenset(found)

    def _is_computed_with(self, place: int) -> bool:
        """Whether the loaded value is an operand of arithmetic or a comparison, as far as one line shows."""
        above = 0  # what has been put on the stack since
        for each in range(place + 1, len(self.instructions)):
            instruction = self.instructions[each]
            name, count = instruction.opname, instruction.arg or 0
            if name in ("BINARY_OP", "COMPARE_OP") and above <= 1:
                return True
            taken = _TAKEN.get(name)
            if taken is None and not name.startswith("LOAD_"):
                return False
            if taken is not None and taken(count) > above:
                return False
            above += dis.stack_effect(instruction.opcode, instruction.arg)
        return False

    # -- variables ----------------------------------------------------------------------------------------------------

    def live_after(self, place: int) -> frozenset[str]:
        """The local variables that may be read after an instruction before they are set again."""
        if self._live is None:
            self._live = self.live_variables([self._may_follow(each) for each in range(len(self.instructions))])
        bits = 0
        for each in self._may_follow(place):
            bits |= self._live[each]
        return self.names_of(bits)

    def _may_follow(self, place: int) -> list[int]:
        return [*self.following[place], *(handler for handler, _ in self.handlers(place))]


_TAKEN: dict[str, Callable[[int], int]] = {
    "BINARY_OP": lambda count: 2,
    "COMPARE_OP": lambda count: 2,
    "BINARY_SUBSCR": lambda count: 2,
    "BINARY_SLICE": lambda count: 3,
    "UNARY_NEGATIVE": lambda count: 1,
    "LOAD_ATTR": lambda count: 1,
    "LOAD_METHOD": lambda count: 1,
    "BUILD_TUPLE": lambda count: count,
    "BUILD_LIST": lambda count: count,
    "BUILD_SLICE": lambda count: count,
    "CALL": lambda count: count * (sys.version_info >= (3, 12)) + 2,
    "CALL_KW": lambda count: count + 3,
    "PRECALL": lambda count: count,
    "KW_NAMES": lambda count: 0,
    "PUSH_NULL": lambda count: 0,
    "CACHE": lambda count: 0,
    "NOP": lambda count: 0,
}
"""Values that instructions take from the stack, by their argument. Other loads take nothing."""


def _handlers_of(code: CodeType) -> list[tuple[int, int, int, int]]:
    """Handlers of exceptions: first and last offset covered, offset of the handler, and stack depth there."""
    entries = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    return [(each.start, each.end, each.target, each.depth + 1 + each.lasti) for each in entries]


@functools.lru_cache(maxsize=512)
def _code(code: CodeType) -> _Code:
    return _Code(code)


@functools.lru_cache(maxsize=4096)
def has_loops(code: CodeType) -> bool:
    """Whether any jump in the code leads back."""
    return bool(_code(code).loops)


@functools.lru_cache(maxsize=4096)
def position(code: CodeType, offset: int) -> Position | None:
    """The facts about the instruction at an offset; None where it decides about no loop, or is not bare."""
    if code.co_flags & SUSPENDED:
        return None
    known = _code(code)
    place = known.place(offset)
    stays = known.stays(place)
    if stays is None:
        return None
    around = [first for first, inside in known.loops.items() if place in inside]
    instruction, depth = known.instructions[place], known.depths[place]
    assert depth is not None
    if instruction.opname == "CALL" and called_global(code, offset) != "bool":
        return None  # what a function may do with its arguments, nobody sees: it may ask for several truths
    rest = depth + effect(instruction, jump=False) - _ASKING.get(instruction.opname, 0)
    fors = [first for first in reversed(around) if known.instructions[first].opname == "FOR_ITER"]
    if rest != len(fors):
        return None
    iterators = tuple((known.offsets[first - 1], _escapes(known, place, first)) for first in fors)
    inside = next(inside for inside in known.loops.values() if place in inside)
    targets = {}
    for first in fors:
        stored = known.instructions[first + 1]
        if stored.opname == "STORE_FAST":
            targets[stored.argval] = known.offsets[first - 1]
    range_at = known.offsets[around[0] - 1] if around[0] in fors else None
    live, counted = known.live_after(place), known.counted(inside)
    return Position(stays, iterators, live, counted, targets, tuple(around), range_at)


def _escapes(known: _Code, place: int, first: int) -> bool:
    """Whether control can come back to an instruction by way of a `for` statement's next element.

    Without that, it stays in an inner loop, which nothing but the instruction itself leaves.
    """
    inside = next(inside for inside in known.loops.values() if place in inside)
    if first in inside:
        return True
    jump = place
    while known.instructions[jump].opname in _ASKING:
        jump += 1
    return any(after not in inside for each in inside for after in known.following[each] if each != jump)


@functools.lru_cache(maxsize=4096)
def begins_statement(code: CodeType, offset: int) -> bool:
    """Whether the stack holds no more values at an instruction than where its line begins, but for iterators."""
    return _values_of_line(code, offset) <= 0


@functools.lru_cache(maxsize=4096)
def may_set_parts(code: CodeType, offset: int, newest: bool) -> bool:
    """Whether the rest of a statement may set attributes or items to values made before the instruction.

    newest: whether the newest of them counts.
    """
    if _values_of_line(code, offset) <= (not newest):
        return False
    for each in itertools.islice(_code(code).instructions, _code(code).place(offset), None):
        if each.opname in ("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE"):
            return True
        if begins_statement(code, each.offset):
            return False
    return False


def _values_of_line(code: CodeType, offset: int) -> int:
    """Number of values on the stack before an instruction that its line has put there, but for iterators."""
    known = _code(code)
    place = first = known.place(offset)
    while first and _line(known.instructions[first - 1]) == _line(known.instructions[place]):
        first -= 1
    return known.values_above_iterators(place) - known.values_above_iterators(first)


def _line(instruction: dis.Instruction) -> int | None:
    return instruction.positions.lineno if instruction.positions else None


@functools.lru_cache(maxsize=4096)
def called_global(code: CodeType, offset: int) -> str | None:
    """The name of the global function that the call at an offset calls, if it is called by its name alone."""
    known = _code(code)
    place = known.place(offset)
    if known.instructions[place].opname != "CALL" or known.depths[place] is None:
        return None
    base = known.depths[place] + effect(known.instructions[place], jump=False) - 1  # type: ignore[operator]
    for before in range(place - 1, -1, -1):
        depth = known.depths[before]
        if depth is not None and depth <= base:
            loaded = known.instructions[before]
            is_global = loaded.opname == "LOAD_GLOBAL" or loaded.opname.startswith("PUSH_NULL")
            if loaded.opname.startswith("PUSH_NULL"):
                loaded = known.instructions[before + 1]
                is_global = loaded.opname == "LOAD_GLOBAL"
            return loaded.argval if is_global and depth == base else None
    return None


@functools.lru_cache(maxsize=4096)
def feeds_loop(code: CodeType, offset: int) -> int | None:
    """The offset of the `GET_ITER` of the `for` statement that takes what a call gives, or None."""
    known = _code(code)
    place = known.place(offset)
    following = [each.opname for each in known.instructions[place + 1 : place + 3]]
    return known.offsets[place + 1] if following == ["GET_ITER", "FOR_ITER"] else None
