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

Statements between others become a function, too:

    BODY    becomes    if k.on and k.tracer() is None:
                           try: r = k.run(lambda: (a, b, ...), None)
                           except: k.amend(); raise
                       else: r = 0
                       if r == 0: BODY
                       elif r == 2: break
                       elif r == 3: continue
                       elif r != 1: return r[0]

Its code is compiled apart. The `lambda` is never called: of it, that code takes the cells of its variables.

`k` is a constant of the code, and the names `body`, `r`, `x` and `n` are such that no program can name them. At the top
of a module, where they would be seen among its names, `k` holds all of this. `n` says what the loop itself reads.
`k.release` brings arrays up to date that iterations have left on a device. Why `n.given` may put another iterable in
the place of the program's, accel.entry.lift.between says.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Collection, Sequence

from accel.entry.lift.assigned import name_in_locals
from accel.entry.lift.checks import first_parameter
from accel.entry.lift.names import Names, function_names
from accel.entry.lift.regions import Region
from accel.entry.lift.source import FunctionNode

NOT_RUN, GONE_ON, BROKEN, CONTINUED = 0, 1, 2, 3
"""Results of `k.run`: the body has not run; it came to its end; it ended in `break`; in `continue`. A tuple means that
it returned. The body of a loop ends in GONE_ON where it continues."""

BODY, RESULT, ITERABLE, READ, SWITCH = ".body", ".result", ".iterable", ".read", "accel.lift/"
"""Names of the body, its result, the loop's iterable and the facts about that iterable, and of the constant in the
place of `k`. A number follows each."""

OWN = ".own"
"""Name of the body that has variables of its own; a number follows."""

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
    region: Region, number: int, function: FunctionNode | None, *, free: Sequence[str] = (), own: Collection[str] = ()
) -> ast.FunctionDef:
    """Give a loop its two bodies, in place. Returns the definition of the body: in a function, it goes before the loop.

    function: around the loop; None at the top of a module. free: the function's free variables. own: variables that the
    body does not share.
    """
    loop = region.loop
    assert loop is not None
    names: dict[str, ast.expr] = {
        "k": ast.Constant(f"{SWITCH}{number}"),
        "body": ast.Name(f"{BODY}{number}"),
        "r": ast.Name(RESULT),
        "x": ast.Name(f"{ITERABLE}{number}"),
        "n": ast.Name(f"{READ}{number}") if isinstance(loop, ast.For) else ast.Constant(None),
    }
    made = definition(region, f"{BODY}{number}", function, free=free, own=own)
    switching = ast.parse(_IN_MODULE if function is None else _IN_FUNCTION).body
    choice = switching[-1]
    assert isinstance(choice, ast.If)
    if function is not None and ast.Return not in _ways_out(loop.body):
        del choice.orelse[0].orelse[:]  # type: ignore[attr-defined]  # async generators may not return values
    for each in switching:
        _Replace(names).visit(each)
        if isinstance(loop, ast.For):
            _locate(each, loop)
        else:
            _hide(each)
    choice.body = loop.body
    loop.body = switching
    loop.orelse.insert(0, _hidden(_AT_THE_END, names))  # the list stays: other regions may stand in it
    if isinstance(loop, ast.For):
        loop.iter = _looked_at(loop, names, in_module=function is None)
    return made


def lift_piece(statements: Sequence[ast.stmt], number: int, *, cells: Collection[str] | None) -> list[ast.stmt]:
    """The statements that replace outlined ones. cells: the variables of their code; None in a module."""
    names: dict[str, ast.expr] = {
        "k": ast.Constant(f"{SWITCH}{number}"),
        "r": ast.Name(RESULT),
        "n": ast.Constant(None),
        "body": ast.parse(f"lambda: ({''.join(f'{name}, ' for name in cells or ())})", mode="eval").body,
    }
    made = ast.parse(_IN_MODULE if cells is None else _IN_FUNCTION).body
    arms = [made[-1]]
    while arms[-1].orelse:  # type: ignore[attr-defined]
        arms += arms[-1].orelse  # type: ignore[attr-defined]
    first, broken, *returned = arms
    ways = _ways_out(statements)
    going_on = copy.deepcopy(broken)
    going_on.test.comparators[0].value, going_on.body = CONTINUED, [ast.Continue()]  # type: ignore[attr-defined]
    kept = [
        each
        for each, way in ((broken, ast.Break), (going_on, ast.Continue), *((arm, ast.Return) for arm in returned))
        if way in ways
    ]
    for arm, after in zip([first, *kept], [*kept, None], strict=True):
        arm.orelse = [] if after is None else [after]  # type: ignore[attr-defined]
    for each in made:
        _Replace(names).visit(each)
        _hide(each)
    first.body = list(statements)  # type: ignore[attr-defined]
    return made


