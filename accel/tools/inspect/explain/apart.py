"""Run a job in a forked child process, so that its writes to memory do not reach this process.

The child's standard streams are the null device. Its garbage collector ignores objects that existed before, and it ends
without running exit handlers. It sends its results as JSON, one message per line.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from accel.platform.clocks import time

Message = dict[str, Any]
Send = Callable[[Message], None]
Job = Callable[[Send], None]


class Answer(NamedTuple):
    """The messages of a child. trouble: how it failed, or ""."""

    messages: list[Message]
    trouble: str


def available() -> bool:
    """Whether this platform can fork."""
    return hasattr(os, "fork")


def run_apart(job: Job, *, seconds: float, in_thread: bool = False) -> Answer:
    """Run `job(send)` in a forked child and return what it sent.

    seconds: the time limit. in_thread: run the job in a new thread of the child. That is needed if this is called from
    a profile function, during which Python calls no profile or trace functions in the calling thread.
    """
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX and Python 3.12 warn of forks beside threads; the child needs none
        process = os.fork()
    if process == 0:
        os.close(read)
        _child(job, write, in_thread)
    os.close(write)
    try:
        text, late = _read_all(read, time.monotonic() + seconds)
    finally:
        os.close(read)
        status = _end(process)
    messages = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return Answer(messages, f"the child process did not finish within {seconds:g} s" if late else _ending(status))


def _read_all(read: int, deadline: float) -> tuple[str, bool]:
    """Return the child's output, and whether the time ran out before it ended."""
    parts: list[bytes] = []
    while True:
        left = deadline - time.monotonic()
        ready, _, _ = select.select([read], [], [], max(0.0, left))
        if not ready:
            return b"".join(parts).decode(errors="replace"), True
        part = os.read(read, 1 << 16)
        if not part:
            return b"".join(parts).decode(errors="replace"), False
        parts.append(part)


def _end(process: int) -> int:
    """Kill the child if it is still running. Returns its wait status; 0 if it was killed, or reaped by the program."""
    try:
        done, status = os.waitpid(process, os.WNOHANG)
        if not done:
            time.sleep(0.01)  # it closed the pipe by ending: it needs a moment
            done, status = os.waitpid(process, os.WNOHANG)
        if not done:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return 0
    except ChildProcessError:
        return 0
    return status


def _ending(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"the child process that recorded it was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    code = os.WEXITSTATUS(status)
    return f"the child process that recorded it ended with exit code {code}" if code else ""


def _child(job: Job, write: int, in_thread: bool) -> None:
    """Run the job, and end the process in any case."""
    code = 70
    try:
        _settle_in()
        stream = os.fdopen(write, "w", encoding="utf-8")

        def send(message: Message) -> None:
            stream.write(json.dumps(message) + "\n")
            stream.flush()

        if in_thread:
            thread = threading.Thread(target=_guarded, args=(job, send))
            thread.start()
            thread.join()
        else:
            _guarded(job, send)
        code = 0
    finally:
        os._exit(code)


def _settle_in() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    gc.disable()
    gc.freeze()  # finalizers of the program's objects might delete real files
    for watched in (sys, threading):  # the program's profile and trace functions must not see the recording
        watched.setprofile(None)
        watched.settrace(None)
    # modules that the job imports must not leave files behind
    sys.dont_write_bytecode = True
    # Ctrl-C ends the child, and runs no handler of the program there
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _guarded(job: Job, send: Send) -> None:
    try:
        job(send)
    except BaseException:  # a fault in accel: report its traceback
        send({"fault": traceback.format_exc()})
