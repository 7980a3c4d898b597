"""Interrupts: Ctrl-C, and other signal handlers of the program that raise, while accel's code is running.

Python runs signal handlers in the main thread, between any two instructions. What a handler raises belongs to the
program, and is never treated as an error of accel's. Where it would leave something half done for good, above all an
import, the handler is deferred.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import contextlib
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

from accel.platform import forks

Handler = Callable[[int, FrameType | None], Any]

_NUMBERS = sorted(int(number) for number in signal.valid_signals())


class HandlerStandIn:
    """A handler of accel's that runs in place of the program's own, wherever those are written in Python.

    handlers: the program's, by number. Both methods may be interrupted by a handler, and called again.
    """

    def __init__(self, handler: Handler) -> None:
        self.handlers: dict[int, Any] = {}
        self._handler = handler

    def take_over(self) -> None:
        for number, handler in _handlers().items():
            if handler != self._handler:
                self.handlers[number] = handler
                replaced = signal.signal(number, self._handler)
                if replaced != self._handler:  # the program's ran in between, and put another in its place
                    self.handlers[number] = replaced

    def put_back(self) -> None:
        """Put the program's back, but where it has set another."""
        for number, handler in list(self.handlers.items()):
            if signal.getsignal(number) == self._handler:
                replaced = signal.signal(number, handler)
                if replaced != self._handler:  # the program's ran in between, and put another in its place
                    signal.signal(number, replaced)


class Deferral:
    """A block in which no signal handler runs. Those of signals that arrived run at its end, and may raise then.

    It has an effect in the main thread only, since handlers run nowhere else. A handler that the program sets meanwhile
    stays.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._stand_in = HandlerStandIn(self._wait)
        self._waiting: list[int] = []

    def __enter__(self) -> Deferral:
        if threading.current_thread() is threading.main_thread():
            _under_way.append(self)
            try:
                _in_full(self._stand_in.take_over)
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            _in_full(self._stand_in.put_back)
        finally:
            _under_way[:] = [each for each in _under_way if each is not self]
            self._deliver()

    @contextlib.contextmanager
    def lifted(self) -> Iterator[None]:
        """A block inside, for the program's own code, in which handlers run as usual."""
        if self not in _under_way:
            yield
            return
        try:
            _in_full(self._stand_in.put_back)
            self._deliver()
            yield
        finally:
            _in_full(self._stand_in.take_over)

    def _wait(self, number: int, frame: FrameType | None) -> None:
        if number not in self._waiting:
            self._waiting.append(number)

    def _deliver(self) -> None:
        """Run the handlers of all noted signals, even if some of them raise."""
        if self._waiting:
            try:
                signal.raise_signal(self._waiting.pop(0))
            finally:
                self._deliver()

    @property
    def is_asked_to_end(self) -> bool:
        """Whether Ctrl-C, or the signal by which processes are asked to end, waits for the block's end."""
        return signal.SIGINT in self._waiting or signal.SIGTERM in self._waiting

    def held(self) -> list[Handler]:
        """The handlers that are replaced at present."""
        return list(self._stand_in.handlers.values())

    def end_in_child(self) -> None:
        """In a forked child: put the handlers back if the block belongs to a thread that does not exist there."""
        if self._thread != threading.get_ident():
            _in_full(self._stand_in.put_back)


def _in_full(step: Callable[[], None]) -> None:
    """Run a step to its end: again if a handler that is not deferred interrupts it. Then raises the interrupt."""
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
    """The handlers that are written in Python, by signal number."""
    handlers = {number: _signal.getsignal(number) for number in _NUMBERS}  # `signal` makes enums: 30 us
    return {number: handler for number, handler in handlers.items() if callable(handler)}


def raised_by_handler(error: BaseException) -> bool:
    """Whether an error that was caught in accel's code was raised by a signal handler of the program."""
    trace = error.__traceback__
    if trace is None or trace.tb_next is None:  # it arose where it was caught: in no handler
        return False
    waiting = [handler for each in _under_way for handler in each.held()]
    # a handler shows in the traceback, called from the line of accel's that it interrupted
    codes = {_code_of(handler) for handler in (*_handlers().values(), *waiting)}
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(trace))


def pass_on(error: BaseException) -> None:
    """Raise the error again if a signal handler raised it. For places that catch accel's own errors."""
    if raised_by_handler(error):
        raise error


def _code_of(handler: Callable[..., Any]) -> CodeType | None:
    """The code that a function, method, partial or callable object runs; None if it is not written in Python."""
    while hasattr(handler, "func"):
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    code = getattr(function, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
    return code if isinstance(code, CodeType) else None
