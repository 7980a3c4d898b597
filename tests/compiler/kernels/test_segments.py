"""Programs of kernels: what takes them, what falls back to XLA, and the state that runs leave behind."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import accel
from accel.backend import compile as compiling
from accel.backend import options, segmented
from accel.backend.executable import Executable
from accel.compiler.kernels import machine_code, memory, segments
from accel.compiler.kernels.nested import Choice, Scan, While
from accel.compiler.kernels.segments import HostCall, Kernel, MatrixProduct, Segmented
from accel.compiler.lower.passes.loops import scan
from accel.platform import config, ledger
from tests.helpers import some
from tests.replays import program_of, variant_of

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.usefixtures("foreground")

X = np.linspace(-1.0, 2.0, 60).reshape(6, 10)


WIDE = np.linspace(-1.0, 2.0, 300 * 400).reshape(300, 400)


def built(function: Callable[..., Any], *arrays: Any) -> Segmented:
    """The segments of a function of JAX's that gives a list."""
    import jax

    forms = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arrays]
    with jax.enable_x64(True):
        return segmented.built(lambda given, constants, scalars: (function(*given), {}), (forms, [], {}), {})


def executable_of(function: Callable[..., Any], *args: Any) -> Executable:
    variant = variant_of(function, lambda seed: args)
    assert variant is not None
    return variant.executable


def stencil(x: Any) -> Any:
    return np.roll(x, 1, axis=1) - 2.0 * x + np.roll(x, -1, axis=1), np.sqrt(np.abs(x)), x.sum()


def test_a_program_of_kernels_alone_gives_numpys_bits_in_new_arrays() -> None:
    made = executable_of(stencil, X)
    assert [type(each) for each in made.compiled.segments] == [Kernel]
    (first, second), packs = made([X], {})
    np.testing.assert_array_equal(first, stencil(X)[0])
    assert packs["f"][-1] == X.sum()
    (again, _), _ = made([X + 1.0], {})
    assert not np.shares_memory(first, again) and not np.shares_memory(second, X)
    np.testing.assert_array_equal(first, stencil(X)[0])


def test_stacks_of_matrices_are_multiplied_as_numpy_does() -> None:
    x, m = np.random.default_rng(3).normal(size=(5, 6, 1, 20)), np.random.default_rng(4).normal(size=(20, 17))
    made = executable_of(lambda x, m: x @ m + 1.0, x, m)
    assert MatrixProduct in {type(each) for each in made.compiled.segments}
    np.testing.assert_array_equal(made([x, m], {})[0][0], x @ m + 1.0)


