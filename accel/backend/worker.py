"""The worker: a process of its own that compiles, so that the program neither waits nor dies for it.

It takes no turns with the program's threads, its memory is not the program's, it can be stopped at any moment, and a
compiler that crashes takes nothing with it. It is detached: no child of the program's process, which may wait for its
own children, and in another session, which an interrupt at the terminal does not reach. It ends when its standard input
closes or the program's process is gone, whichever is seen first: a process that the program forked keeps the line open.

Jobs and products are pickled, over a line that nobody else has.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from accel import config

NICENESS = 10
"""How far the worker stands back behind the program, where there are not enough processors for both."""

_WATCHED_S = 1.0
"""Seconds between two looks whether the program's process is still there."""

_BOOT = """
import os, pickle, sys
if hasattr(os, "fork") and os.fork():
    os._exit(0)
sys.path[:] = pickle.loads(bytes.fromhex(sys.argv[1]))
from accel.backend.worker import serve
serve(int(sys.argv[2]))
"""

_LENGTH = struct.Struct("<Q")
"""What goes before each message: how many bytes it has."""


class WorkerLost(Exception):
    """The worker ended before it answered, or could not be started."""


class Worker:
    """The program's end of the line. One job at a time; `stop` may come from another thread.

    The line to it is closed when nobody holds this any more, since a thread may be reading: its number goes to others.
    It is a socket, as a pipe that has no reader any more would end a program which does not ignore SIGPIPE.
    """

    def __init__(self) -> None:
        """Start the process. Raises WorkerLost."""
        path = [os.path.abspath(each) for each in (*sys.path, str(Path(__file__).parents[2]))]
        self._pid = 0
        self._line, its_end = socket.socketpair()
        self._line.settimeout(None)
        try:
            with its_end:
                start = subprocess.run(
                    [sys.executable, "-I", "-c", _BOOT, pickle.dumps(path).hex(), str(os.getpid())],
                    stdin=its_end.fileno(),
                    stdout=its_end.fileno(),
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    env={**os.environ, "JAX_PLATFORMS": "cpu"},
                    check=False,
                )
            if start.returncode:
                raise WorkerLost(f"the compiling process could not be started: exit code {start.returncode}")
            self._pid = pickle.loads(_read(self._line.fileno()))
        except (OSError, ValueError) as error:
            raise WorkerLost(f"the compiling process could not be started: {error}") from error

    def compile(self, job: Any) -> Any:
        """The job's product. Raises Unsupported, WorkerLost, and what pickling the job raises."""
        message = pickle.dumps((replace(config.current(), **job.settings), job), protocol=5)
        try:
            self._line.sendall(_LENGTH.pack(len(message)) + message, getattr(socket, "MSG_NOSIGNAL", 0))
            answer = pickle.loads(_read(self._line.fileno()))
        except OSError as error:
            raise WorkerLost("the compiling process has ended") from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stop(self) -> None:
        """End it at once. Whoever waits for its answer is told that it is lost."""
        try:
            if self._pid:
                os.kill(self._pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        except OSError:
            pass

    def forget(self) -> None:
        """Close the line: what a forked child of the program does, for whom the worker is not there."""
        self._pid = 0
        self._line.close()

    def __del__(self) -> None:
        self._line.close()


def _read(line: int) -> bytearray:
    """The next message. Raises WorkerLost where there is none any more."""
    (length,) = _LENGTH.unpack(_read_bytes(line, _LENGTH.size))
    return _read_bytes(line, length)


def _read_bytes(line: int, length: int) -> bytearray:
    found = bytearray()
    while len(found) < length:
        part = os.read(line, min(length - len(found), 1 << 20))
        if not part:
            raise WorkerLost("the compiling process ended before it answered")
        found += part
    return found


# -- in the worker -----------------------------------------------------------------------------------------------------


def serve(program: int) -> None:
    """Answer jobs until nobody is there to ask. program: the process that asks."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    jobs: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    threading.Thread(target=_watch, args=(program,), daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    _answer(answers, os.getpid())
    while True:
        _answer(answers, _outcome(jobs.get()))


def _listen(jobs: queue.SimpleQueue[bytearray]) -> None:
    try:
        while True:
            jobs.put(_read(0))
    finally:
        os._exit(0)


def _watch(program: int) -> None:
    while True:
        time.sleep(_WATCHED_S)
        try:
            os.kill(program, 0)
        except PermissionError:
            pass
        except OSError:
            os._exit(0)


def _answer(answers: int, message: Any) -> None:
    try:
        text = pickle.dumps(message, protocol=5)
    except Exception as error:
        text = pickle.dumps(RuntimeError(f"an answer that cannot be sent: {error}"))
    left = memoryview(_LENGTH.pack(len(text)) + text)
    try:
        while left:
            left = left[os.write(answers, left) :]
    except OSError:
        os._exit(0)


def _outcome(text: bytearray) -> Any:
    """A job's product, or the exception that it gave."""
    from accel.backend.compile import compile_job
    from accel.rules import load

    try:
        load()
        settings, job = pickle.loads(text)
        config.set_current(settings)
        return compile_job(job)
    except Exception as error:
        return error
