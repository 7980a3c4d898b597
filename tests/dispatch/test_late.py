"""Late imports: no module of accel's is imported in the midst of the program, where an interrupt would meet it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel.backend.disk.cache import environment_hash
from accel.platform.processors import usable
from tests.processes import starter, without_settings


def _of_accel() -> set[str]:
    """Without the tables for modules of SciPy's: JAX imports some of these, and so brings their tables in."""
    names = {name for name in sys.modules if name.partition(".")[0] == "accel"}
    return {name for name in names if not name.startswith("accel.rules.tables.scipy")}


def imported_after_the_first_recording() -> dict[str, Any]:
    """Modules of accel's that compiling, loading and replaying import, in this process."""
    import accel
    from accel.dispatch import late
    from accel.platform import config

    accelerate: Any = accel.accelerate
    late.import_now()
    before = _of_accel()
    fast: Any = accelerate(lambda x: np.linalg.solve(x, np.sort(x, axis=0)) + x.sum())
    x = np.eye(40) + 0.01
    config.set_current(config.Settings(policy="eager", quiet=True))
    deadline = time.monotonic() + 60.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        while fast._self_target.ledger.compiled_calls < 3:
            fast(x)
            assert time.monotonic() < deadline
            time.sleep(0.01)
    return {"later": np.array(sorted(_of_accel() - before))}


def test_recording_compiling_and_replaying_import_nothing_more(tmp_path: Path) -> None:
    nothing = starter(tmp_path)("def body():\n    import numpy as np\n    return {'later': np.array([])}")
    later = starter(tmp_path)(imported_after_the_first_recording, timeout=120.0)
    assert later.bits == nothing.bits


def test_what_recording_needs_does_not_import_jax() -> None:
    code = "import sys; from accel.dispatch import late; late.import_now(); assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60.0, env=without_settings())


EARLY = """
import os, sys, threading
if sys.argv[1] == "1":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import numpy as np
import accel
from accel.dispatch import late

fast = accel.accelerate(lambda x: np.sort(x, axis=0).sum())
fast(np.random.default_rng(0).random((1500, 1500)))
for thread in threading.enumerate():
    if thread.name == "accel-start":  # it ends once the worker has JAX
        thread.join()
supervisor = sys.modules.get("accel.backend.underway.supervisor")
assert not late.is_starting
print(supervisor is not None and supervisor.supervisor._worker is not None, "jax" in sys.modules)
"""


def after_one_call(folder: Path, processors: int) -> list[str]:
    """Whether the worker runs, and whether JAX is here, after one call that was recorded."""
    environment = without_settings() | {"QD_JAX_CACHE_DIR": str(folder), "QD_JAX_QUIET": "1", "QD_JAX_POLICY": "eager"}
    command = [sys.executable, "-c", EARLY, str(processors)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120.0)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(usable() < 2, reason="the worker would take the program's only processor")
def test_the_worker_starts_before_there_is_anything_to_compile(tmp_path: Path) -> None:
    assert after_one_call(tmp_path, 2) == ["True", "False"]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs a process on one processor")
def test_no_worker_starts_early_on_the_only_processor(tmp_path: Path) -> None:
    assert after_one_call(tmp_path, 1) == ["False", "False"]


@pytest.mark.skipif(usable() < 2, reason="there is none anyway")
def test_no_worker_starts_early_where_programs_are_on_disk(tmp_path: Path) -> None:
    assert after_one_call(tmp_path, 2)[0] == "True"
    folder = tmp_path / f"programs-{environment_hash()}"
    folder.mkdir(exist_ok=True)
    (folder / f"{'0' * 40}.trace").touch()
    assert after_one_call(tmp_path, 2)[0] == "False"
