"""Judges accel by whole programs: are results NumPy's, and which of the functions that matter are compiled?

A program is a module here with `run(steps)`, which gives a dict of results. None of them was written with accel in
mind. It runs once plain, with a profile of its functions, and once with those accelerated that matter.

    python -m tests.programs.judge            # all programs
    python -m tests.programs.judge boids ising
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

HERE = Path(__file__).parent
STEPS = 40
RTOL = 1e-8
"""Differences that some forty steps may make of last places."""

LEAST_CALLS = 10
"""A function that is called less often has nothing to gain from being compiled."""

LEAST_SHARE = 0.02
"""Of the program's time: what a function must take to matter."""

CALLED_BY_LOOP = "run"
"""The program's own loop, which is called once."""


@dataclass
class Verdict:
    """What one program showed. wrong: results that are not NumPy's. stays: heavy functions that are not compiled.

    heavy: functions that matter. reasons: why a function stays on NumPy.
    """

    name: str
    heavy: list[str]
    compiled: list[str]
    wrong: list[str]
    reasons: dict[str, list[str]] = field(default_factory=dict)

    @property
    def stays(self) -> list[str]:
        return [name for name in self.heavy if name not in self.compiled]


def programs() -> list[str]:
    """The names of all programs, as modules."""
    files = sorted(HERE.glob("*/*.py"))
    return [".".join(("tests.programs", *path.relative_to(HERE).with_suffix("").parts)) for path in files]


def fresh(name: str) -> ModuleType:
    """The program's module, run anew: programs keep state in it."""
    sys.modules.pop(name, None)
    return importlib.import_module(name)


def functions_of(module: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    """The program's functions and methods, by their name in a catalogue."""
    holders = (module, *(each for each in vars(module).values() if isinstance(each, type)))
    for value in (each for holder in holders for each in vars(holder).values() if isinstance(each, FunctionType)):
        is_own = value.__code__.co_filename == module.__file__ and not inspect.isgeneratorfunction(value)
        if is_own and value.__name__ not in ("__init__", CALLED_BY_LOOP):
            yield value.__qualname__, value


def heavy_functions(module: ModuleType, steps: int) -> tuple[dict[str, Any], str, list[str]]:
    """The plain results, what was printed, and the functions that matter: those that are called often and take long."""
    codes = {function.__code__: name for name, function in functions_of(module)}
    calls = dict.fromkeys(codes.values(), 0)
    spent = dict.fromkeys(codes.values(), 0.0)
    started: list[tuple[str, float]] = []

    def profile(frame: Any, event: str, argument: object) -> None:
        name = codes.get(frame.f_code)
        if name is None:
            return
        if event == "call":
            started.append((name, time.perf_counter()))
        elif event == "return":
            calls[name] += 1
            spent[name] += time.perf_counter() - started.pop()[1]

    shown = io.StringIO()
    before = time.perf_counter()
    sys.setprofile(profile)
    try:
        with contextlib.redirect_stdout(shown):
            results = module.run(steps)
    finally:
        sys.setprofile(None)
    total = time.perf_counter() - before
    heavy = [name for name in spent if calls[name] >= LEAST_CALLS and spent[name] >= LEAST_SHARE * total]
    return results, shown.getvalue(), heavy


def judge(name: str, steps: int = STEPS) -> Verdict:
    """Run one program plain and accelerated. The settings in force say how accel runs."""
    import accel
    from accel.catalogue import Catalogue, Row
    from accel.platform.ledger import open_ledger

    expected, text, heavy = heavy_functions(fresh(name), steps)
    module = fresh(name)
    rows = tuple(Row(name, qualname, "a program's function") for qualname in heavy)
    shown = io.StringIO()
    with accel.installed(Catalogue(name, rows)), contextlib.redirect_stdout(shown):
        found = module.run(steps)
    wrong = [key for key, value in expected.items() if not _agrees(found.get(key), value)]
    if shown.getvalue() != text:
        wrong.append("what is printed")
    compiled, reasons = [], {}
    for row in rows:
        ledger = open_ledger(row.target)
        if not ledger.calls and not ledger.inlined_calls:  # called by a name that no hook sees, such as a default
            heavy.remove(row.qualname)
        if ledger.compiled_calls or ledger.inlined_calls:
            compiled.append(row.qualname)
        waits = ledger.waits() if ledger.waits is not None else None
        told = [*ledger.refusals, *([waits] if waits is not None else [])]
        reasons[row.qualname] = [f"{each.reason} {each.where}: {each.detail}" for each in told]
        if any(each.reason in ("verify.mismatch", "accel.fault", "recorder.gap") for each in ledger.refusals):
            wrong.append(f"{row.qualname}: {reasons[row.qualname]}")
    return Verdict(name, heavy, compiled, wrong, reasons)


def _agrees(found: Any, expected: Any) -> bool:
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    if expected.dtype.kind not in "fc":
        return bool((found == expected).all())
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    return bool(np.allclose(found, expected, rtol=RTOL, atol=RTOL * scale, equal_nan=True))


@contextlib.contextmanager
def in_the_foreground() -> Iterator[None]:
    """Compile at once, and give nothing up for its cost: what is asked is whether it compiles, and is right."""
    from accel.platform import config, gain
    from accel.policy import account, rest, speed

    settings = [
        (gain, "COMPILE_GAIN_S", 0.0),
        (gain, "IMPORT_GAIN_S", 0.0),
        (rest, "SMALL_CALL_S", 0.0),
        (rest, "MAX_REST", 0),
        (account, "RELIABLE_CALL_S", 0.0),
        (speed, "SPEED_SAMPLES", 10**9),
        (speed, "MAX_LOSS_S", float("inf")),
    ]
    before = [getattr(module, setting) for module, setting, _ in settings]
    for module, setting, value in settings:
        setattr(module, setting, value)
    try:
        with config.override(ahead_of_time=False, cache_dir=None), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            yield
    finally:
        for (module, setting, _), value in zip(settings, before, strict=True):
            setattr(module, setting, value)


def main(wanted: list[str]) -> int:
    """Judge the programs whose names hold one of `wanted`, or all. Returns 1 if a result is wrong."""
    verdicts = []
    with in_the_foreground():
        for name in programs():
            if wanted and not any(part in name for part in wanted):
                continue
            began = time.perf_counter()
            verdict = judge(name)
            verdicts.append(verdict)
            short = name.removeprefix("tests.programs.")
            done = len(verdict.heavy) - len(verdict.stays)
            print(f"{short:32s} {done:2d} of {len(verdict.heavy):2d}  {time.perf_counter() - began:5.1f} s", flush=True)
            for stays in verdict.stays:
                print(f"    {stays}: {verdict.reasons[stays][:2]}")
            for wrong in verdict.wrong:
                print(f"    WRONG {wrong}")
    heavy = sum(len(each.heavy) for each in verdicts)
    stays = sum(len(each.stays) for each in verdicts)
    print(f"{heavy - stays} of {heavy} heavy functions compiled ({(heavy - stays) / max(heavy, 1):.0%})")
    return int(any(each.wrong for each in verdicts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
