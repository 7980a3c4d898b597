"""Processes one after another over one cache folder: what the first compiles, the second must find.

A body is a function of a module under tests, called in a process of its own, or source text that defines a function
`body`. It gives a dict of what it computed. Of that come back the bits, as hashes, with how many programs XLA compiled
meanwhile, counted by JAX itself. No program is given up for its speed, as the arrays of these tests are tiny.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
COMPILED = "/jax/core/compile/backend_compile_duration"
"""JAX's event for each program that XLA compiled, whoever asked for it."""


def said_by(code: str) -> str:
    """What source text prints in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@dataclass(frozen=True)
class Outcome:
    """What one process did. bits: a hash by the name of each result. compiled: programs. notes: of accel's report."""

    bits: dict[str, str]
    compiled: int
    notes: list[str]


class Done(NamedTuple):
    """How a process ended."""

    code: int
    out: str
    err: str


def without_settings() -> dict[str, str]:
    """The environment without accel's settings. Processes leave nothing behind that compiles."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("QD_")}
    return {**inherited, "QD_JAX_FINISH_S": "0"}


Start = Callable[..., Outcome]


def starter(folder: Path) -> Start:
    """The function that starts a process over a cache folder: of a body, its arguments, and settings by variable."""

    def start(body: str | Callable[..., Any], *args: Any, timeout: float = 600.0, **environment: str) -> Outcome:
        settings = {
            "PYTHONPATH": str(ROOT),
            "QD_JAX_CACHE_DIR": str(folder),
            "QD_JAX_AOT": "0",
            "QD_JAX_QUIET": "1",
            **environment,
        }
        done = subprocess.run(
            [sys.executable, "-m", "tests.processes", json.dumps([*_place(body), args])],
            cwd=ROOT,
            env={**without_settings(), **settings},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr[-4000:]}"
        return Outcome(**json.loads(done.stdout.splitlines()[-1]))

    return start


def _place(body: str | Callable[..., Any]) -> tuple[str, str]:
    """Where a process finds the body: its module and its name, or no module and the source."""
    if isinstance(body, str):
        return "", body
    file = sys.modules[body.__module__].__file__
    assert file is not None
    return ".".join(Path(file).resolve().relative_to(ROOT).with_suffix("").parts), body.__name__


def _body(module: str, name: str) -> Callable[..., Any]:
    if module:
        return getattr(import_module(module), name)  # type: ignore[no-any-return]
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(name, "<body>", "exec"), namespace)
    return namespace["body"]  # type: ignore[no-any-return]


def assert_found_again(first: Outcome, second: Outcome) -> None:
    """The second process compiled nothing, and computed the same as the first, to the last bit."""
    assert first.bits, "nothing was computed"
    assert first.compiled > 0, "nothing was there to be found"
    assert first.notes == second.notes == []
    assert second.compiled == 0
    assert [name for name in first.bits if first.bits[name] != second.bits.get(name)] == []
    assert first.bits.keys() == second.bits.keys()


def bits(value: Any) -> str:
    """A hash of all arrays in a value, of their dtypes and shapes, and of what else there is by its text."""
    found = hashlib.blake2b(digest_size=10)
    for part in _parts(value):
        found.update(part)
    return found.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    if isinstance(value, (list, tuple)):
        yield f"{type(value).__name__} {len(value)}".encode()
        for each in value:
            yield from _parts(each)
    elif isinstance(value, (np.ndarray, np.generic)):
        yield f"{type(value).__name__} {value.dtype} {value.shape}".encode()
        yield value.tobytes()
    else:
        yield f"{type(value).__name__} {value!r}".encode()


def main(text: str) -> None:
    """The process: call the body, and print its outcome."""
    import jax

    from accel.backend import devices
    from accel.compiler.kernels import machine_code
    from accel.platform import ledger
    from accel.policy import speed

    speed.SPEED_SAMPLES, speed.MAX_LOSS_S = 10**9, float("inf")
    devices._program_uses_jax = False  # it is imported here to be watched, not by a program that uses it
    compiled: list[float] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: compiled.append(seconds) if event == COMPILED else None
    )
    usual = machine_code.object_of

    def object_of(*units: str) -> bytes:
        compiled.append(0.0)
        return usual(*units)

    machine_code.object_of = object_of
    module, name, arguments = json.loads(text)
    results = _body(module, name)(*arguments)
    outcome = {name: bits(value) for name, value in results.items()}
    print()
    print(json.dumps({"bits": outcome, "compiled": len(compiled), "notes": ledger.current_run().notes}))


if __name__ == "__main__":
    main(sys.argv[1])
