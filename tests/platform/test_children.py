"""Children of all kinds: right results, clean ends, one cache for all, and their figures in the parent's report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from accel.platform.ledger import Difference, open_ledger
from accel.reports import children
from accel.reports.figures import figures_of_run
from tests.processes import without_settings

ROOT = Path(__file__).resolve().parents[2]

JOB = """
import accel, numpy as np

@accel.accelerate(mode="verify")
def wave(x):
    return np.sin(x) * 2.0 + np.cos(x)

def work(calls):
    return [float(wave(np.arange(100.0) + i).sum()) for i in range(calls)]
"""

PROGRAM = """
import json, multiprocessing, sys, time
import numpy as np
import accel, job

def plain(x):
    return float((np.sin(x) * 2.0 + np.cos(x)).sum())

def check(given):
    given = list(given)
    for each in given:
        expected = [plain(np.arange(100.0) + i) for i in range(len(each))]
        assert np.allclose(each, expected, rtol=1e-12), (each, expected)
    return sum(map(len, given))

def wave_of_all():
    functions = json.loads(accel.report("json", children=True))["functions"]
    return next(each for each in functions if "wave" in each["target"])

def settled():
    "Wait until the children have handed over all calls: pools end their workers without asking."
    for _ in range(300):
        if wave_of_all()["calls"] == calls:
            break
        time.sleep(0.1)

if __name__ == "__main__":
    accel.gather_children()
    calls = check([job.work(6)])
    {body}
    wave = wave_of_all()
    print(wave["calls"] == calls, wave["compiled_calls"], sorted(each["id"] for each in wave["reasons"]))
"""

BODIES = {
    "fork": """
    with multiprocessing.get_context("fork").Pool(1) as pool:
        calls += check(pool.map(job.work, [6, 7]))
        settled()
    """,
    "spawn": """
    processes = [multiprocessing.get_context("spawn").Process(target=job.work, args=(6,)) for _ in range(2)]
    for each in processes:
        each.start()
    for each in processes:
        each.join()
    assert [each.exitcode for each in processes] == [0, 0]
    calls += 12
    """,
    "forkserver": """
    with multiprocessing.get_context("forkserver").Pool(1) as pool:
        calls += check(pool.map(job.work, [6]))
        settled()
    """,
    "futures": """
    import concurrent.futures
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        calls += check(pool.map(job.work, [6, 7, 8]))
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        calls += check(pool.map(job.work, [6]))
    """,
    "joblib": """
    import joblib
    calls += check(joblib.Parallel(n_jobs=2)(joblib.delayed(job.work)(n) for n in (6, 7)))
    settled()
    """,
    "dask": """
    import dask, dask.multiprocessing
    for scheduler in ("threads", "processes"):
        tasks = [dask.delayed(job.work)(6), dask.delayed(job.work)(7)]
        calls += check(dask.compute(*tasks, scheduler=scheduler, num_workers=1))
    settled()
    """,
    "distributed": """
    import distributed
    quietly = {"dashboard_address": None, "silence_logs": 50}  # a busy machine makes it warn
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **quietly) as cluster:
        with distributed.Client(cluster) as client:
            calls += check(client.gather(client.map(job.work, [6, 7], pure=False)))
            settled()
    """,
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of programs for all children of all tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("how", BODIES)
def test_children_compute_end_and_report(how: str, tmp_path: Path, cache: Path) -> None:
    if how in ("joblib", "dask", "distributed"):
        pytest.importorskip(how)
    if how in ("fork", "forkserver") and not hasattr(os, "fork"):
        pytest.skip("needs os.fork")
    (tmp_path / "job.py").write_text(JOB)
    body = textwrap.indent(textwrap.dedent(BODIES[how]).strip(), "    ").strip()
    (tmp_path / "program.py").write_text(PROGRAM.replace("{body}", body))
    environ = without_settings()
    environ |= {"PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)]), "QD_JAX_CACHE_DIR": str(cache)}
    command = [sys.executable, "program.py"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**environ, "QD_JAX_AOT": "0", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
    same, compiled, reasons = done.stdout.split(maxsplit=2)
    assert same == "True", done.stdout
    # from Python 3.14 on the fork server imports the program, and accel with it, before it forks
    is_forked = how == "fork" or (how == "forkserver" and sys.version_info >= (3, 14))
    assert ("environment.forked" in reasons) == is_forked, done.stdout
    assert int(compiled) >= (3 if is_forked else 6)
    assert not list(tmp_path.glob("accel-children-*")), "the folder of the figures has stayed"


def test_figures_of_several_processes_are_one_report(books: Any) -> None:
    book = open_ledger("f")
    book.count_numpy(0.5)
    book.count_compiled(0.25, 0.5)
    book.charge("recording", 0.125)
    book.differ(Difference("result", "[0]", "1 instead of 2", 0.5), "wrong")
    book.doubt(9)
    one = json.loads(json.dumps(figures_of_run()))
    assert children.merged(one, []) is one
    none = {**one, "functions": [{**one["functions"][0], "doubtful_since": None}]}
    all_of_them = children.merged(none, [one, one])
    (function,) = all_of_them["functions"]
    assert (function["calls"], function["compiled_calls"], function["state"]) == (6, 3, "compiled")
    assert function["gained_s"] == 1.5 and function["costs_s"] == {"recording": 0.375}
    assert len(function["differences"]) == 3
    assert function["doubtful_since"] == 9
    assert children.merged(none, [none])["functions"][0]["doubtful_since"] is None
    totals = all_of_them["totals"]
    assert totals["calls"] == 6 and totals["saved_s"] == 1.125 and all_of_them["wall_s"] == 3 * one["wall_s"]
    assert "2 child processes" in all_of_them["notes"][-1]
