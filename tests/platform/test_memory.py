"""Garbage collection, put off while accel's own graphs grow."""

from __future__ import annotations

import gc

import pytest

from accel.platform.memory import uncollected


@pytest.mark.parametrize("collects", [True, False])
def test_collection_is_as_before_whatever_happens_meanwhile(collects: bool) -> None:
    @uncollected()
    def failing(depth: int) -> None:
        assert not gc.isenabled()
        if depth:
            failing(depth - 1)
        raise ValueError(depth)

    was = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        with pytest.raises(ValueError, match="0"):
            failing(1)
        assert gc.isenabled() is collects
    finally:
        (gc.enable if was else gc.disable)()
