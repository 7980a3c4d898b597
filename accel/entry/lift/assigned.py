"""Definite assignment: which names a loop's body may read unbound, and which no other iteration reads.

In the function itself such a read raises UnboundLocalError, in a function nested in it NameError. An error that leaves
the body can be translated; one that the body's own handlers see cannot. So the body runs as a function only while the
names that it may read unbound inside `try` or `with` are bound.

Some names are not mentioned outside the body, and each iteration assigns them before it reads them. Such a name is the
iteration's own: the body has it as a local variable, and no program has to store its value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from accel.entry.lift.names import (
    Comprehension,
    Names,
    deleted_names,
    evaluated_at_definition,
    function_names,
    imported_names,
    parameters,
)
from accel.entry.lift.source import FunctionNode

Loop = ast.For | ast.While
_State = frozenset[str] | None
"""The names that are bound for sure; None where the program does not come."""


def uncertain_reads(function: FunctionNode, statements: Sequence[ast.stmt]) -> set[str]:
    """The function's own names that these of its statements read inside `try` or `with`, and that may be unbound there.

    statements: one after the other in one block. What leaves them can be translated: a `try` around all of them is
    none.
    """
    names = function_names(function)
    flow = _Flow(statements)
    flow.block(function.body, frozenset(each.arg for each in parameters(function.args)))
    return flow.uncertain & names.local


def own_names(function: FunctionNode, statements: Sequence[ast.stmt]) -> set[str]:
    """The function's own names that are the variables of one run of these statements alone."""
    names = function_names(function)
    flow = _Flow(None)
    flow.block(statements, frozenset())
    # a nested function may be called in a later run, or after them
    elsewhere = _mentioned(function, statements) | _captured(statements)
    return (Names(statements).bound & names.local) - flow.uncertain - elsewhere


def temporary_names(loop: Loop) -> set[str]:
    """Return the names that each iteration of a loop assigns before it reads them, if it reads them at all.

    An iteration takes nothing over in them. Functions that the body calls may read them all the same.
    """
    flow = _Flow(None)
    flow.block(loop.body, frozenset())
    tested = (
        {each.id for each in ast.walk(loop.test) if isinstance(each, ast.Name)}
        if isinstance(loop, ast.While)
        else set()
    )
    return Names(loop.body).bound - flow.uncertain - _captured(loop.body) - tested


def _mentioned(function: FunctionNode, statements: Sequence[ast.stmt]) -> set[str]:
    """All names in a function but for those in these of its statements."""
    found, left_out = set[str](), set[ast.AST](statements)
    pending: list[ast.AST] = [function]
    while pending:
        node = pending.pop()
        pending += [each for each in ast.iter_child_nodes(node) if each not in left_out]
        found |= _names_in(node)
    return found


def _captured(statements: Sequence[ast.stmt]) -> set[str]:
    """All names in nested functions and classes, in generators, and in `"name" in locals()`."""
    found: set[str] = set()
    for node in (each for statement in statements for each in ast.walk(statement)):
        looked_for = name_in_locals(node)
        if looked_for is not None:
            found.add(looked_for)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.GeneratorExp)):
            found |= {name for each in ast.walk(node) if each is not node for name in _names_in(each)}
    return found


def _names_in(node: ast.AST) -> set[str]:
    """The names that a node itself mentions."""
    match node:
        case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return set(names)
        case ast.Import() | ast.ImportFrom():
            return set(imported_names(node))
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return {name}
        case ast.MatchMapping(rest=str(name)):
            return {name}
    return set()


