"""Printing: a path that only shows values is compiled, and its text is NumPy's, byte for byte and in order."""

# ruff: noqa: UP031
from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import accel
from accel.dispatch.comparing import policy
from accel.platform.ledger import open_ledger

Played = tuple[str, list[Any]]


class Model:
    """State that outlives the calls: a counter and a field."""

    def __init__(self) -> None:
        self.n: Any = 0
        self.x = np.linspace(0.0, 1.0, 48)

    def __repr__(self) -> str:
        return "a model"


model = Model


def play(function: Callable[..., Any], calls: int, make: Callable[[int], Any] | None = None) -> Played:
    """The text of some calls, with the program's own prints between them, and their results."""
    state, results = model(), []
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.redirect_stderr(shown):
        for i in range(calls):
            print("call", i)
            args = (state,) if make is None else make(i)
            result = function(*args)
            results.append(result.copy() if isinstance(result, np.ndarray) else result)
    return shown.getvalue(), results


@pytest.fixture
def same_text() -> Callable[..., Any]:
    """Give a function that plays calls plainly and accelerated, and compares text and results."""

    def run(
        function: Any,
        *,
        calls: int = 20,
        replays: int | None = None,
        reason: str = "",
        make: Callable[[int], Any] | None = None,
        **options: Any,
    ) -> Any:
        name = f"shown.{function.__qualname__}"
        accelerated = accel.accelerate(function, name=name, **options)
        text, results = play(function, calls, make)
        other, found = play(accelerated, calls, make)
        assert other == text
        for one, two in zip(results, found, strict=True):
            np.testing.assert_allclose(two, one, rtol=1e-10)
        ledger = open_ledger(name)
        refusals = {refusal.reason: refusal.message(name) for refusal in ledger.refusals}
        if reason:
            assert reason in refusals, refusals
        assert ledger.compiled_calls >= (replays if replays is not None else 0 if reason else calls - 6), refusals
        if reason and replays is None:
            assert ledger.compiled_calls == 0
        return ledger

    return run


# -- what is compiled -------------------------------------------------------------------------------------------------


def every_third(model: Any) -> Any:
    model.n += 1
    model.x = model.x * 0.9 + 0.01
    if model.n % 3 == 0:
        print(f"step {model.n}: mean={model.x.mean():.3f} max={model.x.max():+.2e}", model.n, end=";\n")
    model.x += 1e-3
    return model.x


def test_a_path_that_prints_is_one_more_path(same_text: Any) -> None:
    same_text(every_third, calls=40, replays=30)


def test_it_has_one_program_with_the_quiet_one(same_text: Any) -> None:
    def by_data(model: Any) -> Any:
        model.n += 1
        model.x = np.roll(model.x, 5) * 0.99
        if model.x[0] > model.x[1]:
            print(f"falls at {model.n}: {model.x[0]:.4f}")
            model.x[0] *= 0.5
        if model.x[7] > model.x[20]:
            print("larger", model.x[7] > 0.1)
        return model.x

    ledger = same_text(by_data, calls=60, replays=20)
    assert not any(refusal.reason.startswith("effect") for refusal in ledger.refusals)


def numbers(model: Any) -> Any:
    model.n += 1
    model.x = model.x * 0.9
    count = (model.x > 0.1).sum()
    print(model.n, count, int(count), count > 3, bool(count > 3), model.n / 7, None, "text", True, sep=", ")
    print()
    print([model.n, int(count)], (model.n, "a"), {"n": model.n}, flush=True)
    return model.x


def fields(model: Any) -> Any:
    model.x = model.x * 0.9
    print(model.x[::10], model.x > 0.2, np.argsort(model.x)[:3])
    print(f"{model.x[:2]} {model.x.reshape(6, 8)[0]}")
    model.x *= 2.0
    model.x /= 2.0
    return model.x


def mutated_after(model: Any) -> Any:
    model.n += 1
    kept = [model.n, 1]
    row = model.x[:4]
    print(kept, row, model.x[0] > 0)
    kept.append(2)
    kept[0] = -1
    row += 1.0
    model.x[0] = -5.0
    print(kept, model.x[:5])
    return np.sum(kept) + model.x * 0.5


