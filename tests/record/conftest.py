"""`check`: plays a function's calls twice, plainly and accelerated, and compares all that can be seen of them."""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pytest

import accel
from accel.dispatch.comparing import policy
from accel.platform.ledger import Ledger, open_ledger
from accel.policy import speed
from accel.record.values.draws.generators import is_same_state, kind_of

CALLS = 9
RTOL = 1e-10

_names = itertools.count()


@dataclass(eq=False)
class Raised:
    """What a call raised."""

    kind: type
    args: tuple[Any, ...]


@dataclass(eq=False)
class Checked:
    """What `check` leaves for further questions: the ledger, and the accelerated function."""

    ledger: Ledger
    function: Any
    refusals: list[str] = field(default_factory=list)


class Twins:
    """Compares two graphs of objects: values, types, identities, and which arrays share memory."""

    def __init__(self, exact: bool) -> None:
        self._exact = exact
        self._partner: dict[int, tuple[Any, Any]] = {}
        self._back: dict[int, int] = {}
        self._arrays: list[tuple[str, Any, Any]] = []

    def same(self, left: Any, right: Any, name: str) -> None:
        """Assert that `right`, of the accelerated world, is what `left` is in the plain one."""
        assert type(right) is type(left), f"{name}: {type(right)} instead of {type(left)} ({right!r}, {left!r})"
        if self._met(left, right, name):
            return
        if isinstance(left, np.ndarray):
            self._array(left, right, name)
        elif isinstance(left, (list, tuple, deque)):
            assert len(left) == len(right), name
            for i, pair in enumerate(zip(left, right, strict=True)):
                self.same(*pair, f"{name}[{i}]")
        elif isinstance(left, dict):
            assert list(left) == list(right), name
            for key in left:
                self.same(left[key], right[key], f"{name}[{key!r}]")
            for pair in zip(left, right, strict=True):
                self.same(*pair, f"a key of {name}")
        elif isinstance(left, (set, frozenset)):
            assert left == right, name
            assert [(type(part), part) for part in left] == [(type(part), part) for part in right], f"{name}: order"
        elif isinstance(left, Raised):
            assert left.kind is right.kind, f"{name}: {right} instead of {left}"
            self.same(left.args, right.args, f"{name}.args")
        elif isinstance(left, (int, float, complex, np.generic)):
            self._number(left, right, name)
        elif isinstance(left, MethodType):
            assert left.__func__ is right.__func__, name
            self.same(left.__self__, right.__self__, f"{name}.__self__")
        elif isinstance(left, ModuleType):
            assert left is right, name
        elif kind_of(left) is not None:
            state = kind_of(left).state  # type: ignore[union-attr]
            assert is_same_state(state(left), state(right)), f"{name}: the state of a generator"
        elif isinstance(left, FunctionType):
            assert left.__code__ is right.__code__, name
        elif isinstance(left, functools._lru_cache_wrapper):
            assert left.cache_info() == right.cache_info(), f"{name}: hits and misses"
        elif type(left).__module__.startswith("scipy.interpolate."):  # they can be called, and have no `==`
            self._object(left, right, name)
        elif isinstance(left, (str, bytes, type, type(None), range, slice)) or callable(left):
            assert left == right, name
        else:
            self._object(left, right, name)

    def _met(self, left: Any, right: Any, name: str) -> bool:
        if isinstance(left, (int, float, complex, str, bytes, type, type(None), np.generic, tuple)) or callable(left):
            return False
        before = self._partner.get(id(left))
        if before is not None:
            assert before[1] is right, f"{name}: another object where NumPy has the same one twice"
            return True
        assert id(right) not in self._back, f"{name}: the same object where NumPy has two"
        self._partner[id(left)] = (left, right)
        self._back[id(right)] = id(left)
        return False

    def _number(self, left: Any, right: Any, name: str) -> None:
        self._values(np.asarray(left), np.asarray(right), name)

    def _array(self, left: Any, right: Any, name: str) -> None:
        assert left.dtype == right.dtype, f"{name}: {right.dtype} instead of {left.dtype}"
        assert left.shape == right.shape, f"{name}: {right.shape} instead of {left.shape}"
        assert left.flags.writeable == right.flags.writeable, f"{name}: writeable"
        self._values(left, right, name)
        for other, mine, theirs in self._arrays:
            assert np.shares_memory(left, mine) == np.shares_memory(right, theirs), f"{name} and {other}: memory"
        self._arrays.append((name, left, right))

    def _values(self, left: Any, right: Any, name: str) -> None:
        if left.dtype.kind in "fc" and not self._exact:
            rtol = max(RTOL, 16 * np.finfo(left.dtype).eps)
            np.testing.assert_allclose(right, left, rtol=rtol, atol=rtol * 1e-3, err_msg=name)
            if left.dtype.kind == "f":
                zero = (left == 0) & (right == 0)
                assert (np.signbit(left)[zero] == np.signbit(right)[zero]).all(), f"{name}: sign of zero"
        else:
            np.testing.assert_array_equal(right, left, err_msg=name)

    def _object(self, left: Any, right: Any, name: str) -> None:
        mine, theirs = _attributes(left), _attributes(right)
        assert list(mine) == list(theirs), f"{name}: attributes {list(theirs)} instead of {list(mine)}"
        for key in sorted(mine):
            self.same(mine[key], theirs[key], f"{name}.{key}")


