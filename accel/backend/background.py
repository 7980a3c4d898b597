"""Compiling in the background: what waits to be compiled, in which order, and what becomes of it at the end.

A program is first looked for on disk; what is not there is compiled by a process of its own (see accel.backend.worker),
or where there can be none, by a thread of this one. Two threads, one for each step: what is on disk does not wait for a
compile. They end with the program, at once.
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
from accel.process import interpreter, interrupts
from accel.record import Trace
from accel.reports.ledger import current_run
from accel.rules.rule import Unsupported

LEAVE_S = 60.0
"""Seconds that the end of the program waits for a thread that is in code of JAX's, which it would crash. With a worker
that is no more than what is left of loading one program."""

_LOAD, _COMPILE = "accel-load", "accel-compile"
"""The names of the threads."""

WORTH_JAX_S = 0.7
"""Seconds that programs might have gained by now, before JAX is imported for the first that is compiled.

Importing it costs the program more than a second, and its end another quarter; a run is expected to last as long again
as it has (so is the best of what can be known of it).
"""

HALF_LIFE_S = 5.0
"""After so many seconds a call that had to do without a program counts half as much for what is compiled next.

A path of a program's first phase has taken longer than any other, and may never be taken again.
"""

MAX_LOST = 3
"""Workers that may end of themselves before nothing is compiled any more."""


Arguments = tuple[Trace, Known, Sequence[Any], Collection[int]]
"""Those of `compile_trace`."""


class PendingProgram(Future[Executable]):
    """A program that is being compiled, or waits for that. arguments: of compile_trace.

    missed: how much calls miss it, as the logarithm of their seconds, each weighted by when it was (see HALF_LIFE_S).

    found_on_disk: whether it was there. kept: keys and suffixes of the entries from which a later start has it;
    unkept: why there are none. A program of the worker's is loaded by the thread that also loads those on disk: the
    worker does not wait for that, and JAX is not imported before there is something to load.
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
        """Note that a call has taken so long without it."""
        weight = time.perf_counter() / HALF_LIFE_S
        self.missed = np.logaddexp2(self.missed, weight + math.log2(seconds) if seconds > 0.0 else -inf)

    def seconds(self) -> float:
        """How long it has been compiled, not counting how long it waited."""
        return 0.0 if self._began is None else time.perf_counter() - self._began

    def run(self) -> None:
        """PendingProgram it, in this thread and process."""
        self._began = time.perf_counter()
        self._settle(self._compiled_here)

    def load_from_disk(self) -> bool:
        """Load it, if it is on disk. Returns whether it is done."""
        if not _has_worker():
            return False
        try:
            self._prepare()
            started, product = time.perf_counter(), self._on_disk()
            executable = None if product is None else loaded(product, *self._arguments)
        except Indescribable as error:
            logs.LOGGER.info("a program cannot be found again on disk: %s", error)
            return False
        except Exception as error:  # then it is compiled
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
        """Describe the job as earlier runs of its path advise, and keep what this one adds. Raises Indescribable."""
        trace, known, samples, spanned = self._arguments
        self._job = job = describe(trace, known, samples, spanned, None)
        path = path_key_of(job) if cache.is_used() else None
        told = Experience() if path is None else experience.load(path)
        job.settings["threads"] = threads = devices.plan(largest(samples), told.threads)
        if path is None:
            return
        scalars = {slot: value for slot, value in known.scalars.items() if slot not in told.varied}
        job.known = Known(scalars, known.arrays)
        job.spanned = frozenset(spanned) or told.spanned
        self._arguments = trace, job.known, samples, job.spanned
        self._key = key_of(path, job)
        varied = told.varied.union(trace.scalar_slots).difference(scalars)
        learnt = Experience(varied, job.spanned, told.threads if config.current().threads else threads or 0)
        if learnt != told:
            experience.save(path, learnt)

    def compile_in_worker(self) -> bool:
        """PendingProgram it, in the worker if there can be one. Returns whether what the worker made is to be loaded yet."""
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
        """Whether there is something of the worker's to load."""
        return self._product is not None

    def load_product(self) -> bool:
        """Load what the worker made. Returns False where there is no such thing."""
        if self._product is None:
            return False
        if not self.done():
            self._settle(self._loaded)
        return True

    def fail(self, error: BaseException) -> None:
        """Be done with what went wrong, unless it is done."""
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
        """What the worker makes of it; None where there is no worker, or where it cannot be told of the job."""
        worker = None if self._job is None else _workers.current()
        if worker is None:
            return None
        try:
            product = worker.compile(self._job)
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
        """Have a later start find the product by the trace."""
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
        """Do not compile it after all. Returns whether that was in time: before anybody began."""
        if self._began is not None or self.has_product or self.done():
            return False
        self.fail(CancelledError())
        return True

    def abandon(self) -> None:
        """Stop compiling it, for good."""
        _under_way.discard(self)
        _compiling.leave()
        _workers.drop(None)


