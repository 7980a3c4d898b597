"""Compiling in the background: the queues of pending programs, their order, and what happens at the process's end.

A program is first looked for on disk. If it is not there, the worker process compiles it (see accel.backend.worker), or
a thread of this process if there can be no worker. Loading and compiling have a thread each, so that programs on disk
do not wait for a compile. Both threads end as soon as the program does.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import operator
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from math import inf
from typing import Any

import numpy as np

from accel import config, logs
from accel.backend import cache, devices, experience
from accel.backend.compile import (
    Executable,
    compile_trace,
    largest,
    leak_executables,
    loaded,
    product_of,
    report_not_kept,
)
from accel.backend.experience import Experience
from accel.backend.job import Job, Product, describe, key_of, path_key_of
from accel.backend.worker import Worker, WorkerLost
from accel.ir.fingerprint import Indescribable
from accel.lower import Known
from accel.process import interrupts, tuning
from accel.record import Trace
from accel.reports.ledger import current_run
from accel.rules.rule import Unsupported

LEAVE_S = 60.0
"""At exit, the process waits this many seconds for a background thread to leave JAX's code, because ending the process
earlier would crash it. With a worker, it waits at most for one program to be loaded."""

_LOAD, _COMPILE = "accel-load", "accel-compile"
"""The names of the threads."""

WORTH_JAX_S = 0.7
"""JAX is imported for the first compiled program once programs could have saved this many seconds.

Importing JAX costs the program more than a second, and another quarter at its end. A run is expected to last as long
again as it has lasted so far, which is the best guess without further knowledge.
"""

HALF_LIFE_S = 5.0
"""The half-life, in seconds, of a call without a program in the order of compiling.

