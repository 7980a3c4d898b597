"""Functions: how calls are followed, and the guards on everything that decides what they do."""

from __future__ import annotations

import builtins
import functools
import math
import os
import types
from typing import Any

import numpy as np
import pytest

import accel
from tests.helpers import some

FACTOR = 2.0
TABLE = {"a": 1.0, "b": [1.0, 2.0]}
FIELD = np.arange(4.0)


def by_global(x: Any) -> Any:
    return x * FACTOR + FIELD


def helper(x: Any) -> Any:
    return x + 1.0


def by_helper(x: Any) -> Any:
    return helper(x) * 2


def test_number_and_keyword_names_of_arguments(check: Any) -> None:
    def work(x: Any, y: Any = 2.0, *rest: Any, z: Any = 1.0, **more: Any) -> Any:
        total = x * y + z
        for value in rest:
            total = total + value
        for value in more.values():
            total = total * value
        return total, len(rest), sorted(more)

    calls = [
        lambda i: (some(i),),
        lambda i: (some(i), 5.0 + i),
        lambda i: ((some(i),), {"y": 3.0 + i}),
        lambda i: ((some(i), 1.0, 2.0 + i), {"z": some(i + 1)}),
        lambda i: ((some(i),), {"w": 3.0 + i}),
        lambda i: ((some(i),), {"w": 3.0 + i, "z": 2.0}),
        lambda i: ((), {"x": some(i)}),
    ]
    check(work, lambda i: calls[i % 7](i), calls=56, replays=20)


def test_a_wrong_call_raises_as_python_does(check: Any) -> None:
    def work(x: Any) -> Any:
        return x * 2

    check(work, lambda i: (some(i), 3) if i % 2 else some(i), calls=16, replays=4)


def test_globals_are_guarded(check: Any, monkeypatch: Any) -> None:
    def before(i: int) -> None:
        if i == 7:
            monkeypatch.setitem(by_global.__globals__, "FACTOR", 3.0)
        if i == 9:
            monkeypatch.setitem(by_global.__globals__, "FIELD", np.ones(4))
        if i == 11:
            by_global.__globals__["FIELD"][0] = 100.0
        if i == 13:
            monkeypatch.setitem(by_global.__globals__, "FACTOR", np.ones(4))

    check(by_global, some, before=before, calls=20, replays=6)


def test_global_containers_are_guarded(check: Any, monkeypatch: Any) -> None:
    def work(x: Any) -> Any:
        return x * TABLE["a"] + TABLE["b"][1] + len(TABLE["b"])

    def before(i: int) -> None:
        if i == 7:
            monkeypatch.setitem(TABLE, "a", 7.0)
        if i == 10:
            monkeypatch.setitem(TABLE, "b", [1.0, 5.0, 6.0])

    check(work, some, before=before, calls=16, replays=6)


def test_helpers_are_guarded(check: Any, monkeypatch: Any) -> None:
    def before(i: int) -> None:
        if i == 7:
            monkeypatch.setitem(by_helper.__globals__, "helper", lambda x: x - 100.0)

    check(by_helper, some, before=before, calls=14, replays=4)


def test_the_code_of_helpers_is_guarded(check: Any, monkeypatch: Any) -> None:
    def before(i: int) -> None:
        if i == 7:
            monkeypatch.setattr(helper, "__code__", (lambda x: x - 100.0).__code__)

    check(by_helper, some, before=before, calls=14, replays=4)


def test_the_targets_own_code_is_guarded(check: Any) -> None:
    def work(x: Any) -> Any:
        return x + 1

    def other(x: Any) -> Any:
        return x - 1

    def before(i: int) -> None:
        if i == 7:
            work.__code__ = other.__code__

    check(work, some, before=before, calls=14, replays=4)


def test_defaults_are_guarded(check: Any) -> None:
    def inner(x: Any, k: float = 1.0, *, m: float = 2.0) -> Any:
        return x * k + m

    def work(x: Any) -> Any:
        return inner(x)

    def before(i: int) -> None:
        if i == 7:
            inner.__defaults__ = (5.0,)
        if i == 10:
            inner.__kwdefaults__["m"] = 7.0

    check(work, some, before=before, calls=18, replays=5)


