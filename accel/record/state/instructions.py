"""CPython's instructions: where control goes from one, what it does to the stack, which variables it touches.

What differs between Python versions stands here. Three analyses of bytecode are made of it, one for each question:

state.flow        where the sides of a branch join, for any branch: post-dominators, and what is on the stack there
run.loops.code    what decides whether a loop goes on: natural loops, the variables that count, and those read later
values.text.flow  which calls a text may reach: each value on the stack, by where it comes from

They have little else in common. A join holds while nothing is raised, so that handlers are left out there. A loop's
state must hold in `except` too, so that handlers are ways there. A text is followed from one instruction only.
"""

from __future__ import annotations

import dis
import functools
from types import CodeType

_ENDS = frozenset({"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"})
_ALWAYS_JUMPS = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"})
_OF_CELLS = ("DEREF", "CLOSURE", "CELL", "FREE_VARS", "CLASSDEREF")

READ_ALL = frozenset({"locals", "vars", "dir", "eval", "exec", "super", "inspect", "_getframe"})
"""Names of what may read a frame's variables otherwise than by instructions."""


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


@functools.lru_cache(maxsize=256)
def raising(code: CodeType) -> frozenset[int]:
    """Offsets of the instructions after which the code can but raise: what they compute is for the exception."""
    found, is_raised = set[int](), False
    for each in reversed(list(dis.get_instructions(code))):
        if each.opname == "RAISE_VARARGS":
            is_raised = True
        elif jumps(each) or not goes_on(each) or each.opname.startswith("STORE_"):
            is_raised = False
        if is_raised:
            found.add(each.offset)
    return frozenset(found)