def _ways_out(statements: Sequence[ast.stmt]) -> set[type[ast.stmt]]:
    """How statements may be left other than at their end, or by an exception: `Break`, `Continue`, `Return`."""
    found: set[type[ast.stmt]] = set()
    pending: list[tuple[ast.AST, bool]] = [(each, False) for each in statements]
    while pending:
        node, in_loop = pending.pop()
        if isinstance(node, ast.Return) or (isinstance(node, (ast.Break, ast.Continue)) and not in_loop):
            found.add(type(node))
        if not isinstance(node, (*_DEFINITIONS, ast.Lambda)):
            inside = node.body if isinstance(node, (ast.For, ast.While, ast.AsyncFor)) else ()
            pending += [(each, in_loop or each in inside) for each in ast.iter_child_nodes(node)]
    return found


def _hidden(text: str, names: dict[str, ast.expr]) -> ast.stmt:
    made = _Replace(names).visit(ast.parse(text).body[0])
    _hide(made)
    return made  # type: ignore[no-any-return]


def _looked_at(loop: ast.For, names: dict[str, ast.expr], *, in_module: bool) -> ast.expr:
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

    def __init__(self, names: dict[str, ast.expr]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        made = copy.copy(self._names[node.id])
        if isinstance(made, ast.Name):
            made.ctx = node.ctx
        return made


def _locate(node: ast.AST, statement: ast.stmt) -> None:
    """Let a node and all its parts stand where a statement begins: no line is run that the program does not have."""
    keyword = {ast.For: "for", ast.While: "while"}.get(type(statement), "")
    for each in ast.walk(node):
        if "lineno" in each._attributes:
            each.lineno = each.end_lineno = statement.lineno  # type: ignore[attr-defined]
            each.col_offset = statement.col_offset  # type: ignore[attr-defined]
            each.end_col_offset = statement.col_offset + len(keyword)  # type: ignore[attr-defined]


def _hide(node: ast.AST) -> None:
    """Let a node and all its parts stand nowhere: a `while` is left for its body by a jump, which runs a new line."""
    for each in ast.walk(node):
        if "lineno" in each._attributes:
            each.lineno = each.end_lineno = each.col_offset = each.end_col_offset = -1  # type: ignore[attr-defined]


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


# -- the body as a function -------------------------------------------------------------------------------------------


def definition(
    region: Region,
    name: str,
    function: FunctionNode | None,
    *,
    free: Sequence[str] = (),
    own: Collection[str] = (),
    within: Collection[str] | None = None,
    at: ast.stmt | None = None,
) -> ast.FunctionDef:
    """A region's statements as a function of this name without parameters.

    free, own: see `lift`. within: the variables of the outlined body in which the region stands, if it does. at: where
    it begins; by default, at its first statement, or its loop.
    """
    leaving = _Leaving(first_parameter(function), GONE_ON if region.loop is not None else CONTINUED)
    statements = [leaving.visit(each) for each in copy.deepcopy(region.statements)]
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    declarations = _declarations(region, function, free, own, within)
    made = ast.FunctionDef(name, arguments, declarations, [])
    if "type_params" in ast.FunctionDef._fields:  # from Python 3.12 on
        made.type_params = []  # type: ignore[attr-defined]
    _locate(made, at or (region.statements[0] if region.loop is None else region.loop))
    made.body = [*declarations, *statements]
    return made


def _declarations(
    region: Region,
    function: FunctionNode | None,
    free: Sequence[str],
    own: Collection[str],
    within: Collection[str] | None,
) -> list[ast.stmt]:
    """Return declarations that make the body's variables those of the function, or of the module."""
    bound = _of_program(Names(region.statements).bound)
    if function is None:
        outside, shared = bound, set()
    else:
        around = function_names(function)
        outside = bound & around.declared
        known = _of_program(around.bound) | around.outer | set(free)
        if region.loop is None:  # what looks at its caller's variables finds all of them there
            looked_for = (known if within is None else known & set(within)) - {"__class__"}
        else:
            looked_for = {name for each in ast.walk(region.loop) if (name := name_in_locals(each)) is not None} & known
        shared = (bound | looked_for) - around.declared - set(own)
    made: list[ast.stmt] = []
    if outside:
        made.append(ast.Global(sorted(outside)))
    if shared:
        made.append(ast.Nonlocal(sorted(shared)))
    return made


def _of_program(names: set[str]) -> set[str]:
    """Names without those that only what is outlined in the region has."""
    return {name for name in names if not name.startswith(".")}


class _Leaving(ast.NodeTransformer):
    """Turns statements of a loop's body into those of a function: what leaves the body returns how it did.

    first: the method's object, for `super()`. going_on: what `continue` returns.
    """

    def __init__(self, first: str | None, going_on: int) -> None:
        self._first = first
        self._going_on = going_on
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
        return node if self._depth else _returning(node, ast.Constant(self._going_on))

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
