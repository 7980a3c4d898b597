"""Functions that a program hands on: to a solver, an iterator, a pool of threads, a table of its own.

What holds a function does not look it up again under its name. So it must have been replaced before it was handed on:
right after the statement that binds it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

Bound = Callable[["str | None", str], object]
"""Is told of a function that is handed on, once it is bound: of its module, as `Passed` has it, and of its name."""


class After(NamedTuple):
    """A call to make after each statement at the top of a module that binds one of these names."""

    names: set[str]
    call: Callable[[], object]


class Passed(NamedTuple):
    """A function that is handed on somewhere. after: the statement at the top of the module that binds it.

    module: the one that it is imported from, with the dots of a relative import; None for the module's own.
    """

    after: ast.stmt
    module: str | None
    qualname: str


def passed_functions(tree: ast.Module) -> list[Passed]:
    """The functions and methods that a module defines or imports, and uses otherwise than to call them.

    >>> tree = ast.parse("import model\\ndef rhs(t, y): ...\\nsolve(rhs, 0.0)\\nmap(model.step, runs)\\nmodel.run()")
    >>> [(each.module, each.qualname) for each in passed_functions(tree)]
    [(None, 'rhs'), ('model', 'step')]
    """
    known = {place: passed for each in tree.body for place, passed in _bound_by(each)}
    modules = {name: (each, module) for each in tree.body for name, module in _modules_bound_by(each)}
    found: dict[tuple[str | None, str], Passed] = {}
    for node in _handed_on(tree):
        passed: Passed | None
        if isinstance(node, ast.Name):
            passed = known.get(node.id)
        elif isinstance(node.value, ast.Name) and node.value.id in modules:
            after, module = modules[node.value.id]
            passed = Passed(after, module, node.attr)
        else:
            passed = known.get(f".{node.attr}")
        if passed is not None:
            found.setdefault((passed.module, passed.qualname), passed)
    return list(found.values())


def _bound_by(statement: ast.stmt) -> Iterator[tuple[str, Passed]]:
    """Yield the names that a statement binds: functions by name, and methods by name after a dot."""
    if isinstance(statement, ast.FunctionDef) and not statement.decorator_list:
        yield statement.name, Passed(statement, None, statement.name)
    elif isinstance(statement, ast.ClassDef):
        for each in statement.body:
            if isinstance(each, ast.FunctionDef) and not each.decorator_list and not each.name.startswith("__"):
                yield f".{each.name}", Passed(statement, None, f"{statement.name}.{each.name}")
    elif isinstance(statement, ast.ImportFrom):
        module = "." * statement.level + (statement.module or "")
        for name in statement.names:
            yield name.asname or name.name, Passed(statement, module, name.name)


def _modules_bound_by(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    if isinstance(statement, ast.Import):
        for name in statement.names:
            if name.asname is not None or "." not in name.name:
                yield name.asname or name.name, name.name


def _handed_on(tree: ast.Module) -> Iterator[ast.Name | ast.Attribute]:
    """Names and attributes that are read, and neither called, looked into, nor part of a decorator or annotation."""
    passed_over: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            passed_over.add(id(node.func))
        elif isinstance(node, ast.Attribute):
            passed_over.add(id(node.value))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            passed_over.update(id(part) for each in node.decorator_list for part in ast.walk(each))
        annotation = getattr(node, "annotation", None) or getattr(node, "returns", None)
        if annotation is not None:
            passed_over.update(id(part) for part in ast.walk(annotation))
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Name, ast.Attribute)) or id(node) in passed_over:
            continue
        if isinstance(node.ctx, ast.Load):
            yield node
