"""Lifting (outlining): a function, or a module's code, in which chosen loops have two bodies.

The file on disk stays as it is. File name, lines, columns and names of the code are still the program's. So tracebacks,
reports and coverage tools show nothing else.
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from types import CodeType, FunctionType

from accel.lift.assigned import Loop, own_names, uncertain_reads
from accel.lift.checks import Block, check_body, check_function, check_module, choose
from accel.lift.codes import bodies_of, finished, set_body
from accel.lift.names import Names
from accel.lift.passed import Bound, passed_functions
from accel.lift.source import (
    FunctionNode,
    NotLiftable,
    code_of,
    compiled,
    definitions,
    find_code,
    function_source,
    module_source,
    not_from_source,
)
from accel.lift.switch import Switch
from accel.lift.transform import CALL, lift
from accel.reasons import Refusal, source_line


@dataclass(slots=True)
class LiftedCode:
    """Code in which loops are lifted. switches: one for each, by line. refusals: why others are not."""

    code: CodeType
    switches: list[Switch]
    refusals: list[Refusal] = field(default_factory=list)


@dataclass(slots=True)
class LiftedFunction:
    """A function that runs lifted code, under all its names."""

    function: FunctionType
    original: CodeType
    lifted: LiftedCode

    def undo(self) -> None:
        """Give the function its own code back. Rounds to come of loops that run now are the program's own."""
        for switch in self.lifted.switches:
            switch.on = False
        if self.function.__code__ is self.lifted.code:
            self.function.__code__ = self.original


def lift_function(function: FunctionType, lines: Collection[int] = ()) -> LiftedFunction:
    """Lift loops of a function. Their switches are off. lines: of the loops to lift; all that can be by default.

    Raises NotLiftable if there is none, or if the function is not what its source file says.
    """
    original = function.__code__
    lifted = lifted_function_code(original, lines)
    function.__code__ = lifted.code
    return LiftedFunction(function, original, lifted)


def lifted_function_code(code: CodeType, lines: Collection[int] = ()) -> LiftedCode:
    """As `lift_function`, for a function's code."""
    source = function_source(code)
    work = _Work(source.tree, code)
    work.lift_function(source.node, code, lines)
    found = find_code(work.finish(), code)
    if found is None or found.co_freevars != code.co_freevars:
        raise not_from_source(code, "the lifted code has other free variables")
    return LiftedCode(found, work.switches, work.refusals)


TOP = "<module>"
"""The qualified name of a module's own code."""


def lifted_module_code(
    code: CodeType, functions: Collection[str] = (TOP,), on_bound: Bound | None = None
) -> LiftedCode:
    """Lift loops of a module, or of a script, that has not run yet.

    functions: qualified names of those whose loops are lifted; TOP for the loops at the top of the module. on_bound: is
    called when the module has bound a function that it hands on, and must not raise.
    Raises NotLiftable if the code is not what its source file says, or if nothing is lifted.
    """
    work = _Work(module_source(code), code)
    if on_bound is not None:
        for passed in passed_functions(work.tree):
            work.call_after(passed.after, functools.partial(on_bound, passed.module, passed.qualname))
    for node, qualname in list(definitions(work.tree)):
        if qualname in functions:
            try:
                work.lift_function(node, code_of(node, qualname, code))
            except NotLiftable as error:  # others may be
                work.refusals.append(error.refusal)
    if TOP in functions:
        work.lift_top()
    return LiftedCode(work.finish(), work.switches, work.refusals)


def lifted_tree(tree: ast.Module, code: CodeType, *, flags: int = 0) -> LiftedCode:
    """Lift loops at the top of a module that the caller has compiled itself, from this tree, which is changed.

    flags: those with which it was compiled. Raises NotLiftable if nothing is lifted.
    """
    work = _Work(tree, code, flags)
    work.lift_top()
    return LiftedCode(work.finish(), work.switches, work.refusals)


