"""Code objects of outlined loops: the switches among their constants, and the names that their bodies bear."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any

from accel.entry.lift.source import NotLiftable
from accel.entry.lift.switch import Switch
from accel.entry.lift.transform import BODY, CALL, OWN, SWITCH
from accel.platform.bodies import add_lifted
from accel.platform.reasons import Refusal, source_line

_IN_BODY = re.compile(r"\.<locals>\.\.(body|own)\d+|^\.(body|own)\d+\.<locals>\.")
_INLINES_COMPREHENSIONS = sys.version_info >= (3, 12)


def bodies_of(code: CodeType) -> Iterator[tuple[int, CodeType]]:
    """Yield the bodies among a code object's constants, with their numbers."""
    for each in code.co_consts:
        if isinstance(each, CodeType) and each.co_name.startswith((BODY, OWN)):
            yield int(each.co_name.removeprefix(BODY).removeprefix(OWN)), each


def finished(code: CodeType, switches: Sequence[Switch], calls: Sequence[Callable[[], object]] = ()) -> CodeType:
    """Compiled code with its switches and calls, and those of the code nested in it.

    Bodies bear the names of what is around.
    """
    if code.co_firstlineno < 0:  # what only holds variables: it has no place, and is never called
        return code
    bodies = {id(body): switches[number] for number, body in bodies_of(code)}
    texts = _texts(switches, calls)
    constants = []
    for each in code.co_consts:
        made = each
        if id(each) in bodies:
            made = set_body(bodies[id(each)], each)
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


def finished_body(body: CodeType, switch: Switch, switches: Sequence[Switch]) -> CodeType:
    """A body's code with the switches of what is outlined in it. switch: its own."""
    texts = _texts(switches)
    numbers = {id(each): number for number, each in bodies_of(body)}
    constants = []
    for each in body.co_consts:
        if id(each) in numbers:
            constants.append(set_body(switches[numbers[id(each)]], each))
        else:
            constants.append(texts[each] if type(each) is str and each in texts else _renamed(each, switch))
    around = switch.around
    assert around is not None
    return body.replace(co_name=around.co_name, co_qualname=around.co_qualname, co_consts=tuple(constants))


def _texts(switches: Sequence[Switch], calls: Sequence[Callable[[], object]] = ()) -> dict[str, Any]:
    """The objects that replace texts among a code object's constants, by text."""
    texts: dict[str, Any] = {f"{SWITCH}{number}": switch for number, switch in enumerate(switches)}
    return texts | {f"{CALL}{number}": call for number, call in enumerate(calls)}


def set_body(switch: Switch, body: CodeType) -> CodeType:
    """Give a switch its body, named as if it stood in the code around it. Returns the body's code.

    Raises NotLiftable if the body has other variables than its own: it must share all of them.
    """
    is_piece = switch.column is not None
    own = () if is_piece and body.co_name.startswith(BODY) else tuple(switch.own)
    # from Python 3.12 on, variables of comprehensions are among those of the function around
    lost = [name for name in body.co_varnames if not name.endswith(own)]
    if lost and not _INLINES_COMPREHENSIONS:
        assert switch.around is not None
        detail = f"the variable {lost[0]} would not be the function's"
        raise NotLiftable(Refusal("lift.code", source_line(switch.around.co_filename, switch.line), detail))
    code: CodeType = _renamed(body, switch)
    switch.codes.append(code)
    if body.co_name.startswith(BODY):
        switch.set_body(code)
    if body.co_name.startswith(OWN) or not is_piece:
        switch.recorded = code
    return code


def _renamed(constant: Any, switch: Switch) -> Any:
    """A constant of a body, with the names that it would have if the body stood in its place.

    Code nested in the loop and in its body may be one object: the compiler takes it for the same constant.
    """
    if type(constant) is str:  # classes hold their qualified names as text
        return _IN_BODY.sub("", constant)
    if not isinstance(constant, CodeType) or constant.co_firstlineno < 0:  # as in `finished`
        return constant
    name, qualname = constant.co_name, _IN_BODY.sub("", constant.co_qualname)
    if name.startswith((BODY, OWN)):
        assert switch.around is not None
        name, qualname = switch.around.co_name, switch.around.co_qualname
    constants = tuple(_renamed(each, switch) for each in constant.co_consts)
    return constant.replace(co_name=name, co_qualname=qualname, co_consts=constants)
