"""`self.__class__` in recorded code: the class, as `type(self)` gives it.

A proxy's `__class__` is what makes `isinstance` work with it, so it has to be the plain class. In the code that is
recorded, the attribute has another name, which only proxies of objects know. That needs a first argument that is one,
and that the function does not put something else in the place of.
"""

from __future__ import annotations

import dis
import functools
from types import CodeType

CLASS_READ = "<class>"
"""No name of the program's."""

KNOWS_CLASS = "_knows_class_"
"""What the classes of proxies have that know it."""

_READS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_LOADS = frozenset(
    """LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_CHECK LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW_LOAD_FAST_BORROW
    STORE_FAST_LOAD_FAST""".split()
)
"""What puts a variable on top of the stack: from Python 3.13 on, some do it as the second of two things."""


def is_class_read(code: CodeType, instruction: dis.Instruction, before: dis.Instruction) -> bool:
    """Whether it reads `self.__class__`, for the first argument of a method, which stays what it was."""
    is_read = instruction.opname in _READS and instruction.argval == "__class__"
    return is_read and loads_self(code, before) and not _is_set(code, code.co_varnames[0])


def loads_self(code: CodeType, instruction: dis.Instruction) -> bool:
    """Whether the instruction leaves the first argument of a method on top of the stack."""
    if instruction.opname not in _LOADS or code.co_argcount == 0 or "." not in code.co_qualname:
        return False
    loaded = instruction.argval
    return bool(code.co_varnames[0] == (loaded[-1] if type(loaded) is tuple else loaded))


def _is_set(code: CodeType, name: str) -> bool:
    """Whether the code assigns a variable of its own."""
    setting = (each for each in dis.get_instructions(code) if "STORE" in each.opname or "DELETE" in each.opname)
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
