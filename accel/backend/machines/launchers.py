"""Launchers: programs that start the processes of a job, and tell each its rank by environment variables.

JAX finds the processes of Slurm, of Open MPI up to 4, and of Cloud TPUs. It finds those of a Kubernetes job if its
extra `k8s` is installed. It finds neither those of Open MPI 5 nor of Kubeflow. If an address is given, one table here
lists the launchers' variables for everything else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from accel.platform import ranks
from accel.platform.ranks import RankVariables

Environment = Mapping[str, str]

_OPEN_MPI_PORTS = range(61440, 65536)
"""Port range from which each Open MPI job gets one port, by the process id of its launcher. JAX uses the same range."""


def _of_open_mpi(environ: Environment) -> str | None:
    """Return the address of rank 0 of Open MPI 5: the host of `mpirun`, which the job's name contains."""
    found = re.fullmatch(r"(?:prterun|prte)-(.+)-(\d+)@\d+", environ.get("PMIX_NAMESPACE", ""))
    if found is None or "OMPI_MCA_orte_hnp_uri" in environ:  # JAX knows those up to 4
        return None
    host, process = found.groups()
    return f"{host}:{_OPEN_MPI_PORTS[int(process) % len(_OPEN_MPI_PORTS)]}"


def _of_jax_job(environ: Environment) -> str | None:
    host, port = environ.get("COORDINATOR_ADDRESS"), environ.get("COORDINATOR_PORT")
    return f"{host}:{port}" if host and port else None


_KUBEFLOW = RankVariables("JAX_PROCESS_ID", "JAX_NUM_PROCESSES")  # Kubeflow's trainer, and by hand
_JAX_JOB = RankVariables("PROCESS_ID", "NUM_PROCESSES")  # Kubeflow's training operator
_INDEXED_JOB = RankVariables("JOB_COMPLETION_INDEX")  # an indexed job of Kubernetes

LAUNCHERS = (_KUBEFLOW, *ranks.LAUNCHERS, _JAX_JOB, _INDEXED_JOB)
"""Launchers in order of precedence: `mpirun` may have been started by `srun`, and either in a pod of Kubernetes."""

_ADDRESSES: dict[RankVariables, Callable[[Environment], str | None]] = {
    _KUBEFLOW: lambda environ: environ.get("JAX_COORDINATOR_ADDRESS"),
    ranks.OPEN_MPI: _of_open_mpi,
    _JAX_JOB: _of_jax_job,
}
"""Functions that give the address of rank 0, if the environment contains it."""


def _number(environ: Environment, name: str) -> int | None:
    text = environ.get(name, "")
    return int(text) if text.isdecimal() else None


def described(
    environ: Environment, address: str | None, processes: int | None, process: int | None
) -> dict[str, Any] | None:
    """Return the arguments for `jax.distributed.initialize`; None if JAX is to find them itself.

    address, processes, process: from the settings. Without an address, the launcher must know it. A value that neither
    gives is None.
    """
    own = next((each for each in LAUNCHERS if _number(environ, each.rank) is not None), None)
    if own is not None:
        rank = _number(environ, own.rank)
        address = address or (_ADDRESSES[own](environ) if own in _ADDRESSES else None)
        processes = _number(environ, own.size) if processes is None else processes
        process = rank if process is None else process
    if address is None:
        return None
    told: dict[str, Any] = {
        "coordinator_address": address,
        "num_processes": processes,
        "process_id": process,
        "cluster_detection_method": "deactivate",  # which may warn, ask a server, or import MPI
    }
    if own is not None and process == rank and "JAX_LOCAL_DEVICE_IDS" not in environ:
        # as JAX does it where it finds the processes: each has one GPU
        local = _number(environ, own.local)
        told |= {} if local is None else {"local_device_ids": [local]}
    return told
