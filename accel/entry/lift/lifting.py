"""Lifting (outlining): a function, or a module's code, in which chosen loops and runs of statements have two bodies.

The file on disk stays as it is. File name, lines, columns and names of the code are still the program's. So tracebacks,
reports and coverage tools show nothing else.
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType

from accel.entry.lift.assigned import Loop, own_names, uncertain_reads
from accel.entry.lift.checks import check_body, check_deletions, check_function, check_module
from accel.entry.lift.codes import bodies_of, finished, finished_body, set_body
from accel.entry.lift.names import Names
from accel.entry.lift.passed import After, Bound, passed_functions
from accel.entry.lift.regions import NO_STOPS, Block, Region, Stops, between, loops_in
from accel.entry.lift.source import (
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
from accel.entry.lift.switch import Switch, when_all_off
from accel.entry.lift.transform import BODY, CALL, OWN, definition, lift, lift_piece
from accel.platform.bodies import as_written
from accel.platform.reasons import Refusal, source_line


@dataclass(slots=True)
class LiftedCode:
    """Code in which regions are outlined. switches: one for each, by line. refusals: why others are not."""

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
        """Give the function its own code back. Iterations to come of loops that run now are the program's own."""
        for switch in self.lifted.switches:
            switch.on = False
        if self.function.__code__ is self.lifted.code:
            self.function.__code__ = self.original


def lift_function(function: FunctionType, *, stops: Stops = NO_STOPS) -> LiftedFunction:
    """Lift all loops of a function that can be. Their switches are off.

    stops: lines that stop its recordings. If there are any, what stands between them is outlined.

    Raises NotLiftable if there is none, or if the function is not what its source file says.
    """
    before = function.__code__
    # a script's loops are outlined as it is loaded: what stands between the lines takes them in
    lifted = lifted_function_code(as_written(before) if stops else before, stops=stops)
    function.__code__ = lifted.code
    made = LiftedFunction(function, before, lifted)
    when_all_off(lifted.switches, made.undo)
    return made


def lifted_function_code(code: CodeType, *, stops: Stops = NO_STOPS) -> LiftedCode:
    """As `lift_function`, for a function's code."""
    source = function_source(code)
    work = _Work(source.tree, code)
    work.lift_function(source.node, code, stops)
    found = find_code(work.finish(), code)
    if found is None or found.co_freevars != code.co_freevars:
        raise not_from_source(code, "the lifted code has other free variables")
    return LiftedCode(found, work.switches, work.refusals)


TOP = "<module>"
"""The qualified name of a module's own code."""


def lifted_module_code(
    code: CodeType, functions: Collection[str] = (TOP,), on_bound: Bound | None = None, after: After | None = None
) -> LiftedCode:
    """Lift loops of a module, or of a script, that has not run yet.

    functions: qualified names of those whose loops are lifted; TOP for the loops at the top of the module. on_bound: is
    called when the module has bound a function that it hands on. after: see `After`. Neither may raise.
    Raises NotLiftable if the code is not what its source file says, or if nothing is lifted.
    """
    work = _Work(module_source(code), code)
    if after is not None:
        for statement in [each for each in work.tree.body if not after.names.isdisjoint(Names([each]).bound)]:
            work.call_after(statement, after.call)
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


def split(switch: Switch, stops: Stops) -> LiftedCode:
    """The body of a switch in which what stands between these lines is outlined; without lines, the loops in it.

    Its code takes the place of the body's. Raises NotLiftable.
    """
    code = switch.around
    assert code is not None
    if switch.code is None:
        raise not_from_source(code, "Python's compiler has left the body out")
    if code.co_name == TOP:
        work, node = _Work(module_source(code), code), None
    else:
        source = function_source(code)
        work, node = _Work(source.tree, code), source.node
    region = _found(work.tree if node is None else node, switch)
    if region is None:
        raise not_from_source(code, "the body is not found in its source")
    found = work.split(node, region, stops, switch)
    if found.co_freevars != switch.code.co_freevars:
        raise not_from_source(code, "the body's code has other free variables")
    return LiftedCode(found, work.switches, work.refusals)


def _found(tree: ast.AST, switch: Switch) -> Region | None:
    """The region of a switch in a tree of the same source."""
    for node in ast.walk(tree):
        for _, block in ast.iter_fields(node):
            if not isinstance(block, list) or not block or not isinstance(block[0], ast.stmt):
                continue
            for each in block:
                if switch.column is None:
                    if isinstance(each, Loop) and each.lineno == switch.line:
                        return Region(block, each.body, each)
                elif (each.lineno, each.col_offset) == (switch.line, switch.column):
                    within = range(each.lineno, switch.lines.stop)
                    return Region(block, [other for other in block if other.lineno in within])
    return None


