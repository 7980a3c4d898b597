"""Arrays that are written with what is read from elsewhere in them: all is read before anything is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from accel.record import record
from accel.rules import core
from tests.compiler.lower.passes import after_pass
from tests.helpers import LONG
from tests.rules.cases import stable_hash
from tests.rules.oracle import Job, judge, program
from tests.xla_options import QUICK

ARRAYS = """
x3[0] * 2.0 | x3[0].copy() | x3[0] | np.clip(x3, 0.2, 0.8)[0] | np.sin(x31[..., 0]) | x31[:, :, 0] | np.squeeze(x31) + 1
flat.reshape(4, 6) * 2.0 | flat.reshape(4, 6).copy() | flat.reshape(4, 6) | (flat * 2).reshape(4, 6) | x8[1] - x8[0]
np.sort(flat).reshape(4, 6) | np.sort(a.ravel()).reshape(4, 6) + a | flat[np.arange(24)[::-1]].reshape(4, 6) | a[::-1]
np.take(flat, np.arange(24).reshape(4, 6)) | np.tile(flat[:6], (4, 1)) | np.stack([a[0], a[1], a[2], a[3]]) | a.copy()
np.where(mask, x3[0], a) | np.cumsum(a).reshape(4, 6) | np.linalg.inv(a[:, :4] + 4 * np.eye(4)) @ a | a.T.copy().T
a[None][0] * 1.5 | np.expand_dims(a, 0)[0] + 1 | np.atleast_3d(a)[:, :, 0] * 2 | a.reshape(2, 12).reshape(4, 6) * 3
np.moveaxis(x8, 0, 2)[:, :, 1] * 2 | a * 2
""".strip().replace("\n", " | ")

WRITES = (
    "t[1:] = t[:-1]",
    "t[:, 1:] = t[:, :-1]",
    "t[1:] = t[:-1] * 0.5 + t[1:]",
    "t[1:-1] = t[:-2] + t[2:]",
    "t[2:] = t[:-2]; t[1:] = t[:-1]",
    "t[0] = t[1]; t[1:] = t[:-1]",
    "t[1:, 1:] += t[:-1, :-1]",
    "t.T[1:] = t.T[:-1]",
    "t.reshape(-1)[6:] = t.reshape(-1)[:-6].copy()",
    "s = t * 2; t[1:] = s[:-1]",
    "t[1:] = np.roll(t, 1, axis=0)[1:]",
    "t[1:] = np.diff(t, axis=0)",
    "t[::-1] = t",
    "t[:3] = t[1:]",
    "for k in range(9): t[1:] = t[:-1] * 0.9",
    "for k in range(1, 4): t[k] = t[k - 1] + t[k]",
    "np.place(t, mask, [1.0, 2.0]); t[1:] = t[:-1]",
    "s = t[0:4]; np.fill_diagonal(s, 2.0); s[1:] = s[:-1]",
    "s = t[:]; np.put(s, [1, 8, 20], 0.5); t[1:] = t[:-1]",
    "t[...] = x3[0]; t[1:] = t[:-1]",
    "t[0:] = (t.ravel() * 2.0).reshape(4, 6); t[1:] = t[:-1] + 1.0",
    "np.copyto(t[:, :], x8[1]); t[:3] += t[1:]",
    "s = t.T[:]; s[...] = x31[:, :, 0].T + s; t[:, 1:] = t[:, :-1]",
    # where they write is known to the device alone
    "k = int(mask[0].sum()) % 2 + 1; t[k : k + 2] = t[k - 1 : k + 1]",
    "k = int(mask[0].sum()) % 2 + 1; t[k - 1 : k + 1] = t[k : k + 2]",
    "k = int(mask[0].sum()) % 2 + 1; t[:, k : k + 4] = t[:, k - 1 : k + 3] * 2.0",
    "k = int(mask[0].sum()) % 2 + 1; t[1:] = t[:-1]; t[k] += t[k - 1]",
    "k = int(mask[0].sum()) % 2 + 1; t[k : k + 2][:, 1:] = t[k - 1 : k + 1][:, :-1]",
    "k = int(mask[0].sum()) % 2 + 1; s = t[k]; s[1:] = s[:-1]; t[1:] = t[:-1] * s",
    "k = int(mask[0].sum()) % 2 + 1; s = t.T[k : k + 3]; s[1:] = s[:-1]; s[k] = s[k - 1] + t[k, 0]",
    "k = int(mask[0].sum()) % 2 + 1; s = t[k : k + 1]; t[k] = s[0, ::-1]; t[:] = t[::-1] + s",
    "k = int(mask[0].sum()) % 2 + 1; s = t.ravel()[k : k + 18]; s[1:] = s[:-1]; t[k - 1] = s[:6]",
)

PART = 1 if LONG else 3
"""One pair of an array and a write in so many is tried."""


def inputs(seed: int) -> tuple[Any, ...]:
    draw = np.random.default_rng(seed).random
    return draw(24), draw((1, 4, 6)), draw((4, 6, 1)), draw((2, 4, 6)), draw((4, 6)), draw((4, 6)) > 0.5


@pytest.mark.parametrize("write", WRITES)
def test_all_is_read_before_anything_is_written(write: str) -> None:
    jobs = []
    for array in ARRAYS.split(" | "):
        if stable_hash(f"{array}; {write}") % PART:
            continue
        lines = "".join(f"    {line}\n" for line in (f"t = {array}", *write.split("; "), "return t, t + 1"))
        source = f"def case(flat, x3, x31, x8, a, mask):\n{lines}"
        jobs.append(Job(f"{array}; {write}", program(source), inputs))
    judge(jobs, seeds=(1,), batch=len(jobs), options=QUICK)
    assert not [problem for job in jobs for problem in job.problems[:1]]
    refused = {job.name.partition(";")[0]: job.status for job in jobs if job.status != "compiled"}
    assert set(refused.values()) <= {"rule.missing"} and len(refused) <= 1, refused


LARGE = (
    "v = c; v[1:] *= v[:-1]",
    "v = c * 2.0; v[1:] = v[:-1]",
    "v = c * 2.0; v[1:] = v[:-1] + 1.0",
    "v = c * 2.0; v[1:] = v[:-1] + c.mean()",
    "v = a + c; v[1:] = v[:-1] + c[0]",
    "v = np.where(a > 0, c, a); v[:, 1:] = v[:, :-1]",
    "v = c.copy(); v[2:] = v[:-2] * a[2:]",
    "v = c.reshape(210, 200) * 2.0; v[1:] = v[:-1]",
    "v = c.reshape(-1)[10:12010].reshape(60, 200) * 2.0; v[1:] = v[:-1] + 1.0",
    "v = np.sin(c[:, ::-1]); v[1:] = np.where(v[:-1] > 0, v[:-1], v[1:])",
    "v = c - a; v[:-1] = v[1:]",
    "v = c.T * 2.0; v[1:] = v[:-1]",
    "v = a * 2.0 + c; v[1:] = v[:-1]; v[:, 1:] = v[:, :-1]",
    "v = np.stack([a, c])[1] * 3.0; v[1:] = v[:-1] + v[1:]",
    "v = -c; v[1:] += v[:-1]",
    "v = c * 2.0; v[:] = v[::-1]",
    "v = c.reshape(210, 200) + 1.0; v[...] = v[:, ::-1] - v",
    "v = c * 2.0; v[:] = np.minimum(v, np.add.outer(v[:, 3], v[3]))",
    "v = c + 1.0\n    for k in range(8): v[1:] = v[:-1] * 0.5",
    "v = c + 1.0\n    for k in range(8): v[k + 1] = v[k] + v[k + 1]",
    "k = int(a.argmax()) % 50 + 1; v = c * 2.0; v[k : k + 99] = v[k - 1 : k + 98]",
    "k = int(a.argmax()) % 50 + 1; v = c.reshape(210, 200) * 2.0; v[k : k + 99] = v[k - 1 : k + 98] + 1.0",
    "k = int(a.argmax()) % 50 + 1; v = c + a; v[:, k : k + 99] += v[:, k - 1 : k + 98]; v[k] = v[k + 1]",
    "k = int(a.argmax()) % 50 + 1; v = c + a; s = v[k : k + 99]; s[1:] = s[:-1]; s[:, k : k + 9] = s[:, k - 1 : k + 8]",
    "k = int(a.argmax()) % 50; v = c + 1.0\n    for j in range(8): v[k + j + 1] = v[k + j] + v[k + j + 1]",
)


def large(seed: int) -> tuple[Any, ...]:
    return tuple(np.random.default_rng(seed).standard_normal((2, 200, 210)))


def test_large_arrays_too_are_read_before_they_are_written() -> None:
    """Of more elements than what is stored by a copy anyway."""
    jobs = []
    for text in LARGE:
        lines = "".join(f"    {line}\n" for line in (*text.split("; "), "return v, v + 1"))
        jobs.append(Job(text, program(f"def case(a, c):\n{lines}"), large))
    judge(jobs, seeds=(1,), batch=len(jobs), options=QUICK)
    assert not [problem for job in jobs for problem in job.problems[:1]]
    assert {job.status for job in jobs} == {"compiled"}


WRITTEN = (
    "v = x[::2]; g = v[1:-1]; g[1:] += g[:-1]",
    "v = x * 2.0; g = v[1:-1]; g[1:] += g[:-1]",
    "v = x * 2.0; v[100:5000] = v[99:4999]",
)

LATER = (
    "return v",
    "z = np.zeros(2 * v.size); z[::2] = v; return z",
    "z = np.zeros(2 * v.size); z[::2] = v * 1.0; return z",
    "z = np.zeros(40_000, complex); z.real[: v.size] = v; return z",
    "z = np.zeros((3, v.size)); z[1] = v; return z",
    "i = np.arange(v.size)[::-1]; z = np.zeros(v.size); z[i] = v; return z",
    "z = np.zeros(v.size); np.add.at(z, np.arange(v.size), v); return z",
    "z = np.zeros(v.size); np.put(z, np.arange(v.size), v); return z",
    "return np.bincount(np.arange(v.size) % 7, weights=v)",
    "return np.array([v])",
    "return np.array([v, v])[0]",
    "return np.stack([v])",
    "return np.column_stack([v])",
    "return (v[None] * 1.0)[0]",
    "return np.moveaxis(v[:, None] * 1.0, 0, 1)",
    "return (v * 1.0).reshape(1, -1)",
)

ROWS = ("v = a[:1] * 2.0; v[:, 10:90] = v[:, 9:89]", "v = a[:1] * 2.0; g = v[:, 1:-1]; g[:, 1:] += g[:, :-1]")

LATER_OF_ROWS = (
    "return v.sum(axis=0)",
    "return np.array(v[0])",
    "return v.flatten()",
    "return (v * 1.0)[0]",
    "z = np.zeros((400, 210)); z[:2:2] = v; return z",
    "z = np.zeros(210); z[:] = v; return z",
)


def test_what_happens_to_an_array_after_a_write_counts() -> None:
    """Axes of length 1 that are added or dropped then reach back past the write."""

    def arrays(seed: int) -> tuple[Any, ...]:
        return np.random.default_rng(seed).standard_normal(40_000), large(seed)[0]

    jobs = []
    for written, later in ((WRITTEN, LATER), (ROWS, LATER_OF_ROWS)):
        for text in (f"{one}; {other}" for one in written for other in later):
            lines = "".join(f"    {line}\n" for line in text.split("; "))
            jobs.append(Job(text, program(f"def case(x, a):\n{lines}"), arrays))
    judge(jobs, seeds=(1,), batch=len(jobs), options=QUICK)
    assert not [problem for job in jobs for problem in job.problems[:1]]
    assert {job.status for job in jobs} == {"compiled"}


def test_what_replaces_a_whole_array_is_not_copied() -> None:
    def shortest(a: Any, c: Any) -> Any:
        v = c.reshape(210, 200)[:200] * 2.0
        for k in range(3):
            v[:] = np.minimum(v, np.add.outer(v[:, k], v[k]))
            v[1:] = v[:-1]
        return v

    trace = record(shortest, large(0), {}, max_nodes=1000).trace
    writes = [node for node in after_pass("aliasing", trace) if node.rule is core.WRITE]
    assert [node.endangered for node in writes] == [False, True] * 3
