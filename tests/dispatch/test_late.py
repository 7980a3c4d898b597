"""Late imports: no module of accel's is imported in the midst of the program, where an interrupt would meet it."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tests.processes import starter


def _of_accel() -> set[str]:
    """Without the tables for modules of SciPy's: JAX imports some of these, and so brings their tables in."""
    names = {name for name in sys.modules if name.partition(".")[0] == "accel"}
    return {name for name in names if not name.startswith("accel.rules.tables.scipy")}


def imported_after_the_first_recording() -> dict[str, Any]:
    """Modules of accel's that compiling, loading and replaying import, in this process."""
    import accel
    from accel import config
    from accel.dispatch import late
    from accel.dispatch.costs import account, rest
    from accel.process import gain

    accelerate: Any = accel.accelerate
    late.import_now()
    before = _of_accel()
    gain.IMPORT_GAIN_S = gain.COMPILE_GAIN_S = account.RELIABLE_CALL_S = 0.0
    rest.SMALL_CALL_S, rest.MAX_REST = 0.0, 0
    fast: Any = accelerate(lambda x: np.linalg.solve(x, np.sort(x, axis=0)) + x.sum())
    x = np.eye(40) + 0.01
    config.set_current(config.Settings(ahead_of_time=True, quiet=True))
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
