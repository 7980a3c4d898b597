"""The flow of a text through one statement: whether it can reach anything but sinks.

Python makes plain strings of formatted numbers. Nothing marks them, and nothing is called when the program compares
one. So a replay may show a text only if the code itself says that nobody else sees it: from the instruction that
formats the number, the text is followed over the stack until calls have taken it. It may be joined with other strings
on the way. A text that is kept in a variable or chosen by a branch is not followed.
"""

from __future__ import annotations

import dis
import functools
import string
import sys
from types import CodeType
from typing import NamedTuple

from accel.record.state.instructions import goes_on, jumps
from accel.record.values.text.opcodes import instructions, pops_and_pushes

DEPTH = 64
"""Number of unknown values that are assumed on the stack where a block of instructions begins. Guess."""


class Origin(NamedTuple):
    """The origin of a value on the stack, as far as the code says.

    kind: "constant" (a string), "text" (any string), "global" or "attribute". name: of the global or attribute, or the
    constant. offset: of the instruction that loads an attribute. of: the constant that it is an attribute of.
    """

    kind: str
    name: str = ""
    offset: int = -1
    of: str | None = None


_TEXT, _NULL = Origin("text"), Origin("null")
_Stack = tuple[Origin | None, ...]


@functools.lru_cache(maxsize=4096)
def readers(code: CodeType, offset: int, how: str) -> frozenset[Origin] | None:
    """The functions that a text may be passed to; None if it may reach anything else.

    offset: of the instruction that formats a value. how: what Python calls for it, "format", "str" or "repr";
    or "percent" for the operator.
    """
    at = _index(code, offset)
    if at is None or not _makes_text(instructions(code)[at], _stack(code, at), how):
        return None
    return _followed(code, at)


def left_operand(code: CodeType, index: int) -> str | None:
    """The constant string on the left of the binary operation that has this index."""
    operand = _stack(code, index)[-2]
    return operand.name if operand is not None and operand.kind == "constant" else None


def makers(code: CodeType, offset: int) -> frozenset[Origin]:
    """The function that is called by the instruction at `offset`, if it is a call: it makes the text."""
    at = _index(code, offset)
    if at is None or instructions(code)[at].opname != "CALL":
        return frozenset()
    callee = _callee(_stack(code, at), instructions(code)[at])
    return frozenset() if callee is None else frozenset([callee])


def _index(code: CodeType, offset: int) -> int | None:
    found = instructions(code)
    at = next((index for index, each in enumerate(found) if each.offset == offset), None)
    return at + 1 if at is not None and found[at].opname == "PRECALL" else at


# -- how a text is made -----------------------------------------------------------------------------------------------


def _makes_text(instruction: dis.Instruction, stack: _Stack, how: str) -> bool:
    """Whether the instruction puts the result of this call into its text unchanged."""
    match instruction.opname:
        case "FORMAT_VALUE":
            # `f"{x!r:>9}"` pads what `__repr__` gives
            return how == "format" or not (instruction.arg or 0) & 4
        case "FORMAT_SIMPLE" | "CONVERT_VALUE":
            return True
        case "FORMAT_WITH_SPEC":
            return how == "format"
        case "BINARY_OP":
            return how == "percent" and instruction.argrepr == "%"
        case "CALL":
            callee = _callee(stack, instruction)
            if callee is None:
                return False
            if callee.kind == "global":
                return callee.name in ("str", "repr", "format") and (instruction.arg or 0) <= 2
            return callee.of is not None and callee.name == "format" and how == "format" and _is_flat(callee.of)
    return False


def _is_flat(form: str) -> bool:
    """Whether a format's fields have no conversions, and no fields in their specifications."""
    try:
        fields = list(string.Formatter().parse(form))
    except ValueError:
        return False
    return all(not conversion and "{" not in (spec or "") for _, _, spec, conversion in fields)


# -- what is on the stack ---------------------------------------------------------------------------------------------


def _begins(code: CodeType, index: int) -> bool:
    """Whether an instruction begins a block: others may lead to it than the one before."""
    before = instructions(code)[index - 1]
    return not index or instructions(code)[index].is_jump_target or jumps(before) or not goes_on(before)


def _stack(code: CodeType, index: int) -> _Stack:
    """The stack before an instruction, as far as its block says."""
    first = index
    while not _begins(code, first):
        first -= 1
    stack: _Stack = (None,) * DEPTH
    for each in instructions(code)[first:index]:
        stack = _after(each, stack)
    return stack


