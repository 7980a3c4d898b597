"""What the tests of the command line share."""

from __future__ import annotations

import pytest

from tests.tools.cli.bench import Bench


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The folder, made once: programs do not write into it."""
    return Bench(tmp_path_factory.mktemp("bench"))
