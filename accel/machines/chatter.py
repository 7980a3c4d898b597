"""Chatter: lines that libraries below JAX print on the program's streams. The program's output must stay as it is.

The library that joins the CPUs of several processes (Gloo) says on standard output whom it has found, at the first
collective of each set of devices. JAX's coordination service logs on standard error that it is told to outlive ranks.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_CHATTER = re.compile(rb"\[Gloo\] |[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (coordination_|preemption_|client_server)")

_STREAMS = 1, 2

_lock = threading.RLock()


@contextmanager
def held_back(wanted: bool = True) -> Iterator[None]:
    """A block in which what is written to the process's streams waits. Afterwards all but the chatter is written.

    wanted: if not, the block is like any other.
    """
    if not wanted:
        yield
        return
    with _lock, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        usual = [os.dup(number) for number in _STREAMS]
        try:
            for number, file in zip(_STREAMS, (out, err), strict=True):
                os.dup2(file.fileno(), number)
            yield
        finally:
            for number, own in zip(_STREAMS, usual, strict=True):
                os.dup2(own, number)
                os.close(own)
            for number, file in zip(_STREAMS, (out, err), strict=True):
                file.seek(0)
                for line in file.read().splitlines(keepends=True):
                    if not _CHATTER.match(line):
                        os.write(number, line)


def silence(errors: bool) -> int:
    """For a rank other than 0: the process's streams show nothing any more. Returns one that still is standard error.

    errors: whether standard error stays. When rank 0 dies, JAX says so at length in each of the others.
    """
    usual, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    for number in _STREAMS[: 1 if errors else 2]:
        os.dup2(null, number)
    os.close(null)
    return usual
