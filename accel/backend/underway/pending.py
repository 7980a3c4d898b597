"""Pending programs: one program on its way, from disk or from the compiler, to an executable of this process.

*Loading* has one meaning in the backend: to make an executable in this process from a product, which is a compiled
program as data. Products are read from disk, or come from the worker.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from accel.backend import devices
from accel.backend.compile import compile_trace, load, product_of, report_not_kept, usual_size
from accel.backend.disk import cache, experience, products, together
from accel.backend.disk.experience import Experience
from accel.backend.disk.products import Place
from accel.backend.executable import Executable
from accel.backend.job import Job, Product, Trial, describe, key_of, key_of_path
from accel.backend.underway.supervisor import has_worker, supervisor
from accel.backend.underway.worker import TrialLost, WorkerLost
from accel.compiler.lower import Known
from accel.compiler.merge import MergedTrace
from accel.platform import config, interrupts, logs
from accel.platform.clocks import time
from accel.record import Trace
from accel.rules.rule import Unsupported

HALF_LIFE_S = 5.0
"""The half-life, in seconds, of a call without a program in the order of compiling.

The program whose recent calls took longest, for each operation to compile, is compiled first: the sum of what all have
missed until they come is the least then (Smith, 1956). Without the decay, a path of the start-up phase would come
first, though it may never be taken again.
"""

Arguments = tuple[Trace | MergedTrace, Known, Sequence[Any]]
"""The arguments of `compile_trace`."""


class PendingProgram(Future[Executable]):
    """A program that is being compiled, or waits in a queue for it: a future of its executable.

    arguments: of compile_trace. name: the target's, for lines on the progress. trial: how the worker tries it.
    missed: the binary logarithm of the seconds of calls that ran without the program, each weighted by its time (see
    HALF_LIFE_S). urgency: the priority, the same for each operation. is_for_this_run: False for programs of later runs
    alone; those come after all others. found_on_disk: whether it was loaded from disk.
    kept: keys and suffixes of the cache entries from which a later process loads it; unkept: why there are none. path:
    the key of its path on disk.

    First comes `prepare`: it makes the job that the disk and the worker know the program by. Then the executable is
    made in one of three ways. One is `load_from_disk`. One is `compile_in_worker`, and then `load_product` in the
    thread that also loads programs from disk, so that the worker does not wait for that. The last is `compile_here`. A
    thread of accel's goes through them. The program's threads only ask whether it is `done`, and `withdraw` it.
    """

    def __init__(self, arguments: Arguments, missed_s: float = 0.0, name: str = "", trial: Trial | None = None) -> None:
        super().__init__()
        self.name = name
        self.missed = -inf
        self.add_missed(missed_s)
        self.is_for_this_run = True
        self._is_done = False
        self.add_done_callback(_note_done)  # the first callback, so that others find it done
        self.found_on_disk = False
        self.kept: tuple[tuple[str, str], ...] = ()
        self.unkept = "the disk cache is off"
        self._arguments = arguments
        self._trial = trial
        self._job: Job | None = None
        self.path: str | None = None
        self._key: str | None = None
        self._product: Product | None = None
        self._began: float | None = None

    def add_missed(self, seconds: float) -> None:
        """Note that a call took `seconds` without it."""
        weight = time.perf_counter() / HALF_LIFE_S
        # 2**missed is the sum of seconds * 2**(time / half-life). Later calls weigh more, in place of earlier ones that
        # decay: so no sum needs renewing as time passes. Kept as a logarithm, because the powers would overflow
        self.missed = np.logaddexp2(self.missed, weight + math.log2(seconds) if seconds > 0.0 else -inf)

    @property
    def urgency(self) -> float:
        return self.missed - math.log2(max(len(self._arguments[0].tape.nodes), 1))

    def seconds(self) -> float:
        """Seconds since compiling began, not counting the wait in the queue; 0 before."""
        began = self._began  # once: another thread sets it to None
        return 0.0 if began is None else time.perf_counter() - began

    def done(self) -> bool:
        """Whether it has come to its end. The program's threads ask at each call, so it takes no lock.

        What a signal handler raises inside `Future.done` may leave the future's lock taken: nobody could end it then.
        """
        return self._is_done

    def compile_here(self) -> None:
        """Compile it in this thread."""
        self._began = time.perf_counter()
        self._settle(self._compiled_here)

    def prepare(self) -> None:
        """Make the job: what the program is to be, following the experience of earlier runs.

        Without a job, which is so if this fails, the program is neither looked for on disk nor compiled by the worker.
        """
        # jobs are for the CPU; programs for other devices are found on disk after lowering (`backend.compile._key`)
        if not has_worker():
            return
        try:
            self._prepare()
        except Exception as error:  # the program is compiled instead
            interrupts.pass_on(error)
            logs.LOGGER.info("a program cannot be described as a job: %s: %s", type(error).__name__, error)

    def load_from_disk(self) -> bool:
        """Load it if it is on disk. Returns whether it was, or an earlier run's trial of it has failed."""
        try:
            started, product = time.perf_counter(), None if self._key is None else products.read(self._key)
            if isinstance(product, Unsupported):
                self.fail(product)
                return True
            executable = None if product is None else load(product, *self._arguments)
        except Exception as error:  # the program is compiled instead
            interrupts.pass_on(error)
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
        """Describe the job, plan XLA's threads for it, and save what this run adds to earlier ones' experience."""
        trace, known, samples = self._arguments
        job = describe(trace, known, samples, None)
        job.trial = self._trial
        path = key_of_path(trace) if cache.is_used() else None
        earlier = Experience() if path is None else experience.read(path)
        # the first program decides it for the process, and a program for another number of threads is another program
        job.settings["threads"] = threads = devices.plan_threads(usual_size(samples), earlier.threads)
        self._job = job
        if path is None:
            return
        # fold no more than earlier runs did: else this run would look for a program that none of them compiled
        scalars = {slot: value for slot, value in known.scalars.items() if slot not in earlier.varied}
        arrays = {slot: value for slot, value in known.arrays.items() if slot not in earlier.varied}
        job.known = Known(scalars, arrays)
        self._arguments = trace, job.known, samples
        self.path, self._key = path, key_of(path, job)
        varied = earlier.varied.union(trace.scalar_slots, trace.array_slots).difference(scalars, arrays)
        # a number of threads that the user chose says nothing about the best one
        threads = earlier.threads if config.current().threads else threads or 0
        updated = replace(earlier, varied=varied, threads=threads)
        if updated != earlier:
            experience.save(path, updated)

    @property
    def is_coming(self) -> bool:
        """Whether a process that has outlived its program is about to finish the same."""
        return self._key is not None and products.is_coming(self._key)

    @property
    def key_at_work(self) -> str | None:
        """The key under which its product is kept once the worker has compiled it; None if it is not at that."""
        return self._key if self._began is not None and not self.has_product and not self._is_done else None

    def task(self) -> tuple[Job, Place] | None:
        """Return what the worker needs to compile it after this process has ended.

        None if nobody would find the product.
        """
        place = None if self._is_done else self._place()
        return None if place is None or self._job is None else (self._job, place)

    def compile_in_worker(self) -> bool:
        """Compile it, in the worker if there can be one. Returns whether the worker's product has to be loaded now."""
        if self._is_done:
            return False
        self._began = time.perf_counter()
        try:
            self._product = self._compiled_by_worker()
        except BaseException as error:
            products.note_refused(self._key, error)
            self.fail(error)
            return False
        if self._product is None:
            self._settle(self._compiled_here)
            return False
        self._began = None  # the clock stops: only compiling is limited, and the product may wait to be loaded
        return True

    @property
    def has_product(self) -> bool:
        """Whether the worker has compiled it."""
        return self._product is not None

    @property
    def product_needs_jax(self) -> bool:
        """Whether the worker has compiled it, and JAX has to load it."""
        return self._product is not None and self._product.needs_jax

    def load_product(self) -> bool:
        """Load what the worker has compiled. Returns False if there is nothing to load."""
        if self._product is None:
            return False
        if not self._is_done:
            self._settle(self._from_product)
        return True

    def fail(self, error: BaseException) -> None:
        """Set the error, unless a result or an error is set."""
        if not self._is_done:
            self.set_exception(error)

    def _settle(self, make: Callable[[], Executable]) -> None:
        try:
            executable = make()
        except BaseException as error:
            self.fail(error)
        else:
            if not self._is_done:
                self.set_result(executable)

    def _compiled_by_worker(self) -> Product | None:
        """The worker's product; None if there is no job or no worker, or if the job cannot be pickled for it."""
        job = self._job
        worker = None if job is None else supervisor.current()
        if job is None or worker is None:
            return None
        place = self._place() if cache.is_used() else None
        try:
            product = worker.compile(job, place)
        # this very program may have crashed the compiler: it is not tried again, neither there nor here
        except WorkerLost as lost:
            reason = "compile.failed"
            if supervisor.note_lost(worker) and isinstance(lost, TrialLost):
                reason = "compile.trial" if lost.is_fault else "compile.unfinished"
            raise Unsupported(reason, str(lost)) from None
        # what `pickle` raises for objects that it cannot send
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            logs.LOGGER.info("a program is compiled by this process: %s", error)
            return None
        self._keep(product, place)
        return product

    def _from_product(self) -> Executable:
        assert self._product is not None
        executable = load(self._product, *self._arguments)
        # its entry may have been removed from the cache meanwhile
        return compile_trace(*self._arguments) if executable is None else executable

    def _compiled_here(self) -> Executable:
        executable = compile_trace(*self._arguments)
        if cache.is_used():
            self._keep(product_of(executable, self._arguments[0]), self._place())
        return executable

    def _keep(self, product: Product, place: Place | None) -> None:
        """Save the product on disk, where a later process finds it by the trace. place: where, if anywhere."""
        if not cache.is_used():
            return
        unkept = product.unkept if place is None else place.keep(product)
        if unkept:
            report_not_kept(unkept)
        self._note_kept(product.key, unkept)

    def _place(self) -> Place | None:
        """Where its product is kept, and the recorded paths by which later runs find it; None if it has no key."""
        trace = self._arguments[0]
        if self._key is None or self.path is None:
            return None
        if not isinstance(trace, MergedTrace):
            return Place(self._key, self.path, (self.path,))
        keys = [key_of_path(member.trace) for member in trace.members]
        known = tuple(key for key in keys if key is not None)
        if self._job is None or len(known) < len(keys):
            return Place(self._key)
        return Place(self._key, together.save(self.path, self._job, trace, known), known)

    def _note_kept(self, key: str | None, unkept: str) -> None:
        entries = ((None if unkept else self._key, cache.TRACE), (key, cache.SUFFIX))
        self.kept = tuple((name, suffix) for name, suffix in entries if name is not None)
        self.unkept = "" if self.kept else unkept

    def withdraw(self) -> bool:
        """Cancel it, if compiling has not begun. Returns whether it was cancelled."""
        if self._began is not None or self.has_product or self._is_done:
            return False
        self.fail(CancelledError())
        return True


def _note_done(pending: Future[Executable]) -> None:
    assert isinstance(pending, PendingProgram)
    pending._is_done = True
