"""Code objects of outlined loops: the switches among their constants, and the names that their bodies bear."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any

from accel.lift.source import NotLiftable
from accel.lift.switch import Switch
from accel.lift.transform import BODY, CALL, SWITCH
from accel.process.bodies import add_lifted
from accel.reasons import Refusal, source_line

_IN_BODY = re.compile(r"\.<locals>\.\.body\d+|^\.body\d+\.<locals>\.")
_INLINES_COMPREHENSIONS = sys.version_info >= (3, 12)


def bodies_of(code: CodeType) -> Iterator[tuple[int, CodeType]]:
    """Yield the bodies among a code object's constants, with their numbers."""
    for each in code.co_consts:
        if isinstance(each, CodeType) and each.co_name.startswith(BODY):
            yield int(each.co_name.removeprefix(BODY)), each


def finished(code: CodeType, switches: Sequence[Switch], calls: Sequence[Callable[[], object]] = ()) -> CodeType:
    """Compiled code with its switches and calls, and those of the code nested in it.

    Bodies bear the names of what is around.
    """
    bodies = {id(body): switches[number] for number, body in bodies_of(code)}
    texts: dict[str, Any] = {f"{SWITCH}{number}": switch for number, switch in enumerate(switches)}
    texts.update((f"{CALL}{number}", call) for number, call in enumerate(calls))
    constants = []
    for each in code.co_consts:
        made = each
        if id(each) in bodies:
            made = set_body(bodies[id(each)], each, code)
        elif isinstance(each, CodeType):
            made = finished(each, switches)
        elif type(each) is str:
            made = texts[each] if each in texts else _IN_BODY.sub("", each)
        constants.append(made)
    lifted = code.replace(co_consts=tuple(constants), co_qualname=_IN_BODY.sub("", code.co_qualname))
    written = {each.around for each in constants if isinstance(each, Switch)}
    if len(written) == 1 and (around := written.pop()) is not None and code.co_flags & inspect.CO_OPTIMIZED:
        add_lifted(lifted, around)
    return lifted


def set_body(switch: Switch, body: CodeType, around: CodeType) -> CodeType:
    """Give a switch its body, named as if it stood in the code around it. Returns the body's code.

    Raises NotLiftable if the body has variables of its own: it must share all of them.
    """
    # from Python 3.12 on, variables of comprehensions are among those of the function around
    lost = [name for name in body.co_varnames if not name.endswith(tuple(switch.own))]
    if lost and not _INLINES_COMPREHENSIONS:
        detail = f"the loop's variable {lost[0]} would not be the function's"
        raise NotLiftable(Refusal("lift.code", source_line(around.co_filename, switch.line), detail))
    switch.set_body(_renamed(body, around))
    assert switch.code is not None
    return switch.code


def _renamed(constant: Any, around: CodeType) -> Any:
    """A constant of a body, with the names that it would have if the body stood in its place.

    Code nested in the loop and in its body may be one object: the compiler takes it for the same constant.
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
