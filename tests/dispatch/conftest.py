"""What tests of dispatch share: replays that stand as they are, and programs on disk that are ready at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from accel.backend.underway import queues
from accel.dispatch.comparing.policy import Comparisons
from accel.platform import config
from accel.policy import prices


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No replay is compared with NumPy: what it gives is what the caller gets."""
    monkeypatch.setattr(Comparisons, "is_due", lambda self, path, mode: False)


@pytest.fixture
def in_background(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """As with programs that are compiled in the background, which are done at once; they are kept on disk."""
    monkeypatch.setattr(queues, "compile_in_background", queues.compile_now)
    monkeypatch.setattr(prices, "burden_s", lambda compile_s: 0.0)
    with config.override(ahead_of_time=True, cache_dir=tmp_path):
        yield tmp_path