def _attributes(value: Any) -> dict[str, Any]:
    found = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = getattr(kind, "__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, slot) and slot not in ("__dict__", "__weakref__"):
                found[slot] = getattr(value, slot)
    return found


def play(function: Callable[..., Any], arguments: Any) -> Any:
    """Call the function: its result, or what it raised. arguments: a tuple, or (tuple, dict)."""
    args, kwargs = split(arguments)
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return Raised(type(error), error.args)


def split(arguments: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments of what a test's `make` gave."""
    if not isinstance(arguments, tuple):
        return (arguments,), {}
    if len(arguments) == 2 and isinstance(arguments[0], tuple) and type(arguments[1]) is dict:
        return arguments
    return arguments, {}


def judged(name: str, replays: int, reason: str | None = None) -> Ledger:
    """The ledger of a target. Asserts that it has at least so many replays, and was refused for `reason` or rightly."""
    ledger = open_ledger(name)
    text = [refusal.message(name) for refusal in ledger.refusals]
    reasons = {refusal.reason for refusal in ledger.refusals}
    assert reason is None or reason in reasons, f"{reason} was not given: {text}"
    assert reason or reasons.isdisjoint({"verify.mismatch", "recorder.gap", "accel.fault"}), text
    assert ledger.compiled_calls >= replays, text or ledger
    return ledger


Make = Callable[[int], Any]
Check = Callable[..., Checked]


@pytest.fixture(autouse=True)
def bare_replays(foreground: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replays stand as they are: not compared with NumPy first."""
    monkeypatch.setattr(policy, "FIRST_COMPARED", 0)
    monkeypatch.setattr(speed, "NUMPY_SAMPLES", 1)


@pytest.fixture
def check() -> Check:
    """Give `check(function, make)`.

    make(i): arguments of call i, afresh each time it is asked. worlds: instead of `make`, a function that gives such
    a `make` with a state of its own; asked once for the plain world and once for the accelerated one. replays: how
    many calls must have been replayed at least; default all but the first five where no `reason` is given, else
    none. reason: the reason id that must have been given. never: reason ids that must not. before(i): done before
    call i. exact: floats equal bit by bit.
    """

    def run(
        function: Any,
        make: Make | None = None,
        *,
        worlds: Callable[[], Make] | None = None,
        calls: int = CALLS,
        replays: int | None = None,
        reason: str | None = None,
        before: Callable[[int], Any] | None = None,
        exact: bool = False,
    ) -> Checked:
        name = f"target{next(_names)}"
        accelerated = accel.accelerate(function, name=name)
        plain_make, fast_make = (make, make) if worlds is None else (worlds(), worlds())
        for i in range(calls):
            if before is not None:
                before(i)
            mine, theirs = plain_make(i), fast_make(i)
            expected, found = play(function, mine), play(accelerated, theirs)
            Twins(exact).same((expected, mine), (found, theirs), f"call {i}")
        ledger = judged(name, (0 if reason else calls - 5) if replays is None else replays, reason)
        assert replays or not reason or not ledger.compiled_calls
        return Checked(ledger, accelerated, [refusal.reason for refusal in ledger.refusals])

    return run
