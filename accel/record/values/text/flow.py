"""The flow of a text through a function's code: whether it can reach anything but sinks.

Python makes plain strings of formatted numbers. Nothing marks them, and nothing is called when the program compares
one. So a replay may show a text only if the code itself says that nobody else sees it: from the instruction that
formats the number, all ways of the text are followed, over the stack and through local variables. It may be joined
with other strings, and passed to calls. Everything else, and every instruction that is not known here, is taken for a
look at the text.

What leads to `except` is not followed: the recorder looks at each exception itself (see accel.record.run.frames).
"""

from __future__ import annotations

import dis
import functools
import string
import sys
from collections.abc import Iterable, Mapping
from types import CodeType
from typing import NamedTuple

from accel.record.state.instructions import READ_ALL, goes_on, jumps
from accel.record.values.text.opcodes import depth_after, instructions, pops_and_pushes


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
_Locals = Mapping[str, Origin]


class _State(NamedTuple):
    """The stack and the local variables before an instruction."""

    stack: _Stack
    local: _Locals


def readers(code: CodeType, offset: int, how: str) -> frozenset[Origin] | None:
    """The functions that a text may be passed to; None if it may reach anything else.

    offset: of the instruction that formats a value. how: what Python calls for it, "format", "str" or "repr";
    or "percent" for the operator.
    """
    return _readers(code, offset, how)


@functools.lru_cache(maxsize=4096)
def _readers(code: CodeType, offset: int, how: str) -> frozenset[Origin] | None:
    """See `readers`."""
    found = instructions(code)
    at = next((index for index, each in enumerate(found) if each.offset == offset), None)
    if at is None:
        return None
    if found[at].opname == "PRECALL":
        at += 1
    states = _states(code)
    if at not in states or not _makes_text(found[at], states[at], how):
        return None
    return _Taint(code, at, states).readers()


def left_operand(code: CodeType, index: int) -> str | None:
    """The constant string on the left of the binary operation that has this index."""
    state = _states(code).get(index)
    operand = state.stack[-2] if state is not None and len(state.stack) > 1 else None
    return operand.name if operand is not None and operand.kind == "constant" else None


def makers(code: CodeType, offset: int) -> frozenset[Origin]:
    """The function that is called by the instruction at `offset`, if it is a call: it makes the text."""
    found = instructions(code)
    at = next((index for index, each in enumerate(found) if each.offset == offset), None)
    if at is not None and found[at].opname == "PRECALL":
        at += 1
    states = _states(code)
    if at not in states or found[at].opname != "CALL":
        return frozenset()
    callee = _callee(states[at].stack, found[at])
    return frozenset() if callee is None else frozenset([callee])


# -- how a text is made -----------------------------------------------------------------------------------------------


def _makes_text(instruction: dis.Instruction, state: _State, how: str) -> bool:
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
            callee = _callee(state.stack, instruction)
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


@functools.lru_cache(maxsize=256)
def _states(code: CodeType) -> dict[int, _State]:
    """The state before each instruction that can be reached, by its index."""
    found = instructions(code)
    index_of = _index_of(found)
    states: dict[int, _State] = {0: _State((), {})}
    waiting = [0]
    for entry in dis.Bytecode(code).exception_entries:  # type: ignore[attr-defined]
        at = index_of[entry.target]
        states[at] = _State((None,) * (entry.depth + entry.lasti + 1), {})
        waiting.append(at)
    while waiting:
        at = waiting.pop()
        for following, state in _after(found, index_of, at, states[at]):
            joined = state if following not in states else _joined(states[following], state)
            if joined != states.get(following):
                states[following] = joined
                waiting.append(following)
    return states


def _index_of(found: tuple[dis.Instruction, ...]) -> dict[int, int]:
    """The index of the first instruction at each offset."""
    return {each.offset: index for index, each in reversed(list(enumerate(found)))}


def _joined(one: _State, other: _State) -> _State:
    # of equal depth, as the compiler makes sure; from the top where a handler's depth says less
    count = min(len(one.stack), len(other.stack))
    pairs = zip(one.stack[len(one.stack) - count :], other.stack[len(other.stack) - count :], strict=True)
    local = {name: _common(origin, other.local.get(name)) for name, origin in one.local.items()}
    return _State(
        tuple(_common(*pair) for pair in pairs), {name: each for name, each in local.items() if each is not None}
    )


def _common(one: Origin | None, other: Origin | None) -> Origin | None:
    if one == other:
        return one
    return _TEXT if _is_text(one) and _is_text(other) else None


def _is_text(origin: Origin | None) -> bool:
    return origin is not None and origin.kind in ("constant", "text")


def _after(
    found: tuple[dis.Instruction, ...], index_of: Mapping[int, int], at: int, state: _State
) -> Iterable[tuple[int, _State]]:
    """The instructions that may follow, with the state before each."""
    instruction = found[at]
    counts = pops_and_pushes(instruction)
    if jumps(instruction):
        # an instruction that jumps keeps nothing else on the stack that anybody asks for
        depth = depth_after(instruction, len(state.stack), jump=True)
        yield index_of[instruction.argval], _State(_cut(state.stack, depth, counts), state.local)
    if not goes_on(instruction) or at + 1 == len(found):
        return
    if counts is None:
        local = {} if instruction.opname.startswith(("STORE", "DELETE")) else state.local
        yield at + 1, _State((None,) * depth_after(instruction, len(state.stack), jump=False), local)
        return
    pops, _ = counts
    rest = state.stack[: max(len(state.stack) - pops, 0)]
    yield at + 1, _State(rest + _pushed(instruction, state, counts), _stored(instruction, state))


def _cut(stack: _Stack, depth: int, counts: tuple[int, int] | None) -> _Stack:
    return (None,) * depth if counts is None or depth > len(stack) else stack[:depth]


