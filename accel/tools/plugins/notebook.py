"""IPython's extension: `%load_ext accel` gives `%%accel` and `%%accel_profile`.

A cell runs as IPython would run it, with two exceptions. The functions that it defines are accelerated, including
methods of its classes. The loops at its top level are outlined. The cell's source is transformed before it runs, so its
own calls are accelerated as well.

Errors of cells are shown at the line that raised them.

A notebook's kernel reads line numbers from the frames of a traceback, not from the traceback's entries. The frame of an
outlined loop then points at the call of its body.
"""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import operator
from collections import Counter
from collections.abc import Iterator
from types import CodeType, TracebackType
from typing import Any

from accel.dispatch import accelerated, get_ready
from accel.entry.lift.iterations import start
from accel.entry.lift.lifting import lifted_tree
from accel.entry.lift.source import NotLiftable
from accel.platform import config, logs
from accel.platform.clocks import time
from accel.platform.config import SettingError
from accel.platform.ledger import current_run, ledgers
from accel.platform.tracebacks import entries, linked
from accel.reports.summary import verified
from accel.reports.words import as_factor, in_s, plural
from accel.tools.plugins.lines import LineProfile, line_profile

_FUTURES = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
"""The compiler's flags that `from __future__` imports set."""

MARK = "__accel_accelerated__"
"""Hidden name of the decorator in the notebook's namespace."""


def load_ipython_extension(shell: Any) -> None:
    """Add the magics to an IPython shell. IPython calls this for `%load_ext accel`."""
    for name, magic in (("accel", run_cell), ("accel_profile", profile_cell)):
        shell.register_magic_function(_bound(shell, magic), "cell", name)
    try:
        get_ready(None)
    except SettingError as error:
        logs.LOGGER.error("%s", error)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magics. Accelerated functions stay accelerated."""
    for name in ("accel", "accel_profile"):
        shell.magics_manager.magics["cell"].pop(name, None)
    shell.user_ns.pop(MARK, None)


def _bound(shell: Any, magic: Any) -> Any:
    def bound(line: str, cell: str) -> Any:
        __tracebackhide__ = True  # IPython shows the user's own lines
        return magic(shell, line, cell)

    bound.__doc__ = magic.__doc__
    return bound


def run_cell(shell: Any, line: str, cell: str) -> None:
    """Run the cell with its functions, methods and loops accelerated.

    `%%accel`, or `%%accel MODE` with auto, verify or strict. The cell ends with a line about itself: its time and
    NumPy's, and how many calls were compiled, or, under verify, how many of those that were compared agreed.
    """
    __tracebackhide__ = True
    before, earlier = _compared(), _Counts()
    _execute(shell, line, cell)
    if line.strip() == "verify":
        checks, differences = map(operator.sub, _compared(), before)
        print(f"accel: {verified(checks.total(), len(differences))}")
    elif told := earlier.since():
        print(told)


class _Counts:
    """The figures of all calls at the moment when a cell begins."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._saved_s = current_run().saved_s
        self._calls, self._compiled = _calls()

    def since(self) -> str:
        """Return what the cell has taken since, in one line; "" if it called nothing that is accelerated."""
        calls, compiled = _calls()
        calls, compiled = calls - self._calls, compiled - self._compiled
        if not calls:
            return ""
        seconds, saved_s = time.perf_counter() - self._began, current_run().saved_s - self._saved_s
        usual_s, is_told = max(0.0, seconds + saved_s), not current_run().is_busy
        instead = f", on NumPy about {in_s(usual_s)} ({as_factor(usual_s / seconds)})" if compiled and is_told else ""
        return f"accel: this cell took {in_s(seconds)}{instead}; {compiled} of {plural(calls, 'call')} compiled"


def _calls() -> tuple[int, int]:
    """The calls so far, and those of them that were compiled."""
    books = ledgers()
    return sum(book.calls for book in books), sum(book.compiled_calls for book in books)


def _compared() -> tuple[Counter[str], Counter[str]]:
    """By function: the calls compared so far, and the comparisons that found a difference."""
    found = {book.target: sum(each.count for each in book.differences.values()) for book in ledgers()}
    return Counter({book.target: book.comparisons for book in ledgers()}), Counter(found)


def profile_cell(shell: Any, line: str, cell: str) -> LineProfile:
    """Run the cell like `%%accel`, and show how long each line ran, on NumPy or compiled, and why on NumPy."""
    __tracebackhide__ = True
    with line_profile() as profile:
        _execute(shell, line, cell)
    return profile