def test_mutable_defaults(check: Any) -> None:
    def work(x: Any, cache: Any = {"k": 2.0}, seen: Any = []) -> Any:  # noqa: B006
        cache["k"] = cache["k"] + 0.5
        return x * cache["k"], len(seen)

    def fresh() -> Any:
        return types.FunctionType(work.__code__, work.__globals__, "work", ({"k": 2.0}, []), work.__closure__)

    plain, fast = fresh(), fresh()
    accelerated = accel.accelerate(fast, name="mutable")
    for i in range(9):
        assert np.allclose(accelerated(some(i))[0], plain(some(i))[0])
        assert plain.__defaults__ == fast.__defaults__


def test_closures_are_guarded(check: Any) -> None:
    factor, offset = 2.0, some(3)

    def work(x: Any) -> Any:
        return x * factor + offset

    def before(i: int) -> None:
        nonlocal factor, offset
        if i == 7:
            factor = 5.0
        if i == 9:
            offset = some(9)

    check(work, some, before=before, calls=16, replays=5)


def test_the_environment_is_guarded(check: Any, monkeypatch: Any) -> None:
    def work(x: Any) -> Any:
        k = float(os.getenv("ACCEL_TEST_K", "2"))
        if os.environ.get("ACCEL_TEST_B") == "1" or "ACCEL_TEST_C" in os.environ:
            return x * 100
        return x * k

    def before(i: int) -> None:
        if i == 6:
            monkeypatch.setenv("ACCEL_TEST_K", "3")
        if i == 11:
            monkeypatch.setenv("ACCEL_TEST_B", "1")
        if i == 16:
            monkeypatch.delenv("ACCEL_TEST_B")
            monkeypatch.setenv("ACCEL_TEST_C", "")

    check(work, some, before=before, calls=24, replays=8)


def test_nested_functions_lambdas_and_comprehensions(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        scale = x.mean() + 3

        def inner(z: Any, k: float = 2.0) -> Any:
            return z * scale * k

        def deeper(z: Any) -> Any:
            return [inner(part) + x for part in (z, z * 2)]

        add = lambda a, b: a + b + scale  # noqa: E731
        parts = {name: inner(x, k) for name, k in zip("ab", (1.0, 2.0), strict=True)}
        total = sum(value.sum() for value in parts.values())
        return functools.reduce(add, deeper(y)), parts, total, list(map(inner, [x, y]))

    check(work, lambda i: (some(i), some(i + 9)), replays=0)


def test_comprehensions_and_keys(check: Any) -> None:
    def work(x: Any) -> Any:
        return [v * 1 for v in (x, x * 2)][1] + max((v.sum() for v in (x, x * 2)), key=lambda t: -t)

    check(work, some, calls=16, replays=2)


def test_a_nested_function_with_a_variable_of_its_enclosing_function(check: Any) -> None:
    def work(x: Any) -> Any:
        total = x * 0

        def add(y: Any) -> None:
            nonlocal total
            total = total + y

        add(x)
        add(x * 2)
        return total

    check(work, some)


def test_partial(check: Any) -> None:
    def scaled(x: Any, k: Any, offset: float = 0.0) -> Any:
        return x * k + offset

    bound = functools.partial(scaled, k=2.0)

    def work(x: Any, s: float) -> Any:
        local = functools.partial(scaled, k=s)
        return bound(x) + bound(x, offset=s) + local(x)

    check(work, lambda i: (some(i), 1.0 + i))


def test_bound_methods_as_values(check: Any) -> None:
    class Thing:
        def __init__(self) -> None:
            self.k = 2.0

        def scale(self, x: Any) -> Any:
            self.k += 1.0
            return x * self.k

    def work(f: Any, x: Any) -> Any:
        g = f
        return g(x) + f(x)

    def worlds() -> Any:
        one = Thing()
        return lambda i: (one.scale, some(i))

    check(work, worlds=worlds)


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) * 2

    return wrapper


