"""Compiling in the background: two queues of pending programs, their threads, and the end of the process.

A pending program first goes to the loading queue. If it is not on disk, it goes on to the compiling queue. The worker
process compiles it (see accel.backend.underway.worker), or this process if there can be no worker. A program compiled
by the worker goes back to the loading queue. Each queue has a thread of its own, so that programs on disk do not wait
for a compile. All threads end as soon as the program does.

Before JAX is imported, the program's own thread looks on disk instead; see `_load_now`. A worker that has outlived an
earlier run may be about to finish a program. Such a program waits in a queue of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import operator
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from accel.backend import devices
from accel.backend.disk import cache, products
from accel.backend.executable import leak_executables
from accel.backend.underway.pending import PendingProgram
from accel.backend.underway.supervisor import supervisor
from accel.platform import background, config, ending, gain, interrupts, logs, tuning
from accel.platform.clocks import time
from accel.platform.ledger import current_run

LEAVE_S = 60.0
"""At exit, the process waits this many seconds for a background thread to leave JAX's code, because ending the process
earlier would crash it. With a worker, it waits at most for one program to be loaded."""

LOOKED_S = 0.2
"""Seconds between two looks whether another run's worker has finished a program."""

_LOADER, _COMPILER, _WAITER = "accel-load", "accel-compile", "accel-wait"
"""The names of the threads."""


@contextlib.contextmanager
def _charged() -> Iterator[None]:
    """Charge the block's CPU time in this thread as a cost: the program's threads wait for the GIL meanwhile."""
    started = time.thread_time()
    try:
        yield
    finally:
        current_run().charge("loading", time.thread_time() - started)


_PRIORITY = operator.attrgetter("is_for_this_run", "urgency")


class Queue:
    """A priority queue of pending programs for one step, and the thread that does the step. Most urgent comes first.

    The thread starts with the first program. It is a daemon: Python would wait for any other at exit, before `close`
    has emptied the queue. The condition guards all but the step, which runs without it. closed: for good, by `close`.
    """

    def __init__(self, name: str, step: Callable[[PendingProgram], None]) -> None:
        self._name = name
        self._step = step
        self._waiting: list[PendingProgram] = []
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._left: list[threading.Thread] = []
        self.closed = threading.Event()

    def add(self, pending: PendingProgram) -> None:
        """Add a pending program; starts the thread if there is none."""
        with self._condition:
            if self.closed.is_set():  # a step of the other queue has ended after `close`
                return
            self._waiting.append(pending)
            if self._thread is None:
                self._start()
            self._condition.notify()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while True:
            with self._condition:
                while self._thread is threading.current_thread() and not self._waiting:
                    self._condition.wait()
                if self._thread is not threading.current_thread():  # it was replaced by `leave`, or stopped
                    return
                pending = max(self._waiting, key=_PRIORITY)  # not a heap: priorities change while programs wait
                self._waiting.remove(pending)
            with background.threads.python():
                try:
                    with tuning.short_switch_interval(), tuning.rare_garbage_collection(), _charged():
                        self._step(pending)
                except Exception as error:  # it would end the thread
                    pending.fail(error)
                del pending  # what ends with it, ends here

    def leave(self) -> None:
        """Leave the thread to its current program. A new one takes the programs in the queue."""
        with self._condition:
            self._let_go()
            if self._waiting:
                self._start()

    @property
    def waiting(self) -> list[PendingProgram]:
        """Programs in the queue, the most urgent first."""
        with self._condition:
            return sorted(self._waiting, key=_PRIORITY, reverse=True)

    def close(self) -> list[threading.Thread]:
        """Empty the queue for good, and let its thread end. Returns all its threads that are still at work."""
        with self._condition:
            self.closed.set()
            self._waiting.clear()
            self._let_go()
            self._condition.notify_all()
            return self._left

    def _let_go(self) -> None:
        threads = self._left if self._thread is None else [*self._left, self._thread]
        self._left = [each for each in threads if each.is_alive()]
        self._thread = None