def texts(model: Any) -> Any:
    model.n += 1
    model.x = model.x * 0.9
    text = f"mean {model.x.mean():.2f} "
    if model.n % 2:
        text += f"max {model.x.max():.3e}, "
    text += f"and {[1, 2]} {model.n}"
    print(text)
    print("{:.2f} and {}".format(model.x.mean(), model.n), str(model.n) + ".")  # noqa: UP032
    print("a" if model.n > 5 else f"{model.x.max():.1f}", file=sys.stderr)
    return model.x


def by_percent(model: Any) -> Any:
    model.n += 1
    model.x = model.x * 0.9
    print("%d: %.3f and %5.1f%% of %s, %r" % (model.n, model.x.mean(), 100 * model.x.max(), "all", model.n))
    text = "step %3d" % model.n
    text += ", max %+.2e" % model.x.max()
    print(text)
    sys.stdout.write("%s\n" % model.x[:2])
    return model.x * (model.n % 5 + 1) / (model.n % 5 + 1)


def written(model: Any) -> Any:
    model.x = model.x * 0.9
    sys.stdout.write(f"at most {model.x.max():.3f}\n")
    sys.stdout.flush()
    sys.stderr.write("plain\n")
    return model.x


def in_a_helper(model: Any) -> Any:
    model.x = model.x * 0.9
    return _tell(model.x) + 1.0


def _tell(x: Any) -> Any:
    for part in (x[:3], x[3:9]):
        print(f"{part.mean():.3f}", end=" ")
    print("|", *[int((x > limit).sum()) for limit in (0.1, 0.2)])
    return x


@pytest.mark.parametrize("function", [numbers, fields, mutated_after, texts, by_percent, written, in_a_helper])
def test_the_text_is_numpys(same_text: Any, function: Any) -> None:
    same_text(function, replays=6 if function is texts else None)


def test_printed_digits_of_host_numbers_are_all_there(same_text: Any) -> None:
    def clock(model: Any) -> Any:
        model.n += 0.1
        model.x = model.x * 0.9
        print(model.n, f"{model.n!r} {model.n}")
        return model.x

    same_text(clock)


# -- what stays on NumPy ----------------------------------------------------------------------------------------------


def full_precision(model: Any) -> Any:
    print(model.x.mean())
    return model.x * 2


def full_precision_in_a_list(model: Any) -> Any:
    print([model.x.mean()])
    return model.x * 2


def full_precision_by_format(model: Any) -> Any:
    print(f"{model.x.mean()} {model.x.max():.17g}")
    return model.x * 2


def full_precision_by_percent(model: Any) -> Any:
    print("%s" % model.x.mean(), "%.12f" % model.x.max())
    return model.x * 2


def too_many_digits(model: Any) -> Any:
    print(f"{model.x.max() * 1e12:.3f}")
    return model.x * 2


def of_single_precision(model: Any) -> Any:
    print(model.x.astype(np.float32)[:3])
    return model.x * 2


def an_object(model: Any) -> Any:
    print(model)
    return model.x * 2