class _Work:
    """A tree in which regions are outlined. code: a function's, or the module's, for the places in refusals."""

    def __init__(self, tree: ast.Module, code: CodeType, flags: int = 0) -> None:
        self.tree = tree
        self._flags = flags
        self.switches: list[Switch] = []
        self.refusals: list[Refusal] = []
        self._code = code
        self._apart: list[ast.stmt] = []  # bodies of loops at the top of the module
        self._calls: list[Callable[[], object]] = []

    def lift_function(self, node: FunctionNode, code: CodeType, stops: Stops = NO_STOPS) -> None:
        """Outline regions of a function that `node` defines and that runs `code`."""
        check_function(node, code)
        self._outline(self._regions(node.body, node, code, stops), node, code)

    def lift_top(self) -> None:
        """Lift loops at the top of the module."""
        self._outline(self._regions(self.tree.body, None, self._code, NO_STOPS), None, self._code)

    def split(self, node: FunctionNode | None, region: Region, stops: Stops, switch: Switch) -> CodeType:
        """Outline regions of a region. Returns the code of its body."""
        chosen = self._regions(region.statements, node, self._code, stops)
        if not chosen:
            raise NotLiftable(self._why_nothing())
        first = region.statements[0]
        assert switch.code is not None
        within = {*switch.code.co_freevars, *switch.code.co_cellvars, *switch.code.co_varnames}
        self._outline(chosen, node, self._code, within)
        number = len(self.switches)
        own = () if region.loop is None else switch.own
        made = definition(region, f"{BODY}{number}", node, free=self._code.co_freevars, own=own, at=first)
        bodies = dict(self._compiled([made, *self._apart], node, self._code))
        body = bodies.pop(number)
        if node is None:
            for each, code in bodies.items():
                set_body(self.switches[each], code)
        return finished_body(body, switch, self.switches)

    def _regions(self, block: Block, node: FunctionNode | None, code: CodeType, stops: Stops) -> list[Region]:
        """The regions of a block: its loops, or what stands between the lines that stop a recording."""
        check = functools.partial(_check, node, code)
        if stops:
            return between(block, check, stops, self.refusals)
        chosen, refusals = loops_in(block, check)
        self.refusals += refusals
        return chosen

    def _outline(
        self, chosen: Sequence[Region], node: FunctionNode | None, code: CodeType, within: Collection[str] | None = None
    ) -> None:
        """Outline regions, of a function or at the top of the module (node: None). within: see `definition`."""
        # of the function as it is written
        numbers = [self._new_switch(each, node, code) for each in chosen]
        pieces = [pair for pair in zip(numbers, chosen, strict=True) if pair[1].loop is None]
        self._set_pieces(pieces, node, code, within)
        for number, region in zip(numbers, chosen, strict=True):
            own, block = self.switches[number].own, region.block
            if region.loop is not None:
                made = lift(region, number, node, free=code.co_freevars, own=own)
                if node is None:
                    self._apart.append(made)
                else:
                    block.insert(block.index(region.loop), made)
            else:
                cells = None if node is None else self.switches[number].free
                place = block.index(region.statements[0])
                block[place : place + len(region.statements)] = lift_piece(region.statements, number, cells=cells)

    def _set_pieces(
        self,
        pieces: Sequence[tuple[int, Region]],
        node: FunctionNode | None,
        code: CodeType,
        within: Collection[str] | None,
    ) -> None:
        """Give the switches of runs of statements their bodies, which share all variables, or all but their own."""
        made = []
        for number, region in pieces:
            share = functools.partial(definition, region, function=node, free=code.co_freevars, within=within)
            made.append(share(f"{BODY}{number}"))
            made.append(share(f"{OWN}{number}", own=self.switches[number].own))
        bodies = self._compiled(made, node, code) if made else []
        for number, body in bodies:
            set_body(self.switches[number], body)

    def _compiled(
        self, made: Sequence[ast.stmt], node: FunctionNode | None, code: CodeType
    ) -> list[tuple[int, CodeType]]:
        """The codes of functions as they would stand in the function of `node`, or at the top of the module."""
        if node is None:
            return list(bodies_of(compiled(ast.Module([*self._future(), *made], []), code.co_filename, self._flags)))
        before = list(node.body)
        node.body[:0] = made  # first: after a `return`, Python's compiler would leave them out
        try:
            around = find_code(compiled(self.tree, code.co_filename, self._flags), code)
        finally:
            node.body[:] = before
        if around is None:
            raise not_from_source(code, "the outlined code is not found")
        return list(bodies_of(around))

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
            raise NotLiftable(self._why_nothing())
        bodies = compiled(ast.Module([*self._future(), *self._apart], []), self._code.co_filename, self._flags)
        for number, body in bodies_of(bodies):
            set_body(self.switches[number], body)
        return finished(compiled(self.tree, self._code.co_filename, self._flags), self.switches, self._calls)

    def _why_nothing(self) -> Refusal:
        where = source_line(self._code.co_filename, self._code.co_firstlineno)
        return self.refusals[0] if self.refusals else Refusal("lift.code", where, "holds no loop")

    def _future(self) -> list[ast.stmt]:
        return [each for each in self.tree.body if isinstance(each, ast.ImportFrom) and each.module == "__future__"]

    def _new_switch(self, region: Region, node: FunctionNode | None, code: CodeType) -> int:
        own, uncertain = set[str](), set[str]()
        if node is not None:
            own, uncertain = own_names(node, region.statements), uncertain_reads(node, region.statements)
        first = region.statements[0]
        self.switches.append(
            Switch(
                region.line,
                code,
                frozenset(uncertain),
                frozenset(own),
                copy.copy(region.loop),
                region.lines,
                first.col_offset if region.loop is None else None,
            )
        )
        return len(self.switches) - 1


def _check(node: FunctionNode | None, code: CodeType, statements: Sequence[ast.stmt]) -> None:
    """Raise NotLiftable for statements that cannot be outlined. node: the function around them; None in a module."""
    if node is None:
        for each in statements:
            check_module(each, code)
    check_body(node, statements, code)
    if node is not None:
        check_deletions(node, statements, code)
