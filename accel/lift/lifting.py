"""Lifting: a function, or a module's code, in which chosen loops have two bodies.

The file on disk stays as it is. The code stays where it was, too: file name, lines, columns and names are the
program's, so that tracebacks, reports and coverage tools show nothing else.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from accel.lift.assigned import Loop, uncertain_reads
from accel.lift.checks import check_body, check_function, check_module
from accel.lift.loops import Block, choose
from accel.lift.names import Names
from accel.lift.source import (
    NotLiftable,
    compiled,
    find_code,
    function_source,
    module_source,
    not_from_source,
)
from accel.lift.switch import Switch
from accel.lift.transform import BODY, SWITCH, lift
from accel.reasons import Refusal, source_line


@dataclass(slots=True)
class LiftedCode:
    """Code in which loops are lifted. switches: one for each, by line. refusals: why others are not."""

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
        """Give the function its own code back. Rounds to come of loops that run now are the program's own."""
        for switch in self.lifted.switches:
            switch.on = False
        if self.function.__code__ is self.lifted.code:
            self.function.__code__ = self.original


def lift_function(function: FunctionType, lines: Iterable[int] = ()) -> LiftedFunction:
    """Lift loops of a function. Their switches are off. lines: of the loops to lift; all that can be by default.

    Raises NotLiftable if there is none, or if the function is not what its source file says.
    """
    original = function.__code__
    lifted = lifted_function_code(original, lines)
    function.__code__ = lifted.code
    return LiftedFunction(function, original, lifted)


def lifted_function_code(code: CodeType, lines: Iterable[int] = ()) -> LiftedCode:
    """As `lift_function`, for a function's code."""
    tree, node = function_source(code)
    check_function(node, code)
    chosen, refusals = _chosen(node.body, lambda loop: check_body(node, loop, code), lines, code)
    switches = [Switch(loop.lineno) for _, loop in chosen]
    uncertain = [uncertain_reads(node, loop) for _, loop in chosen]
    for number, (block, loop) in enumerate(chosen):
        _check_deletions(loop, uncertain[number], code)
        block.insert(block.index(loop), lift(loop, number, node, code.co_freevars))
    found = find_code(compiled(tree, code.co_filename), code)
    if found is None or found.co_freevars != code.co_freevars:
        raise not_from_source(code, "the lifted code has other free variables")
    return LiftedCode(_finished(found, code, switches, uncertain), switches, refusals)


def lifted_module_code(code: CodeType, lines: Iterable[int] = ()) -> LiftedCode:
    """Lift loops at the top of a module, or of a script. Raises NotLiftable."""
    tree = module_source(code)

    def check(loop: Loop) -> None:
        check_module(tree, loop, code)
        check_body(None, loop, code)

    chosen, refusals = _chosen(tree.body, check, lines, code)
    switches = [Switch(loop.lineno) for _, loop in chosen]
    bodies: list[ast.stmt] = [lift(loop, number, None) for number, (_, loop) in enumerate(chosen)]
    future = [each for each in tree.body if isinstance(each, ast.ImportFrom) and each.module == "__future__"]
    apart = compiled(ast.Module([*future, *bodies], []), code.co_filename)
    for switch, body in zip(switches, _bodies(apart), strict=True):
        _set_code(switch, _renamed(body, code), code, ())
    return LiftedCode(_with_switches(compiled(tree, code.co_filename), switches), switches, refusals)


def _chosen(
    block: Block, check: Callable[[Loop], None], lines: Iterable[int], code: CodeType
) -> tuple[list[tuple[Block, Loop]], list[Refusal]]:
    chosen, refusals = choose(block, check)
    wanted = set(lines)
    chosen = [each for each in chosen if not wanted or each[1].lineno in wanted]
    if not chosen:
        where = source_line(code.co_filename, code.co_firstlineno)
        raise NotLiftable(refusals[0] if refusals else Refusal("lift.code", where, "holds no loop"))
    return chosen, refusals


def _check_deletions(loop: Loop, uncertain: set[str], code: CodeType) -> None:
    """Refuse a body that itself unbinds what it may then read inside `try`: that it is bound before does not help."""
    deleted = sorted(uncertain & Names(loop.body).deleted)
    if deleted:
        detail = f"may read {deleted[0]} inside try after it was deleted"
        raise NotLiftable(Refusal("lift.code", source_line(code.co_filename, loop.lineno), detail))


# -- code objects -----------------------------------------------------------------------------------------------------


def _bodies(code: CodeType) -> list[CodeType]:
    """The bodies among a code object's constants, in order."""
    found = [each for each in code.co_consts if isinstance(each, CodeType) and each.co_name.startswith(BODY)]
    return sorted(found, key=lambda each: int(each.co_name.removeprefix(BODY)))


def _finished(found: CodeType, code: CodeType, switches: list[Switch], uncertain: list[set[str]]) -> CodeType:
    """The compiled function with the switches in it. Its bodies bear its own name."""
    bodies = {id(body): switch for switch, body in zip(switches, _bodies(found), strict=True)}
    constants = []
    for each in found.co_consts:
        made = _renamed(each, found)
        if id(each) in bodies:
            switch = bodies[id(each)]
            _set_code(switch, made, code, uncertain[switches.index(switch)])
            switch.owned = frozenset(made.co_freevars) - set(code.co_freevars)
        constants.append(made)
    return _with_switches(found.replace(co_consts=tuple(constants)), switches)


def _with_switches(code: CodeType, switches: list[Switch]) -> CodeType:
    texts = {f"{SWITCH}{number}": switch for number, switch in enumerate(switches)}
    # by type first: constants may be of any type, also one that is not hashable
    constants = tuple(texts.get(each, each) if type(each) is str else each for each in code.co_consts)
    return code.replace(co_consts=constants)


_IN_BODY = re.compile(r"\.<locals>\.\.body\d+|^\.body\d+\.<locals>\.")


def _renamed(constant: Any, around: CodeType) -> Any:
    """A constant of the code around the body, with the names that it would have if the body stood in its place.

    Code nested in the loop and in the body may be one object: the compiler takes it for the same constant.
    """
    if type(constant) is str:  # classes hold their qualified names as text
        return _IN_BODY.sub("", constant)
    if not isinstance(constant, CodeType):
        return constant
    name, qualname = constant.co_name, _IN_BODY.sub("", constant.co_qualname)
    if name.startswith(BODY):
        name, qualname = around.co_name, around.co_qualname
    constants = tuple(_renamed(each, around) for each in constant.co_consts)
    return constant.replace(co_name=name, co_qualname=qualname, co_consts=constants)


_INLINES_COMPREHENSIONS = sys.version_info >= (3, 12)


def _set_code(switch: Switch, body: CodeType, code: CodeType, uncertain: Iterable[str]) -> None:
    """Give a switch its body. Raises NotLiftable if the body has variables of its own: it must share all of them."""
    # from Python 3.12 on, variables of comprehensions are among those of the function around
    if body.co_varnames and not _INLINES_COMPREHENSIONS:
        detail = f"the loop's variable {body.co_varnames[0]} would not be the function's"
        raise NotLiftable(Refusal("lift.code", source_line(code.co_filename, switch.line), detail))
    places = []
    for name in uncertain:
        matching = [place for place, free in enumerate(body.co_freevars) if free == name or free.endswith(name)]
        places += matching
    switch.code, switch.uncertain = body, tuple(sorted(set(places)))
