"""The worker: a process of its own that compiles, so that the program neither waits nor dies for it.

It takes no turns with the program's threads, its memory is not the program's, it can be stopped at any moment, and a
compiler that crashes takes nothing with it. It is detached: no child of the program's process, which may wait for its
own children, and in another session, which an interrupt at the terminal does not reach. It ends when its standard input
closes or the program's process is gone, whichever is seen first: a process that the program forked keeps the pipe open.

Jobs and products are pickled, over pipes that nobody else has.
"""

from __future__ import annotations

import os
import pickle
import queue
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
sys.path[:] = pickle.load(sys.stdin.buffer)
from accel.worker import serve
serve()
"""


class Lost(Exception):
    """The worker ended before it answered, or could not be started."""


class Worker:
    """The program's end of the pipes. One job at a time; `stop` may come from another thread."""

    def __init__(self) -> None:
        """Start the process. Raises Lost."""
        path = [*sys.path, str(Path(__file__).parent.parent)]
        environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _BOOT],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=environment,
            )
            self._send([os.path.abspath(each) for each in path])
            self._send(os.getpid())
            self._process.wait()  # for the one that detached it
            self._pid: int = self._receive()
        except (OSError, ValueError) as error:
            raise Lost(f"the compiling process could not be started: {error}") from error

    def _send(self, message: Any) -> None:
        assert self._process.stdin is not None
        try:
            pickle.dump(message, self._process.stdin, protocol=5)
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise Lost("the compiling process has ended") from error

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        try:
            return pickle.load(self._process.stdout)
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
            raise Lost("the compiling process ended before it answered") from error

    def compile(self, job: Any) -> Any:
        """The job's product. Raises Unsupported, Lost, and what pickling the job raises."""
        settings = replace(config.current(), **job.settings)
        text = pickle.dumps((settings, job), protocol=5)
        self._send(text)
        answer = self._receive()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stop(self) -> None:
        """End it at once."""
        self.forget()
        try:
            os.kill(self._pid, 9)
        except OSError:
            pass

    def forget(self) -> None:
        """Close the pipes: what a forked child of the program does, for whom the worker is not there."""
        for end in (self._process.stdin, self._process.stdout):
            try:
                if end is not None:
                    os.close(end.fileno())
            except (OSError, ValueError):
                pass


# -- in the worker -----------------------------------------------------------------------------------------------------


def serve() -> None:
    """Answer jobs until nobody is there to ask."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    program = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    threading.Thread(target=_watch, args=(program,), daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    _answer(answers, os.getpid())
    while True:
        _answer(answers, _outcome(jobs.get()))


def _listen(jobs: queue.SimpleQueue[bytes]) -> None:
    try:
        while True:
            jobs.put(pickle.load(sys.stdin.buffer))
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


def _answer(answers: Any, message: Any) -> None:
    try:
        text = pickle.dumps(message, protocol=5)
    except Exception as error:
        text = pickle.dumps(RuntimeError(f"an answer that cannot be sent: {error}"))
    try:
        answers.write(text)
        answers.flush()
    except OSError:
        os._exit(0)


def _outcome(text: bytes) -> Any:
    """A job's product, or the exception that it gave."""
    from accel.compile import compile_job
    from accel.rules import load

    try:
        load()
        settings, job = pickle.loads(text)
        config.set_current(settings)
        return compile_job(job)
    except Exception as error:
        return error
