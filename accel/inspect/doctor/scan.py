"""Static analysis of a function, without importing the program: its array work, and possible stops of a recording.

The analysis resolves imported names, but does not know the values of arguments and attributes. So a finding *may* stop
a recording, if its line is reached.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.hook.imports import locate
from accel.inspect.sources import Function, Source
from accel.process.own_code import is_project_file
from accel.record.objects.scan import problem
from accel.record.state.opaque import is_harmless, opaque_reason
from accel.record.values.draws.generators import is_maker, is_method
from accel.record.values.methods import METHODS
from accel.rules import load
from accel.rules.rule import Unsupported, lookup
from accel.rules.scalars import HOST_FUNCTIONS
from accel.rules.special import Unrecordable
from accel.rules.tables import ufuncs

_BUILTIN_EFFECTS = {"print": "effect.print", "input": "effect.print", "open": "effect.file"}

_EFFECTS = frozenset("time datetime random secrets uuid io pathlib shutil logging sys os subprocess socket".split())
"""Standard modules whose functions have effects outside the process; see `accel.record.state.opaque` for the
reasons."""

_GUARDED = frozenset({"os.environ", "os.getenv", "os.environ.get"})
"""Reads of the environment, which are guards rather than effects."""

_PYTHONS_OWN = frozenset(
    """math cmath itertools functools operator typing collections dataclasses enum abc warnings copy contextlib numbers
    types __future__ fractions decimal re string json textwrap statistics""".split()
)
"""Standard modules that do not concern arrays. Only a recording shows whether their calls stop it."""

_FILES_OF_NUMPY = frozenset("save savez savez_compressed savetxt load loadtxt genfromtxt fromfile".split())


_DRAWS = (
    frozenset(name for name in vars(np.random.Generator) if not name.startswith("_"))
    - METHODS.keys()
    - {
        "bit_generator",
        "spawn",
    }
)
"""Methods of NumPy's random generators, whatever the generator is called."""

_COMMON_DRAWS = frozenset(dir(random.Random))
"""Method names that Python's generators and other objects have too (`choice`): array work only if a size is given."""

_SELVES = frozenset({"self", "cls"})


@dataclass(frozen=True, slots=True)
class Finding:
    """A line that may stop a recording. reason: an id of accel.reasons."""

    reason: str
    line: int
    detail: str


@dataclass(frozen=True, slots=True)
class StaticScan:
    """The result of the analysis of one function.

    array_calls: number of calls of NumPy, SciPy and array methods. arithmetic: number of operators between non-literal
    values. calls: full names of the program's own functions that it calls, as far as they are known.
    """

    array_calls: int
    arithmetic: int
    findings: tuple[Finding, ...]
    calls: frozenset[str]

    @property
    def weight(self) -> float:
        """A rough measure of the array work, for sorting."""
        return self.array_calls + 0.25 * self.arithmetic


def scan(function: Function, own_modules: frozenset[str]) -> StaticScan:
    """Analyse one function. own_modules: the first parts of the names of the program's own modules."""
    looking = _Look(_aliases(function), own_modules, function)
    for node in function.node.body:
        looking.visit(node)
    findings = looking.findings
    stopper = problem(function.code)
    if stopper is not None:
        reason, detail, line = stopper
        findings.append(Finding(reason, line, detail))
    unique = dict.fromkeys(sorted(findings, key=lambda each: (each.line, each.reason)))
    return StaticScan(looking.array_calls, looking.arithmetic, tuple(unique), frozenset(looking.calls))


def _aliases(function: Function) -> dict[str, str]:
    """Return the imported objects behind the function's names: imports at module level and inside it, without
    parameters."""
    names = dict(imports_of(function.source))
    names.update(_imported(ast.walk(function.node), function.source))
    arguments = function.node.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if each is not None:
            names.pop(each.arg, None)
    return names


@functools.lru_cache(maxsize=512)
def imports_of(source: Source) -> Mapping[str, str]:
    """Return the names that the module's top level imports, also inside `if` and `try`, with their full names."""
    return dict(_imported(_top_level(source.tree), source))


