"""Which loops of a function or module are lifted: the outermost ones that can be."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from accel.lift.assigned import Loop
from accel.lift.source import NotLiftable
from accel.reasons import Refusal

Block = list[ast.stmt]


def outermost(block: Block) -> Iterator[tuple[Block, Loop]]:
    """Yield the outermost loops in statements of one scope, each with the block that it stands in."""
    for statement in block:
        if isinstance(statement, Loop):
            yield block, statement
        elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for inner in _blocks(statement):
                yield from outermost(inner)


def _blocks(statement: ast.AST) -> Iterator[Block]:
    """Yield the blocks of a compound statement, those in its handlers and cases too."""
    for _, value in ast.iter_fields(statement):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value
        elif isinstance(value, list):
            for part in value:
                if isinstance(part, (ast.ExceptHandler, ast.match_case)):
                    yield part.body


def choose(block: Block, check: Callable[[Loop], None]) -> tuple[list[tuple[Block, Loop]], list[Refusal]]:
    """The loops to lift with their blocks: the outermost that `check` accepts. Also why it refused others."""
    chosen: list[tuple[Block, Loop]] = []
    refusals: list[Refusal] = []
    pending: Sequence[tuple[Block, Loop]] = list(outermost(block))
    while pending:
        inner: list[tuple[Block, Loop]] = []
        for place, loop in pending:
            try:
                check(loop)
            except NotLiftable as error:
                refusals.append(error.refusal)
                inner += [each for part in _blocks(loop) for each in outermost(part)]
            else:
                chosen.append((place, loop))
        pending = inner
    return sorted(chosen, key=lambda each: each[1].lineno), refusals
