"""Checks: what keeps a function, or statements of it, from being outlined."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import CodeType

from accel.entry.lift.assigned import name_in_locals, uncertain_reads
from accel.entry.lift.names import Names, deleted_names, imported_names
from accel.entry.lift.source import FunctionNode, NotLiftable
from accel.platform.reasons import Refusal, source_line

_REFUSED_NODES: dict[str, str] = {
    "Yield": "yields inside the loop",
    "YieldFrom": "yields inside the loop",
    "Await": "awaits inside the loop",
    "AsyncFor": "awaits inside the loop",
    "AsyncWith": "awaits inside the loop",
    "TypeAlias": "defines a type alias inside the loop",
}

_LOOKS_AT_NAMES = frozenset({"locals", "vars", "dir", "exec", "eval", "breakpoint"})
"""Builtins that read or change the variables of the function that calls them, some only without arguments."""

_WITH_ARGUMENTS = frozenset({"vars", "dir"})
"""Builtins that leave the function's variables alone if they are given an argument."""

_LOOKS_AT_FRAMES = frozenset({"_getframe", "currentframe", "f_locals", "f_back"})


def _refused(code: CodeType, node: ast.AST, detail: str) -> NotLiftable:
    line = getattr(node, "lineno", code.co_firstlineno)
    return NotLiftable(Refusal("lift.code", source_line(code.co_filename, line), detail))


def check_function(function: FunctionNode, code: CodeType) -> None:
    """Raise NotLiftable if the function looks at its own variables other than by their names."""
    _check_names(function, code)


def check_module(statement: ast.stmt, code: CodeType) -> None:
    """Raise NotLiftable if a statement at the top of a module does what cannot stand in a function."""
    _check_names(statement, code)
    for node in ast.walk(statement):
        if isinstance(node, ast.AnnAssign):
            raise _refused(code, node, "annotates a name of the module inside the loop")
        if isinstance(node, ast.ImportFrom) and "*" in imported_names(node):
            raise _refused(code, node, "imports all names of a module inside the loop")


def _check_names(node: ast.AST, code: CodeType) -> None:
    name = name_in_locals(node)
    if name is not None:
        return
    match node:
        case ast.Call(func=ast.Name(id=called), args=[_, *_]) if called in _WITH_ARGUMENTS:
            children: list[ast.AST] = [*node.args, *node.keywords]
        case ast.Name(id=named) if named in _LOOKS_AT_NAMES:
            raise _refused(code, node, f"uses {named}()")
        case ast.Attribute(attr=attribute) if attribute in _LOOKS_AT_FRAMES:
            raise _refused(code, node, f"uses {attribute}")
        case _:
            children = list(ast.iter_child_nodes(node))
    for child in children:
        _check_names(child, code)


def check_body(function: FunctionNode | None, statements: Sequence[ast.stmt], code: CodeType) -> None:
    """Raise NotLiftable for statements that cannot be run in a function of their own. function: None in a module."""
    pending: list[ast.AST] = list(statements)
    while pending:
        node = pending.pop()
        kind = type(node).__name__
        if isinstance(function, ast.AsyncFunctionDef) and isinstance(node, ast.Return):
            raise _refused(code, node, "returns inside the loop, from asynchronous code")
        if kind in _REFUSED_NODES:
            raise _refused(code, node, _REFUSED_NODES[kind])
        if isinstance(node, ast.comprehension) and node.is_async:
            raise _refused(code, node.iter, _REFUSED_NODES["Await"])
        if getattr(node, "type_params", None):
            raise _refused(code, node, "defines something generic inside the loop")
        if isinstance(node, ast.Name) and node.id == "super":
            _check_super(function, node, code)
        # a nested function may do all of this; what it is made of is evaluated here
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            nested = [node.body] if isinstance(node, ast.Lambda) else node.body
            pending.extend(each for each in ast.iter_child_nodes(node) if each not in nested)
        else:
            pending.extend(ast.iter_child_nodes(node))


def check_deletions(function: FunctionNode, statements: Sequence[ast.stmt], code: CodeType) -> None:
    """Raise NotLiftable for statements that unbind what they may then read inside `try`: that it is bound before does
    not help."""
    deleted = sorted(uncertain_reads(function, statements) & deleted_names(statements))
    if deleted:
        raise _refused(code, statements[0], f"may read {deleted[0]} inside try after it was deleted")


def _check_super(function: FunctionNode | None, node: ast.Name, code: CodeType) -> None:
    """`super()` is given its class and its object: these must be known."""
    own = first_parameter(function)
    if function is None or own is None:
        raise _refused(code, node, "uses super() where there is no object")
    names = Names(function.body)
    if own in names.deleted or "super" in names.bound:
        raise _refused(code, node, "uses super() where its meaning is not fixed")


def first_parameter(function: FunctionNode | None) -> str | None:
    """The name of a method's object."""
    if function is None:
        return None
    positional = [*function.args.posonlyargs, *function.args.args]
    return positional[0].arg if positional else None
