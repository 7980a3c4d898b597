"""Tracebacks of exceptions that leave a body: as if its statements had run in the loop itself."""

from __future__ import annotations

from collections.abc import Collection
from types import CodeType, TracebackType

from accel.platform.reasons import Refused
from accel.platform.tracebacks import entries, is_ours, linked, with_callers

_UNBOUND = "cannot access free variable {!r} where it is not associated with a value in enclosing scope"
_UNBOUND_LOCAL = "cannot access local variable {!r} where it is not associated with a value"


def translated(error: NameError, codes: Collection[CodeType], owned: Collection[str]) -> UnboundLocalError | None:
    """Return the error that the function itself raises if its body, of `codes`, found a variable unbound.

    None for other errors.
    """
    innermost = entries(error.__traceback__)[-1]
    if type(error) is not NameError or not _is_one_of(innermost, codes):
        return None
    name = next((each for each in owned if str(error) == _UNBOUND.format(each)), None)
    if name is None:
        return None
    return UnboundLocalError(_UNBOUND_LOCAL.format(name)).with_traceback(innermost)


def _is_one_of(entry: TracebackType, codes: Collection[CodeType]) -> bool:
    return any(entry.tb_frame.f_code is code for code in codes)


def amended(error: BaseException, codes: Collection[CodeType], line: int) -> None:
    """Change the traceback of an error that has just reached the frame of an outlined loop.

    The body's entry becomes the loop's, and accel's own are left out, unless accel itself raised the error, outside the
    body. codes: those that the body has had. line: the loop's.
    """
    loop, *inner = entries(error.__traceback__)
    body = next((place for place, each in enumerate(inner) if _is_one_of(each, codes)), None)
    if body is None and _is_fault(error) and inner and is_ours(inner[-1]):
        error.__traceback__ = TracebackType(loop.tb_next, loop.tb_frame, loop.tb_lasti, line)
        return
    callers = set(with_callers(loop.tb_frame))
    again = next((place for place, each in enumerate(inner) if each.tb_frame in callers), None)
    if again is not None and (body is None or again < body):
        # a bare `raise` in the body, of what was raised in the function or its callers, that leaves the traceback alone
        error.__traceback__ = linked([each for each in inner[again:] if not is_ours(each)])
        return
    # the function that only calls the body is accel's, too
    below = inner if body is None else inner[body + 1 :]
    following = linked([each for each in below if not is_ours(each)])
    at = loop.tb_lasti if body is None else _same_place(inner[body], loop.tb_frame.f_code, loop.tb_lasti)
    line = line if body is None else inner[body].tb_lineno
    error.__traceback__ = TracebackType(following, loop.tb_frame, at, line)


def _is_fault(error: BaseException) -> bool:
    """Whether an error that accel itself raised is none that it was asked to raise."""
    return isinstance(error, Exception) and not isinstance(error, Refused)


def _same_place(entry: TracebackType, code: CodeType, otherwise: int) -> int:
    """The instruction in `code` that stands where that of `entry` stands in the source."""
    positions = list(entry.tb_frame.f_code.co_positions())[entry.tb_lasti // 2]
    for place, each in enumerate(code.co_positions()):
        if each == positions:
            return 2 * place
    return otherwise