class _Work:
    """A tree in which loops are lifted. code: a function's, or the module's, for the places in refusals."""

    def __init__(self, tree: ast.Module, code: CodeType, flags: int = 0) -> None:
        self.tree = tree
        self._flags = flags
        self.switches: list[Switch] = []
        self.refusals: list[Refusal] = []
        self._code = code
        self._apart: list[ast.stmt] = []
        self._calls: list[Callable[[], object]] = []

    def lift_function(self, node: FunctionNode, code: CodeType, lines: Collection[int] = ()) -> None:
        """Lift loops of a function that `node` defines and that runs `code`."""
        check_function(node, code)

        def check(loop: Loop) -> None:
            check_body(node, loop, code)
            _check_deletions(loop, uncertain_reads(node, loop), code)

        chosen = self._chosen(node.body, check, code, lines)
        # of the function as it is written
        known = [(own_names(node, loop), uncertain_reads(node, loop)) for _, loop in chosen]
        for (block, loop), (own, uncertain) in zip(chosen, known, strict=True):
            number = self._new_switch(loop, code, uncertain, own)
            definition = lift(loop, number, node, free=code.co_freevars, own=own)
            block.insert(block.index(loop), definition)

    def lift_top(self) -> None:
        """Lift loops at the top of the module."""

        def check(loop: Loop) -> None:
            check_module(loop, self._code)
            check_body(None, loop, self._code)

        for _, loop in self._chosen(self.tree.body, check, self._code, ()):
            self._apart.append(lift(loop, self._new_switch(loop, self._code), None))

    def call_after(self, statement: ast.stmt, call: Callable[[], object]) -> None:
        """Let something be called after a statement at the top of the module."""
        made = ast.Expr(ast.Call(ast.Constant(f"{CALL}{len(self._calls)}"), [], []))
        for node in ast.walk(made):
            ast.copy_location(node, statement)
            node.end_lineno, node.end_col_offset = statement.lineno, statement.col_offset  # type: ignore[attr-defined]
        self._calls.append(call)
        self.tree.body.insert(self.tree.body.index(statement) + 1, made)

    def finish(self) -> CodeType:
        """Compile the tree. Returns the module's code. Raises NotLiftable."""
        if not self.switches and not self._calls:
            where = source_line(self._code.co_filename, self._code.co_firstlineno)
            raise NotLiftable(self.refusals[0] if self.refusals else Refusal("lift.code", where, "holds no loop"))
        future = [each for each in self.tree.body if isinstance(each, ast.ImportFrom) and each.module == "__future__"]
        bodies = compiled(ast.Module([*future, *self._apart], []), self._code.co_filename, self._flags)
        for number, body in bodies_of(bodies):
            set_body(self.switches[number], body, self._code)
        return finished(compiled(self.tree, self._code.co_filename, self._flags), self.switches, self._calls)

    def _new_switch(self, loop: Loop, code: CodeType, uncertain: Iterable[str] = (), own: Iterable[str] = ()) -> int:
        self.switches.append(Switch(loop.lineno, code, frozenset(uncertain), frozenset(own), copy.copy(loop)))
        return len(self.switches) - 1

    def _chosen(
        self, block: Block, check: Callable[[Loop], None], code: CodeType, lines: Collection[int]
    ) -> list[tuple[Block, Loop]]:
        chosen, refusals = choose(block, check)
        self.refusals += refusals
        return [each for each in chosen if not lines or each[1].lineno in lines]


def _check_deletions(loop: Loop, uncertain: set[str], code: CodeType) -> None:
    """Refuse a body that itself unbinds what it may then read inside `try`: that it is bound before does not help."""
    deleted = sorted(uncertain & Names(loop.body).deleted)
    if deleted:
        detail = f"may read {deleted[0]} inside try after it was deleted"
        raise NotLiftable(Refusal("lift.code", source_line(code.co_filename, loop.lineno), detail))
