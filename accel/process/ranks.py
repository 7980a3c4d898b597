"""Ranks: processes of one program that mpirun or srun has started. The first one speaks for all.

The variables are those that the launchers set for each rank, so mpi4py need not be imported.
"""

from __future__ import annotations

import os

VARIABLES = (
    "OMPI_COMM_WORLD_RANK",  # Open MPI
    "MV2_COMM_WORLD_RANK",  # MVAPICH
    "PMI_RANK",  # MPICH and Intel MPI
    "PMIX_RANK",  # launchers that speak PMIx
    "SLURM_PROCID",  # Slurm's srun
)
"""Environment variables with the number of this rank, from 0. The first that is set counts: `mpirun` may have been
started by `srun`, as one of its tasks."""


def is_first() -> bool:
    """Whether this process is rank 0, or no rank at all."""
    return next((os.environ[name] for name in VARIABLES if os.environ.get(name)), "0") == "0"
