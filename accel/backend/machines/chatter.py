"""Hide lines that libraries below JAX print on the program's streams. The program's output must stay as it is.

Gloo, which connects the CPUs of several processes, prints on standard output whom it has found, at the first collective
of each set of devices. JAX's coordination service logs on standard error that it is told to outlive ranks.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator

_CHATTER = re.compile(rb"\[Gloo\] |[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (coordination_|preemption_|client_server)")

_lock = threading.RLock()

_usual_errors = [2]
"""Stack of file descriptors. The last one is standard error as the user sees it, even while output is held back."""


def say(line: str) -> None:
    """Write a line to standard error at once, even while output is held back."""
    with contextlib.suppress(OSError):
        os.write(_usual_errors[-1], f"accel: {line}\n".encode())


@contextlib.contextmanager
def held_back(wanted: bool = True) -> Iterator[None]:
    """Hold back writes to the process's streams within the block. Afterwards all but the chatter is written.

    wanted: False makes the block do nothing.
    """
    if not wanted:
        yield
        return
    with _lock, contextlib.ExitStack() as files:
        usual = {number: os.dup(number) for number in _streams()}
        held = {number: files.enter_context(tempfile.TemporaryFile()) for number in usual}
        try:
            for number, file in held.items():
                os.dup2(file.fileno(), number)
            _usual_errors.append(usual.get(2, 2))
            yield
        finally:
            _usual_errors[1:] = []
            for number, own in usual.items():
                os.dup2(own, number)
                os.close(own)
            for number, file in held.items():
                file.seek(0)
                for line in file.read().splitlines(keepends=True):
                    if not _CHATTER.match(line):
                        os.write(number, line)


def _streams() -> list[int]:
    """Return the descriptors of the process's output and error streams, if they are open.

    In a process that started without one, another file may have its number.
    """
    return [number for number, stream in ((1, sys.__stdout__), (2, sys.__stderr__)) if stream and _is_open(number)]


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def silence(errors: bool) -> int:
    """Silence the process's streams in a rank other than 0. Returns a descriptor that still is standard error.

    errors: True leaves standard error open. When rank 0 dies, JAX prints a long message in each other rank.
    """
    streams, null = _streams(), os.open(os.devnull, os.O_WRONLY)
    usual = os.dup(2 if 2 in streams else null)
    for number in streams:
        if number == 1 or not errors:
            os.dup2(null, number)
    os.close(null)
    return usual
