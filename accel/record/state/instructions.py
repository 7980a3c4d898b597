"""CPython's instructions: where control goes from one, what it does to the stack, which variables it touches.

What differs between Python versions stands here. Three analyses of bytecode are made of it, one for each question:

state.flow        where the sides of a branch join, for any branch: post-dominators, and what is on the stack there
run.loops.code    what decides whether a loop goes on: natural loops, the variables that count, and those read later
values.text.flow  which calls a text may reach: each value on the stack, by where it comes from

The first two share `ControlFlow`. A join holds while nothing is raised, so handlers are left out there. A loop's state
must hold in `except` too, so handlers are ways there. A text is followed from one instruction only.
"""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Sequence
from types import CodeType

_ENDS = frozenset({"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"})
_ALWAYS_JUMPS = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"})
_OF_CELLS = ("DEREF", "CLOSURE", "CELL", "FREE_VARS", "CLASSDEREF")

_EARLIER_NAMES = {
    "LOAD_FAST_BORROW": "LOAD_FAST",
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": "LOAD_FAST_LOAD_FAST",
    "LOAD_SMALL_INT": "LOAD_CONST",
    "NOT_TAKEN": "NOP",
    "POP_ITER": "POP_TOP",
}
"""Instructions of Python 3.14 that do what an instruction of an earlier version does."""

READ_ALL = frozenset({"locals", "vars", "dir", "eval", "exec", "super", "inspect", "_getframe"})
"""Names of what may read a frame's variables otherwise than by instructions."""


SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
"""Flags of code that is entered again and again: whoever does that decides what it goes on with."""


@functools.lru_cache(maxsize=16)  # several modules look at each code, one after the other
def instructions_of(code: CodeType) -> tuple[dis.Instruction, ...]:
    """Return the instructions of a code object, with the earliest name of each."""
    return tuple(
        each._replace(opname=_EARLIER_NAMES[each.opname]) if each.opname in _EARLIER_NAMES else each
        for each in dis.get_instructions(code)
    )


def jumps(instruction: dis.Instruction) -> bool:
    """Whether control may go to the instruction at the offset that `argval` says."""
    return instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs


def goes_on(instruction: dis.Instruction) -> bool:
    """Whether the next instruction may follow."""
    return instruction.opname not in _ENDS and instruction.opname not in _ALWAYS_JUMPS


def effect(instruction: dis.Instruction, *, jump: bool) -> int:
    """By how many values the stack grows. jump: if control goes where the instruction jumps to."""
    argument = instruction.arg if instruction.opcode >= dis.HAVE_ARGUMENT else None
    return dis.stack_effect(instruction.opcode, argument, jump=jump)


def accesses(instruction: dis.Instruction) -> list[tuple[str, bool]]:
    """The local variables that an instruction reads or sets, in its order, and whether it reads them."""
    name, found = instruction.opname, instruction.argval
    if "FAST" not in name or any(part in name for part in _OF_CELLS):
        return []
    names = found if isinstance(found, tuple) else (found,)
    kinds = [part for part in name.split("_") if part in ("LOAD", "STORE", "DELETE")]
    if len(kinds) != len(names):
        return [(each, True) for each in names]
    return [(each, kind != "STORE") for each, kind in zip(names, kinds, strict=True)]


class ControlFlow:
    """One code object: its instructions by position, and the positions that may follow each, exceptions apart."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.instructions = instructions_of(code)
        self.positions = {each.offset: place for place, each in enumerate(self.instructions)}
        self.following = [self._following(place) for place in range(len(self.instructions))]
        self.reads_all = not READ_ALL.isdisjoint(code.co_names)

    def target(self, place: int) -> int | None:
        """The position that an instruction may jump to."""
        instruction = self.instructions[place]
        return self.positions.get(instruction.argval) if jumps(instruction) else None

    def _following(self, place: int) -> list[int]:
        found = [place + 1] if goes_on(self.instructions[place]) else []
        return [each for each in (*found, self.target(place)) if each is not None and each < len(self.instructions)]

    def live_variables(self, following: Sequence[Sequence[int]]) -> list[int]:
        """For each instruction the local variables that may be read from there on, as bits by `co_varnames`.

        following: positions that may follow each instruction. All variables, where code may read them otherwise.
        """
        bits = {name: 1 << at for at, name in enumerate(self.code.co_varnames)}
        if self.reads_all:
            return [sum(bits.values())] * len(self.instructions)
        touched = [[(bits.get(name, 0), is_read) for name, is_read in accesses(each)] for each in self.instructions]
        live = [0] * len(self.instructions)
        changed = True
        while changed:
            changed = False
            for place in reversed(range(len(self.instructions))):
                before = 0
                for other in following[place]:
                    before |= live[other]
                for bit, is_read in reversed(touched[place]):
                    before = before | bit if is_read else before & ~bit
                changed |= before != live[place]
                live[place] = before
        return live

    def names_of(self, bits: int) -> frozenset[str]:
        """The local variables that bits stand for."""
        return frozenset(name for at, name in enumerate(self.code.co_varnames) if bits >> at & 1)


@functools.lru_cache(maxsize=256)
def raising(code: CodeType) -> frozenset[int]:
    """Offsets of the instructions after which the code can but raise: what they compute is for the exception."""
    found, is_raised = set[int](), False
    for each in reversed(instructions_of(code)):
        if each.opname == "RAISE_VARARGS":
            is_raised = True
        elif jumps(each) or not goes_on(each) or each.opname.startswith("STORE_"):
            is_raised = False
        if is_raised:
            found.add(each.offset)
    return frozenset(found)