The program whose recent calls took longest is compiled first. Without the decay, a path of the start-up phase would
come first, though it may never be taken again.
"""

MAX_LOST = 3
"""After this many workers have crashed, nothing is compiled any more."""


Arguments = tuple[Trace, Known, Sequence[Any], Collection[int]]
"""The arguments of `compile_trace`."""


class PendingProgram(Future[Executable]):
    """A program that is being compiled, or waits in a queue for it: a future of its executable.

    arguments: of compile_trace. missed: the priority, as the binary logarithm of the seconds of calls that had to do
    without it, each weighted by its time (see HALF_LIFE_S). found_on_disk: whether it was loaded from disk. kept: keys
    and suffixes of the cache entries from which a later process loads it; unkept: why there are none.

    What the worker compiles is loaded by the thread that also loads programs from disk. The worker does not wait for
    that, and JAX is not imported before there is something to load.
    """

    def __init__(self, arguments: Arguments, missed_s: float = 0.0) -> None:
        super().__init__()
        self.missed = -inf
        self.add_missed(missed_s)
        self.found_on_disk = False
        self.kept: tuple[tuple[str, str], ...] = ()
        self.unkept = "the disk cache is off"
        self._arguments = arguments
        self._job: Job | None = None
        self._key: str | None = None
        self._product: Product | None = None
        self._began: float | None = None

    def add_missed(self, seconds: float) -> None:
        """Note that a call took `seconds` without it."""
        weight = time.perf_counter() / HALF_LIFE_S
        self.missed = np.logaddexp2(self.missed, weight + math.log2(seconds) if seconds > 0.0 else -inf)

    def seconds(self) -> float:
        """Seconds since compiling began, not counting the wait in the queue; 0 before."""
        return 0.0 if self._began is None else time.perf_counter() - self._began

    def run(self) -> None:
        """Compile it in this thread."""
        self._began = time.perf_counter()
        self._settle(self._compiled_here)

    def load_from_disk(self) -> bool:
        """Load it if it is on disk. Returns whether it was."""
        if not _has_worker():
            return False
        try:
            self._prepare()
            started, product = time.perf_counter(), self._on_disk()
            executable = None if product is None else loaded(product, *self._arguments)
        except Indescribable as error:
            logs.LOGGER.info("a program cannot be found again on disk: %s", error)
            return False
        except Exception as error:  # the program is compiled instead
            logs.LOGGER.info("looking for a program on disk failed: %s: %s", type(error).__name__, error)
            return False
        if executable is None:
            return False
        executable.seconds = time.perf_counter() - started
        self.found_on_disk = True
        self._note_kept(executable.key, "")
        self.set_result(executable)
        return True

    def _prepare(self) -> None:
        """Describe the job, following the experience of earlier runs, and save what this run adds to it.

        Raises Indescribable.
        """
        trace, known, samples, spanned = self._arguments
        self._job = job = describe(trace, known, samples, spanned, None)
        path = path_key_of(job) if cache.is_used() else None
        earlier = Experience() if path is None else experience.load(path)
        job.settings["threads"] = threads = devices.plan_threads(largest(samples), earlier.threads)
        if path is None:
            return
        scalars = {slot: value for slot, value in known.scalars.items() if slot not in earlier.varied}
        arrays = {slot: value for slot, value in known.arrays.items() if slot not in earlier.varied}
        job.known = Known(scalars, arrays)
        job.spanned = frozenset(spanned) or earlier.spanned
        self._arguments = trace, job.known, samples, job.spanned
        self._key = key_of(path, job)
        varied = earlier.varied.union(trace.scalar_slots, trace.array_slots).difference(scalars, arrays)
        # a number of threads that the user chose says nothing about the best one
        updated = Experience(varied, job.spanned, earlier.threads if config.current().threads else threads or 0)
        if updated != earlier:
            experience.save(path, updated)

    def compile_in_worker(self) -> bool:
        """Compile it, in the worker if there can be one. Returns whether the worker's product has to be loaded now."""
        if self.done():
            return False
        self._began = time.perf_counter()
        try:
            self._product = self._compiled_by_worker()
        except BaseException as error:
            self.fail(error)
            return False
        if self._product is None:
            self._settle(self._compiled_here)
            return False
        self._began = None
        return True

    @property
    def has_product(self) -> bool:
        """Whether the worker has compiled it."""
        return self._product is not None

    def load_product(self) -> bool:
        """Load what the worker has compiled. Returns False if there is nothing to load."""
        if self._product is None:
            return False
        if not self.done():
            self._settle(self._loaded)
        return True

    def fail(self, error: BaseException) -> None:
        """Set the error, unless a result or an error is set."""
        if not self.done():
            self.set_exception(error)

    def _settle(self, make: Callable[[], Executable]) -> None:
        try:
            executable = make()
        except BaseException as error:
            self.fail(error)
        else:
            if not self.done():
                self.set_result(executable)

    def _compiled_by_worker(self) -> Product | None:
        """The worker's product; None if there is no worker, or if the job cannot be pickled for it."""
        job = self._job
        worker = None if job is None else _workers.current()
        if job is None or worker is None:
            return None
        try:
            product = worker.compile(job)
        except WorkerLost as lost:
            _workers.drop(worker)
            raise Unsupported("compile.failed", str(lost)) from None
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            logs.LOGGER.info("a program is compiled by this process: %s", error)
            return None
        if cache.is_used():
            self._keep(product)
        return product

    def _loaded(self) -> Executable:
        assert self._product is not None
        executable = loaded(self._product, *self._arguments)
        return compile_trace(*self._arguments) if executable is None else executable

    def _compiled_here(self) -> Executable:
        executable = compile_trace(*self._arguments)
        if cache.is_used():
            self._keep(product_of(executable, self._arguments[0]))
        return executable

    def _keep(self, product: Product) -> None:
        """Save the product on disk, where a later process finds it by the trace."""
        is_whole = product.key is not None or product.payload is not None
        if self._key is not None and is_whole:
            unkept = cache.save(self._key, pickle.dumps(product), cache.TRACE)
        else:
            unkept = product.unkept
        if unkept:
            report_not_kept(unkept)
        self._note_kept(product.key, unkept)

    def _note_kept(self, key: str | None, unkept: str) -> None:
        entries = ((None if unkept else self._key, cache.TRACE), (key, cache.SUFFIX))
        self.kept = tuple((name, suffix) for name, suffix in entries if name is not None)
        self.unkept = "" if self.kept else unkept

    def _on_disk(self) -> Product | None:
        text = None if self._key is None else cache.load(self._key, cache.TRACE)
        if text is None:
            return None
        product = pickle.loads(text)
        return product if isinstance(product, Product) else None

    def withdraw(self) -> bool:
        """Cancel it, if compiling has not begun. Returns whether it was cancelled."""
        if self._began is not None or self.has_product or self.done():
            return False
        self.fail(CancelledError())
        return True

    def abandon(self) -> None:
        """Stop compiling it for good. The worker that is at it is ended."""
        _under_way.discard(self)
        _compiling.leave()
        _workers.drop(None)


