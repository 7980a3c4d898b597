"""The transformation: a loop gets two bodies, the program's own and the same as a function.

    for T in I:                       def body():  # the same statements, over the same variables
        BODY                              nonlocal ...
                                          BODY
    becomes                           for T in (x := I, n := k.on and k.tracer() is None and k.knows(x),
                                                n.given(x) if n else x, x := None)[2]:
                                          if k.on and k.tracer() is None:
                                              try: r = k.run(body, n)
                                              except: k.amend(); raise
                                          else: r = 0
                                          if r == 0: BODY
                                          elif r == 2: break
                                          elif r != 1: return r[0]
                                      else:
                                          k.holds and k.release()

`k` is a constant of the code, and the names `body`, `r`, `x` and `n` are such that no program can name them. At the top
of a module, where they would be seen among its names, `k` holds all of this. `n` says what the loop itself reads, and
`k.release` brings arrays up to date that iterations have left on a device (see accel.lift.between, which says too why
`n.given` may put another iterable in the place of the program's).
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Collection, Sequence

from accel.lift.assigned import Loop, name_in_locals
from accel.lift.checks import first_parameter
from accel.lift.names import Names, function_names
from accel.lift.source import FunctionNode

NOT_RUN, GONE_ON, BROKEN = 0, 1, 2
"""Results of `k.run`: the body has not run; it came to its end; it ended in `break`. A tuple means that it returned."""

BODY, RESULT, ITERABLE, READ, SWITCH = ".body", ".result", ".iterable", ".read", "accel.lift/"
"""Names of the body, its result, the loop's iterable and the facts about that iterable, and of the constant in the
place of `k`. A number follows each."""

CALL = "accel.lift/call/"
"""Name of a constant in the place of the object called after a statement; a number follows."""

_IN_FUNCTION = """
if k.on and k.tracer() is None:
    try:
        r = k.run(body, n)
    except:
        k.amend()
        raise
else:
    r = 0
if r == 0:
    pass
elif r == 2:
    break
elif r != 1:
    return r[0]
"""

_ITERABLE = "(x := 0, n := k.on and k.tracer() is None and k.knows(x), n.given(x) if n else x, x := None)[2]"

_ITERABLE_IN_MODULE = "(k.keep((0,)), k.on and k.tracer() is None and k.knows_kept(), k.given())[2]"

_AT_THE_END = "k.holds and k.release()"

_IN_MODULE = """
if k.on and k.tracer() is None:
    try:
        k.result = k.run(None)
    except:
        k.amend()
        raise
else:
    k.result = 0
if k.result == 0:
    pass
elif k.result == 2:
    break
"""


def lift(
    loop: Loop, number: int, function: FunctionNode | None, *, free: Sequence[str] = (), own: Collection[str] = ()
) -> ast.FunctionDef:
    """Give `loop` its two bodies, in place. Returns the definition of the body: in a function, it goes before the loop.

    function: around the loop; None at the top of a module. free: the function's free variables. own: variables that the
    body does not share.
    """
    names: dict[str, ast.Constant | ast.Name] = {
        "k": ast.Constant(f"{SWITCH}{number}"),
        "body": ast.Name(f"{BODY}{number}"),
        "r": ast.Name(RESULT),
        "x": ast.Name(f"{ITERABLE}{number}"),
        "n": ast.Name(f"{READ}{number}") if isinstance(loop, ast.For) else ast.Constant(None),
    }
    definition = _definition(loop, number, function, free, own)
    switching = ast.parse(_IN_MODULE if function is None else _IN_FUNCTION).body
    choice = switching[-1]
    assert isinstance(choice, ast.If)
    if function is not None and not any(isinstance(each, ast.Return) for each in _own_statements(loop.body)):
        del choice.orelse[0].orelse[:]  # type: ignore[attr-defined]  # async generators may not return values
    for each in switching:
        _Replace(names).visit(each)
        (_locate if isinstance(loop, ast.For) else _hide)(each, loop)
    choice.body = loop.body
    loop.body = switching
    loop.orelse = [_hidden(_AT_THE_END, names, loop), *loop.orelse]
    if isinstance(loop, ast.For):
        loop.iter = _looked_at(loop, names, in_module=function is None)
    return definition


def _hidden(text: str, names: dict[str, ast.Constant | ast.Name], loop: Loop) -> ast.stmt:
    made = _Replace(names).visit(ast.parse(text).body[0])
    _hide(made, loop)
    return made  # type: ignore[no-any-return]


def _looked_at(loop: ast.For, names: dict[str, ast.Constant | ast.Name], *, in_module: bool) -> ast.expr:
    """The loop's iterable, which its switch gets to see."""
    iterable = loop.iter
    text = _ITERABLE_IN_MODULE if in_module else _ITERABLE
    made: ast.expr = _Replace(names).visit(ast.parse(text, mode="eval").body)
    # all of it where the iterable begins, as what Python does with that: no line is run that the program does not have
    for each in ast.walk(made):
        ast.copy_location(each, iterable)
    match made:
        case ast.Subscript(value=ast.Tuple(elts=[ast.Call(args=[ast.Tuple() as given]), *_])):
            given.elts = [iterable]
        case ast.Subscript(value=ast.Tuple(elts=[ast.NamedExpr() as given, *_])):
            given.value = iterable
    return made


