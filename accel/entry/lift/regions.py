"""Regions: which statements of a function become functions of their own.

A region is the body of a loop, or a run of statements in one block: what stands between statements that stop a
recording, or that cannot stand in another function. Inside a compound statement that stops there are regions, too.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from accel.entry.lift.assigned import Loop
from accel.entry.lift.source import NotLiftable
from accel.platform.reasons import Refusal

Block = list[ast.stmt]

Check = Callable[[Sequence[ast.stmt]], None]
"""Raises NotLiftable for statements that cannot be a region."""

Stops = Mapping[int, str]
"""Lines that stop recordings, with the ids of the reasons."""

NO_STOPS: Stops = MappingProxyType({})

ELEMENTS = "code.elements"
"""The reason of a loop over single elements: its body is not outlined, since each run of it takes too little time."""

FEW = 8
"""Maximum iterations of a loop that is recorded with the statements around it. Guess."""


@dataclass(frozen=True, slots=True)
class Region:
    """Statements that are outlined together. block: the one that they, or the loop, stand in.

    loop: the loop of which they are the body; None for a run of statements.
    """

    block: Block
    statements: Block
    loop: Loop | None = None

    @property
    def line(self) -> int:
        """The first line: of a loop, its own."""
        return (self.statements[0] if self.loop is None else self.loop).lineno

    @property
    def lines(self) -> range:
        """All lines, without the loop's own."""
        return range(self.statements[0].lineno, (self.statements[-1].end_lineno or 0) + 1)


def loops_in(block: Block, check: Check) -> tuple[list[Region], list[Refusal]]:
    """The outermost loops that `check` accepts, and what stands between the statements that it refuses in others.

    Also why it refused these.
    """
    found: list[Region] = []
    refusals: list[Refusal] = []
    for place, loop in _outermost(block):
        try:
            check(loop.body)
        except NotLiftable as error:
            refusals.append(error.refusal)
            found += between(loop.body, check, {}, refusals)
        else:
            found.append(Region(place, loop.body, loop))
    return sorted(found, key=lambda each: each.line), refusals


def between(
    block: Block, check: Check, stops: Stops, refusals: list[Refusal], loop: tuple[Block, Loop] | None = None
) -> list[Region]:
    """The regions between statements that stand in the lines of `stops`, or that `check` refuses. refusals: takes why.

    loop: the one whose body the block is, with its own block.
    """
    found: list[Region] = []
    run: Block = []

    def end_run() -> None:
        if any(map(_computes, run)) and _is_accepted(run, check, refusals):
            found.append(Region(block, run.copy()))
        run.clear()

    stopping = [
        _names_its_caller(each) or not stops.keys().isdisjoint(_lines_of(each)) or not _is_accepted([each], check, [])
        for each in block
    ]
    if loop is not None and not any(stopping) and _is_accepted(block, check, refusals):
        return [Region(loop[0], block, loop[1])]
    for statement, stop in zip(block, stopping, strict=True):
        if statement is block[0] and _is_text(statement):  # a docstring has to stay the first statement
            continue
        is_long = isinstance(statement, Loop) and not _is_short(statement)
        if not stop and not is_long:
            run.append(statement)
            continue
        end_run()
        if not isinstance(statement, (*DEFINITIONS, ast.ClassDef)) and stops.get(statement.lineno) != ELEMENTS:
            for inner in _blocks(statement):
                around = (block, statement) if isinstance(statement, Loop) and inner is statement.body else None
                found += between(inner, check, stops, refusals, around)
    end_run()
    return found


DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _is_accepted(statements: Sequence[ast.stmt], check: Check, refusals: list[Refusal]) -> bool:
    try:
        check(statements)
    except NotLiftable as error:
        refusals.append(error.refusal)
        return False
    return True


def _lines_of(statement: ast.stmt) -> range:
    first = min((each.lineno for each in getattr(statement, "decorator_list", ())), default=statement.lineno)
    return range(first, (statement.end_lineno or statement.lineno) + 1)


def _is_short(loop: Loop) -> bool:
    """Whether a loop's source says that it has few iterations."""
    match loop:
        case ast.For(iter=ast.Tuple(elts=parts) | ast.List(elts=parts)):
            return len(parts) <= FEW
        case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(count))])):
            return count <= FEW
    return False


def _names_its_caller(statement: ast.stmt) -> bool:
    """Whether a warning or log entry may count frames up to the caller's: it has to be made in the function itself."""
    return any(isinstance(each, ast.keyword) and each.arg == "stacklevel" for each in ast.walk(statement))


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _computes(statement: ast.stmt) -> bool:
    """Whether a statement may do anything that takes time."""
    return any(isinstance(each, (ast.Call, ast.BinOp, ast.Subscript)) for each in ast.walk(statement))


def _outermost(block: Block) -> Iterator[tuple[Block, Loop]]:
    """Yield the outermost loops in statements of one scope, each with the block that it stands in."""
    for statement in block:
        if isinstance(statement, Loop):
            yield block, statement
        elif not isinstance(statement, (*DEFINITIONS, ast.ClassDef)):
            for inner in _blocks(statement):
                yield from _outermost(inner)


def _blocks(statement: ast.AST) -> Iterator[Block]:
    """Yield the blocks of a compound statement, those in its handlers and cases too."""
    for _, value in ast.iter_fields(statement):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value
        elif isinstance(value, list):
            for part in value:
                if isinstance(part, (ast.ExceptHandler, ast.match_case)):
                    yield part.body