@decorated
def twice(x: Any, *, k: float = 1.0) -> Any:
    return x * k


def test_decorated_functions(check: Any) -> None:
    check(twice, lambda i: ((some(i),), {"k": 2.0 + i}))
    check(lambda x: twice(x, k=3.0) + 1, some)


def test_targets_inside_targets(check: Any) -> None:
    inner = accel.accelerate(helper, name="inner")

    def work(x: Any) -> Any:
        return inner(x) * 2

    check(work, some)
    assert accel.platform.ledger.open_ledger("inner").inlined_calls == 1


def test_local_imports(check: Any) -> None:
    def work(x: Any) -> Any:
        import math

        import numpy as _np
        from numpy import sin as sine
        from scipy.ndimage import convolve

        return _np.cos(x) + sine(x) + convolve(x, _np.ones(3), mode="wrap") * math.pi

    check(work, some)


def test_recursion(check: Any) -> None:
    def down(x: Any, n: int) -> Any:
        return x if n == 0 else down(x * 0.5 + n, n - 1)

    check(down, lambda i: (some(i), 4))


def test_globals_and_locals(check: Any) -> None:
    check(lambda x: x * globals()["FACTOR"], some, reason="code.unsupported")
    check(lambda x: locals()["x"] * 2, some, replays=0)
    check(lambda x: eval("x * 2"), some, reason="code.unsupported")


def test_a_class_inside(check: Any) -> None:
    def work(x: Any) -> Any:
        class Local:
            k = 2.0

        return x * Local.k

    check(work, some, reason="code.unsupported")


def test_match_statements(check: Any) -> None:
    def work(x: Any, mode: str, n: int) -> Any:
        match mode:
            case "a":
                y = x + 1
            case _:
                y = x - 1
        match n:
            case 1 | 2:
                return y
        return y * n

    def by_class(x: Any) -> Any:
        match x:
            case np.ndarray():
                return x * 2
        return None

    check(work, lambda i: (some(i), "ab"[i % 2], i % 4), calls=60, replays=10)
    check(by_class, some, reason="code.unsupported")


def test_walrus_star_and_keyword_unpacking(check: Any) -> None:
    def add(a: Any, b: Any, /, c: Any = 0.0, *, d: Any = 1.0) -> Any:
        return (a + b + c) * d

    def work(lst: Any, d: Any) -> Any:
        if (total := sum(lst)) is not None:
            total = total + add(*lst, **d)
        first, *rest = lst
        return [*lst, total], {**d, "x": first}, len(rest)

    check(work, lambda i: ([some(i), some(i + 1)], {"d": 2.0 + i, "c": some(i + 2)}))


def test_f_of_the_same_module_through_an_attribute(check: Any) -> None:
    box = types.SimpleNamespace(f=helper, g=np.sin, h=[helper, np.cos])

    def work(x: Any) -> Any:
        return box.f(x) + box.g(x) + box.h[0](x) + box.h[1](x)

    check(work, some)


def test_random_and_time_functions_as_values(check: Any) -> None:
    import time

    def work(x: Any, clock: Any) -> Any:
        return x + 0 * clock()

    check(work, lambda i: (some(i), time.time), reason="effect.clock")


def test_names_that_are_missing_are_guarded(check: Any, monkeypatch: Any) -> None:
    import math

    def by_module(x: Any) -> Any:
        return x * 2 if hasattr(math, "accel_test") else x

    def by_builtin(x: Any) -> Any:
        return x * len(x)

    def by_class(x: Any) -> Any:
        return x * getattr(Plain, "accel_test", 1.0)

    class Plain:
        pass

    def before(i: int) -> None:
        if i == 7:
            patch.setattr(math, "accel_test", 1, raising=False)
            patch.setitem(by_builtin.__globals__, "len", lambda value: 100)
            patch.setattr(Plain, "accel_test", 3.0, raising=False)

    for work in (by_module, by_builtin, by_class):
        with monkeypatch.context() as patch:
            check(work, some, before=before, replays=2)