class _Workers:
    """Starts the worker when it is needed, and counts crashed ones. can_start: whether this process may have one."""

    def __init__(self) -> None:
        self.can_start = True
        self._worker: Worker | None = None
        self._lost = 0
        self._lock = threading.Lock()

    def current(self) -> Worker | None:
        """The worker, started if there is none; None if it cannot be started.

        Raises Unsupported if too many workers have crashed: compiling in this process would crash the program.
        """
        with self._lock:
            if self._lost >= MAX_LOST:
                raise Unsupported("compile.failed", f"the compiling process ended {self._lost} times")
            if self._worker is None and self.can_start:
                try:
                    self._worker = Worker()
                except WorkerLost as error:
                    logs.LOGGER.info("%s", error)
                    self.can_start = False
            return self._worker

    def drop(self, worker: Worker | None) -> None:
        """End a worker, by default the current one. The next job gets a new one."""
        with self._lock:
            if worker is not None and worker is self._worker:
                self._lost += 1
            if worker is None or worker is self._worker:
                worker, self._worker = self._worker, None
        if worker is not None:
            worker.stop()

    def forget(self) -> None:
        """In a forked child: let go of the worker, which belongs to the parent."""
        self._lock = threading.Lock()
        self.can_start = False
        if self._worker is not None:
            self._worker.forget()
            self._worker = None


@contextlib.contextmanager
def _charged() -> Iterator[None]:
    """Charge the block's CPU time in this thread as a cost: the program's threads wait for the GIL meanwhile."""
    started = time.thread_time()
    try:
        yield
    finally:
        current_run().charge("loading", time.thread_time() - started)


_BY_MISSED = operator.attrgetter("missed")


class _Queue:
    """A priority queue of pending programs for one step, and the thread that does the step. Most missed comes first."""

    def __init__(self, name: str, step: Callable[[PendingProgram], None]) -> None:
        self._name = name
        self._step = step
        self._waiting: list[PendingProgram] = []
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, job: PendingProgram) -> None:
        """Add a pending program; starts the thread if there is none."""
        with self._condition:
            self._waiting.append(job)
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
                job = max(self._waiting, key=_BY_MISSED)
                self._waiting.remove(job)
            try:
                with tuning.short_switch_interval(), tuning.rare_garbage_collection(), _charged():
                    self._step(job)
            except Exception as error:  # it would end the thread
                job.fail(error)

    def leave(self) -> None:
        """Leave the thread to its current program. A new one takes the programs in the queue."""
        with self._condition:
            self._thread = None
            if self._waiting:
                self._start()

    def stop(self) -> threading.Thread | None:
        """Empty the queue and let the thread end. Returns the thread if it is still at work."""
        with self._condition:
            self._waiting.clear()
            thread, self._thread = self._thread, None
            self._condition.notify_all()
        return thread if thread is not None and thread.is_alive() else None


def _load(job: PendingProgram) -> None:
    if job.has_product and not devices.is_started():
        _under_way.discard(job)  # waiting keeps no processor busy: calls may be timed meanwhile
        _potential_gain.wait()
        _under_way.add(job)
    if not job.done() and not job.load_product() and not job.load_from_disk():
        _compiling.add(job)


def _make(job: PendingProgram) -> None:
    if job.compile_in_worker():
        _loading.add(job)


_loading = _Queue(_LOAD, _load)
_compiling = _Queue(_COMPILE, _make)
_workers = _Workers()
_under_way: set[PendingProgram] = set()
_ends_with_the_program = False


