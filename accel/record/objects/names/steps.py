"""Steps: the instructions of a function that read, write or delete variables of the functions around it, or globals."""

from __future__ import annotations

import dis
import enum
import functools
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

from accel.platform.codes import with_nested
from accel.record.state.instructions import instructions_of


class AccessKind(enum.Enum):
    """The access that an instruction is about to make."""

    STORE = enum.auto()
    DELETE_GLOBAL = enum.auto()
    DELETE_CELL = enum.auto()
    READ_CELL = enum.auto()


class Access(NamedTuple):
    """An instruction that is watched, and the variable that it names."""

    kind: AccessKind
    name: str


_OF_GLOBALS = {"STORE_GLOBAL": AccessKind.STORE, "DELETE_GLOBAL": AccessKind.DELETE_GLOBAL}
_OF_CELLS = {
    "STORE_DEREF": AccessKind.STORE,
    "DELETE_DEREF": AccessKind.DELETE_CELL,
    "LOAD_DEREF": AccessKind.READ_CELL,
    "LOAD_CLOSURE": AccessKind.READ_CELL,
}
_WRITES = frozenset({AccessKind.STORE, AccessKind.DELETE_GLOBAL, AccessKind.DELETE_CELL})
_WRITING = frozenset(
    dis.opmap[name] for name, kind in (_OF_GLOBALS | _OF_CELLS).items() if kind in _WRITES and name in dis.opmap
)


Write = tuple[CodeType, str, str, int]
"""Code that writes such a variable; the opcode, the variable, and the line."""


@functools.lru_cache(maxsize=4096)
def steps_of(code: CodeType) -> dict[int, Access]:
    """The steps of a code object by the offset of the instruction. The code of nested functions is not among them."""
    found = {}
    outer = frozenset(code.co_freevars)
    extended: list[int] = []
    for instruction in instructions_of(code):
        if instruction.opname == "EXTENDED_ARG":
            extended.append(instruction.offset)
            continue
        kind = _OF_GLOBALS.get(instruction.opname)
        if kind is None and instruction.argval in outer:
            kind = _OF_CELLS.get(instruction.opname)
        if kind is not None:
            # An instruction with a long argument may be announced by its prefix alone.
            for offset in (*extended, instruction.offset):
                found[offset] = Access(kind, instruction.argval)
        extended = []
    return found


@functools.lru_cache(maxsize=4096)
def makes_writers(code: CodeType) -> bool:
    """Whether functions that code makes write variables outside `code`. Comprehensions are none."""
    return any(writer is not code and not writer.co_name.endswith("comp>") for writer, *_ in writes_of(code))


@functools.lru_cache(maxsize=4096)
def makes_functions(code: CodeType) -> bool:
    """Whether code defines functions that capture variables of the functions around it. Comprehensions are none."""
    outer = frozenset(code.co_freevars)
    nested = [each for each in with_nested(code) if each is not code and not each.co_name.endswith("comp>")]
    return any(not outer.isdisjoint(each.co_freevars) for each in nested)


@functools.lru_cache(maxsize=4096)
def writes_of(code: CodeType) -> tuple[Write, ...]:
    """Writes of `code`, and of code nested in it, to globals and to variables of functions around it."""
    return tuple(_writes_of(code, frozenset(code.co_freevars)))


def _writes_of(code: CodeType, outer: frozenset[str]) -> Iterator[Write]:
    # Taking the instructions apart takes a hundred times as long as a look at the opcodes.
    if not _WRITING.isdisjoint(code.co_code[::2]):
        line = code.co_firstlineno
        for instruction in instructions_of(code):
            if instruction.positions is not None:
                line = instruction.positions.lineno or line
            name = instruction.opname
            if name in _OF_GLOBALS or (_OF_CELLS.get(name) in _WRITES and instruction.argval in outer):
                yield code, name, instruction.argval, line
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _writes_of(constant, outer & frozenset(constant.co_freevars))