def _execute(shell: Any, line: str, cell: str) -> None:
    """Run a cell. Raises what it raises."""
    __tracebackhide__ = True
    mode = line.strip() or None
    if mode is not None:
        _check(mode)
    text = "\n" + shell.transform_cell(cell)  # lines count as in the notebook, from the one with the magic
    name = shell.compile.cache(text, shell.displayhook.prompt_count, raw_code=cell)
    tree = shell.transform_ast(shell.compile.ast_parse(text, filename=name))
    shell.user_ns[MARK] = shell.user_ns_hidden[MARK] = _decorator(mode)
    last = _shown_last(shell, tree)
    try:
        exec(_code(shell, tree, name, mode), shell.user_ns)
        if last is not None:
            exec(compile(last, name, "single", flags=_flags(shell), dont_inherit=True), shell.user_ns)
    except BaseException as error:
        error.__traceback__ = with_lines_of_frames(error.__traceback__, name)
        raise


def _check(mode: str) -> None:
    """Raise IPython's UsageError, which is shown as one line, for an unknown mode."""
    from IPython.core.error import UsageError

    try:
        config.check("mode", mode)
    except SettingError as error:
        raise UsageError(str(error)) from None


def _decorator(mode: str | None) -> Any:
    def decorate(function: Any) -> Any:
        try:
            return accelerated(function, mode=mode)
        except TypeError:  # none that accel takes: it stays as it is
            return function

    return decorate


def _flags(shell: Any) -> int:
    """Return the compiler flags set by `from __future__` imports in earlier cells."""
    flags: int = shell.compile.flags & _FUTURES
    return flags


def _shown_last(shell: Any, tree: ast.Module) -> ast.Interactive | None:
    """Remove the last expression, which the notebook shows, from a tree and return it."""
    if shell.ast_node_interactivity == "none" or not tree.body or not isinstance(tree.body[-1], ast.Expr):
        return None
    return ast.Interactive([tree.body.pop()])


def _code(shell: Any, tree: ast.Module, name: str, mode: str | None) -> CodeType:
    """Compile a cell, with its functions marked and the loops at its top level outlined."""
    for node in list(_functions(tree)):
        mark = ast.copy_location(ast.Name(MARK, ast.Load()), node)
        node.decorator_list.append(mark)
    plain: CodeType = compile(tree, name, "exec", flags=_flags(shell), dont_inherit=True)
    if not any(isinstance(node, (ast.For, ast.While)) for node in tree.body):
        return plain
    try:
        made = lifted_tree(copy.deepcopy(tree), plain, flags=_flags(shell))
    except NotLiftable as error:
        current_run().note(f"not lifted: {error.refusal.where}: {error.refusal.why} [{error.refusal.reason}]")
        return plain
    for switch in made.switches:
        start(switch, shell.user_ns, f"In[{shell.displayhook.prompt_count}]:{switch.line}", rtol=None, mode=mode)
    return made.code


_KNOWN_DECORATORS = frozenset({"staticmethod", "classmethod", "property"})
"""Decorators that a function may have beside accel's. Others may need the plain function, as `numba.njit` does."""


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield the functions at a cell's top level and the methods of its classes, except special methods.

    Python turns some special methods into class methods, if they are plain functions.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            special = node.name.startswith("__") and node.name not in ("__init__", "__call__")
            names = set(map(ast.unparse, node.decorator_list))
            if not special and names <= _KNOWN_DECORATORS:
                yield node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node)


# -- errors of cells --------------------------------------------------------------------------------------------------


def with_lines_of_frames(traceback: TracebackType | None, cell: str) -> TracebackType | None:
    """Return a traceback in which the cell's own frame is at the line that its entry names. cell: the source's name."""
    return linked([_stand_in(each) if _is_elsewhere(each, cell) else each for each in entries(traceback)])


def _is_elsewhere(entry: TracebackType, cell: str) -> bool:
    code = entry.tb_frame.f_code
    return (code.co_filename, code.co_name) == (cell, "<module>") and entry.tb_frame.f_lineno != entry.tb_lineno


def _stand_in(entry: TracebackType) -> TracebackType:
    """Return a traceback entry for the same source line, with a new frame at that line."""
    code = entry.tb_frame.f_code
    line, *columns = list(code.co_positions())[entry.tb_lasti // 2]
    end, start, stop = columns if line == entry.tb_lineno and None not in columns else (entry.tb_lineno, -1, -1)
    name = ast.Name("Exception", ast.Load())
    raising = ast.Raise(name)
    place = ast.Pass(lineno=entry.tb_lineno, end_lineno=end, col_offset=start, end_col_offset=stop)  # type: ignore[arg-type]
    for node in (raising, name):
        ast.copy_location(node, place)
    made = compile(ast.Module([raising], []), code.co_filename, "exec", dont_inherit=True)
    try:
        exec(made, entry.tb_frame.f_globals, {"Exception": Exception})
    except Exception as error:
        return entries(error.__traceback__)[-1]
    raise AssertionError("the code raises")
