"""Launchers: processes that are started as clusters start them find each other, and rank 0 runs the program."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accel.backend.machines.launchers import LAUNCHERS, described
from tests.conftest import ROOT

Started = Callable[[int, Path], list[dict[str, str]]]

# -- what the variables say --------------------------------------------------------------------------------------------

OPEN_MPI_4 = {
    "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "PMIX_NAMESPACE": "1531576320.1",
    "PMIX_RANK": "3",
}
OPEN_MPI_5 = {
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "PMIX_NAMESPACE": "prterun-gpu-node-7-24109@1",
    "PMIX_RANK": "3",
    "SLURM_PROCID": "0",  # of the process that started mpirun
    "SLURM_NTASKS": "1",
    "SLURM_LOCALID": "0",
}
INDEXED_JOB = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "1", "HOSTNAME": "job-1"}
TRAIN_JOB = {"JAX_COORDINATOR_ADDRESS": "a:1", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1", **INDEXED_JOB}
JAX_JOB = {"COORDINATOR_ADDRESS": "a", "COORDINATOR_PORT": "6666", "NUM_PROCESSES": "2", "PROCESS_ID": "1"}
MPICH = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1"}


@pytest.mark.parametrize(
    ("environ", "settings", "expected"),
    [
        ({}, (None, None, None), None),
        (OPEN_MPI_4, (None, None, None), None),
        (OPEN_MPI_4, ("b:2", None, None), ("b:2", 4, 3, [1])),
        (OPEN_MPI_5, (None, None, None), (f"gpu-node-7:{61440 + 24109 % 4096}", 4, 3, [1])),
        (OPEN_MPI_5, ("b:2", None, None), ("b:2", 4, 3, [1])),
        ({**OPEN_MPI_5, "JAX_LOCAL_DEVICE_IDS": "0,1"}, ("b:2", None, None), ("b:2", 4, 3, None)),
        (OPEN_MPI_5, ("b:2", 8, 5), ("b:2", 8, 5, None)),  # several processes of one that mpirun has started
        (MPICH, (None, None, None), None),
        (MPICH, ("b:2", None, None), ("b:2", 2, 1, [1])),
        (INDEXED_JOB, (None, None, None), None),
        (INDEXED_JOB, ("b:2", 2, None), ("b:2", 2, 1, None)),
        (INDEXED_JOB, ("b:2", None, None), ("b:2", None, 1, None)),
        (TRAIN_JOB, (None, None, None), ("a:1", 2, 1, None)),
        (JAX_JOB, (None, None, None), ("a:6666", 2, 1, None)),
        ({"PROCESS_ID": "1"}, (None, None, None), None),
        ({"PROCESS_ID": "first"}, ("b:2", 2, None), ("b:2", 2, None, None)),
    ],
)
def test_what_jax_is_told(environ: dict[str, str], settings: tuple[Any, Any, Any], expected: Any) -> None:
    told = described(environ, *settings)
    if expected is None:
        assert told is None
        return
    assert told is not None
    names = ("coordinator_address", "num_processes", "process_id", "local_device_ids")
    assert tuple(told.get(name) for name in names) == expected


# -- processes over loopback -------------------------------------------------------------------------------------------

PROGRAM = """
import os
import numpy as np
import accel
from accel.dispatch.comparing import policy
from accel.policy import speed
from accel.platform.ledger import open_ledger

speed.SPEED_SAMPLES, speed.MAX_LOSS_S = 10**9, float("inf")
policy.Comparisons.is_due = lambda *_: False


def smooth(u):
    return u + 0.1 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) - 2 * u)


fast, u = accel.accelerate(smooth, name="smooth"), np.random.default_rng(0).random((12, 5))
for _ in range(8):
    u, expected = fast(u), smooth(u)
    assert np.abs(u - expected).max() <= 1e-12
