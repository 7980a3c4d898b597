"""Scripts under `accel run --auto`, in a first and in a second process, print the bits that NumPy prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ROOT, without_settings

HEAD = """
import hashlib

import numpy as np

from tests.rounding.starting import paced

np.seterr(all="ignore")
draw = np.random.default_rng(3)
digest = hashlib.blake2b(digest_size=16)
SIZE, STEPS = 5000, 400
"""

LOOP_OF_THE_SCRIPT = """
mass = draw.choice([0.51099895, 105.6583755, 139.57039, 493.677, 938.27208816], SIZE)
energy = mass + 20.0 + 20.0 * draw.random(SIZE)
z = np.zeros(SIZE)
a, b, c, d = draw.uniform(0.1, 10.0, (4, SIZE))
for step in paced(STEPS):
    momentum = np.sqrt(energy * energy - mass * mass)
    z += 0.1 * momentum / energy
    energy = np.maximum(energy - 0.15, mass)
    if step == 300:
        c, d = b.copy(), a.copy()
    b = b + 0.25
    d = d * 1.0
    inverse = 1.0 / (a * b - (c + 0.25 * (step - 299)) * d)
    if step % 50 == 49:
        digest.update(inverse.tobytes())
digest.update(z.tobytes())
print(digest.hexdigest(), np.isnan(z).sum(), np.isinf(inverse).sum())
"""

LOOP_OF_A_FUNCTION = """
def solve(a, b, c):
    spread = np.sqrt(b * b - 4.0 * a * c)
    return (-b + spread) / (2.0 * a), (-b - spread) / (2.0 * a)


def main():
    x = draw.uniform(-100.0, 100.0, SIZE)
    for step in paced(STEPS):
        a, right, left = draw.uniform(0.1, 10.0, (3, SIZE))
        if step > 250:
            a = right = left
        low, high = solve(a, 2.0 * right, left)
        x = (x + low / 3.0 + 1e3) - 1e3 + high * 0.1 * 0.3
        x = np.where(np.isnan(x), 1.0, x)
        if step % 10 == 9:
            digest.update(low.tobytes() + x.tobytes())
    print(digest.hexdigest(), np.isnan(low).sum(), np.count_nonzero(low == high))


main()
"""


def printed(script: Path, *start: str, **settings: str) -> str:
    """The standard output of a script in a process of its own."""
    done = subprocess.run(
        [sys.executable, *start, str(script)],
        cwd=script.parent,
        env={**without_settings(), "PYTHONPATH": str(ROOT), **settings},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def replayed_calls(report: Path) -> int:
    """How many calls of all functions and loops ran as programs, by accel's report."""
    return sum(each["compiled_calls"] for each in json.loads(report.read_text(encoding="utf-8"))["functions"])


@pytest.mark.parametrize("body", [LOOP_OF_THE_SCRIPT, LOOP_OF_A_FUNCTION], ids=["script", "function"])
def test_every_process_prints_the_bits_of_numpy(body: str, tmp_path: Path) -> None:
    script, report = tmp_path / "script.py", tmp_path / "report.json"
    script.write_text(HEAD + body, encoding="utf-8")
    expected = printed(script)
    for ahead in ("0", "1"):
        for process in ("first", "second"):
            settings = {"QD_JAX_AOT": ahead, "QD_JAX_CACHE_DIR": str(tmp_path / ahead)}
            start = ("-m", "tests.rounding.starting", "--auto", "--report", str(report))
            assert printed(script, *start, **settings) == expected, (ahead, process)
            assert replayed_calls(report) > 50, (ahead, process)
