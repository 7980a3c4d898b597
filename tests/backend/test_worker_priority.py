"""The compiling process lets the program go first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from accel.backend.underway.worker import NICENESS, Worker


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this system has no groups of sessions")
def test_the_worker_s_session_has_its_niceness() -> None:
    """Its process's own niceness means nothing beside another session's."""
    worker = Worker()
    try:
        group = Path(f"/proc/{worker.process}/autogroup").read_text(encoding="ascii")
        assert group.split()[-2:] == ["nice", str(NICENESS)]
        assert os.getpriority(os.PRIO_PROCESS, worker.process) == NICENESS
    finally:
        worker.stop()
