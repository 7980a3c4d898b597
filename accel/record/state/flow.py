"""Flow: what a function's bytecode says of branches. Where they join again, which variables are read after that.

Exceptions are left out: the handlers of `try` count as unreachable. So a join holds only while no exception has passed
since the branch, and in code that handles some, all variables count as read.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from types import CodeType

from accel.record.state.instructions import ControlFlow, effect

MOST_INSTRUCTIONS = 8000
"""Maximum length of code that is analysed: the sets of instructions would take too long. Guess."""

_ONLY_POP = ("STORE_", "DELETE_", "POP_", "RETURN_", "JUMP_", "LIST_", "SET_", "MAP_", "DICT_", "END_FOR")
_NEUTRAL = frozenset({"NOP", "RESUME", "CACHE", "EXTENDED_ARG", "COPY_FREE_VARS", "MAKE_CELL", "KW_NAMES"})

Stack = tuple[int | None, ...]
"""A frame's evaluation stack, from the bottom. An iterator of a `for` loop is the offset of the instruction
that made it, anything else None."""


class Flow(ControlFlow):
    """The analysis of one code object. Sets of instructions are bit masks."""

    def __init__(self, code: CodeType) -> None:
        super().__init__(code)
        # handlers may read any variable, and are left out
        self.reads_all |= any(each.opname == "PUSH_EXC_INFO" for each in self.instructions)
        self._stacks = self._find_stacks()
        self._always = self._find_always()
        self._live = self.live_variables(self.following)

    # -- where branches join ------------------------------------------------------------------------------------------

    def join(self, offset: int) -> int | None:
        """The offset of the first instruction that runs in any case after the one at `offset`, between two statements.

        There the stack holds nothing but iterators that it held before, untouched. None: the function ends first.
        """
        number = self.positions.get(offset)
        stack = None if number is None else self._stacks[number]
        if number is None or stack is None or not self._always[number]:
            return None
        later = [other for other in _members(self._always[number]) if other != number]
        # of what always runs after it, the nearest is that after which most of the others run
        for other in sorted(later, key=lambda each: -self._always[each].bit_count()):
            found = self._stacks[other]
            if found is not None and _only_iterators(found) and stack[: len(found)] == found:
                return self.instructions[other].offset
        return None

    def _find_stacks(self) -> list[Stack | None]:
        """The stack before each instruction; None where no instruction leads."""
        found: list[Stack | None] = [None] * len(self.instructions)
        found[0] = ()
        waiting = [0]
        while waiting:
            number = waiting.pop()
            before = found[number]
            assert before is not None
            for other in self.following[number]:
                after = self._after(number, before, is_jump=other != number + 1)
                if found[other] is None:
                    found[other] = after
                    waiting.append(other)
                elif found[other] != after:
                    # what differs by the way here is known to neither
                    known = found[other]
                    assert known is not None
                    both = tuple(mine if mine == theirs else None for mine, theirs in zip(known, after, strict=False))
                    if both != known:
                        found[other] = both
                        waiting.append(other)
        return found

    def _after(self, number: int, before: Stack, *, is_jump: bool) -> Stack:
        each = self.instructions[number]
        name, stack = each.opname, list(before)
        if name == "SWAP" and len(stack) >= (each.arg or 0):
            at = -(each.arg or 1)
            stack[-1], stack[at] = stack[at], stack[-1]
            return tuple(stack)
        growth = effect(each, jump=is_jump)
        is_pure = name in _NEUTRAL or name == "FOR_ITER" or name.startswith(_ONLY_POP)
        del stack[max(0, len(stack) + min(growth, 0)) :]
        stack += [None] * growth
        if stack and name == "GET_ITER":
            stack[-1] = each.offset
        elif stack and growth <= 0 and not is_pure:
            stack[-1] = None
        return tuple(stack)

    def _find_always(self) -> list[int]:
        """For each instruction those that run in any case from there on, itself among them (its post-dominators).

        Empty where the function cannot end from there.
        """
        count = len(self.instructions)
        everything = (1 << count) - 1
        found = [1 << number if not self.following[number] else everything for number in range(count)]
        changed = True
        while changed:
            changed = False
            for number in range(count - 1, -1, -1):
                if self.following[number]:
                    always = everything
                    for other in self.following[number]:
                        always &= found[other]
                    always |= 1 << number
                    changed |= always != found[number]
                    found[number] = always
        ending = self._that_end()
        return [always if ending >> number & 1 else 0 for number, always in enumerate(found)]

    def _that_end(self) -> int:
        """The instructions from which the function can end."""
        before: list[list[int]] = [[] for _ in self.instructions]
        for number, others in enumerate(self.following):
            for other in others:
                before[other].append(number)
        waiting = [number for number, others in enumerate(self.following) if not others]
        found = 0
        while waiting:
            number = waiting.pop()
            if not found >> number & 1:
                found |= 1 << number
                waiting += before[number]
        return found

    # -- which variables are read -------------------------------------------------------------------------------------

    def live(self, offset: int, *, after: bool = False) -> frozenset[str]:
        """Names of local variables that may be read at `offset` or later. after: only after that instruction."""
        number = self.positions.get(offset)
        if number is None:
            return frozenset(self.code.co_varnames)
        bits = 0
        for other in self.following[number] if after else [number]:
            bits |= self._live[other]
        return self.names_of(bits)


def _only_iterators(stack: Stack) -> bool:
    return all(type(entry) is int for entry in stack)


def _members(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


@functools.lru_cache(maxsize=512)
def flow_of(code: CodeType) -> Flow | None:
    """The analysis of a code object; None where it is too long."""
    return None if len(code.co_code) // 2 > MOST_INSTRUCTIONS else Flow(code)


def is_loop_head(code: CodeType, offset: int) -> bool:
    """Whether the instruction at `offset` takes the next element of what a `for` loop goes through."""
    return dis.opname[code.co_code[offset]] == "FOR_ITER" if 0 <= offset < len(code.co_code) else False