def _load(pending: PendingProgram) -> None:
    """The step of the loading queue."""
    # compiled by the worker, but JAX, which loading needs, is not worth its import yet
    if pending.product_needs_jax and not devices.is_started():
        _under_way.discard(pending)  # waiting keeps no processor busy: calls may be timed meanwhile
        gain.potential_gain.wait_for_import()
        _under_way.add(pending)
    # done: withdrawn, or failed, while it waited
    if pending.done() or pending.load_product():
        return
    pending.prepare()
    if not pending.load_from_disk():
        _compiling.add(pending)


def _compile(pending: PendingProgram) -> None:
    """The step of the compiling queue."""
    if pending.is_coming:
        _coming.add(pending)
    # back to the loading queue, so that the worker gets its next job at once
    elif pending.compile_in_worker():
        _loading.add(pending)


def _wait(pending: PendingProgram) -> None:
    """The step of the queue of what another run's worker is about to finish."""
    while not pending.done() and pending.is_coming:
        if _coming.closed.wait(LOOKED_S):
            return
    if not pending.done() and not pending.load_from_disk():
        _compiling.add(pending)


_loading = Queue(_LOADER, _load)
_compiling = Queue(_COMPILER, _compile)
_coming = Queue(_WAITER, _wait)
_under_way: set[PendingProgram] = set()
"""Programs in a queue or being compiled, except those that wait until JAX is worth importing."""

_in_front: set[PendingProgram] = set()
"""Programs that the program's own threads wait for."""

_begun = 0
"""Number of programs to compile since there was last none."""

_ends_with_the_program = False


def _shorten() -> None:
    """End the worker as the process ends: nobody will run the program that it is compiling."""
    if _in_front:
        supervisor.end_worker()


ending.compiled_code.shorten.append(_shorten)


def compile_now(pending: PendingProgram) -> PendingProgram:
    """Load or compile a program in this thread. Returns it done.

    Interrupts wait until it is done, because they could leave modules half imported.
    """
    _add_to(_in_front, pending)
    try:
        with ending.compiled_code, interrupts.Deferral():
            if cache.is_used():
                pending.prepare()
            if not pending.load_from_disk():
                pending.compile_here()
    except ending.EndedError as error:
        pending.fail(error)
    finally:
        _in_front.discard(pending)
    return pending


def compile_in_background(pending: PendingProgram) -> PendingProgram:
    """Compile a program in the background, while calls go on in NumPy. Returns it."""
    global _ends_with_the_program
    with interrupts.Deferral():  # the locks of queues and futures must not be left taken
        if not _ends_with_the_program:
            _ends_with_the_program = True
            atexit.register(stop)
        _add_to(_under_way, pending)
        pending.add_done_callback(_under_way.discard)
        # `_load_now` is for what is on disk while JAX is not imported, which the program there may need
        if devices.is_started() or not cache.holds_programs():
            _loading.add(pending)
        # not in the loading queue: it has just been looked for on disk
        elif not _load_now(pending):
            _compiling.add(pending)
    return pending


def _load_now(pending: PendingProgram) -> bool:
    """Load a program from disk in this thread, and import JAX if needed. Returns whether nothing is left to do.

    Imports hold the GIL, which the program's own thread needs too, so importing in the background gains nothing. JAX is
    ready after some 40 of PyGCM's steps in the background. This way it is ready after 20, at the same cost to the
    program.
    """
    try:
        with ending.compiled_code, tuning.rare_garbage_collection():
            pending.prepare()
            return pending.load_from_disk()
    except ending.EndedError as error:
        pending.fail(error)
        return True


def _add_to(where: set[PendingProgram], pending: PendingProgram) -> None:
    """Add a pending program to those that `progress` tells of."""
    global _begun
    _begun = _begun + 1 if _under_way or _in_front else 1
    where.add(pending)


