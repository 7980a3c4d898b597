"""Several machines, played by processes over loopback: results are one device's, and a lost rank ends the job."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.xla_options import quick_flags

PROGRAM = """
import atexit, os, subprocess, sys, time
import numpy as np
import accel
from accel.backend.underway.pending import PendingProgram
from accel.backend.underway.queues import compile_in_background
from accel.dispatch.comparing import policy
from accel.policy import speed
from accel.dispatch.replay import Variant
from accel.transform.ensembles.division import devices_for
from accel.compiler.lower import Known
from accel.record import record
from accel.platform.ledger import open_ledger

STEPS, PAUSE_S = int(sys.argv[1]), float(sys.argv[2])
speed.SPEED_SAMPLES, speed.MAX_LOSS_S = 10**9, float("inf")
policy.Comparisons.is_due = lambda *_: False


def step(u, mask, k, dt):
    for _ in range(3):  # halos: from the neighbours, and around the edge
        u = u + k * dt * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) - 3 * u)
    u[0], u[-1] = u[1].mean(), u[-2].mean()
    for i in range(1, len(u)):  # a recurrence over rows
        u[i] = 0.9 * u[i] + 0.1 * u[i - 1]
    if u.max() > 1e3:
        u = u * 0.5
    return u, float(u.sum()), np.where(mask, u, 0.0).mean(axis=1), int(np.argmax(u)), u @ u.T, np.sort(u, axis=0)


def smooth(u, mask, k, dt):
    return u + k * dt * (np.roll(u, 1, 0) + np.roll(u, -1, 1) - 2 * u), float(u[mask].sum())


