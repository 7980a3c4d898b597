"""Code that keeps a function from being followed with substituted globals."""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Sequence
from types import CodeType, FrameType

from accel.record.objects.names.namespaces import PHYSICAL
from accel.record.objects.names.steps import writes_of
from accel.record.state.instructions import SUSPENDED, instructions_of

CLASS_READ = "<class>"
"""Name of `self.__class__` in recorded code; no program can have it.

A proxy's `__class__` is the plain class, because `isinstance` asks it. So recorded code reads another attribute, which
only proxies of objects know. That needs a first argument that is a proxy, and that the function does not assign."""

KNOWS_CLASS = "_knows_class_"
"""Name of the flag on proxy classes that know `CLASS_READ`."""

_READS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_LOADS = frozenset({"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST"})
"""Instructions that put a variable on top of the stack; from Python 3.13 on as the second of two."""


def is_class_read(code: CodeType, instruction: dis.Instruction, before: dis.Instruction) -> bool:
    """Whether it reads `self.__class__`, for the first argument of a method, which stays what it was."""
    is_read = instruction.opname in _READS and instruction.argval == "__class__"
    return is_read and _loads_self(code, before) and not _is_set(code, code.co_varnames[0])


def _loads_self(code: CodeType, instruction: dis.Instruction) -> bool:
    """Whether the instruction leaves the first argument of a method on top of the stack."""
    if instruction.opname not in _LOADS or code.co_argcount == 0 or "." not in code.co_qualname:
        return False
    loaded = instruction.argval
    return bool(code.co_varnames[0] == (loaded[-1] if type(loaded) is tuple else loaded))


def _is_set(code: CodeType, name: str) -> bool:
    """Whether the code assigns a variable of its own."""
    setting = (each for each in instructions_of(code) if "STORE" in each.opname or "DELETE" in each.opname)
    return any(name == each.argval or (type(each.argval) is tuple and name in each.argval) for each in setting)


def reads_class(code: CodeType) -> bool:
    """Whether the code, which can be followed, reads `self.__class__`."""
    return "__class__" in code.co_names


def with_class_reads(code: CodeType) -> CodeType:
    """The code to record instead of `code`, which can be followed: `code` itself where it reads no class."""
    return _renamed(code) if reads_class(code) else code


@functools.lru_cache(maxsize=4096)
def _renamed(code: CodeType) -> CodeType:
    return code.replace(co_names=tuple(CLASS_READ if each == "__class__" else each for each in code.co_names))


_REFUSED_OPCODES = {
    "LOAD_BUILD_CLASS": ("code.unsupported", "defines a class"),
    "MATCH_CLASS": ("code.unsupported", "matches a class pattern"),
    "MATCH_SEQUENCE": ("code.unsupported", "matches a sequence pattern"),
    "MATCH_MAPPING": ("code.unsupported", "matches a mapping pattern"),
}

_REFUSED_NAMES = {
    name: ("code.unsupported", f"uses {name}")
    for name in ("globals", "exec", "eval", "vars", "__dict__", "__class__", "f_locals", "breakpoint")
}

_CONSTANTS = (None, True, False, Ellipsis)


@functools.lru_cache(maxsize=4096)
def problem(code: CodeType, as_generator: bool = False) -> tuple[str, str, int] | None:
    """Reason id, what is wrong and the line, or None where the code can be followed. as_generator: it may be one."""
    if code.co_flags & SUSPENDED and not (as_generator and code.co_flags & inspect.CO_GENERATOR):
        return "call.generator", f"{code.co_name} is a generator or coroutine", code.co_firstlineno
    return _unseen_write(code) or _problem(code)


def is_iterated(frame: FrameType) -> bool:
    """Whether the call that the frame makes gives what a `for` statement or a `yield from` iterates, and nobody else.

    A generator that anything else gets might outlive the recorded call, half-way through.
    """
    return frame.f_lasti in _iterated(frame.f_code)


@functools.lru_cache(maxsize=256)
def _iterated(code: CodeType) -> frozenset[int]:
    """The offsets of calls whose result is iterated at once."""
    found = instructions_of(code)
    return frozenset(
        call.offset
        for call, after, second in zip(found, found[1:], found[2:], strict=False)
        if after.opname == "GET_YIELD_FROM_ITER" or (after.opname, second.opname) == ("GET_ITER", "FOR_ITER")
    )


