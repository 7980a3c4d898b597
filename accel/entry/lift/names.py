"""Names: what a stretch of statements binds, reads and deletes, by Python's scoping.

Nested functions, lambdas and classes are scopes of their own; so are comprehensions, but for their first iterable and
for what `:=` binds in them. Names are as they are written: the compiler mangles those of classes later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Names(ast.NodeVisitor):
    """The names of statements of one scope.

    bound: by assignments, imports, definitions, `for`, `with`, `except`, `match`, `:=`; deleted ones too. deleted: by
    `del`, and at the end of `except ... as name`. read: in this scope itself. declared: by `global`. outer: by
    `nonlocal`.
    """

    def __init__(self, statements: Iterable[ast.AST]) -> None:
        self.bound: set[str] = set()
        self.deleted: set[str] = set()
        self.read: set[str] = set()
        self.declared: set[str] = set()
        self.outer: set[str] = set()
        for statement in statements:
            self.visit(statement)

    @property
    def local(self) -> set[str]:
        """The names that are local to the scope."""
        return self.bound - self.declared - self.outer

    def visit_Name(self, node: ast.Name) -> None:
        (self.read if isinstance(node.ctx, ast.Load) else self.bound).add(node.id)
        if isinstance(node.ctx, ast.Del):
            self.deleted.add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.read.add(node.target.id)
        self.generic_visit(node)

    # -- scopes of their own ------------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.bound.add(node.name)
        self._visit_all(evaluated_at_definition(node))

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_all(_defaults(node.args))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bound.add(node.name)
        self._visit_all((*node.decorator_list, *node.bases, *node.keywords))

    def _visit_comprehension(self, node: Comprehension) -> None:
        self.visit(node.generators[0].iter)
        self.bound.update(each.target.id for each in walruses(node))

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension

    # -- names that are no Name nodes ---------------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.bound.update(imported_names(node))

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name is not None:
            self.bound.add(node.name)
            self.deleted.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        if node.name is not None:
            self.bound.add(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest is not None:
            self.bound.add(node.rest)
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> None:
        self.declared.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.outer.update(node.names)

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)


_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")
"""Fields of statements with statements."""


def deleted_names(statements: Iterable[ast.AST]) -> set[str]:
    """The names that statements of one scope delete: `Names.deleted`, without a look at expressions."""
    found: set[str] = set()
    pending = list(statements)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Delete):
            found |= Names([node]).deleted
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if isinstance(node, ast.ExceptHandler) and node.name is not None:
                found.add(node.name)
            for block in _BLOCKS:
                pending += getattr(node, block, ())
    return found


def evaluated_at_definition(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.AST]:
    """Return the parts of a definition evaluated in the scope around it: decorators, defaults and annotations."""
    arguments = parameters(node.args)
    annotations = [each.annotation for each in arguments if each.annotation is not None]
    returns = [] if node.returns is None else [node.returns]
    return [*node.decorator_list, *_defaults(node.args), *annotations, *returns]


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters of a function, `*args` and `**kwargs` too, the positional ones first."""
    extra = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra]


def _defaults(arguments: ast.arguments) -> list[ast.AST]:
    return [*arguments.defaults, *(each for each in arguments.kw_defaults if each is not None)]


def imported_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The names that an import binds; `*` for all of a module's."""
    plain = isinstance(node, ast.Import)
    return [alias.asname or (alias.name.partition(".")[0] if plain else alias.name) for alias in node.names]


def walruses(node: Comprehension) -> list[ast.NamedExpr]:
    """The assignments by `:=` in a comprehension, which bind in the scope around it."""
    found: list[ast.NamedExpr] = []
    pending: list[ast.AST] = list(ast.iter_child_nodes(node))
    while pending:
        each = pending.pop()
        if isinstance(each, ast.NamedExpr):
            found.append(each)
        if not isinstance(each, ast.Lambda):
            pending.extend(ast.iter_child_nodes(each))
    return found


def function_names(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Names:
    """The names of a function's scope, its parameters among those that it binds."""
    names = Names(node.body)
    names.bound.update(each.arg for each in parameters(node.args))
    return names