def errors(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert type(one) is type(other)
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype and one.shape == other.shape
        yield float(np.abs(one - other).max() / np.abs(other).max())


def play(step, rows, columns):
    random, name = np.random.default_rng(rows), f"{step.__name__}{rows}x{columns}"
    fast = accel.accelerate(step, name=name)
    u, k = random.random((rows, columns)), np.linspace(0.1, 0.2, rows)[:, None] * np.ones(columns)
    mask, worst = u > 0.3, 0.0
    for i in range(STEPS):
        expected = step(u, mask, k, 0.1)
        found = fast(u, mask, k, 0.1)
        worst = max(worst, *errors(found, expected))
        u = found[0] + 0.01 * random.random((rows, columns))
        if i % 5 == 4:
            np.save("part.npy", np.concatenate([[np.full(columns, i + 1.0)], u]))
            os.replace("part.npy", "restart.npy")
            print("restart", i + 1, flush=True)
        time.sleep(PAUSE_S)
    (program,) = open_ledger(name).describe()
    print(name, worst <= 1e-12, program["devices"], program["undivided"], open_ledger(name).compiled_calls > 3)


def in_background():
    # a program is built while others run
    x = np.random.default_rng(0).random((12, 5))
    trace = record(smooth, (x, x > 0.5, x, 0.1), {}, max_nodes=1000).trace
    values, _ = trace.inputs.fetch((x, x > 0.5, x, 0.1), {})
    pending, runs = compile_in_background(PendingProgram((trace, Known(), values))), 0
    while not pending.done():
        fast(np.ones((8, 8)))
        runs += 1
        time.sleep(0.05)
    made = pending.result()
    found = Variant(trace, made).run(values).made[0]
    worst = np.abs(found - smooth(x, x > 0.5, x, 0.1)[0]).max()
    print("background", len(made.shards.devices) > 1, worst <= 1e-12, runs > 0)


fast = accel.accelerate(lambda x: x * 2.0 + x.sum(), name="meanwhile")
play(step if not PAUSE_S else smooth, 48, 20)
if not PAUSE_S:
    [fast(np.ones((8, 8))) for _ in range(6)]
    in_background()
    print("members on", len(devices_for(8)))
    play(smooth, 9, 16)
    with open(f"written-{os.getpid()}.txt", "w") as file:
        file.write("by one rank")
    child = "import os; print('a child', os.environ.get('QD_JAX_MACHINES'))"
    subprocess.run([sys.executable, "-c", child], check=True)
    atexit.register(lambda: print("at exit", fast(np.ones((8, 8)))[0, 0]))
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Job:
    """Processes of one program, each with two virtual devices, in a folder. environments: of each rank."""

    def __init__(self, folder: Path, environments: list[dict[str, str]], *args: str) -> None:
        (folder / "program.py").write_text(PROGRAM)
        self.folder = folder
        self.ranks = [self._start(rank, own, args) for rank, own in enumerate(environments)]

    def _start(self, rank: int, own: dict[str, str], args: tuple[str, ...]) -> subprocess.Popen[bytes]:
        environ = {
            **os.environ,
            "XLA_FLAGS": quick_flags(devices=2),
            "QD_JAX_AOT": "0",
            "QD_JAX_CACHE_DIR": "off",
            "PYTHONPATH": str(ROOT),
            **own,
        }
        command = [sys.executable, "-m", "accel.run", "--report", "report.txt", "program.py", *args]
        with (self.folder / f"out{rank}").open("wb") as out, (self.folder / f"err{rank}").open("wb") as err:
            return subprocess.Popen(command, cwd=self.folder, env=environ, stdout=out, stderr=err)

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def codes(self, seconds: float = 600) -> list[int]:
        """The exit codes of all ranks, which are killed after so many seconds."""
        limit = time.monotonic() + seconds
        try:
            return [each.wait(max(0.0, limit - time.monotonic())) for each in self.ranks]
        finally:
            for each in self.ranks:
                each.kill()
                each.wait()


def addressed(number: int) -> list[dict[str, str]]:
    """Ranks that are told where they meet."""
    place = f"127.0.0.1:{free_port()}"
    given = {"QD_JAX_MACHINES": place, "QD_JAX_PROCESSES": str(number)}
    return [{**given, "QD_JAX_PROCESS": str(rank)} for rank in range(number)]


def under_slurm(number: int) -> list[dict[str, str]]:
    """Ranks as `srun` starts them, by the variables that JAX looks at."""
    given = {
        "QD_JAX_MACHINES": "cluster",
        "SLURM_JOB_ID": str(os.getpid()),  # JAX derives the port from it
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_NTASKS": str(number),
        "SLURM_STEP_NUM_NODES": "1",
    }
    return [{**given, "SLURM_PROCID": str(rank), "SLURM_LOCALID": "0"} for rank in range(number)]


@pytest.mark.parametrize(("number", "started"), [(2, addressed), (4, under_slurm)])
def test_results_are_one_devices_and_rank_0_alone_speaks(
    tmp_path: Path, number: int, started: Callable[[int], list[dict[str, str]]]
) -> None:
    job = Job(tmp_path, started(number), "9", "0")
    assert job.codes() == [0] * number, job.text("err0")
    # the library's threads write half lines between one another's
    said = [line for line in job.text("out0").splitlines() if not re.search("^restart|peer ranks", line)]
    devices = 2 * number
    assert said == [
        f"step48x20 True {devices} None True",
        "background True True True",
        "members on 2",
        f"smooth9x16 True {devices} None True",
        "a child None",
        "at exit 66.0",
    ]
    assert len(list(tmp_path.glob("written-*.txt"))) == 1
    assert f"device: {devices} x cpu" in job.text("report.txt")
    note = f"rank 0 of {number} runs the program; the others compute with it, and print and write nothing"
    assert note in " ".join(job.text("report.txt").split())
    for rank in range(1, number):
        assert job.text(f"out{rank}") == job.text(f"err{rank}") == ""


def after_some_steps(job: Job, steps: int = 10) -> None:
    """Wait until programs run."""
    limit = time.monotonic() + 450
    while f"restart {steps}\n" not in job.text("out0"):
        assert time.monotonic() < limit and job.ranks[0].poll() is None, job.text("err0")
        time.sleep(0.02)


def check_restart(job: Job) -> None:
    saved = np.load(job.folder / "restart.npy")
    assert saved.shape == (49, 20) and saved[0, 0] >= 10 and np.isfinite(saved).all()


@pytest.mark.parametrize(("number", "lost"), [(2, 1), (4, 2)])
def test_a_lost_rank_ends_the_job_with_one_line(number: int, lost: int, tmp_path: Path) -> None:
    job = Job(tmp_path, addressed(number), "100000", "0.01")
    after_some_steps(job)
    for number_of_signal in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):  # what launchers send to all ranks
        job.ranks[lost].send_signal(number_of_signal)
    after_some_steps(job, 30)
    job.ranks[lost].send_signal(signal.SIGKILL)
    others = [rank for rank in range(1, number) if rank != lost]
    assert job.codes(60) == [-signal.SIGKILL if rank == lost else 1 for rank in range(number)]
    (line,) = [line for line in job.text("err0").splitlines() if not re.match(r"accel: (\d|[A-Z])", line)]
    where = f"process {job.ranks[lost].pid} on {socket.gethostname()}"
    gone = f"accel: rank {lost} of {number} ({where}) is gone: the job ends"
    assert line == f"{gone}; what the program has written stays as it is"
    assert all(job.text(f"err{rank}") == "" for rank in others)
    check_restart(job)


