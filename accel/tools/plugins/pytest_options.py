"""The pytest plugin as pytest loads it, in every run of an environment that has accel: it imports nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add accel's options."""
    group = parser.getgroup("accel", "accel: tests with NumPy functions compiled by JAX")
    group.addoption("--accel", action="store_true", help="run all tests twice, without and with accel, and compare")
    group.addoption(
        "--accel-catalogue",
        metavar="NAME_OR_FILE",
        help="accelerate what this catalogue names, an installed one or a file such as `accel doctor` writes; "
        "default: all installed ones",
    )
    group.addoption(
        "--accel-mode",
        choices=("auto", "verify", "strict"),
        metavar="MODE",
        help="auto (default), verify (every call is compared with NumPy), strict (a refusal is an error)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start accel's part if it is wanted. Raises UsageError for options of it alone."""
    if config.getoption("--accel"):
        from accel.tools.plugins.pytest_session import begin

        begin(config)
        return
    alone = [option for option in ("--accel-catalogue", "--accel-mode") if config.getoption(option)]
    if alone:
        from pytest import UsageError

        raise UsageError(f"accel: {alone[0]} says how tests run with --accel, which is missing")
