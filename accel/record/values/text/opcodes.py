"""Stack effects of CPython's instructions, as far as following a text through a function needs them."""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Callable, Iterator
from types import CodeType

from accel.record.state.instructions import effect, goes_on, instructions_of

_Counts = tuple[int, int]

_TABLE: tuple[tuple[_Counts, str], ...] = (
    ((0, 0), "RESUME NOP EXTENDED_ARG PRECALL KW_NAMES MAKE_CELL COPY_FREE_VARS DELETE_FAST CHECK_EXC_MATCH"),
    ((0, 0), "JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT RETURN_CONST"),
    ((0, 1), "PUSH_NULL LOAD_CONST LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR LOAD_NAME LOAD_DEREF LOAD_CLOSURE"),
    ((0, 1), "LOAD_ASSERTION_ERROR LOAD_COMMON_CONSTANT PUSH_EXC_INFO IMPORT_FROM"),
    ((1, 0), "POP_TOP STORE_FAST STORE_DEREF STORE_GLOBAL STORE_NAME DELETE_ATTR POP_EXCEPT RETURN_VALUE RERAISE"),
    ((1, 0), "LIST_APPEND SET_ADD LIST_EXTEND SET_UPDATE DICT_UPDATE DICT_MERGE"),
    ((1, 1), "UNARY_POSITIVE UNARY_NEGATIVE UNARY_NOT UNARY_INVERT TO_BOOL GET_ITER LIST_TO_TUPLE CALL_INTRINSIC_1"),
    ((1, 1), "FORMAT_SIMPLE CONVERT_VALUE"),
    ((1, 2), "LOAD_METHOD LOAD_SPECIAL"),
    ((2, 0), "STORE_ATTR DELETE_SUBSCR MAP_ADD"),
    ((2, 1), "BINARY_OP BINARY_SUBSCR COMPARE_OP IS_OP CONTAINS_OP FORMAT_WITH_SPEC IMPORT_NAME"),
    ((3, 0), "STORE_SUBSCR"),
    ((3, 1), "BINARY_SLICE"),
    ((4, 0), "STORE_SLICE"),
)
"""Numbers of values that instructions pop and push, for all Python versions that accel supports."""

_FIXED = {name: counts for counts, names in _TABLE for name in names.split()}

_BY_ARGUMENT: dict[str, Callable[[int], _Counts]] = {
    "LOAD_GLOBAL": lambda arg: (0, 1 + (arg & 1)),
    "CALL": lambda arg: (arg + 2, 1),
    "CALL_KW": lambda arg: (arg + 3, 1),
    "CALL_FUNCTION_EX": lambda arg: (4 if sys.version_info >= (3, 14) else 3 + (arg & 1), 1),
    "FORMAT_VALUE": lambda arg: (2 if arg & 4 else 1, 1),
    "BUILD_MAP": lambda arg: (2 * arg, 1),
    "BUILD_CONST_KEY_MAP": lambda arg: (arg + 1, 1),
    "UNPACK_SEQUENCE": lambda arg: (1, arg),
    **{f"BUILD_{kind}": lambda arg: (arg, 1) for kind in "TUPLE LIST SET STRING SLICE".split()},
}

_CALL = frozenset({"PRECALL", "CALL"}) if "PRECALL" in dis.opmap else frozenset()
"""Python 3.11 has two instructions for a call. Their effects are counted at the second one here, where Python divides
them otherwise."""

_LOADS_METHOD = dis.stack_effect(dis.opmap["LOAD_ATTR"], 1) == 1
"""Whether LOAD_ATTR may load a method, together with the object that it belongs to (from Python 3.12 on)."""


@functools.lru_cache(maxsize=256)
def instructions(code: CodeType) -> tuple[dis.Instruction, ...]:
    """The instructions of a code object; those that are two in one are taken apart, and share their offset."""
    return tuple(part for each in instructions_of(code) for part in _parts(each))


def _parts(instruction: dis.Instruction) -> Iterator[dis.Instruction]:
    names = _TWO_IN_ONE.get(instruction.opname)
    if names is None:
        yield instruction
    else:
        for name, variable in zip(names, instruction.argval, strict=True):
            yield instruction._replace(opname=name, opcode=dis.opmap[name], argval=variable)


_TWO_IN_ONE = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}


def pops_and_pushes(instruction: dis.Instruction) -> _Counts | None:
    """Numbers of values that an instruction pops and pushes; None where they are not known.

    Where it jumps, both may be others.
    """
    name, arg = instruction.opname, instruction.arg or 0
    counts = _FIXED.get(name)
    if name in _BY_ARGUMENT:
        counts = _BY_ARGUMENT[name](arg)
    elif name == "LOAD_ATTR":
        counts = (1, 2) if _LOADS_METHOD and arg & 1 else (1, 1)
    elif name.startswith("POP_JUMP"):
        counts = 1, 0
    is_checked = goes_on(instruction) and name not in _CALL
    if counts is None or (is_checked and counts[1] - counts[0] != _effect(instruction, jump=False)):
        return None
    return counts


def depth_after(instruction: dis.Instruction, depth: int, *, jump: bool) -> int:
    """The depth of the stack behind an instruction, which may have changed anything on it."""
    return max(depth + _effect(instruction, jump=jump), 0)


def _effect(instruction: dis.Instruction, *, jump: bool) -> int:
    if instruction.opname in _CALL:
        return -1 - (instruction.arg or 0) if instruction.opname == "CALL" else 0
    return effect(instruction, jump=jump)
