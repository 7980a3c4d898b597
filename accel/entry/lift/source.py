"""Sources: the syntax tree behind a code object that runs, and whether it is really what the code was compiled from.

A file may have been edited since it was imported, and other tools (assertion rewriting, macros) compile something else
than the file says. So the tree is taken only if compiling it unchanged gives the running code, all of it.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import tokenize
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple, NoReturn

from accel.platform.codes import with_nested
from accel.platform.notebook_cells import is_cell
from accel.platform.reasons import Refusal, source_line

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_COMPARED = (
    "co_name",
    "co_qualname",
    "co_firstlineno",
    "co_flags",
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_stacksize",
    "co_names",
    "co_varnames",
    "co_cellvars",
    "co_freevars",
    "co_code",
    "co_exceptiontable",
    "co_linetable",
)


class NotLiftable(Exception):
    """Carries the refusal that says why nothing is lifted."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


class FunctionSource(NamedTuple):
    """A function's definition. tree: of the module, in which other definitions may be empty. node: in `tree`."""

    tree: ast.Module
    node: FunctionNode


def not_from_source(code: CodeType, detail: str) -> NotLiftable:
    """A refusal for code that has no source, or another one."""
    return NotLiftable(Refusal("lift.source", source_line(code.co_filename, code.co_firstlineno), detail))


def parse(filename: str, code: CodeType) -> ast.Module:
    """Return the tree of a source file. Raises NotLiftable if there is none."""
    try:
        with _quietly():
            return ast.parse(_text_of(filename), filename)
    except (OSError, SyntaxError, ValueError) as error:
        raise not_from_source(code, f"{type(error).__name__} while reading {filename}") from None


def _text_of(filename: str) -> str:
    if is_cell(filename):
        return "".join(linecache.getlines(filename))
    with tokenize.open(filename) as file:
        return file.read()


def compiled(tree: ast.Module, filename: str, flags: int = 0) -> CodeType:
    """Compile a tree as an import does: with the interpreter's own level of optimization, and no one else's flags."""
    with _quietly():
        code: CodeType = compile(tree, filename, "exec", flags=flags, dont_inherit=True, optimize=-1)
    return code


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Suppress the compiler's warnings: it gave them when the program was imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def function_source(code: CodeType) -> FunctionSource:
    """Return the definition of the function that runs `code`. Raises NotLiftable if the file has another one."""
    shorter = parse(code.co_filename, code)
    for node in shorter.body:
        if isinstance(node, _DEFINITIONS) and not _holds(node, code):
            # what other definitions hold has hardly a say in the function's code, and would only take time
            node.body = [ast.copy_location(ast.Pass(), node)]
    return _found_in(shorter, code) or _found_in(parse(code.co_filename, code), code) or _raise_other(code)


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _found_in(tree: ast.Module, code: CodeType) -> FunctionSource | None:
    """The function's definition in a tree, if compiling the tree gives its code."""
    nodes = [node for node in ast.walk(tree) if _is_definition(node, code)]
    found = find_code(compiled(tree, code.co_filename), code)
    if len(nodes) != 1 or found is None or not is_same_code(found, code):
        return None
    assert isinstance(nodes[0], FunctionNode)
    return FunctionSource(tree, nodes[0])


def _raise_other(code: CodeType) -> NoReturn:
    raise not_from_source(code, "the file does not compile to the code that runs")


def module_source(code: CodeType) -> ast.Module:
    """Return the tree of the module that runs `code`. Raises NotLiftable if the file has another one."""
    tree = parse(code.co_filename, code)
    if not is_same_code(compiled(tree, code.co_filename), code):
        _raise_other(code)
    return tree


def _holds(node: ast.stmt, code: CodeType) -> bool:
    """Whether a statement spans the first line of `code`."""
    first = min((each.lineno for each in getattr(node, "decorator_list", ())), default=node.lineno)
    return min(first, node.lineno) <= code.co_firstlineno <= (node.end_lineno or node.lineno)


def _is_definition(node: ast.AST, code: CodeType) -> bool:
    """Whether a node defines the function of `code`, as far as name and line tell."""
    if not isinstance(node, FunctionNode) or node.name != code.co_name:
        return False
    return min([node.lineno, *(each.lineno for each in node.decorator_list)]) == code.co_firstlineno


def definitions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[FunctionNode, str]]:
    """Yield the functions in a tree with their qualified names, methods and nested functions too."""
    for node in ast.iter_child_nodes(tree):
        inner = prefix
        if isinstance(node, FunctionNode):
            yield node, f"{prefix}{node.name}"
            inner = f"{prefix}{node.name}.<locals>."
        elif isinstance(node, ast.ClassDef):
            inner = f"{prefix}{node.name}."
        yield from definitions(node, inner)


def code_of(node: FunctionNode, qualname: str, module: CodeType) -> CodeType:
    """Return the code of a function that a module defines. Raises NotLiftable."""
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    found = [each for each in with_nested(module) if (each.co_qualname, each.co_firstlineno) == (qualname, first)]
    if len(found) != 1:
        raise not_from_source(module, f"{qualname} is not one function in line {first}")
    return found[0]


def find_code(module: CodeType, code: CodeType) -> CodeType | None:
    """Return the one code object in a module's that has the name and the first line of `code`."""
    key = code.co_qualname, code.co_firstlineno
    found = [each for each in with_nested(module) if (each.co_qualname, each.co_firstlineno) == key]
    return found[0] if len(found) == 1 else None


def is_same_code(one: CodeType, other: CodeType) -> bool:
    """Whether two code objects are alike in everything that can be observed, and so are all that are nested in them."""
    if any(getattr(one, name) != getattr(other, name) for name in _COMPARED):
        return False
    return _is_same_constant(one.co_consts, other.co_consts)


def _is_same_constant(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, CodeType):
        return is_same_code(one, other)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_is_same_constant, one, other))
    if isinstance(one, frozenset):
        return sorted(map(repr, one)) == sorted(map(repr, other))
    # by their text: 0.0 differs from -0.0, and a NaN is like itself
    return repr(one) == repr(other)
