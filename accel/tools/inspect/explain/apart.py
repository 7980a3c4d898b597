"""Run a job in a forked child process, so that its writes to memory do not reach this process.

The child's standard streams are the null device. Its garbage collector ignores objects that existed before, and it ends
without running the program's exit handlers.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
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
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(job, sender, in_thread))
    collects = gc.isenabled()
    gc.disable()  # in the child, finalizers of the program's objects might delete real files
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX and Python 3.12 warn of forks beside threads; the child needs none
        child.start()
    if collects:
        gc.enable()
    sender.close()
    messages: list[Message] = []
    deadline, late = time.monotonic() + seconds, False
    try:
        while not (late := not receiver.poll(max(0.0, deadline - time.monotonic()))):
            messages.append(receiver.recv())
    except EOFError:  # it has ended
        child.join(1.0)
    finally:
        receiver.close()
        child.kill()
        child.join()
    return Answer(
        messages, f"the child process did not finish within {seconds:g} s" if late else _ending(child.exitcode)
    )


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"the child process that recorded it was ended by {signal.Signals(-code).name}"
    return f"the child process that recorded it ended with exit code {code}" if code else ""


def _child(job: Job, sender: Connection, in_thread: bool) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    gc.freeze()
    for watched in (sys, threading):  # the program's profile and trace functions must not see the recording
        watched.setprofile(None)
        watched.settrace(None)
    # modules that the job imports must not leave files behind
    sys.dont_write_bytecode = True
    # Ctrl-C ends the child, and runs no handler of the program there
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def guarded() -> None:
        try:
            job(sender.send)
        except BaseException:  # a fault in accel: report its traceback
            sender.send({"fault": traceback.format_exc()})

    if in_thread:
        thread = threading.Thread(target=guarded)
        thread.start()
        thread.join()
    else:
        guarded()
    os._exit(0)