class _Replace(ast.NodeTransformer):
    """Puts other nodes in the place of names."""

    def __init__(self, names: dict[str, ast.Constant | ast.Name]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        made = copy.copy(self._names[node.id])
        if isinstance(made, ast.Name):
            made.ctx = node.ctx
        return made


def _locate(node: ast.AST, loop: Loop) -> None:
    """Let a node and all its parts stand where the loop begins: no line is run that the program does not have."""
    keyword = "for" if isinstance(loop, ast.For) else "while"
    for each in ast.walk(node):
        if "lineno" in each._attributes:
            each.lineno = each.end_lineno = loop.lineno  # type: ignore[attr-defined]
            each.col_offset = loop.col_offset  # type: ignore[attr-defined]
            each.end_col_offset = loop.col_offset + len(keyword)  # type: ignore[attr-defined]


def _hide(node: ast.AST, loop: Loop) -> None:
    """Let a node and all its parts stand nowhere: a `while` is left for its body by a jump, which runs a new line."""
    for each in ast.walk(node):
        if "lineno" in each._attributes:
            each.lineno = each.end_lineno = each.col_offset = each.end_col_offset = -1  # type: ignore[attr-defined]


def _own_statements(statements: Sequence[ast.AST]) -> list[ast.AST]:
    """All nodes in statements but for those in nested scopes."""
    found: list[ast.AST] = []
    for each in statements:
        found.append(each)
        if not isinstance(each, (*_DEFINITIONS, ast.Lambda)):
            found += _own_statements(list(ast.iter_child_nodes(each)))
    return found


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


# -- the body as a function -------------------------------------------------------------------------------------------


def _definition(
    loop: Loop, number: int, function: FunctionNode | None, free: Sequence[str], own: Collection[str]
) -> ast.FunctionDef:
    """The loop's body as a function without parameters."""
    statements = [_Leaving(first_parameter(function)).visit(each) for each in copy.deepcopy(loop.body)]
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    declarations = _declarations(loop, function, free, own)
    definition = ast.FunctionDef(f"{BODY}{number}", arguments, declarations, [])
    if "type_params" in ast.FunctionDef._fields:  # from Python 3.12 on
        definition.type_params = []  # type: ignore[attr-defined]
    _locate(definition, loop)
    definition.body = [*declarations, *statements]
    return definition


def _declarations(
    loop: Loop, function: FunctionNode | None, free: Sequence[str], own: Collection[str]
) -> list[ast.stmt]:
    """Return declarations that make the body's variables those of the function, or of the module."""
    bound = Names(loop.body).bound
    if function is None:
        outside, shared = bound, set()
    else:
        around = function_names(function)
        outside = bound & around.declared
        looked_for = {name for each in ast.walk(loop) if (name := name_in_locals(each)) is not None}
        shared = (bound | (looked_for & (around.bound | around.outer | set(free)))) - around.declared - set(own)
    made: list[ast.stmt] = []
    if outside:
        made.append(ast.Global(sorted(outside)))
    if shared:
        made.append(ast.Nonlocal(sorted(shared)))
    return made


class _Leaving(ast.NodeTransformer):
    """Turns statements of a loop's body into those of a function: what leaves the body returns how it did.

    first: the method's object, for `super()`.
    """

    def __init__(self, first: str | None) -> None:
        self._first = first
        self._depth = 0

    def _visit_loop(self, node: ast.For | ast.While) -> ast.AST:
        self._depth += 1
        node.body = [self.visit(each) for each in node.body]
        self._depth -= 1
        for name in ("target", "iter", "test"):
            if hasattr(node, name):
                setattr(node, name, self.visit(getattr(node, name)))
        node.orelse = [self.visit(each) for each in node.orelse]
        return node

    visit_For = visit_While = _visit_loop

    def visit_Break(self, node: ast.Break) -> ast.AST:
        return node if self._depth else _returning(node, ast.Constant(BROKEN))

    def visit_Continue(self, node: ast.Continue) -> ast.AST:
        return node if self._depth else _returning(node, ast.Constant(GONE_ON))

    def visit_Return(self, node: ast.Return) -> ast.AST:
        value = ast.Constant(None) if node.value is None else self.visit(node.value)
        return _returning(node, ast.Tuple([value], ast.Load()))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        # a function does not evaluate them, and a variable of another scope may not have one
        if not isinstance(node.target, ast.Name):
            return self.generic_visit(node)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], self.visit(node.value)), node)

    def _visit_declaration(self, node: ast.stmt) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)  # see `_declarations`

    visit_Global = visit_Nonlocal = _visit_declaration

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not (node.args or node.keywords):
            assert self._first is not None
            names = "__class__", self._first
            node.args = [ast.copy_location(ast.Name(name, ast.Load()), node) for name in names]
            return node
        return self.generic_visit(node)

    # -- scopes of their own: only what is evaluated at the definition belongs to the body ----------------------------

    def _visit_definition(self, node: ast.AST) -> ast.AST:
        for name in ("decorator_list", "bases", "keywords"):
            setattr(node, name, [self.visit(each) for each in getattr(node, name, [])])
        if hasattr(node, "args"):
            node.args = self.visit(node.args)
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _visit_definition

    def _visit_comprehension(self, node: ast.AST) -> ast.AST:
        # before Python 3.12, comprehensions are functions, in which `super()` finds no object
        if sys.version_info >= (3, 12):
            return self.generic_visit(node)
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension


def _returning(node: ast.stmt, value: ast.expr) -> ast.Return:
    made = ast.copy_location(ast.Return(value), node)
    for each in ast.walk(value):
        if "lineno" in each._attributes and not hasattr(each, "lineno"):
            ast.copy_location(each, node)
    return made
