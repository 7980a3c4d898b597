"""Worlds: a module once plain and once with lifted loops, and what both do."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import accel
from accel.catalogue import Catalogue, Row
from accel.platform.ledger import Ledger, open_ledger
from tests.conftest import WriteModules

HEADER = "import numpy as np\n\n\nclass Model:\n    pass\n\n\n"  # the first line after it is 8


class World:
    """A module, once plain and once with lifted loops. rows: the functions whose loops are lifted."""

    def __init__(self, plain: ModuleType, fast: ModuleType, rows: tuple[Row, ...]) -> None:
        self.plain, self.fast, self._rows = plain, fast, rows

    def run(self, play: Callable[[ModuleType], Any]) -> tuple[Any, Any]:
        """What `play` gives with the plain module and with the lifted one."""
        accel.uninstall()
        before = play(self.plain)
        accel.install(Catalogue("test", self._rows))
        return before, play(self.fast)

    def check(self, play: Callable[[ModuleType], Any], times: int = 3) -> Any:
        """Assert that both give the same, each time. Returns what it is."""
        for _ in range(times):
            expected, found = self.run(play)
            assert_same(expected, found)
        return expected

    def ledger(self, line: int, qualname: str = "main") -> Ledger:
        """That of the loop in this line."""
        return open_ledger(f"planet:{qualname}:{line}")


def assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            assert_same(*pair)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype and one.flags.writeable == other.flags.writeable
        np.testing.assert_allclose(other, one, rtol=1e-12)
    elif isinstance(one, (float, np.floating)):
        np.testing.assert_allclose(other, one, rtol=1e-12)
    else:
        assert one == other


@pytest.fixture
def world(write_modules: WriteModules, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    """Give a function that makes a world of a source. qualnames: the functions whose loops are lifted."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def make(source: str, *qualnames: str) -> World:
        write_modules({"planet.py": source, "plainplanet.py": source})
        rows = tuple(Row("planet", name, "a test", loops=True) for name in qualnames or ("main",))
        return World(importlib.import_module("plainplanet"), importlib.import_module("planet"), rows)

    yield make
    accel.uninstall()
