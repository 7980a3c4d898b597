"""The worker: a separate process that compiles, so that the program does not wait for the compiler or crash with it.

The worker does not share the GIL or the memory of the program. It can be stopped at any moment, and a crash of the
compiler ends the worker only. It is detached in two ways. It is no child of the program's process, which may wait for
all its children. And it is in a session of its own, which Ctrl-C at the terminal does not reach. It ends when its
standard input closes or when the program's process is gone. Both are needed: a process that the program forked keeps
the socket open.

A program that ends may leave the worker to its jobs (see accel.backend.underway.last).

Jobs and products are pickled. The socket is private to the two processes.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import pickle
import queue
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from accel.backend.underway.last import LastJobs
from accel.platform import config, files, own_code, pickling
from accel.platform.clocks import time

if TYPE_CHECKING:
    from accel.backend.disk.products import Place
    from accel.backend.job import Job, Product

_PATIENCE_S = 0.1
"""Seconds that a program that ends waits for a job to be handed over, before it stops the worker instead."""

_LATE_SHARE = 0.8
"""Share of a trial's limit of time from which its end is taken for the limit's."""

_WATCHED_S = 1.0
"""Seconds between two checks whether the program's process is still alive."""

_BOOT = """
import os, pickle, sys
if hasattr(os, "fork") and os.fork():
    os._exit(0)
sys.path[:] = pickle.loads(bytes.fromhex(sys.argv[1]))
from accel.backend.underway.worker import serve
serve(int(sys.argv[2]))
"""
"""Code that the process runs. It forks and ends at once, so that the worker is no child of the program's (see
above)."""

_LENGTH = struct.Struct("<Q")
"""The header of each message: its length in bytes."""

_FAULT = b"Fatal Py"
"""First bytes of `faulthandler`'s report. They come in place of a header if the worker ends by a fault, such as
SIGSEGV. There is no report if the system kills the worker, as Linux does for want of memory."""


class WorkerLost(Exception):
    """The worker ended before it answered, or could not be started."""


class TrialLost(WorkerLost):
    """The worker ended while it tried a program. is_fault: by a fault, and not for want of memory or time."""

    def __init__(self, what: str, *, is_fault: bool) -> None:
        super().__init__(what)
        self.is_fault = is_fault


@dataclass(frozen=True, slots=True)
class Trying:
    """Message of the worker before it tries a program. limit_s: maximum seconds of the trial."""

    limit_s: float