def progress() -> str | None:
    """Return what is compiled at the moment, in words; None if nothing is."""
    left = [*_in_front, *_under_way.copy()]
    if not left:
        return None
    at_work = next((each for each in left if each.seconds()), left[0])
    # one that failed with others, and is compiled alone, may have come in without being counted
    total = max(_begun, len(left))
    seconds = at_work.seconds()
    since = f" for {seconds:.0f} s" if seconds >= 1.0 else ""
    return f"compiling {total - len(left) + 1} of {total}, {at_work.name}".removesuffix(", ") + since


def busy() -> bool:
    """Whether anything is being loaded or compiled. Times measured meanwhile are no fair samples."""
    return bool(_under_way)


def abandon(pending: PendingProgram) -> None:
    """Stop compiling a program for good. The worker that is at it is ended, and so is the queue's wait for it."""
    _under_way.discard(pending)
    with interrupts.Deferral():
        _compiling.leave()
    supervisor.end_worker()


def stop() -> None:
    """At exit: drop the queues, let go of the worker, and wait until the threads have left JAX's code."""
    at_work = [key for each in _under_way.copy() if (key := each.key_at_work) is not None]
    _under_way.clear()
    background.threads.end()
    # wakes the loading thread, which may wait until JAX is worth importing
    gain.potential_gain.stop_waiting()
    # the queues first, then the worker: its end makes the compiling thread return, and then there must be no next job
    waiting = _compiling.waiting
    threads = [*_loading.close(), *_compiling.close(), *_coming.close()]
    if not _may_finish() or not _leave_to_worker(at_work, waiting):
        supervisor.end_worker()
    sys.meta_path.insert(0, NoMoreImports())
    patience = time.perf_counter() + LEAVE_S  # for all of them together
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(max(0.0, patience - time.perf_counter()))
    leak_executables()
    _end_as_interrupted()


def _may_finish() -> bool:
    """Whether the worker may finish what it is at, for later runs. Not where the user has stopped the program."""
    return config.current().finishes and getattr(sys, "last_type", None) is not KeyboardInterrupt


def _leave_to_worker(at_work: Sequence[str], waiting: Iterable[PendingProgram]) -> bool:
    """Leave the program that it is at to the worker, and those that wait for it. Returns whether it goes on.

    at_work: the key of the product that it is at, if it is.
    """
    try:
        found = [task for each in waiting if (task := each.task()) is not None]
        tasks = [(job, place) for job, place in found if products.is_worth_a_try(place.key)]
        keys = [*at_work, *(place.key for _, place in tasks)]
        # what the worker is at comes first, and the others wait for it
        if (
            keys
            and all(map(products.is_worth_a_try, at_work))
            and supervisor.leave_worker(lambda process: products.announce(keys, process), tasks)
        ):
            current_run().finishing = len(keys)
            return True
        products.have_come(keys)
    except Exception as error:  # the next run compiles them
        logs.LOGGER.info("no program is finished for later runs: %s: %s", type(error).__name__, error)
    return False


def _end_as_interrupted() -> None:
    """Restore that the program was ended by Ctrl-C, which decides its exit code.

    Python forgets it if another thread calls `exec` on text meanwhile, as many modules do when they are imported. To
    raise KeyboardInterrupt from such text sets it again.
    """
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        with contextlib.suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")


class NoMoreImports:
    """Stops imports in accel's threads at the next module, so that exit need not wait for all of JAX."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raise ImportError in accel's threads; find nothing in others."""
        if threading.current_thread().name in (_LOADER, _COMPILER, _WAITER):
            raise ImportError(f"{name}: the program has ended")


def _forget() -> None:
    """In a forked child, which does not have the threads: start afresh."""
    global _loading, _compiling, _coming
    # new ones, because their conditions may be held by threads that do not exist here
    _loading, _compiling, _coming = Queue(_LOADER, _load), Queue(_COMPILER, _compile), Queue(_WAITER, _wait)
    _under_way.clear()
    _in_front.clear()
    background.threads.forget()
    supervisor.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