def _pushed(instruction: dis.Instruction, state: _State, counts: tuple[int, int]) -> _Stack:
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
        owner = state.stack[-1] if state.stack else None
        of = owner.name if owner is not None and owner.kind == "constant" else None
        origin = Origin("attribute", instruction.argval, instruction.offset, of)
    elif name in ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR"):
        known = state.local.get(instruction.argval)
        origin = known if _is_text(known) else None
    elif name in ("BUILD_STRING", "FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC") or (
        name == "BINARY_OP" and instruction.argrepr in ("+", "+=") and all(map(_is_text, state.stack[-pops:]))
    ):
        origin = _TEXT
    elif name == "BINARY_OP" and instruction.argrepr == "%" and len(state.stack) > 1:
        # no object of recorded code has a say in what a string's `%` gives
        left = state.stack[-2]
        origin = _TEXT if left is not None and left.kind == "constant" else None
    return (origin,) * pushes


def _stored(instruction: dis.Instruction, state: _State) -> _Locals:
    name = instruction.opname
    if name == "STORE_FAST":
        origin = state.stack[-1] if state.stack else None
        rest = {each: known for each, known in state.local.items() if each != instruction.argval}
        return {**rest, instruction.argval: origin} if origin is not None and _is_text(origin) else rest
    if name in ("DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
        return {each: known for each, known in state.local.items() if each != instruction.argval}
    return state.local


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

_Where = tuple[frozenset[int], frozenset[str]]
"""The places on the stack, and the local variables, that may hold the text."""

_READS_LOCALS = READ_ALL - {"super"}


class _Looked(Exception):
    """Something may look at the text."""


class _Taint:
    """Follows one text, from the instruction of index `start` that makes it."""

    def __init__(self, code: CodeType, start: int, states: Mapping[int, _State]) -> None:
        self._code, self._start, self._states = code, start, states
        self._found = instructions(code)
        self._index_of = _index_of(self._found)
        self._readers: set[Origin] = set()
        self._kept = False  # in a local variable

    def readers(self) -> frozenset[Origin] | None:
        counts = pops_and_pushes(self._found[self._start])
        if counts is None:
            return None
        top = len(self._states[self._start].stack) - counts[0]
        seen: dict[int, _Where] = {}
        waiting: list[tuple[int, _Where]] = [(self._start + 1, (frozenset([top]), frozenset()))]
        try:
            while waiting:
                at, where = waiting.pop()
                before = seen.get(at, (frozenset(), frozenset()))
                both = before[0] | where[0], before[1] | where[1]
                if at in seen and both == before:
                    continue
                seen[at] = both
                if both[0] or both[1]:
                    waiting.extend(self._step(at, both))
        except _Looked:
            return None
        # a method is loaded anew for each later statement, and nobody knows yet what it will be
        if self._kept and any(each.kind != "global" for each in self._readers):
            return None
        return frozenset(self._readers)

    def _step(self, at: int, where: _Where) -> Iterable[tuple[int, _Where]]:
        """The positions that may follow, with the places of the text there. Raises _Looked."""
        instruction, state = self._found[at], self._states.get(at)
        if state is None:
            raise _Looked
        counts = pops_and_pushes(instruction)
        if counts is None:
            if where[0]:
                raise _Looked
            after = where
        else:
            after = self._moved(instruction, state, counts, where)
        if jumps(instruction):
            target = self._index_of[instruction.argval]
            depth = depth_after(instruction, len(state.stack), jump=True)
            yield target, (frozenset(place for place in after[0] if place < depth), after[1])
        if goes_on(instruction) and at + 1 < len(self._found):
            yield at + 1, after

    def _moved(self, instruction: dis.Instruction, state: _State, counts: tuple[int, int], where: _Where) -> _Where:
        """The places of the text after an instruction. Raises _Looked."""
        pops, (stack, local) = counts[0], where
        first = len(state.stack) - pops
        taken = frozenset(place for place in stack if place >= first)
        rest = stack - taken
        name = instruction.opname
        if name in ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR"):
            if instruction.argval in local:
                rest |= {first}
            if name == "LOAD_FAST_AND_CLEAR":
                local -= {instruction.argval}
        elif name == "STORE_FAST":
            local -= {instruction.argval}
            if taken:
                self._keep()
                local |= {instruction.argval}
        elif name == "DELETE_FAST":
            local -= {instruction.argval}
        elif taken:
            if name in _CALLS:
                self._read(instruction, state, taken)
            elif self._is_joined(instruction, state, taken, pops):
                rest |= {first}
            elif name != "POP_TOP":
                raise _Looked
        return rest, local

    def _keep(self) -> None:
        if not _READS_LOCALS.isdisjoint(self._code.co_names):
            raise _Looked
        self._kept = True

    def _read(self, instruction: dis.Instruction, state: _State, taken: frozenset[int]) -> None:
        callee = _callee(state.stack, instruction)
        if callee is None or callee.kind not in ("global", "attribute") or callee.of is not None:
            raise _Looked
        if min(taken) < _first_argument(state.stack, instruction):
            raise _Looked
        self._readers.add(callee)

    def _is_joined(self, instruction: dis.Instruction, state: _State, taken: frozenset[int], pops: int) -> bool:
        """Whether the instruction makes a longer text of it, or gives it as it is."""
        match instruction.opname:
            case "BUILD_STRING" | "FORMAT_SIMPLE":
                return True
            case "FORMAT_VALUE":
                return not instruction.arg
            case "BINARY_OP":
                first = len(state.stack) - pops
                operands = range(first, len(state.stack))
                return instruction.argrepr in ("+", "+=") and all(
                    place in taken or _is_text(state.stack[place]) for place in operands
                )
        return False
