"""Launchers: programs that start the processes of a job, and tell each its rank by environment variables.

JAX finds the processes of Slurm, of Open MPI up to 4, and of Cloud TPUs. It finds those of a Kubernetes job if its
extra `k8s` is installed. It finds neither those of Open MPI 5 nor of Kubeflow. If an address is given, one table here
lists the launchers' variables for everything else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from accel.platform import ranks

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


def _of_kubeflow(environ: Environment) -> str | None:
    return environ.get("JAX_COORDINATOR_ADDRESS")


def _of_jax_job(environ: Environment) -> str | None:
    host, port = environ.get("COORDINATOR_ADDRESS"), environ.get("COORDINATOR_PORT")
    return f"{host}:{port}" if host and port else None


def _unknown(environ: Environment) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Launcher:
    """A launcher's variables: rank of this process, number of processes, and rank on this machine; "" if it has none.

    address: returns the address of rank 0, if the environment contains it.
    """

    rank: str
    size: str = ""
    local: str = ""
    address: Callable[[Environment], str | None] = _unknown


LAUNCHERS = (
    Launcher("JAX_PROCESS_ID", "JAX_NUM_PROCESSES", address=_of_kubeflow),  # Kubeflow's trainer, and by hand
    *(
        Launcher(each.rank, each.size, each.local, _of_open_mpi if each is ranks.OPEN_MPI else _unknown)
        for each in ranks.LAUNCHERS
    ),
    Launcher("PROCESS_ID", "NUM_PROCESSES", address=_of_jax_job),  # Kubeflow's training operator
    Launcher("JOB_COMPLETION_INDEX"),  # an indexed job of Kubernetes
)
"""Launchers in order of precedence: `mpirun` may have been started by `srun`, and either in a pod of Kubernetes."""


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
        address = address or own.address(environ)
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