class _PotentialGain:
    """Seconds that programs could have saved by now if they had been there from the start."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._enough = threading.Event()

    def add(self, seconds: float) -> None:
        """Add what a program could have saved for a call."""
        self.seconds += seconds
        if self.seconds >= WORTH_JAX_S:
            self._enough.set()

    def wait(self) -> None:
        """Wait until it is worth importing JAX."""
        if self.seconds < WORTH_JAX_S:
            self._enough.wait()


_potential_gain = _PotentialGain()


def add_potential_gain(seconds: float) -> float:
    """Add the seconds that a program could have saved for a call. Returns the sum so far."""
    _potential_gain.add(seconds)
    return _potential_gain.seconds


def _has_worker() -> bool:
    """Whether another process can compile: for the CPU only, and if the Python to start is known."""
    return bool(sys.executable) and devices.is_cpu_alone() and _workers.can_start


def compile_now(
    trace: Trace, known: Known, samples: Sequence[Any], spanned: Collection[int] = frozenset()
) -> PendingProgram:
    """Load or compile a program in this thread. Returns it done; arguments as of `compile_trace`.

    Interrupts wait until it is done, because they could leave modules half imported.
    """
    job = PendingProgram((trace, known, samples, spanned))
    with interrupts.Deferral():
        if not cache.is_used() or not job.load_from_disk():
            job.run()
    return job


def compile_in_background(
    trace: Trace,
    known: Known,
    samples: Sequence[Any],
    spanned: Collection[int] = frozenset(),
    *,
    missed_s: float = 0.0,
) -> PendingProgram:
    """Compile a program in the background, while calls go on in NumPy. Arguments as of `compile_trace`.

    missed_s: seconds that the last call took without the program.
    """
    global _ends_with_the_program
    if not _ends_with_the_program:
        _ends_with_the_program = True
        atexit.register(stop)
    job = PendingProgram((trace, known, samples, spanned), missed_s)
    _under_way.add(job)
    job.add_done_callback(_under_way.discard)
    if devices.is_started() or not cache.holds_programs():
        _loading.add(job)
    elif not _load_now(job):
        _compiling.add(job)
    return job


def _load_now(job: PendingProgram) -> bool:
    """Load a program from disk in this thread, and import JAX for it. Returns whether it was on disk.

    Imports hold the GIL, which the program's own thread needs too, so importing in the background gains nothing: JAX is
    ready after some 40 of PyGCM's steps in the background, and after 20 this way, at the same cost to the program.
    """
    with interrupts.Deferral(), tuning.rare_garbage_collection():
        return job.load_from_disk()


def busy() -> bool:
    """Whether anything is being loaded or compiled. Times measured meanwhile are no fair samples."""
    return bool(_under_way)


def stop() -> None:
    """At exit: drop the queues, end the worker, and wait until the threads have left JAX's code."""
    _under_way.clear()
    add_potential_gain(inf)
    threads = [line.stop() for line in (_loading, _compiling)]
    _workers.drop(None)
    sys.meta_path.insert(0, _NoMoreImports())
    patience = time.perf_counter() + LEAVE_S
    for thread in threads:
        if thread is not None and thread is not threading.current_thread():
            thread.join(max(0.0, patience - time.perf_counter()))
    leak_executables()
    _end_as_interrupted()


def _end_as_interrupted() -> None:
    """Restore that the program was ended by Ctrl-C, which decides its exit code.

    Python forgets it if another thread calls `exec` on text meanwhile, as many modules do when they are imported. To
    raise KeyboardInterrupt from such text sets it again.
    """
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        with contextlib.suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")


class _NoMoreImports:
    """Stops imports in accel's threads at the next module, so that exit need not wait for all of JAX."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise ImportError in accel's threads; find nothing in others."""
        if threading.current_thread().name in (_LOAD, _COMPILE):
            raise ImportError(f"{name}: the program has ended")


def _forget() -> None:
    """In a forked child, which does not have the threads: start afresh."""
    global _loading, _compiling
    _loading, _compiling = _Queue(_LOAD, _load), _Queue(_COMPILE, _make)
    _under_way.clear()
    _workers.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