def test_the_loss_of_rank_0_ends_the_others(tmp_path: Path) -> None:
    job = Job(tmp_path, addressed(2), "100000", "0.01")
    after_some_steps(job)
    job.ranks[0].send_signal(signal.SIGKILL)
    assert job.codes(60) == [-signal.SIGKILL, 1]
    assert job.text("err1") == "accel: rank 0 of 2 is gone: the job ends\n"
    check_restart(job)


def test_a_rank_that_never_comes_is_told_of_in_one_line(tmp_path: Path) -> None:
    place = f"127.0.0.1:{free_port()}"
    environ = {"QD_JAX_MACHINES": place, "QD_JAX_PROCESSES": "2", "QD_JAX_PROCESS": "0", "PYTHONPATH": str(ROOT)}
    code = "import accel.backend.machines.joining as j; j.PATIENCE_S = 2; "
    code += "from accel.tools.cli.run import main; main(['-c', '1'])"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environ}, capture_output=True, text=True, timeout=100
    )
    said = f"accel: QD_JAX_MACHINES='{place}': the ranks have not met within 2 s: the job ends\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


# -- what cannot be ----------------------------------------------------------------------------------------------------

REFUSED = {
    "its address alone": (
        {"QD_JAX_MACHINES": "127.0.0.1:1"},
        ["run", "-c", "print(1)"],
        "cannot be used: QD_JAX_PROCESSES and QD_JAX_PROCESS are unset",
    ),
    "a launcher that does not say how many": (
        {"QD_JAX_MACHINES": "127.0.0.1:1", "JOB_COMPLETION_INDEX": "0"},
        ["run", "-c", "print(1)"],
        "cannot be used: QD_JAX_PROCESSES is unset, and no launcher says it",
    ),
    "Kubernetes without JAX's extra": (
        {"QD_JAX_MACHINES": "cluster", "KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "0"},
        ["run", "-c", "print(1)"],
        "pip install jax[k8s]",
    ),
    "a rank too many": (
        {"QD_JAX_MACHINES": "127.0.0.1:1", "QD_JAX_PROCESSES": "2", "QD_JAX_PROCESS": "2"},
        ["run", "-c", "print(1)"],
        "QD_JAX_PROCESS=2 cannot be used; expected: a whole number below 2",
    ),
    "no launcher": ({"QD_JAX_MACHINES": "cluster"}, ["run", "-c", "print(1)"], "under a launcher that JAX knows"),
    "no address": ({"QD_JAX_MACHINES": "node7"}, ["run", "-c", "print(1)"], "expected: cluster, HOST:PORT, or unset"),
    "a comparison": ({"QD_JAX_MACHINES": "cluster"}, ["compare", "-c", "print(1)"], "cannot be compared"),
    "MPI": (
        {"QD_JAX_MACHINES": "here", "QD_JAX_PROCESSES": "1", "QD_JAX_PROCESS": "0"},
        ["run", "-c", "import sys; print(1); import mpi4py.MPI"],
        "for programs that do not use MPI themselves",
    ),
    "a program of its own": (
        {"QD_JAX_MACHINES": "cluster"},
        [],
        "QD_JAX_MACHINES='cluster' has no effect here; expected: a program that `accel run` starts",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    given, command, message = REFUSED[case]
    if given["QD_JAX_MACHINES"] == "here":
        given = {**given, "QD_JAX_MACHINES": f"127.0.0.1:{free_port()}"}
        for name in ("__init__.py", "MPI.py"):
            (tmp_path / "mpi4py").mkdir(exist_ok=True)
            (tmp_path / "mpi4py" / name).touch()
    own = (
        ["-m", "accel", *command]
        if command
        else ["-c", "import accel\ntry: accel.install()\nexcept ValueError as e: print(e)"]
    )
    environ = {**os.environ, "QD_JAX_QUIET": "1", "PYTHONPATH": str(ROOT), **given}
    done = subprocess.run(
        [sys.executable, *own], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=100
    )
    (line,) = (done.stderr or done.stdout).splitlines()
    assert message in line
    assert done.returncode == (1 if case == "MPI" else 2 if command else 0)