def _unseen_write(code: CodeType) -> tuple[str, str, int] | None:
    """A write to a variable outside the code that would be missed, or made too late, by those who look at it."""
    for writer, opcode, name, line in writes_of(code):
        # It may go on where nobody watches it.
        if writer.co_flags & SUSPENDED:
            return "effect.global", f"a generator writes {name} of an enclosing function or module", line
        if opcode.endswith("GLOBAL") and (name in PHYSICAL or name == "__builtins__"):
            return "effect.global", f"writes {name} of its module", line
        if name == "__class__":
            return "effect.global", "writes __class__ of an enclosing class", line
    return None


def _problem(code: CodeType, *, is_nested: bool = False) -> tuple[str, str, int] | None:
    line = code.co_firstlineno
    instructions = instructions_of(code) if _is_suspect(code) else ()
    for position, instruction in enumerate(instructions):
        line = getattr(instruction, "line_number", None) or _starts(instruction) or line
        name = instruction.opname
        if name in _REFUSED_OPCODES:
            return *_REFUSED_OPCODES[name], line
        if (name.startswith("LOAD_GLOBAL") or "ATTR" in name) and instruction.argval in _REFUSED_NAMES:
            # nested functions are called with what nobody has looked at
            if not is_nested and is_class_read(code, instruction, instructions[position - 1]):
                continue
            return *_REFUSED_NAMES[instruction.argval], line
        if name == "IS_OP" and not _is_constant(instructions[position - 1]) and _calls(instructions[:position]):
            return "code.unsupported", "compares by `is` with what a call gives", line
    # The code of nested functions and comprehensions is among the constants.
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found = _problem(constant, is_nested=True)
            if found is not None:
                return found
    return None


_SUSPECT = frozenset(dis.opmap[name] for name in (*_REFUSED_OPCODES, "IS_OP"))


def _opcodes(code: CodeType) -> set[int]:
    """All that are in the code. Taking its instructions apart takes a hundred times as long."""
    return set(code.co_code[::2])


def _is_suspect(code: CodeType) -> bool:
    """Whether anything in the code has to be looked at."""
    return not _SUSPECT.isdisjoint(_opcodes(code)) or not _REFUSED_NAMES.keys().isdisjoint(code.co_names)


def _calls(before: Sequence[dis.Instruction]) -> bool:
    """Whether computing the two things on top of the stack, after these instructions, takes a call other than type()'s.

    Such a call may end the recording, and then gives a plain object, while the other may still be a stand-in.
    """
    depth, calls = 0, 0
    for instruction in reversed(before):
        depth += dis.stack_effect(instruction.opcode, instruction.arg, jump=False)
        calls += instruction.opname.startswith("CALL")
        calls -= instruction.opname.startswith("LOAD_GLOBAL") and instruction.argval == "type"
        if depth >= 2:
            break
    return calls > 0


def _starts(instruction: dis.Instruction) -> int | None:
    line = instruction.starts_line
    return line if type(line) is int else None


@functools.lru_cache(maxsize=4096)
def compares_identity(code: CodeType) -> bool:
    """Whether the code tests `is` with anything but None, a boolean or Ellipsis on the right."""
    before = None
    for instruction in instructions_of(code) if dis.opmap["IS_OP"] in _opcodes(code) else ():
        if instruction.opname == "IS_OP" and not _is_constant(before):
            return True
        before = instruction
    return any(compares_identity(constant) for constant in code.co_consts if isinstance(constant, CodeType))


@functools.lru_cache(maxsize=4096)
def handles_exceptions(code: CodeType) -> bool:
    """Whether the code has handlers of its own: `except`, `finally` or `with`.

    From Python 3.12 the exception table alone does not say so: comprehensions enter there what puts variables back.
    """
    return dis.opmap["PUSH_EXC_INFO"] in _opcodes(code)


def _is_constant(instruction: dis.Instruction | None) -> bool:
    return (
        instruction is not None
        and instruction.opname == "LOAD_CONST"
        and any(instruction.argval is constant for constant in _CONSTANTS)
    )
