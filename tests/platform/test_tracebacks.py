"""Tracebacks without accel's frames."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from accel.platform.tracebacks import entries, without_ours


def _interrupted() -> int:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("module", "hidden"), [("accel.platform.tracebacks", True), (__name__, False)])
def test_methods_that_dataclasses_write_are_their_modules(module: str, hidden: bool) -> None:
    class Plain:
        __module__ = module
        value: int = field(default_factory=_interrupted)

    Plain.__annotations__ = {"value": int}
    with pytest.raises(KeyboardInterrupt) as caught:
        dataclass(Plain)()
    names = [each.tb_frame.f_code.co_name for each in entries(without_ours(caught.value.__traceback__))]
    assert names[1:] == ([] if hidden else ["__init__"]) + ["_interrupted"]
