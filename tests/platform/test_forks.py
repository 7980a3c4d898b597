"""Forked children of a program that accel has compiled something for: they end as they would without accel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

ROOT = Path(__file__).resolve().parents[2]

COMPILED = """
import os, sys, threading, time
import numpy as np
import accel
from accel.platform.ledger import current_run, open_ledger

@accel.accelerate(name="wave")
def wave(x):
    return np.sin(x) * 2.0 + np.cos(x)

def compile_it():
    for i in range(8):
        wave(np.arange(1000.0) + i)
    assert open_ledger("wave").compiled_calls

def child(work):
    process = os.fork()
    if process == 0:
        work()
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


def told(code: str, *options: str, seconds: float = 60.0, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a fresh process says that compiles in the foreground. It and its children are ended when it hangs."""
    environ = {**os.environ, "QD_JAX_AOT": "0", "QD_JAX_CACHE_DIR": "off", "PYTHONPATH": str(ROOT), **environment}
    process = subprocess.Popen(
        [sys.executable, *options, "-c", COMPILED + textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ,
        start_new_session=True,
    )
    hangs = False
    with process:
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            hangs = True
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        out, err = process.communicate()
    assert not hangs, f"it hangs: {out}{err}"
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.mark.parametrize(
    ("end", "status"),
    [("sys.exit(0)", "0"), ("sys.exit(3)", "3"), ("os._exit(0)", "0"), ("raise ValueError", "1"), ("pass", "0")],
)
def test_a_child_ends_as_it_wants_to(end: str, status: str) -> None:
    done = told(
        f"""
        def work():
            {end}
        compile_it()
        child(work)
        """
    )
    assert done.stdout.split() == [status], done.stderr
    assert done.returncode == 0


def test_a_child_of_a_child_ends_too() -> None:
    done = told("compile_it(); child(lambda: child(lambda: child(lambda: None)))")
    assert done.stdout.split() == ["0", "0", "0"], done.stderr


def test_calls_in_a_child_stay_on_numpy_and_say_why() -> None:
    done = told(
        """
        def work():
            before = open_ledger("wave").compiled_calls
            x = np.arange(5.0)
            assert np.array_equal(wave(x), np.sin(x) * 2.0 + np.cos(x))
            assert open_ledger("wave").compiled_calls == before
            assert "environment.forked" in {each.reason for each in open_ledger("wave").refusals}
            assert any("forked" in note for note in current_run().notes)
            decorated = accel.accelerate(lambda x: x + 1.0, name="later")
            for _ in range(8):
                decorated(x)
            assert {each.reason for each in open_ledger("later").refusals} == {"environment.forked"}
        compile_it()
        child(work)
        """
    )
    assert done.stdout.split() == ["0"], done.stderr


def test_a_pool_of_forked_processes() -> None:
    done = told(
        """
        import multiprocessing
        compile_it()
        with multiprocessing.get_context("fork").Pool(3) as pool:
            found = pool.map(wave, [np.full(4, float(i)) for i in range(20)])
        assert all(np.array_equal(each, wave.__wrapped__(np.full(4, float(i)))) for i, each in enumerate(found))
        process = multiprocessing.get_context("fork").Process(target=wave, args=(np.ones(3),))
        process.start()
        process.join()
        print(process.exitcode)
        """
    )
    assert done.stdout.split() == ["0"], done.stderr


def test_a_child_has_the_locks_that_other_threads_held() -> None:
    """Of accel, and of JAX at the child's end."""
    done = told(
        """
        from accel import catalogue
        from accel.backend import devices
        from accel.platform import forks
        from accel.entry.hook import installation as hook
        from accel.platform import tuning
        compile_it()
        from jax._src import xla_bridge
        held, leave = threading.Event(), threading.Event()
        locks = [devices._lock, hook.lock, tuning._lock, xla_bridge._backend_lock]
        def hold():
            for lock in locks:
                assert lock.acquire(timeout=5)
            held.set()
            leave.wait()
            for lock in locks:
                lock.release()
        threading.Thread(target=hold).start()
        assert held.wait(5)
        def work():
            assert [each.reason for each in open_ledger("wave").refusals] == []
            wave(np.ones(3))
            assert [each.reason for each in open_ledger("wave").refusals] == ["environment.forked"]
            devices.plan_threads(1)
            accel.install(catalogue.Catalogue("none", ()))
            accel.uninstall()
            with tuning.rare_garbage_collection(), tuning.short_switch_interval():
                pass
        child(work)
        leave.set()
        """
    )
    assert done.stdout.split() == ["0"], done.stderr


def test_a_fork_waits_for_what_it_must_not_cut_in_two() -> None:
    done = told(
        """
        from accel.platform import forks
        inside, log = threading.Event(), []
        def slow():
            with forks.delayed():
                inside.set()
                time.sleep(0.5)
                log.append("done")
        threading.Thread(target=slow).start()
        inside.wait()
        def work():
            assert log == ["done"]
            with forks.delayed():
                pass
        child(work)
        with forks.delayed():  # its own fork does not wait for a thread
            child(work)
        """
    )
    assert done.stdout.split() == ["0", "0"], done.stderr


ORDER = """
    from accel.backend import devices
    from accel.platform import forks

    lock, locked, names = threading.RLock(), [], []
    register = os.register_at_fork

    def take():
        locked.append(forks._forking.waited)
        lock.acquire()

    def noted(*, before=None, **others):
        if before is not None:
            names.append((before.__qualname__, getattr(before, "__module__", None), "jax" in sys.modules))
        register(before=before, **others) if before is not None else register(**others)

    os.register_at_fork(before=take, after_in_parent=lock.release, after_in_child=lock.release)
    os.register_at_fork = noted
    devices.import_jax()
    inside, done = threading.Event(), []

    def work():
        with forks.delayed():
            inside.set()
            time.sleep(0.3)
            with lock:
                done.append("the block ended")

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    process = os.fork()
    if process == 0:
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), done, locked)
    thread.join()
    child(lambda: None)  # and the lock is free again
    first = names.index(("_wait", "accel.platform.forks", False))
    print([each for each in names[first + 1 :] if each[1] is None or each[1].startswith("filelock")])
"""


def test_a_fork_waits_before_it_takes_other_modules_locks() -> None:
    """filelock's, which JAX imports: a fork held it for 30 s while the thread that imported JAX waited for it."""
    done = told(ORDER, seconds=25.0)
    assert done.stdout.splitlines() == ["0 ['the block ended'] [True]", "0", "[]"], done.stderr


@pytest.mark.parametrize("aot", ["0", "1"])
def test_forks_while_something_is_compiled(aot: str) -> None:
    """At any moment: while JAX is imported, its client started, a program traced, compiled, loaded and run."""
    done = told(
        """
        stop = threading.Event()
        def compile_more():
            k = 0
            while not stop.is_set():
                k += 1
                made = accel.accelerate(lambda x, k=k: np.sin(x * k) + k, name=f"f{k}")
                for i in range(6):
                    made(np.arange(30.0) + i)
        thread = threading.Thread(target=compile_more)
        thread.start()
        began = time.perf_counter()
        while time.perf_counter() - began < 6.0:
            child(lambda: wave(np.ones(3)))
            time.sleep(0.1)
        stop.set()
        thread.join()
        """,
        QD_JAX_AOT=aot,
    )
    assert set(done.stdout.split()) == {"0"}, done.stderr
    assert done.returncode == 0


def test_a_child_and_the_programs_end_close_the_workers_pipes_once() -> None:
    """Not by number: by then it is that of another file."""
    done = told(
        """
        from accel.backend.underway import queues, supervisor
        supervisor.supervisor.current()
        def work():
            files = [open(os.devnull) for _ in range(8)]
            for file in files:
                file.close()
        child(work)
        queues.stop()
        files = [open(os.devnull) for _ in range(8)]
        for file in files:
            file.close()
        """,
        "-X",
        "dev",
    )
    assert done.stdout.split() == ["0"]
    assert "Bad file descriptor" not in done.stderr and "ResourceWarning" not in done.stderr, done.stderr


# -- warnings ----------------------------------------------------------------------------------------------------------

FORKS = """
import warnings
warnings.simplefilter("ignore", RuntimeWarning)  # else every call stays on NumPy
compile_it()
warnings.resetwarnings()
warnings.simplefilter("{action}")
raised = []
sys.unraisablehook = lambda event: raised.append(event.exc_value)
for _ in range(3):
    child(lambda: None)
assert not raised, raised
"""


@pytest.mark.parametrize("action", ["always", "error", "default"])
def test_a_program_that_knows_nothing_of_jax_is_not_told_of_its_threads(action: str) -> None:
    done = told(FORKS.format(action=action))
    assert done.stdout.split() == ["0"] * 3, done.stderr
    assert "multi" not in done.stderr and not done.stderr


def test_a_program_that_uses_jax_itself_is_told() -> None:
    done = told("import jax\njax.devices()\n" + FORKS.format(action="always"))
    assert "JAX is multithreaded" in done.stderr


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python does not warn")
def test_a_program_with_threads_of_its_own_is_told_of_those() -> None:
    done = told(
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n" + FORKS.format(action="always")
    )
    assert "JAX" not in done.stderr
    assert done.stderr.count("DeprecationWarning") == 3


def test_other_warnings_and_filters_are_as_they_were() -> None:
    done = told(
        FORKS.format(action="default")
        + textwrap.dedent("""
        before = list(warnings.filters)
        def warn():
            warnings.warn("once", UserWarning)
        warn()
        child(warn)
        warn()
        assert [each for each in warnings.filters if each not in before] == []
        """)
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("UserWarning: once") == 1