(program,) = open_ledger("smooth").describe()
print(program["devices"], open_ledger("smooth").compiled_calls > 3, flush=True)
"""


def free_port(ports: range = range(61440, 65536)) -> int:
    """One of these ports, among which JAX and accel choose for a job."""
    for port in ports[os.getpid() % len(ports) :]:
        with socket.socket() as server:
            try:
                server.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("all ports are in use")


def open_mpi_4(number: int, folder: Path) -> list[dict[str, str]]:
    job = (free_port() - 61440) * 4096
    given = {"QD_JAX_MACHINES": "cluster", "OMPI_MCA_orte_hnp_uri": f"{job}.0;tcp://127.0.0.1:34911"}
    return [{**given, **of_open_mpi(rank, number), "PMIX_NAMESPACE": f"{job}.1"} for rank in range(number)]


def open_mpi_5(number: int, folder: Path) -> list[dict[str, str]]:
    name = f"prterun-localhost-{free_port() - 61440 + 4096 * 7}@1"
    given = {"QD_JAX_MACHINES": "cluster", "PMIX_NAMESPACE": name, "PRTE_LAUNCHED": "1"}
    return [{**given, **of_open_mpi(rank, number)} for rank in range(number)]


def of_open_mpi(rank: int, number: int) -> dict[str, str]:
    return {
        "OMPI_COMM_WORLD_SIZE": str(number),
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
        "PMIX_RANK": str(rank),
    }


def slurm(number: int, folder: Path) -> list[dict[str, str]]:
    given = {
        "QD_JAX_MACHINES": "cluster",
        "SLURM_JOB_ID": str(free_port() - 61440),
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_NTASKS": str(number),
        "SLURM_STEP_NUM_NODES": "1",
    }
    return [{**given, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)} for rank in range(number)]


def indexed_job(number: int, folder: Path) -> list[dict[str, str]]:
    """An indexed job of Kubernetes, whose manifest has an address. JAX's extra for it is not installed."""
    given = {"QD_JAX_MACHINES": f"127.0.0.1:{free_port()}", "QD_JAX_PROCESSES": str(number), **INDEXED_JOB}
    return [{**given, "JOB_COMPLETION_INDEX": str(rank)} for rank in range(number)]


KUBERNETES = """
import builtins, io
from types import SimpleNamespace as Some

real = open
builtins.open = lambda name, *a, **k: io.StringIO("here") if "serviceaccount" in str(name) else real(name, *a, **k)
pod = Some(metadata=Some(name="job", labels={"job-name": "job"}, owner_references=[Some(controller=True, kind="Job")]),
           spec=Some(subdomain="jaxpods"))
job = Some(metadata=Some(name="job", labels={}), spec=Some(parallelism=NUMBER))
config = Some(load_incluster_config=lambda: None)
client = Some(
    CoreV1Api=lambda: Some(list_namespaced_pod=lambda **_: Some(items=[pod])),
    BatchV1Api=lambda: Some(read_namespaced_job=lambda **_: job),
    exceptions=Some(ApiException=ValueError),
)
"""


def kubernetes(number: int, folder: Path) -> list[dict[str, str]]:
    """An indexed job of which JAX asks the cluster's server, here a stand-in. No such names as its are known here."""
    (folder / "kubernetes.py").write_text(KUBERNETES.replace("NUMBER", str(number)))
    given = {**INDEXED_JOB, "QD_JAX_MACHINES": "cluster", "HOSTNAME": "localhost"}
    given |= {"JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{free_port()}"}
    return [{**given, "JOB_COMPLETION_INDEX": str(rank)} for rank in range(number)]


def train_job(number: int, folder: Path) -> list[dict[str, str]]:
    """Kubeflow's."""
    given = {"QD_JAX_MACHINES": "cluster", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    given |= {"JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{free_port()}", "JAX_NUM_PROCESSES": str(number)}
    return [{**given, "JAX_PROCESS_ID": str(rank)} for rank in range(number)]


def without_launchers() -> dict[str, str]:
    """This process's environment, without what a launcher has said of it."""
    names = {name for each in LAUNCHERS for name in (each.rank, each.size, each.local)}
    return {name: value for name, value in os.environ.items() if name not in names}


@pytest.mark.parametrize("started", [open_mpi_4, open_mpi_5, slurm, indexed_job, kubernetes, train_job])
def test_processes_find_each_other_and_rank_0_speaks(started: Started, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    environ = {
        **without_launchers(),
        "QD_JAX_AOT": "0",
        "QD_JAX_CACHE_DIR": "off",
        "QD_JAX_QUIET": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)]),
    }
    command = [sys.executable, "-m", "accel.run", "program.py"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    job = [subprocess.Popen(command, cwd=tmp_path, env={**environ, **own}, **pipes) for own in started(2, tmp_path)]
    try:
        said = [each.communicate(timeout=150) for each in job]
    finally:
        for each in job:
            each.kill()
    assert said == [("2 True\n", ""), ("", "")]
    assert [each.returncode for each in job] == [0, 0]
