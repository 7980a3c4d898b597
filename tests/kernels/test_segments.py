"""Programs of kernels: what takes them, what falls back to XLA, and the state that runs leave behind."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import accel
from accel import config
from accel.backend import compile as compiling
from accel.backend import segmented
from accel.backend.executable import Executable
from accel.kernels import machine_code
from accel.kernels.segments import Choice, Kernel, Segmented
from accel.reports import ledger
from tests.replays import program_of, variant_of

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.usefixtures("foreground")

X = np.linspace(-1.0, 2.0, 60).reshape(6, 10)


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
    import jax

    def function(arrays: list[Any], constants: list[Any], scalars: dict[str, Any]) -> Any:
        return [jax.lax.cond(arrays[0][0, 0] > 0.0, lambda x: x * 2.0 + 1.0, lambda x: x, arrays[0])], {}

    with jax.enable_x64(True):
        made = segmented.built(function, ([jax.ShapeDtypeStruct(X.shape, X.dtype)], [], {}), {})
    choice = next(each for each in made.segments if isinstance(each, Choice))
    assert [len(side.segments) for side in choice.sides] == [0, 1]
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


def test_loops_that_arrays_decide_on_are_xlas() -> None:
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
