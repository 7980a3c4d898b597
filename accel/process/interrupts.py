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

from accel.process import forks

Handler = Callable[[int, FrameType | None], Any]

_NUMBERS = sorted(int(number) for number in signal.valid_signals())


class Deferral:
    """A block in which no signal handler runs; those that were called for run at its end, and may raise then.

    In the main thread; there are none to run in the others. A handler that the program sets meanwhile stays.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._handlers: dict[int, Handler] = {}
        self._waiting: list[int] = []

    def __enter__(self) -> Deferral:
        if threading.current_thread() is threading.main_thread():
            _under_way.append(self)
            try:
                _in_full(self._hold)
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            _in_full(self._let_go)
        finally:
            _under_way[:] = [each for each in _under_way if each is not self]
            self._deliver()

    @contextlib.contextmanager
    def lifted(self) -> Iterator[None]:
        """A block inside in which handlers run as ever: the program's own code."""
        if self not in _under_way:
            yield
            return
        try:
            _in_full(self._let_go)
            self._deliver()
            yield
        finally:
            _in_full(self._hold)

    def _hold(self) -> None:
        """Have all of them wait."""
        for number, handler in _handlers().items():
            if handler != self._wait:
                self._handlers[number] = handler
                signal.signal(number, self._wait)

    def _let_go(self) -> None:
        """Put all of them back."""
        for number in [number for number in self._handlers if signal.getsignal(number) == self._wait]:
            signal.signal(number, self._handlers[number])

    def _wait(self, number: int, frame: FrameType | None) -> None:
        if number not in self._waiting:
            self._waiting.append(number)

    def _deliver(self) -> None:
        """Each handler runs, whatever those before it raise."""
        if self._waiting:
            try:
                signal.raise_signal(self._waiting.pop(0))
            finally:
                self._deliver()

    def held(self) -> list[Handler]:
        """The handlers that wait."""
        return list(self._handlers.values())

    def end_in_child(self) -> None:
        """Where another thread's block ends nowhere: in a forked child, whose only thread is the main one."""
        if self._thread != threading.get_ident():
            _in_full(self._let_go)


def _in_full(step: Callable[[], None]) -> None:
    """A step, again where a handler that does not wait, or no longer, runs meanwhile and raises: that comes after."""
    raised: BaseException | None = None
    for _ in _NUMBERS:
        try:
            step()
            break
        except BaseException as error:
            raised = raised or error
    if raised is not None:
        raise raised


_under_way: list[Deferral] = []


@forks.in_child
def _in_child() -> None:
    for each in reversed(_under_way):
        each.end_in_child()


def _handlers() -> dict[int, Handler]:
    """The program's handlers that are Python's to run, by signal."""
    found = {number: signal.getsignal(number) for number in _NUMBERS}
    return {number: handler for number, handler in found.items() if callable(handler)}


def raised_by_handler(error: BaseException) -> bool:
    """Whether a signal handler of the program's raised an error that was caught in code of accel's."""
    waiting = [handler for each in _under_way for handler in each.held()]
    codes = {_code_of(handler) for handler in (*_handlers().values(), *waiting)}
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def pass_on(error: BaseException) -> None:
    """Raise the error again, if a signal handler raised it: where errors of accel's own are caught."""
    if raised_by_handler(error):
        raise error


def _code_of(handler: Any) -> CodeType | None:
    """What a function, a method, a partial or an object that can be called runs; None for what is not Python's."""
    while hasattr(handler, "func"):
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    code = getattr(function, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
    return code if isinstance(code, CodeType) else None