class _Workers:
    """The worker, and why there are no more of them. can_start: whether this process may have one."""

    def __init__(self) -> None:
        self.can_start = True
        self._worker: Worker | None = None
        self._lost = 0
        self._lock = threading.Lock()

    def current(self) -> Worker | None:
        """The worker, started if need be; None where none can be started.

        Raises Unsupported where too many have ended of themselves: what ended them would end this process too.
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
        """End a worker, None for the one at hand; the next job gets another."""
        with self._lock:
            if worker is not None and worker is self._worker:
                self._lost += 1
            if worker is None or worker is self._worker:
                worker, self._worker = self._worker, None
        if worker is not None:
            worker.stop()

    def forget(self) -> None:
        """In a forked child: the worker is the parent's."""
        self._lock = threading.Lock()
        self.can_start = False
        if self._worker is not None:
            self._worker.forget()
            self._worker = None


@contextlib.contextmanager
def _charged() -> Iterator[None]:
    """Enter what this thread keeps the program waiting for: one of them has the interpreter at a time."""
    started = time.thread_time()
    try:
        yield
    finally:
        current_run().charge("loading", time.thread_time() - started)


_BY_MISSED = operator.attrgetter("missed")


class _Queue:
    """Programs that wait for one step, the one that is missed most first, and the thread that does it."""

    def __init__(self, name: str, step: Callable[[PendingProgram], None]) -> None:
        self._name = name
        self._step = step
        self._waiting: list[PendingProgram] = []
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, job: PendingProgram) -> None:
        """Let one more wait."""
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
                if self._thread is not threading.current_thread():  # it was left to what it was doing, or stopped
                    return
                job = max(self._waiting, key=_BY_MISSED)
                self._waiting.remove(job)
            try:
                with interpreter.short_switch_interval(), interpreter.rare_garbage_collection(), _charged():
                    self._step(job)
            except Exception as error:  # nobody else sees it
                job.fail(error)

    def leave(self) -> None:
        """Leave the thread to what it is doing; what waits gets a new one."""
        with self._condition:
            self._thread = None
            if self._waiting:
                self._start()

    def stop(self) -> threading.Thread | None:
        """Drop what waits, and let the thread go. Returns it, if it is still at something."""
        with self._condition:
            self._waiting.clear()
            thread, self._thread = self._thread, None
            self._condition.notify_all()
        return thread if thread is not None and thread.is_alive() else None


def _load(job: PendingProgram) -> None:
    if job.has_product and not devices.is_started():
        _under_way.discard(job)  # nothing is done meanwhile
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
    """What programs might have gained by now, in seconds, had they been there from the start."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._enough = threading.Event()

    def add(self, seconds: float) -> None:
        """Add what a call might have gained."""
        self.seconds += seconds
        if self.seconds >= WORTH_JAX_S:
            self._enough.set()

    def wait(self) -> None:
        """Wait until they are worth JAX."""
        if self.seconds < WORTH_JAX_S:
            self._enough.wait()


_potential_gain = _PotentialGain()


def add_potential_gain(seconds: float) -> float:
    """Note what a call would have gained by a program. Returns what all of them would have until now."""
    _potential_gain.add(seconds)
    return _potential_gain.seconds


def _has_worker() -> bool:
    """Whether another process can compile: on the CPU, where there is a Python to start."""
    return bool(sys.executable) and devices.is_cpu_alone() and _workers.can_start


def compile_now(
    trace: Trace, known: Known, samples: Sequence[Any], spanned: Collection[int] = frozenset()
) -> PendingProgram:
    """`compile_trace`, done, by this thread, unless it is on disk. Interrupts wait: a module half imported stays so."""
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
    """`compile_trace` in the background, the program going on in NumPy meanwhile.

    missed_s: seconds that the last call took without it.
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
    """Load a program, and JAX with it, in this thread. Returns whether it was on disk.

    Python's imports need the interpreter, which the program's own thread needs too: in the background JAX is there
    after some 40 steps of PyGCM's, at once after 20, and the program has lost the same.
    """
    with interrupts.Deferral(), interpreter.rare_garbage_collection():
        return job.load_from_disk()


def busy() -> bool:
    """Whether anything is being compiled: times measured meanwhile are not worth comparing."""
    return bool(_under_way)


def stop() -> None:
    """Give up all that waits or is compiled; the program ends."""
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
    """Let a program that Ctrl-C ended be seen to be: Python forgets that if a thread runs text as code meanwhile.

    Many modules do, to make their classes; Python notes what the text raises, too.
    """
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        with contextlib.suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")


class _NoMoreImports:
    """Ends an import of accel's threads where its next module begins: JAX has hundreds."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Find nothing, and raise in those threads."""
        if threading.current_thread().name in (_LOAD, _COMPILE):
            raise ImportError(f"{name}: the program has ended")


def _forget() -> None:
    """In a forked child, where the threads are not."""
    global _loading, _compiling
    _loading, _compiling = _Queue(_LOAD, _load), _Queue(_COMPILE, _make)
    _under_way.clear()
    _workers.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