def test_a_helper_of_another_package_gets_the_very_list(check: Any) -> None:
    import copy
    from bisect import insort

    def work(x: Any) -> Any:
        kept = [x * 2]
        again = kept
        copy._accel_test(kept, x)  # type: ignore[attr-defined]
        sizes = [1.0, float(x[0])]
        insort(sizes, 0.5)
        return kept, again is kept, sizes

    def helper(lst: Any, x: Any) -> None:
        lst.append(x + 1)

    copy._accel_test = types.FunctionType(helper.__code__.replace(co_filename=copy.__file__), {"__name__": "copy"})  # type: ignore[attr-defined]
    try:
        check(work, some, reason="call.opaque")
    finally:
        del copy._accel_test  # type: ignore[attr-defined]


def test_everything_is_plain_after_the_tape_broke(check: Any) -> None:
    def inner(lst: Any, y: Any) -> Any:
        import time

        time.time()
        return type(lst[0]) is np.ndarray, type(y) is np.ndarray, type(lst[1]) is float

    def work(self: Any, x: Any, s: float) -> Any:
        lst = [x * 2, s * 2, {"k": x + 1}]
        facts = inner(lst, x + 1)
        later = [type(v).__module__ for v in (self, x, s, lst[0], lst[1], lst[2]["k"], *lst)]
        total = 0.0
        for key, value in self.fields.items():
            total = total + value
            later.append((key, type(value).__module__))
        return facts, later, total

    def make(i: int) -> Any:
        return types.SimpleNamespace(fields={"a": some(i), "b": some(i)}), some(i), 1.5

    check(work, make, reason="effect.clock")


def test_functions_and_types_answer_as_the_real_ones(check: Any) -> None:
    """Class, text, equality, hash and attributes of what recorded code has a stand-in for."""

    def inner() -> None:
        """Has text."""

    def work(x: Any) -> Any:
        met = []
        for value in (float, np.float64, np.ndarray, type, print, sum, len, np.sum, np.add, math.sqrt, os.getenv):
            kinds = [isinstance(value, kind) for kind in (type, types.BuiltinFunctionType, types.FunctionType)]
            same = value == value, value != value, value == len, len({value, value})
            met.append((kinds, same, value.__name__, repr(value)[:9], issubclass(type(value), type), callable(value)))
            met.append((value.__module__, value.__doc__))
        met += [(each.__module__, each.__doc__) for each in (type(x), math.sqrt, np.add, "".join, inner)]
        return x * 2, met

    check(work, lambda i: (np.arange(3.0) + i,))


def absolute(x: Any) -> Any:
    return x * 0.5 + 1.0


def test_a_builtin_that_the_program_replaced(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first recording, and between calls that are replayed."""

    def work(x: Any) -> Any:
        return abs(x) * max(float(x.size), 2.0)

    replaced = range(4, 7)
    check(
        work,
        some,
        calls=14,
        replays=6,
        before=lambda i: monkeypatch.setattr(builtins, "abs", absolute if i in replaced else PYTHONS),
    )
    monkeypatch.setattr(builtins, "abs", functools.wraps(PYTHONS)(lambda x: x * 2.0 if x is not None else x))
    check(work, some)


PYTHONS = abs


def test_names_that_the_program_adds_to_the_builtins(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(x: Any) -> Any:
        return x * RATE  # type: ignore[name-defined]  # noqa: F821

    monkeypatch.setattr(builtins, "RATE", 2.0, raising=False)
    check(work, some, replays=3, before=lambda i: monkeypatch.setattr(builtins, "RATE", 2.0 + (i > 5)))


def test_builtins_of_a_namespace_s_own(check: Any) -> None:
    namespace = {"__builtins__": {**vars(builtins), "abs": absolute}, "np": np, "__name__": __name__}
    exec("def work(x):\n    return abs(x) + 1.0", namespace)
    check(namespace["work"], some)
