"""Prices and recordings as they are when a process begins, whatever other tests have measured in it."""

from __future__ import annotations

import pytest

from accel.policy import account, prices


@pytest.fixture(autouse=True)
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "recorded", account._Recorded())
    monkeypatch.setattr(prices, "worker_s", prices.WORKER_S)
    for name, price in (
        ("recording", (1.5e-4, 0.004)),
        ("describing", (1.2e-4,)),
        ("compiling", (7e-4 * prices.ALONE, 0.02 * prices.ALONE)),
        ("loading", (4e-5, 0.002)),
    ):
        monkeypatch.setattr(prices, name, prices.Price(*price))
