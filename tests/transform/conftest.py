"""Tests of what is transformed compile quickly, as those of what accel compiles do."""

from __future__ import annotations

import pytest

from tests.xla_options import compile_quickly


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_quickly(monkeypatch)