class Worker:
    """The program's end of the connection. It takes one job at a time; `stop` may be called from another thread.

    The connection is closed when this object is destroyed, and not by `stop`. A thread may still be reading then, and
    the descriptor's number could be reused. The connection is a socket, because writing to a pipe without a reader
    would kill a program that does not ignore SIGPIPE.
    """

    def __init__(self) -> None:
        """Start the process. Raises WorkerLost."""
        # `-I` leaves out PYTHONPATH and the current folder: the worker is given the program's own path instead
        path = [*files.import_folders(), str(own_code.PACKAGE.parent)]
        self._pid = 0
        self._line, its_end = socket.socketpair()
        self._is_ready = False
        self._turn = threading.Lock()
        self._sending = threading.Lock()
        self._line.settimeout(None)
        try:
            with its_end:
                start = subprocess.run(
                    [sys.executable, "-I", "-c", _BOOT, pickle.dumps(path).hex(), str(os.getpid())],
                    stdin=its_end.fileno(),
                    stdout=its_end.fileno(),
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    # jobs are for the CPU: JAX starts no other platform there
                    env={**os.environ, "JAX_PLATFORMS": "cpu"},
                    check=False,
                )
            if start.returncode:
                raise WorkerLost(f"the compiling process could not be started: exit code {start.returncode}")
            # it sends its id first: `subprocess` knows only the process that forked it and ended
            self._pid = pickle.loads(_read(self._line.fileno()))
        except (OSError, ValueError) as error:
            raise WorkerLost(f"the compiling process could not be started: {error}") from error

    def wait_until_ready(self) -> None:
        """Wait until the worker has imported what a job needs, which keeps a processor busy. Raises WorkerLost."""
        with self._turn:  # the first who comes reads the message
            try:
                if not self._is_ready:
                    _read(self._line.fileno())
            except OSError as error:
                raise WorkerLost("the compiling process has ended") from error
            self._is_ready = True

    @property
    def process(self) -> int:
        """The id of its process; 0 after the program has let go of it."""
        return self._pid

    def compile(self, job: Job, place: Place | None) -> Product:
        """The job's product. place: where the worker keeps it if the program has ended by then; None: nowhere.

        Raises Unsupported, WorkerLost, and what pickling the job raises.
        """
        message = _message(job, place)
        try:
            with self._sending:
                self._send(message)
            self.wait_until_ready()
            answer = pickle.loads(_read(self._line.fileno()))
            if isinstance(answer, Trying):
                answer = self._tried(answer)
        except OSError as error:
            raise WorkerLost("the compiling process has ended") from error
        if isinstance(answer, Exception):
            raise answer
        product: Product = answer
        return product

    def _tried(self, trying: Trying) -> Any:
        """The answer after a trial. Raises TrialLost."""
        began = time.monotonic()
        try:
            return pickle.loads(_read(self._line.fileno()))
        except _Crashed as error:
            raise TrialLost("it crashed", is_fault=True) from error
        except (OSError, WorkerLost) as error:
            # the worker's clock began before this one, which a busy machine lets wait
            is_late = time.monotonic() - began >= _LATE_SHARE * trying.limit_s
            what = f"it took more than {trying.limit_s:.0f} s" if is_late else "it was killed"
            raise TrialLost(what, is_fault=False) from error

    def leave(self, more: Iterable[tuple[Job, Place]]) -> bool:
        """Let the worker finish its job, and more of them, without the program. Returns False if it cannot be told now.

        A thread that waits for its answer gets WorkerLost. Raises what pickling a job raises.
        """
        messages = [_message(job, place) for job, place in more]
        if not self._sending.acquire(timeout=_PATIENCE_S):
            return False
        try:
            for message in (*messages, b""):
                self._send(message)
            self._line.shutdown(socket.SHUT_RDWR)
        except OSError:
            return False
        finally:
            self._sending.release()
        self._pid = 0
        return True

    def _send(self, message: bytes) -> None:
        self._line.sendall(_LENGTH.pack(len(message)) + message, getattr(socket, "MSG_NOSIGNAL", 0))

    def stop(self) -> None:
        """Kill the worker. A thread that waits for its answer gets WorkerLost."""
        try:
            if self._pid:
                os.kill(self._pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        except OSError:
            pass

    def forget(self) -> None:
        """Close the connection in a forked child of the program, where the worker must not be used."""
        self._pid = 0
        self._line.close()

    def __del__(self) -> None:
        line = getattr(self, "_line", None)  # starting it may have failed before there was one
        if line is not None:
            line.close()


def _message(job: Job, place: Place | None) -> bytes:
    return pickling.dumps((replace(config.current(), **job.settings), job, place))


class _Crashed(WorkerLost):
    """The worker ended by a fault."""


def _read(line: int) -> bytearray:
    """Read the next message. Raises WorkerLost if the connection is closed."""
    header = _read_bytes(line, _LENGTH.size)
    if header == _FAULT:
        raise _Crashed("the compiling process has crashed")
    (length,) = _LENGTH.unpack(header)
    return _read_bytes(line, length)


def _read_bytes(line: int, length: int) -> bytearray:
    message = bytearray()
    while len(message) < length:
        part = os.read(line, min(length - len(message), 1 << 20))
        if not part:
            raise WorkerLost("the compiling process ended before it answered")
        message += part
    return message


# -- in the worker -----------------------------------------------------------------------------------------------------


def serve(program: int) -> None:
    """Answer jobs until the program is gone. program: the id of its process."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print must not get between the answers
    faulthandler.enable(answers, all_threads=False)
    jobs: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
    last = LastJobs()
    # in threads, so that it ends in the middle of a compile too
    threading.Thread(target=_listen, args=(jobs, last), daemon=True).start()
    threading.Thread(target=_watch, args=(program, last), daemon=True).start()
    _answer(answers, os.getpid())
    _get_ready()
    _answer(answers, "ready")

    @contextlib.contextmanager
    def limited(seconds: float) -> Iterator[None]:
        """Tell the program of a trial, and end this process if the trial takes more than its maximum seconds."""
        _answer(answers, Trying(seconds))
        faulthandler.dump_traceback_later(seconds, exit=True)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()

    while True:
        outcome = _outcome(jobs.get(), last.begin, limited)
        if last.end(outcome):
            _answer(answers, outcome)


def _get_ready() -> None:
    """Import what the first job needs, whether it is there yet or not."""
    try:
        import jax  # noqa: F401

        import accel.backend.compile
        import accel.rules

        accel.rules.load()
        # they stay: looking through JAX's own objects again and again takes some hundredths of each job's time
        gc.collect()
        gc.freeze()
    except Exception:  # it comes up again in the first job, which reports it
        pass


def _listen(jobs: queue.SimpleQueue[bytearray], last: LastJobs) -> None:
    with contextlib.suppress(WorkerLost, OSError):
        while True:
            message = _read(0)
            if message:
                last.come()
                jobs.put(message)
            else:
                last.may_be_finished = True
    last.go_on_alone()


def _watch(program: int, last: LastJobs) -> None:
    while True:
        time.sleep(_WATCHED_S)
        try:
            os.kill(program, 0)
        # it is there, but belongs to another user
        except PermissionError:
            pass
        except OSError:
            last.go_on_alone()


def _answer(answers: int, message: object) -> None:
    try:
        text = pickling.dumps(message)
    except Exception as error:
        text = pickling.dumps(RuntimeError(f"an answer that cannot be sent: {error}"))
    left = memoryview(_LENGTH.pack(len(text)) + text)
    with contextlib.suppress(OSError):  # the program has gone: `_listen` will know what it has left to do
        while left:
            # a write to a socket may take a part of it only
            left = left[os.write(answers, left) :]


def _outcome(
    text: bytearray,
    begin: Callable[[Place | None], None],
    limited: Callable[[float], contextlib.AbstractContextManager[None]],
) -> Any:
    """A job's product, or the exception that it raised. begin: is told where it is to be kept. limited: see `serve`."""
    from accel.backend.compile import compile_job
    from accel.rules import load

    try:
        load()
        settings, job, place = pickle.loads(text)
        config.set_current(settings)
        begin(place)
        return compile_job(job, limited)
    except Exception as error:
        return error