class _Flow:
    """Follows statements in the order in which they run, and notes the reads that may find no value.

    within: only those inside `try` and `with` in these statements; None for all.
    """

    def __init__(self, within: Sequence[ast.stmt] | None) -> None:
        self._within = within or ()
        self.uncertain: set[str] = set()
        self._inside = within is None
        self._depth = 1 if within is None else 0

    def block(self, statements: Sequence[ast.stmt], state: _State) -> _State:
        for statement in statements:
            if statement in self._within:
                depth, self._depth, self._inside = self._depth, 0, True
                state = self._statement(statement, state)
                self._depth, self._inside = depth, False
            else:
                state = self._statement(statement, state)
        return state

    def _statement(self, node: ast.stmt, state: _State) -> _State:
        if state is None:  # what never runs reads nothing
            return None
        handler = getattr(self, f"_{type(node).__name__}", None)
        if handler is not None:
            made: _State = handler(node, state)
            return made
        return self._simple(node, state)

    def _simple(self, node: ast.AST, state: frozenset[str]) -> frozenset[str]:
        """A statement or expression without parts that may not run, but for those of expressions."""
        self._read(node, state)
        after = state | _bound_for_sure(node)
        return after - deleted_names([node]) if isinstance(node, ast.Delete) else after

    # -- statements ---------------------------------------------------------------------------------------------------

    def _leaves(self, node: ast.stmt, state: frozenset[str]) -> _State:
        self._simple(node, state)
        return None

    _Return = _Raise = _Break = _Continue = _leaves

    def _If(self, node: ast.If, state: frozenset[str]) -> _State:
        state = self._simple(node.test, state)
        return _either(self.block(node.body, state), self.block(node.orelse, state))

    def _For(self, node: ast.For, state: frozenset[str]) -> _State:
        state = self._simple(node.iter, state) - deleted_names(node.body)
        self.block(node.body, state | Names([node.target]).bound)
        self.block(node.orelse, state)
        return state

    def _While(self, node: ast.While, state: frozenset[str]) -> _State:
        state = self._simple(node.test, state - deleted_names(node.body))
        self.block(node.body, state)
        self.block(node.orelse, state)
        return state

    def _Try(self, node: ast.Try, state: frozenset[str]) -> _State:
        self._depth += 1
        interrupted = state - deleted_names(node.body)
        after = self.block(node.orelse, self.block(node.body, state))
        for handler in node.handlers:
            after = _either(after, self._handler(handler, interrupted))
        everywhere = deleted_names([*node.body, *node.orelse, *node.handlers])
        self.block(node.finalbody, state - everywhere)
        self._depth -= 1
        return self.block(node.finalbody, after)

    _TryStar = _Try

    def _handler(self, node: ast.ExceptHandler, state: frozenset[str]) -> _State:
        if node.type is not None:
            state = self._simple(node.type, state)
        own = {node.name} if node.name is not None else set()
        after = self.block(node.body, state | own)
        return None if after is None else after - own

    def _With(self, node: ast.With, state: frozenset[str]) -> _State:
        for item in node.items:
            state = self._simple(item, state)
        self._depth += 1
        self.block(node.body, state)
        self._depth -= 1
        return state - deleted_names(node.body)  # it may have swallowed an exception half-way

    _AsyncWith = _With

    def _Match(self, node: ast.Match, state: frozenset[str]) -> _State:
        state = self._simple(node.subject, state)
        after: _State = state
        for case in node.cases:
            inside = state | Names([case.pattern]).bound
            self._read(case.pattern, state)
            if case.guard is not None:
                inside = self._simple(case.guard, inside)
            after = _either(after, self.block(case.body, inside))
        return after

    # -- expressions --------------------------------------------------------------------------------------------------

    def _read(self, node: ast.AST, state: frozenset[str]) -> frozenset[str]:
        """Note the reads of an expression or simple statement. Returns the state with what `:=` binds for sure."""
        match node:
            case ast.Name(id=name, ctx=ctx):
                if not isinstance(ctx, ast.Store):
                    self._note(name, state)
            case ast.AugAssign(target=ast.Name(id=name)):
                self._note(name, state)
                state = self._read(node.value, state)
            case ast.NamedExpr(target=target, value=value):
                state = self._read(value, state) | {target.id}
            case ast.BoolOp(values=[first, *others]):
                state = inside = self._read(first, state)
                for value in others:
                    inside = self._read(value, inside)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                state = self._read(test, state)
                self._read(body, state)
                self._read(orelse, state)
            case ast.Lambda() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                state = self._definition(node, state)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._comprehension(node, state)
            case _:
                for child in _in_order(node):
                    state = self._read(child, state)
        return state

    def _definition(self, node: ast.AST, state: frozenset[str]) -> frozenset[str]:
        match node:
            case ast.Lambda(args=arguments):
                parts: Iterable[ast.AST] = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                parts = evaluated_at_definition(node)
            case ast.ClassDef():
                parts = [*node.decorator_list, *node.bases, *node.keywords]
            case _:
                parts = ()
        for part in parts:
            state = self._read(part, state)
        return state

    def _comprehension(self, node: Comprehension, state: frozenset[str]) -> None:
        # from Python 3.12 on they are no functions, and read as their function does
        inside = self._read(node.generators[0].iter, state)
        own = {each.id for part in node.generators for each in ast.walk(part.target) if isinstance(each, ast.Name)}
        for child in _in_order(node):
            self._read(child, inside | own)

    def _note(self, name: str, state: frozenset[str]) -> None:
        if self._inside and self._depth and name not in state:
            self.uncertain.add(name)


def _in_order(node: ast.AST) -> list[ast.AST]:
    """The parts of a node in the order of evaluation, nearly: an assignment's value comes before its targets."""
    children = list(ast.iter_child_nodes(node))
    return sorted(children, key=lambda child: isinstance(getattr(child, "ctx", None), ast.Store))


def _either(one: _State, other: _State) -> _State:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _bound_for_sure(node: ast.AST) -> set[str]:
    """Return the names that a simple statement or an expression binds whenever it completes."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return set(imported_names(node))
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return _stored(*targets) | _bound_for_sure(node.value)
        case ast.AnnAssign(target=ast.Name(id=name), value=value):
            return set() if value is None else {name}
        case ast.AugAssign(target=ast.Name(id=name)):
            return {name}
        case ast.withitem(optional_vars=target):
            return set() if target is None else _stored(target)
        case ast.NamedExpr(target=target):
            return {target.id} | _bound_for_sure(node.value)
        case ast.BoolOp(values=[first, *_]) | ast.Compare(left=first):
            return _bound_for_sure(first)
        case ast.UnaryOp(operand=operand):
            return _bound_for_sure(operand)
        case ast.Expr(value=value):
            return _bound_for_sure(value)
    return set()


def _stored(*targets: ast.AST) -> set[str]:
    return {
        each.id
        for target in targets
        for each in ast.walk(target)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }


def name_in_locals(node: ast.AST) -> str | None:
    """The name in `"name" in locals()` or `"name" not in locals()`; None for anything else."""
    match node:
        case ast.Compare(
            left=ast.Constant(value=str(name)),
            ops=[ast.In() | ast.NotIn()],
            comparators=[ast.Call(func=ast.Name(id="locals"), args=[], keywords=[])],
        ):
            return name
    return None