class Silent:
    """A stream of the program's own."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def write(self, text: str) -> None:
        self.seen.append(text)


SILENT, FILE = Silent(), io.StringIO()


def to_a_stream_of_its_own(model: Any) -> Any:
    print("text", file=SILENT)
    return model.x * 2


def to_a_file(model: Any) -> Any:
    print("text", file=FILE)
    return model.x * 2


def takes_the_length(model: Any) -> Any:
    return model.x * sys.stdout.write(f"{model.x.max():.1f}\n")


@pytest.mark.parametrize(
    "function",
    [
        full_precision,
        full_precision_in_a_list,
        full_precision_by_format,
        full_precision_by_percent,
        too_many_digits,
        of_single_precision,
        an_object,
        to_a_stream_of_its_own,
        to_a_file,
        takes_the_length,
    ],
)
def test_what_a_replay_could_not_show_stays_on_numpy(same_text: Any, function: Any) -> None:
    same_text(function, reason="effect.print", calls=9)


def compared(model: Any) -> Any:
    text = f"{model.x.max():.2f}"
    print(text)
    return model.x * (2 if text == "0.90" else 0.9)


def measured(model: Any) -> Any:
    text = f"{model.x.max():.2f}"
    print(text)
    return model.x * len(text)


def keyed(model: Any) -> Any:
    return model.x * {f"{model.x.max():.0f}": 2.0}.get("1", 3.0)


def compared_by_percent(model: Any) -> Any:
    text = "%.2f" % model.x.max()
    print(text)
    return model.x * (2 if text == "0.90" else 0.9)


def padded(model: Any) -> Any:
    print(f"{f'{model.x.max():.2f}':>12}")
    return model.x * 2


def looked_at_by_a_handler(model: Any) -> Any:
    text = f"{model.x.max():.2f}"
    try:
        {}["missing"]
    except KeyError:
        if text == "1.00":
            model.x = model.x * 0.5
    print(text)
    return model.x


@pytest.mark.parametrize("function", [compared, compared_by_percent, measured, keyed, padded, looked_at_by_a_handler])
def test_a_text_that_the_program_looks_at_ends_the_recording(same_text: Any, function: Any) -> None:
    same_text(function, reason="value.forced" if function in (keyed, compared_by_percent) else "effect.print", calls=9)


def test_opting_out(same_text: Any) -> None:
    same_text(every_third, effects=False, reason="effect.print", replays=6, calls=24)


def test_a_target_inside_that_opts_out(same_text: Any) -> None:
    inner = accel.accelerate(_tell, name="shown.inner", effects=False)

    def outer(model: Any) -> Any:
        return inner(model.x) * 2

    same_text(outer, reason="effect.print", calls=9)


def test_a_number_that_grows_beyond_its_digits(same_text: Any) -> None:
    def growing(model: Any) -> Any:
        model.x = model.x * 10.0
        print(f"{model.x.max():.3f}")
        return model.x

    same_text(growing, calls=18, reason="effect.print", replays=3)


def test_numpys_print_options(same_text: Any) -> None:
    def make(i: int) -> Any:
        np.set_printoptions(precision=17 if i > 9 else 4)
        return (model(),)

    with np.printoptions():
        same_text(fields, make=make, calls=18, reason="effect.print", replays=3)


# -- streams that change ----------------------------------------------------------------------------------------------


def test_each_call_prints_to_the_stream_of_its_time(foreground: None) -> None:
    accelerated, state = accel.accelerate(every_third, name="shown.redirected"), model()
    texts = []
    for _ in range(30):
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            accelerated(state)
        texts.append(shown.getvalue())
    assert open_ledger("shown.redirected").compiled_calls > 20
    assert [bool(text) for text in texts] == [(i + 1) % 3 == 0 for i in range(30)]


def test_a_stream_of_the_programs_own_in_the_place_of_stdout(foreground: None, monkeypatch: Any) -> None:
    accelerated, state = accel.accelerate(written, name="shown.own"), model()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for _ in range(10):
            accelerated(state)
    compiled = open_ledger("shown.own").compiled_calls
    assert compiled

    class Own(io.StringIO):
        def write(self, text: str) -> int:
            state.x[0] = 1.0
            return super().write(text)

    with contextlib.redirect_stdout(Own()) as shown, contextlib.redirect_stderr(io.StringIO()):
        for _ in range(4):
            accelerated(state)
    assert open_ledger("shown.own").compiled_calls == compiled
    assert shown.getvalue().count("at most") == 4


def test_an_error_of_the_stream_is_the_programs(foreground: None) -> None:
    accelerated, state = accel.accelerate(every_third, name="shown.closed"), model()
    with contextlib.redirect_stdout(io.StringIO()):
        for _ in range(12):
            accelerated(state)
    before = open_ledger("shown.closed").compiled_calls
    accelerated(state), accelerated(state)
    field = state.x
    closed = io.StringIO()
    closed.close()
    with contextlib.redirect_stdout(closed), pytest.raises(ValueError, match="closed file"):
        accelerated(state)
    # all that the call changes is changed
    assert state.n == 15 and state.x is not field
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        for _ in range(3):
            accelerated(state)
    assert shown.getvalue().startswith("step 18:")
    ledger = open_ledger("shown.closed")
    assert ledger.compiled_calls > before and not any(each.reason == "accel.fault" for each in ledger.refusals)


def test_an_interrupt_while_printing_leaves_the_call_done(foreground: None, monkeypatch: Any) -> None:
    from accel.record.state import shown

    accelerated, state, plain = accel.accelerate(every_third, name="shown.interrupted"), model(), model()
    with contextlib.redirect_stdout(io.StringIO()):
        for _ in range(14):
            accelerated(state), every_third(plain)

    def interrupted(*args: Any, **kwargs: Any) -> None:
        print(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(shown, "print", interrupted, raising=False)
    with contextlib.redirect_stdout(io.StringIO()) as text, pytest.raises(KeyboardInterrupt):
        accelerated(state)
    monkeypatch.undo()
    with contextlib.redirect_stdout(io.StringIO()) as expected:
        every_third(plain)
    assert text.getvalue() == expected.getvalue() and text.getvalue().startswith("step 15")
    assert state.n == plain.n
    np.testing.assert_allclose(state.x, plain.x, rtol=1e-12)


# -- comparisons ------------------------------------------------------------------------------------------------------


def test_a_compared_call_prints_once(same_text: Any, monkeypatch: Any) -> None:
    ledger = same_text(every_third, mode="verify", replays=0)
    assert ledger.comparisons > 10 and not ledger.differences


def test_text_that_differs_is_a_mismatch(foreground: None, monkeypatch: Any) -> None:
    from accel.record.state import shown

    monkeypatch.setattr(policy, "FIRST_COMPARED", 10**9)
    monkeypatch.setattr(shown.Text, "made", _wrong(shown.Text.made))
    accelerated = accel.accelerate(numbers, name="shown.wrong")
    play(accelerated, 12)
    ledger = open_ledger("shown.wrong")
    assert any(refusal.reason == "verify.mismatch" for refusal in ledger.refusals), (ledger, ledger.refusals)


def _wrong(made: Any) -> Any:
    return lambda text, build: made(text, build).replace("True", "False")


def test_a_last_digit_that_rounding_decides_is_no_mismatch(foreground: None, monkeypatch: Any) -> None:
    from accel.record.state import shown

    made = shown.Formatted.text

    def text(self: Any, build: Any) -> str:
        found = made(self, build)
        return found[:-1] + str((int(found[-1]) + 1) % 10) if self.rounded and found[-1] in "12345" else found

    monkeypatch.setattr(policy, "FIRST_COMPARED", 10**9)
    monkeypatch.setattr(shown.Formatted, "text", text)
    accelerated = accel.accelerate(written, name="shown.digit")
    play(accelerated, 12)
    ledger = open_ledger("shown.digit")
    assert not any(refusal.reason == "verify.mismatch" for refusal in ledger.refusals)
    shown_last = [verdict for _, verdict in ledger.differences]
    assert shown_last == ["rounding decides the last digit that is shown"], (ledger, ledger.refusals)


def test_what_cancellation_leaves_is_rounding(foreground: None, monkeypatch: Any) -> None:
    def residual(model: Any) -> Any:
        model.x = np.sqrt(model.x + 0.1)
        print(f"residual {model.x.sum() - np.sum(model.x[::-1]):.2e}")
        return model.x

    monkeypatch.setattr(policy, "FIRST_COMPARED", 10**9)
    accelerated = accel.accelerate(residual, name="shown.residual")
    play(accelerated, 16)
    ledger = open_ledger("shown.residual")
    assert ledger.comparisons > 8
    assert not any(refusal.reason == "verify.mismatch" for refusal in ledger.refusals), ledger.refusals


def test_streams_are_as_before_after_a_comparison(foreground: None, monkeypatch: Any) -> None:
    monkeypatch.setattr(policy, "FIRST_COMPARED", 10**9)
    accelerated, state = accel.accelerate(written, name="shown.restored"), model()
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.redirect_stderr(shown):
        for _ in range(8):
            accelerated(state)
            assert "write" not in vars(shown)
    assert open_ledger("shown.restored").comparisons
