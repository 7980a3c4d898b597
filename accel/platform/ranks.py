"""Ranks: processes of one program that mpirun or srun has started. The first one speaks for all.

The variables are those that the launchers set for each rank, so mpi4py need not be imported.
"""

from __future__ import annotations

import os
from typing import NamedTuple


class RankVariables(NamedTuple):
    """The environment variables that a launcher sets: the number of this rank, from 0; how many ranks there are; the
    number of this rank among those of its machine. "" for one that it does not set."""

    rank: str
    size: str = ""
    local: str = ""


OPEN_MPI = RankVariables("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK")

LAUNCHERS = (
    OPEN_MPI,
    RankVariables("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"),  # MVAPICH
    RankVariables("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),  # MPICH and Intel MPI
    RankVariables("PMIX_RANK"),  # launchers that speak PMIx
    RankVariables("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),  # Slurm's srun
)
"""The first whose rank is set counts: `mpirun` may have been started by `srun`, as one of its tasks."""

VARIABLES = tuple(each.rank for each in LAUNCHERS)


def is_first() -> bool:
    """Whether this process is rank 0, or no rank at all."""
    return next((os.environ[name] for name in VARIABLES if os.environ.get(name)), "0") == "0"