def _after(instruction: dis.Instruction, stack: _Stack) -> _Stack:
    counts = pops_and_pushes(instruction)
    if counts is None:
        return (None,) * DEPTH
    return stack[: max(len(stack) - counts[0], 0)] + _pushed(instruction, stack, counts)


def _is_text(origin: Origin | None) -> bool:
    return origin is not None and origin.kind in ("constant", "text")


def _pushed(instruction: dis.Instruction, stack: _Stack, counts: tuple[int, int]) -> _Stack:
    name, (pops, pushes) = instruction.opname, counts
    origin: Origin | None = None
    if name == "LOAD_CONST" and isinstance(instruction.argval, str):
        origin = Origin("constant", str(instruction.argval))
    elif name == "PUSH_NULL":
        origin = _NULL
    elif name == "LOAD_GLOBAL":
        origin = Origin("global", instruction.argval)
        if pushes == 2:  # together with nothing, in the place of a method's object
            return (origin, _NULL) if sys.version_info >= (3, 13) else (_NULL, origin)
    elif name in ("LOAD_ATTR", "LOAD_METHOD"):
        owner = stack[-1] if stack else None
        of = owner.name if owner is not None and owner.kind == "constant" else None
        origin = Origin("attribute", instruction.argval, instruction.offset, of)
    elif name in ("BUILD_STRING", "FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC") or (
        name == "BINARY_OP" and instruction.argrepr in ("+", "+=") and all(map(_is_text, stack[-pops:]))
    ):
        origin = _TEXT
    elif name == "BINARY_OP" and instruction.argrepr == "%" and len(stack) > 1:
        # no object of recorded code has a say in what a string's `%` gives
        left = stack[-2]
        origin = _TEXT if left is not None and left.kind == "constant" else None
    return (origin,) * pushes


def _callee(stack: _Stack, instruction: dis.Instruction) -> Origin | None:
    """The function that a CALL calls: two places below the arguments hold it, and its object or nothing."""
    first = _first_argument(stack, instruction)
    places = stack[first - 2 : first] if first >= 2 else (None,)
    known = {each for each in places if each is not None and each != _NULL}
    return next(iter(known)) if len(known) == 1 and None not in places else None


_CALLS = frozenset({"CALL", "CALL_KW"})


def _first_argument(stack: _Stack, instruction: dis.Instruction) -> int:
    """The place of a call's first argument."""
    names = instruction.opname == "CALL_KW"  # the names of keyword arguments lie on top
    return len(stack) - (instruction.arg or 0) - names


# -- where the text goes ----------------------------------------------------------------------------------------------


def _followed(code: CodeType, at: int) -> frozenset[Origin] | None:
    """The functions that take the text of the instruction at this index; None if anything else may look at it."""
    found, stack, taken_by = instructions(code), _stack(code, at), set[Origin]()
    pops = pops_and_pushes(found[at])
    if pops is None:
        return None
    places, stack = {len(stack) - pops[0]}, _after(found[at], stack)
    for index in range(at + 1, len(found)):
        instruction, counts = found[index], pops_and_pushes(found[index])
        if counts is None or jumps(instruction) or not goes_on(instruction) or _begins(code, index):
            return None
        first = len(stack) - counts[0]
        taken = {place for place in places if place >= first}
        places -= taken
        if taken and instruction.opname in _CALLS:
            callee = _callee(stack, instruction)
            if callee is None or not _takes(callee) or min(taken) < _first_argument(stack, instruction):
                return None
            taken_by.add(callee)
        elif taken and _is_joined(instruction, stack, taken):
            places.add(first)
        elif taken and instruction.opname != "POP_TOP":
            return None
        if not places:
            return frozenset(taken_by)
        stack = _after(instruction, stack)
    return None


def _takes(callee: Origin) -> bool:
    return callee.kind in ("global", "attribute") and callee.of is None


def _is_joined(instruction: dis.Instruction, stack: _Stack, taken: set[int]) -> bool:
    """Whether the instruction makes a longer text of it, or gives it as it is."""
    match instruction.opname:
        case "BUILD_STRING" | "FORMAT_SIMPLE":
            return True
        case "FORMAT_VALUE":
            return not instruction.arg
        case "BINARY_OP":
            operands = range(len(stack) - 2, len(stack))
            are_texts = all(place in taken or _is_text(stack[place]) for place in operands)
            return instruction.argrepr in ("+", "+=") and are_texts
    return False
