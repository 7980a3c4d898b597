"""The signatures that NumPy's C functions carry since NumPy 2.4 are those that accel has for them where they do not."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from accel.rules import load, signatures
from accel.rules.rule import RULES
from accel.rules.signatures import signature_of
from accel.rules.special import Static, Unrecordable

load(everything=True)

STUBS = {name: stub for name, stub in vars(signatures._Stubs).items() if not name.startswith("_")}
CARRIED = tuple(int(part) for part in np.__version__.split(".")[:2]) >= (2, 4)


@pytest.mark.skipif(not CARRIED, reason="NumPy's C functions carry no signature before NumPy 2.4")
@pytest.mark.parametrize("name", STUBS)
def test_a_stub_is_what_numpy_has_but_for_later_parameters(name: str) -> None:
    def described(function: object) -> dict[str, tuple[object, object]]:
        parameters = inspect.signature(function).parameters  # type: ignore[arg-type]
        return {each.name: (each.kind, each.default) for each in parameters.values()}

    theirs = described(getattr(np, name))
    assert described(STUBS[name]) == {key: about for key, about in theirs.items() if (name, key) != ("array", "ndmax")}


def test_every_function_that_is_bound_has_a_signature() -> None:
    without = [
        rule.name
        for rule in RULES.values()
        if rule.signature is None
        and rule.name.startswith("numpy.")
        and not isinstance(rule.recorded.special, (Static, Unrecordable))
    ]
    assert without == []


def test_what_has_neither_has_none() -> None:
    assert signature_of(max) is None or signature_of(max) == inspect.signature(max)
    assert signature_of(None) is None  # type: ignore[arg-type]
