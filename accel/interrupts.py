"""Interrupts: Ctrl-C, and any other signal handler of the program's that raises, while accel is at work.

Python runs handlers in the main thread, between any two instructions. What one of them raises is the program's: it is
never taken for an error of accel's. And where it would leave something half done for ever, an import above all, it
waits.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

from accel import forks

Handler = Callable[[int, FrameType | None], Any]


def _handlers() -> dict[int, Handler]:
    """The program's handlers that are Python's to run, by signal."""
    found = {}
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        if callable(handler):
            found[int(number)] = handler
    return found


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """A block in which no signal handler runs; those that were called for run afterwards, and may raise then.

    In the main thread; there are none to run in the others.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if number not in waiting:
            waiting.append(number)

    handlers: dict[int, Handler] = {}
    block = threading.get_ident(), handlers, wait
    try:
        _blocks.append(block)
        handlers.update(_handlers())
        for number in handlers:
            signal.signal(number, wait)
        yield
    finally:
        try:
            _put_back(handlers, wait)
        finally:
            _blocks[:] = [each for each in _blocks if each is not block]
            _deliver(waiting)


_blocks: list[tuple[int, dict[int, Handler], Handler]] = []
"""Those under way: the thread, the handlers that wait, and what stands in for them."""


@forks.in_child
def _in_child() -> None:
    """Another thread's block ends nowhere in a child, whose only thread is the main one."""
    for thread, handlers, ours in reversed(_blocks):
        if thread != threading.get_ident():
            _put_back(handlers, ours)
    _blocks[:] = [each for each in _blocks if each[0] == threading.get_ident()]


def _put_back(handlers: dict[int, Handler], ours: Handler) -> None:
    """All of them, also where one that is back already runs at once and raises; but none that was replaced since."""
    try:
        for number in [number for number in handlers if signal.getsignal(number) is ours]:
            signal.signal(number, handlers[number])
    except BaseException:
        _put_back(handlers, ours)
        raise


def _deliver(waiting: list[int]) -> None:
    """Each handler runs, whatever those before it raise."""
    if waiting:
        try:
            signal.raise_signal(waiting[0])
        finally:
            _deliver(waiting[1:])


def pass_on(error: BaseException) -> None:
    """Raise the error again, if a signal handler raised it: where errors of accel's own are caught."""
    codes = {_code_of(handler) for handler in _handlers().values()}
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            raise error
        trace = trace.tb_next


def _code_of(handler: Any) -> CodeType | None:
    """What a function, a method, a partial or an object that can be called runs; None for what is not Python's."""
    while hasattr(handler, "func"):
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    code = getattr(function, "__code__", None) or getattr(getattr(type(handler), "__call__", None), "__code__", None)
    return code if isinstance(code, CodeType) else None