def test_what_large_arrays_are_fetched_ahead_of_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    monkeypatch.setattr(memory, "_LARGE", 1)
    monkeypatch.setattr(
        machine_code, "object_of", lambda *units, made=machine_code.object_of: texts.extend(units) or made(*units)
    )
    for x in (X, X[:, :3].copy(), WIDE):  # rows of fewer elements than a vector has, and arrays at the end of memory
        made = executable_of(stencil, x)
        for mine, theirs in zip(made([x], {})[0], stencil(x)[:2], strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert any("@llvm.prefetch" in text for text in texts)


def test_the_largest_so_far_is_a_kernels() -> None:
    x = np.where(np.arange(WIDE.size).reshape(WIDE.shape) % 7, WIDE % 0.3, np.where(WIDE > 1.0, np.nan, -0.0))
    for axis in (0, 1):
        made = executable_of(lambda x, axis=axis: np.maximum.accumulate(x, axis=axis) - np.minimum.accumulate(x), x)
        assert {type(each) for each in made.compiled.segments} == {Kernel}
        found = np.maximum.accumulate(x, axis=axis) - np.minimum.accumulate(x)
        np.testing.assert_array_equal(made([x], {})[0][0], found)


def test_kernels_share_scratch_memory() -> None:
    segments._rooms.clear()
    for x in (X, WIDE, X):
        made = executable_of(stencil, x)
        (kernel,) = made.compiled.segments
        assert isinstance(kernel, Kernel)
        made([x], {})
        assert [len(room) >= kernel.size.room for room, _ in segments._rooms] == [True]


def test_subnormal_numbers_are_kept() -> None:
    tiny = np.array([5e-324, 1e-310, -1e-309, 0.0] * 4)
    made = executable_of(lambda x: (np.ceil(x), np.sign(x), x * 1e300 * 1e20, x > 0.0), tiny)
    found, _ = made([tiny], {})
    for mine, theirs in zip(found, (np.ceil(tiny), np.sign(tiny), tiny * 1e300 * 1e20, tiny > 0.0), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_arrays_are_read_whatever_their_place_and_layout() -> None:
    made = executable_of(stencil, X)
    memory = np.zeros(X.nbytes + 8, np.uint8)[8:].view(np.float64).reshape(X.shape)
    memory[...] = X
    for given in (memory, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        np.testing.assert_array_equal(made([given], {})[0][0], stencil(X)[0])


def test_a_program_is_the_same_after_pickling() -> None:
    made = executable_of(stencil, X)
    again = segmented.loaded(pickle.loads(pickle.dumps(segmented.without_xla(made.compiled))), [])
    np.testing.assert_array_equal(again([X], made.constants, {})[0][0], stencil(X)[0])


def test_threads_have_memory_of_their_own() -> None:
    lines = ["def case(x):", "    for _ in range(6):", "        x = np.roll(x, 1, axis=1) + np.roll(x, 1, axis=0)"]
    source = "\n".join([*lines, "    return x", ""])
    program = program_of(source, "threads")
    made = executable_of(program, X)
    wrong: list[int] = []

    def run(number: int) -> None:
        given = X + number
        wrong.extend(number for _ in range(200) if not np.array_equal(made([given], {})[0][0], program(given)))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_only_the_chosen_side_runs() -> None:
    from jax import lax

    made = built(lambda x: [lax.cond(x[0, 0] > 0.0, lambda x: x * 2.0 + 1.0, lambda x: x, x)], X)
    choice = next(each for each in made.segments if isinstance(each, Choice))
    assert [len(side.segments) for side in choice.programs] == [0, 1]
    np.testing.assert_array_equal(made([X], [], {})[0][0], X)
    np.testing.assert_array_equal(made([X + 5.0], [], {})[0][0], (X + 5.0) * 2.0 + 1.0)


@pytest.mark.parametrize("error", [RuntimeError("LLVM refuses it"), RecursionError(), MemoryError()])
def test_xla_compiles_what_llvm_refuses(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(text: str) -> bytes:
        raise error

    monkeypatch.setattr(machine_code, "object_of", refuses)
    made = executable_of(stencil, X)
    assert not isinstance(made.compiled, Segmented)
    np.testing.assert_allclose(made([X], {})[0][0], stencil(X)[0], rtol=1e-15)


def test_code_that_is_damaged_or_for_another_processor_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM would end the process: there is nothing to catch."""
    code = machine_code.object_of("define void @entry() { ret void }")
    assert machine_code.Loaded(code).address("entry")
    for damaged in (b"", code[:-1], code[1:], bytes(len(code))):
        with pytest.raises(RuntimeError, match="damaged, or for another processor"):
            machine_code.Loaded(damaged)
    monkeypatch.setattr(machine_code, "target", lambda: ("another", "+sse2"))
    with pytest.raises(RuntimeError, match="damaged, or for another processor"):
        machine_code.Loaded(code)


def test_without_llvmlite_xla_compiles_and_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_code, "problem", lambda: "ImportError: no llvmlite")
    assert not isinstance(executable_of(stencil, X).compiled, Segmented)
    assert any("no kernels: llvmlite cannot be used" in each for each in ledger.current_run().notes)


def test_the_setting_turns_kernels_off() -> None:
    with config.override(kernels=False):
        assert not isinstance(executable_of(stencil, X).compiled, Segmented)


@pytest.mark.parametrize("kernels", [True, False])
def test_inputs_that_are_read_where_they_lie_are_not_timed_as_copies(
    kernels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with config.override(kernels=kernels):
        made = executable_of(stencil, X)
    copied: list[Any] = []
    monkeypatch.setattr(Executable, "fetched", lambda self, arrays: copied.extend(arrays) or [])
    made.time_copies([np.frombuffer(bytearray(80), offset=8)], [], [])
    assert len(copied) == (0 if kernels else 1)


def test_rounds_of_a_loop_that_arrays_decide_on_are_kernels() -> None:
    from jax import lax
    from jax import numpy as jnp

    def halved(x: Any) -> Any:
        def half(state: Any) -> Any:
            return state[0] + 1, jnp.roll(state[1], 1, 0) / 2.0 + x * 0.25, state[3], state[2], state[4]

        return list(lax.while_loop(lambda state: state[1].max() > 1.5, half, (0, x * 64.0, x, x + 1.0, x)))

    made = built(halved, WIDE)
    (loop,) = [each for each in made.segments if isinstance(each, While)]
    assert not segmented.of_xla(made)
    again = segmented.loaded(pickle.loads(pickle.dumps(segmented.without_xla(made))), [])
    count, y, first, second = 0, WIDE * 64.0, WIDE, WIDE + 1.0
    while y.max() > 1.5:
        count, y, first, second = count + 1, np.roll(y, 1, 0) / 2.0 + WIDE * 0.25, second, first
    for program in (made, again):
        found = program([WIDE], [], {})[0]
        assert found[0] == count > 3
        for mine, theirs in zip(found[1:], (y, first, second, WIDE), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        given = [WIDE, *loop.programs[1].constants.values()]
        for number, each in enumerate(found):  # each is the caller's own
            assert not any(np.shares_memory(each, other) for other in [*given, *found[:number]])


def test_a_branch_or_loop_that_xla_computes_better_leaves_the_rest_to_kernels() -> None:
    """A rare branch with a Fourier transform made a whole model's loop XLA's."""
    from jax import lax
    from jax import numpy as jnp

    def stepped(x: Any, rarely: Any) -> Any:
        for _ in range(60):
            x = jnp.roll(x, 1, 0) * 0.25 + x * 0.5
        filtered = lax.cond(rarely, lambda y: jnp.fft.ifft(jnp.fft.fft(y) * 0.5).real + 1.0, lambda y: y * 2.0, x)
        few, _ = lax.scan(
            lambda total, each: (total + each + jnp.fft.fft(x[0, :2]).imag[0], None), x[0, 0], np.array([0.0, 0.5, 1.0])
        )
        return [filtered, few]

    made = built(stepped, WIDE, np.array(True))
    assert sorted(type(each).__name__ for each in made.segments)[:3] == ["Choice", "InXla", "Kernel"]
    (choice,) = [each for each in made.segments if isinstance(each, Choice)]
    assert {type(each).__name__ for each in choice.programs[1].segments} == {"InXla", "Kernel"}
    parts = segmented.of_xla(made)
    again = segmented.loaded(pickle.loads(pickle.dumps(segmented.without_xla(made))), parts)
    x = WIDE
    for _ in range(60):
        x = np.roll(x, 1, 0) * 0.25 + x * 0.5
    for program in (made, again):
        for rarely, expected in ((True, x * 0.5 + 1.0), (False, x * 2.0)):
            found = program([WIDE, np.array(rarely)], [], {})[0]
            np.testing.assert_allclose(found[0], expected, rtol=0 if not rarely else 1e-12)
            assert found[1] == x[0, 0] + 1.5


@pytest.mark.parametrize("backwards", [False, True])
def test_a_loop_gives_what_its_rounds_collect(backwards: bool) -> None:
    from jax import lax

    rows = np.arange(5.0)

    def summed(x: Any, factors: Any) -> Any:
        def add(state: Any, factor: Any) -> Any:
            after = state[0] * 0.5 + x * factor
            return (after, factor), (after[:, 0] - factor, factor > 2.0)

        last, collected = lax.scan(add, (x, factors[0]), factors, reverse=backwards)
        return [*last, *collected]

    made = built(summed, WIDE, rows)
    assert isinstance(made.segments[-1], Scan)
    last, columns, truths = WIDE, np.empty((5, 300)), np.empty(5, bool)
    for number in reversed(range(5)) if backwards else range(5):
        last = last * 0.5 + WIDE * rows[number]
        columns[number], truths[number] = last[:, 0] - rows[number], rows[number] > 2.0
    expected = last, rows[number].copy(), columns, truths
    for _ in range(2):  # what a run gives is new each time: also a row that is passed on
        for mine, theirs in zip(made([WIDE, rows], [], {})[0], expected, strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)
            mine[...] = 0


def test_numbers_are_computed_again_where_a_kernel_needs_them() -> None:
    """Hundreds of them were handed from one kernel of PyGCM's loop to the next, a microsecond each."""

    def scaled(x: Any, number: Any) -> Any:
        factor = number * 2.0 + 1.0
        for _ in range(100):  # more than are repeated
            factor = factor * 0.5 + number
        product = (x * factor) @ x.T
        return [product * factor + number]

    made, number = built(scaled, WIDE, np.array(1.5)), 1.5
    first, _, last = made.segments
    assert [len(each.outputs) for each in (first, last)] == [3, 1]  # two factors of the product, and one number
    factor = number * 2.0 + 1.0
    for _ in range(100):
        factor = factor * 0.5 + number
    expected = ((WIDE * factor) @ WIDE.T) * factor + number
    np.testing.assert_array_equal(made([WIDE, np.array(number)], [], {})[0][0], expected)


def levels(x: Any, given: Any) -> Any:
    """A loop over rows, with numbers and arrays of each iteration's own, whose values are all used."""
    y, sums = x * 0.0, []
    halves = [row * 0.5 for row in given]
    for k in range(1, len(x)):
        y[k] = y[k - 1] * 0.5 + x[k - 1] * (0.1 * k) - halves[k]
        y[k, 2:4] = np.where(y[k, 2:4] > x[k, 2:4], x[k, 2:4], y[k, 2:4] + k)
        sums.append(y[k] * x[k])
    for k in range(len(x) - 2, -1, -1):
        y[k] = (y[k + 1] - x[k]) / (2.0 + y[k] * y[k]) + sums[k]
    return y, np.stack(sums)


def test_short_loops_are_straight_code(monkeypatch: pytest.MonkeyPatch) -> None:
    x, given = some(3, 14, 6), some(4, 14, 6)
    made = executable_of(levels, x, given)
    assert [type(each) for each in made.compiled.segments] == [Kernel]
    for mine, theirs in zip(made([x, given], {})[0], levels(x, given), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    monkeypatch.setattr(scan, "STRAIGHT", 0)
    other = executable_of(lambda x, given: levels(x, given), x, given)
    assert not isinstance(other.compiled, Segmented) or {Kernel} != {type(each) for each in other.compiled.segments}


def test_parts_of_a_result_are_computed_in_its_memory() -> None:
    def filled(x: Any) -> Any:
        base, found = np.sin(x) * np.cos(x), np.zeros((4, *x.shape))
        for k in range(4):
            found[k] = np.exp(base * (k + 1.0)) + base
        return found

    def parts(x: Any) -> Any:
        found = filled(x)
        turned = np.stack([found[1] * x, np.exp(found[0]) - x, x], axis=1)
        ends = np.concatenate([found[0].ravel(), found[0].sum(axis=0)])
        return found, turned, found[2] + np.roll(found[3], 1, axis=0), ends, found[1] + 0.5

    (kernel,) = executable_of(filled, WIDE).compiled.segments
    assert isinstance(kernel, Kernel) and kernel.size.room < WIDE.nbytes
    for function in (lambda x: (filled(x),), parts):
        made = executable_of(function, WIDE)
        for mine, theirs in zip(made([WIDE], {})[0], function(WIDE), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-14, atol=1e-15)


def test_stacks_of_small_products_are_kernels() -> None:
    def products(x: Any, y: Any, v: Any) -> Any:
        return x @ y, x @ v[..., None], np.einsum("sij,sj->si", x, v), x.swapaxes(1, 2) @ y.swapaxes(1, 2) - x[0].T @ x

    x, y, v = some(1, 40, 3, 2), some(2, 40, 2, 3), some(3, 40, 2)
    made = executable_of(products, x, y, v)
    assert [type(each) for each in made.compiled.segments] == [Kernel]
    for mine, theirs in zip(made([x, y, v], {})[0], products(x, y, v), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-15)


def test_numpy_solves_and_inverts_between_kernels() -> None:
    def solved(a: Any, b: Any) -> Any:
        inverse = np.linalg.inv(a * 2.0)
        return inverse + 1.0, np.linalg.solve(a, b) * 0.5, np.linalg.det(a), np.linalg.cholesky(a @ a.swapaxes(1, 2))

    a, b = some(5, 20, 3, 3) + 3.0 * np.eye(3), some(6, 20, 3, 2)
    made = executable_of(solved, a, b)
    assert {type(each) for each in made.compiled.segments} == {Kernel, HostCall}
    for mine, theirs in zip(made([a, b], {})[0], solved(a, b), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-15)
    step = accel.accelerate(solved)
    for _ in range(3):
        step(a, b)
    with pytest.raises(np.linalg.LinAlgError):
        step(np.zeros_like(a), b)


def test_loop_nests_are_compiled_once_whichever_programs_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_code, "_kept", {})
    compiled, usual = list[str](), machine_code._compiled

    def noted(units: Mapping[bytes, str]) -> dict[bytes, bytes]:
        compiled.extend(units.values())
        return usual(units)

    monkeypatch.setattr(machine_code, "_compiled", noted)

    def new_nests(function: Callable[..., Any], *given: Any) -> int:
        compiled.clear()
        made = executable_of(function, *given)
        for mine, theirs in zip(made([*given], {})[0], function(*given), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        return sum("define void @nest_" in text for text in compiled)

    x, y = some(8, 30, 40), some(9, 7)
    assert new_nests(lambda x: (stencil(x)[0] * 5.0,), x) == 2, "a copy with its ends around each row, and the stencil"
    assert new_nests(lambda y, x: (y * 3.0, stencil(x)[0] * 5.0), y, x) == 1, "the same work is done in other memory"
    assert new_nests(lambda x, y: (stencil(x)[0] * 6.0, y * 3.0), x, y) == 1


def test_a_part_of_xlas_is_compiled_once_whichever_programs_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_kept", {})
    compiled, usual = list[Any](), options.compile_with

    def noted(lowered: Any, given: Any) -> Any:
        compiled.append(lowered)
        return usual(lowered, given)

    monkeypatch.setattr(options, "compile_with", noted)

    def filtered(x: Any) -> Any:
        for _ in range(60):
            x = np.roll(x, 1, 0) * 0.5 + x
        return np.fft.irfft(np.fft.rfft(x), 40) * 2.0

    x = some(10, 30, 40)
    for function in (filtered, lambda x: filtered(x) + 1.0):
        np.testing.assert_allclose(executable_of(function, x)([x], {})[0][0], function(x), rtol=1e-12)
    assert len(compiled) == 1


def test_parts_that_use_other_arguments_are_not_the_same() -> None:
    import jax

    x, y = given = some(11, 4), some(12, 4)
    with jax.enable_x64(True):
        for function, expected in ((lambda x, y: x + 1.0, x), (lambda x, y: y + 1.0, y), (lambda x: x + 1.0, x)):
            arguments = given[: function.__code__.co_argcount]
            np.testing.assert_array_equal(options.compile_once(function, arguments, {})(*arguments), expected + 1.0)


def test_a_long_loop_is_interrupted() -> None:
    from jax import lax

    made = built(lambda x: [lax.while_loop(lambda y: y[0, 0] < 1e9, lambda y: y + x * 0.0, x)], WIDE)
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        made([WIDE], [], {})


def test_loops_with_little_to_compute_in_a_round_are_xlas() -> None:
    def halved(x: Any) -> Any:
        while x.max() > 1.0:
            x = x / 2.0
        return x

    fast = accel.accelerate(halved)
    for factor in (1.0, 3.0, 9.0, 2.0, 5.0, 7.0):
        np.testing.assert_array_equal(fast(factor * X), halved(factor * X))


def test_a_program_on_disk_is_found_again(tmp_path: Any) -> None:
    with config.override(cache_dir=tmp_path):
        first = executable_of(stencil, X)
        assert first.key is not None
        device = first.device or compiling.devices.start(X.size)
        found = compiling._from_cache(first.key, device)
    assert isinstance(found, Segmented)
    np.testing.assert_array_equal(found([X], first.constants, {})[0][0], stencil(X)[0])


def test_a_long_chain_of_operations_is_a_kernel() -> None:
    import jax

    def work(x: Any) -> Any:
        for number in range(600):
            x = x * 0.99 + float(number)
        return x

    with jax.enable_x64(True):
        form = jax.ShapeDtypeStruct(X.shape, X.dtype)
        made = segmented.built(lambda arrays, constants, scalars: ([work(*arrays)], {}), ([form], [], {}), {})
    np.testing.assert_array_equal(made([X], [], {})[0][0], work(X))


def bordered(x: Any) -> Any:
    made = np.gradient(x, 0.5, axis=0) + np.roll(x, 1, axis=1)
    made[0], made[-1] = 0.0, x[0]
    return made


def padded(x: Any) -> Any:
    wide = np.pad(x, [(0, 0), (3, 3)], mode="symmetric")
    return sum(wide[:, at : at + x.shape[1]] * (at + 1.0) for at in range(7))


def wrapped(x: Any) -> Any:
    wide = np.pad(x, [(0, 0), (2, 2)], mode="wrap")
    return wide[:, 4:] * x - wide[:, :-4]


@pytest.mark.parametrize(("function", "divisions"), [(bordered, 2), (padded, 1), (wrapped, 1)])
def test_borders_do_not_repeat_the_body_of_a_loop(
    function: Callable[..., Any], divisions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, texts, object_of = np.linspace(-1.0, 2.0, 12 * 40).reshape(12, 40), list[str](), machine_code.object_of

    def noted(*units: str) -> bytes:
        texts.append("\n".join(units))
        return object_of(*units)

    monkeypatch.setattr(machine_code, "object_of", noted)
    made = executable_of(lambda x: function(x) / (x + 3.0), x)
    ((result,), _) = made([x], {})
    np.testing.assert_array_equal(result, function(x) / (x + 3.0))
    (text,) = texts
    assert text.count(" fdiv ") == divisions