def _top_level(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield child
            yield from _top_level(child)


def _imported(nodes: Iterator[ast.AST], source: Source) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(node, source)
            for alias in node.names:
                yield alias.asname or alias.name, f"{origin}.{alias.name}"


def _origin(node: ast.ImportFrom, source: Source) -> str:
    """Return the module that names are imported from, with relative dots resolved."""
    if not node.level:
        return node.module or ""
    package = source.module.split(".")
    up = node.level - source.file.endswith("__init__.py")
    return ".".join([*package[: max(0, len(package) - up)], *filter(None, [node.module])])


class _Look(ast.NodeVisitor):
    """Visits one function's body, including functions that are defined in it."""

    def __init__(self, aliases: Mapping[str, str], own_modules: frozenset[str], function: Function) -> None:
        self._aliases = aliases
        self._own = own_modules
        self._function = function
        self._loops = 0
        self.calls: set[str] = set()
        self.array_calls = 0
        self.arithmetic = 0
        self.findings: list[Finding] = []

    def visit_Call(self, node: ast.Call) -> None:
        name = self._dotted(node.func)
        if name is not None:
            self._judge(name, node)
        elif isinstance(node.func, ast.Attribute) and (node.func.attr in METHODS or _draws(node.func.attr, node)):
            self.array_calls += 1
        self._note_own(node.func)
        self.generic_visit(node)

    def _note_own(self, called: ast.expr) -> None:
        """Record a call of `self.method` or of a function of the same module."""
        module, owner = self._function.source.module, self._function.qualname.rpartition(".")[0]
        if isinstance(called, ast.Name):
            self.calls.add(f"{module}.{called.id}")
        elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id in _SELVES:
            self.calls.add(f"{module}.{owner}.{called.attr}")

    def visit_BinOp(self, node: ast.BinOp) -> None:
        literals = isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant)
        # `%` may format text
        self.arithmetic += not literals and not isinstance(node.op, ast.Mod)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.arithmetic += not isinstance(node.value, ast.Constant)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self._loop(node, _names(node.target))

    def _loop(self, node: ast.For, names: frozenset[str]) -> None:
        """Record a nested loop that accesses array elements: it probably runs over single cells."""
        self._loops += 1
        if self._loops == 2 and any(_is_cell(each, names) for each in ast.walk(node)):
            detail = "a loop in a loop over elements: an operation for each of them"
            self.findings.append(Finding("code.elements", node.lineno, detail))
        self.generic_visit(node)
        self._loops -= 1

    def _dotted(self, node: ast.expr) -> str | None:
        """Return the full name of a called object, if it begins with an import or is a builtin."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        if node.id in self._aliases:
            return ".".join([self._aliases[node.id], *parts])
        return f"builtins.{node.id}" if not parts and hasattr(builtins, node.id) else None

    def _judge(self, name: str, node: ast.Call) -> None:
        root = name.partition(".")[0]
        if root in ("numpy", "scipy"):
            self.array_calls += 1
        if root in self._own:
            self.calls.add(name)
        else:
            reason = verdict(name)
            if reason is not None:
                self.findings.append(Finding(reason, node.lineno, f"{name.removeprefix('builtins.')}()"))


def _draws(method: str, node: ast.Call) -> bool:
    """Return whether a method call draws an array of random numbers, judged by its name."""
    sized = any(keyword.arg == "size" for keyword in node.keywords)
    return method in _DRAWS and (sized or method not in _COMMON_DRAWS)


def reach(own: StaticScan, scans: Mapping[str, StaticScan]) -> float:
    """Return the array work of a function and of all program functions that it calls, each counted once."""
    seen: set[str] = set()
    stack = [own]
    total = own.weight
    while stack:
        fresh = {name for name in stack.pop().calls if name in scans and scans[name] is not own} - seen
        seen |= fresh
        stack += [scans[name] for name in fresh]
        total += sum(scans[name].weight for name in fresh)
    return total


def _names(target: ast.AST) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def _is_cell(node: ast.AST, names: frozenset[str]) -> bool:
    """Return whether the node is an array element whose index contains one of `names`, a loop's variables."""
    return isinstance(node, ast.Subscript) and not names.isdisjoint(_names(node.slice))


@functools.cache
def verdict(name: str) -> str | None:
    """Return the id of the reason for which a call of the function with this full name stops a recording, or None."""
    root, _, rest = name.partition(".")
    if root == "builtins":
        return _BUILTIN_EFFECTS.get(rest)
    if root in _PYTHONS_OWN or name in _GUARDED:
        return None
    if root in _EFFECTS:
        return _effect(name)
    if root in ("numpy", "scipy"):
        return _rule_verdict(name)
    return None if _is_of_project(root) else "call.opaque"


def _is_of_project(module: str) -> bool:
    """Return whether a top-level module is the user's own, judged by the folders of `sys.path`. Imports nothing."""
    origin = getattr(locate(module), "origin", None)
    return origin is not None and is_project_file(origin)


def _effect(name: str) -> str | None:
    if name.startswith("os.path."):
        return None if name.rpartition(".")[2] in ("join", "basename", "dirname", "splitext") else "effect.file"
    value = _resolve(name)
    if value is None:
        return "call.opaque"
    return None if is_method(value) or is_maker(value) else opaque_reason(value)


def _rule_verdict(name: str) -> str | None:
    """Return `verdict` for a function of NumPy or SciPy, from the table of rules."""
    load(everything=True)
    if name.startswith("numpy.random."):
        value = _resolve(name)
        return None if is_method(value) or is_maker(value) else "effect.random"
    if name.startswith("numpy.") and name.rpartition(".")[2] in _FILES_OF_NUMPY:
        return "effect.file"
    value = _resolve(name)
    if value is None or isinstance(value, type) or is_harmless(value):
        return None
    rule = lookup(value)
    if rule is not None:
        special = rule.recorded.special
        return special.reason if isinstance(special, Unrecordable) else None
    if isinstance(value, np.ufunc):
        return _ufunc_verdict(value)
    if value in HOST_FUNCTIONS or name.startswith("numpy.testing"):
        return None
    return "rule.missing" if name.startswith("numpy.") else "call.opaque"


def _ufunc_verdict(ufunc: np.ufunc) -> str | None:
    try:
        ufuncs.rule_for(ufunc)
    except Unsupported as gap:
        return gap.reason
    return None


def _resolve(name: str) -> Any:
    """Return the object with a full name in NumPy, SciPy or the standard library; None if there is none."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:end]))
        except Exception:
            continue
        for part in parts[end:]:
            value = getattr(value, part, None)
        return value
    return None
