"""Ranks: of an MPI program's processes, the first alone shows the summary, writes reports and keeps the last one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from accel.platform import ranks
from tests.processes import without_settings

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import accel
import numpy as np

@accel.accelerate
def step(field):
    return field + 0.1 * (np.roll(field, 1) - field)

field = np.linspace(0.0, 1.0, 64)
for _ in range(12):
    field = step(field)
print(float(field.sum()))
"""


OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
"""With these, it starts more ranks than there are processors, and as root, too, as in a container."""


@pytest.fixture(autouse=True)
def no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ranks.VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", ranks.VARIABLES)
def test_each_launcher_tells_the_rank(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ranks.is_first()
    monkeypatch.setenv(name, "0")
    assert ranks.is_first()
    monkeypatch.setenv(name, "3")
    assert not ranks.is_first()


def test_mpirun_inside_a_task_of_slurm_tells_the_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    assert not ranks.is_first()


def command(folder: Path) -> list[str]:
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    return [sys.executable, "-m", "accel.run", "--report", str(folder / "report.json"), "program.py"]


def environment(folder: Path) -> dict[str, str]:
    return (
        without_settings()
        | {"PYTHONPATH": str(ROOT), "QD_JAX_CACHE_DIR": str(folder / "cache"), "QD_JAX_AOT": "0"}
        | OPEN_MPI
    )


@pytest.mark.parametrize(("name", "rank"), [("OMPI_COMM_WORLD_RANK", "1"), ("SLURM_PROCID", "0")])
def test_the_first_rank_alone_speaks(name: str, rank: str, tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path),
        cwd=tmp_path,
        env=environment(tmp_path) | {name: rank},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "32.0\n"
    first = rank == "0"
    assert (" calls compiled" in done.stderr) == first
    assert first or done.stderr == ""
    assert (tmp_path / "report.json").exists() == (tmp_path / "cache" / "last-report.json").exists() == first


def test_ranks_of_mpirun(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="needs mpi4py, which the extra `peers` installs")
    beside_python = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    mpirun = shutil.which("mpirun", path=beside_python)  # that of the same environment, if it has one
    if mpirun is None:
        pytest.skip("needs mpirun")
    program = [
        sys.executable,
        "-c",
        "from mpi4py import MPI; from accel.platform import ranks; "
        "assert ranks.is_first() == (MPI.COMM_WORLD.Get_rank() == 0)",
    ]
    many = [mpirun, "-n", "2"]
    subprocess.run([*many, *program], env=environment(tmp_path), check=True, timeout=120)
    done = subprocess.run(
        [*many, *command(tmp_path)],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("32.0") == 2
    assert done.stderr.count("calls compiled") == 1
