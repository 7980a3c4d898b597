"""A comparison run: the program in new processes on NumPy, accelerated, and on perturbed NumPy.

Many programs are chaotic: a difference in the last place grows by itself. So the errors of the accelerated run are
compared with the drift of a perturbed NumPy run. Its state was changed by one unit in the last place before its first
step. The runs follow one another, so that none slows down another. Each has its own working folder.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from statistics import median
from typing import Any

from accel.platform import own_code
from accel.platform.clocks import time
from accel.reports.advice import IN_FRONT
from accel.reports.figures import finite
from accel.reports.layout import markdown_table
from accel.reports.words import plural
from accel.tools.comparison.charts import charts

WAYS = ("numpy", "accel", "perturbed")
LOG_TAIL = 15
WARM = 0.4
"""Share of the steps that counts as warm-up: recording, compiling, first comparisons."""

MOST_NOISE = 1.5
"""Maximum ratio between the times of the two NumPy runs on an otherwise idle machine."""


class RunFailed(Exception):
    """A run of the program failed. The message contains the last lines of its output."""


# -- running ----------------------------------------------------------------------------------------------------------


def compare(spec: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """Run the program in each way, and write report.json, report.md and charts to `out`. Returns the JSON's content.

    spec: target, args, folder, home, settings, catalogue, only, exclude, auto, as `accel.tools.comparison.child` reads
    them.
    Raises RunFailed.
    """
    try:
        runs = {way: _run(spec, way, out) for way in WAYS}
        result = _result(spec, runs, out)
    finally:
        for way in WAYS:
            rmtree(_samples(out, way), ignore_errors=True)
    result["charts"] = charts(result, out)
    (out / "report.json").write_text(json.dumps(finite(result), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    (out / "report.md").write_text(_markdown(result), encoding="utf-8")
    return result


def _samples(out: Path, way: str) -> Path:
    return out / f"{way}-samples"


def _run(spec: Mapping[str, Any], way: str, out: Path) -> dict[str, Any]:
    """Run the program once. Returns its summary, and the wall time of the process."""
    work, samples = out / way, _samples(out, way)
    rmtree(samples, ignore_errors=True)
    work.mkdir(exist_ok=True)
    path = out / f"{way}.json"
    path.write_text(json.dumps({**spec, "way": way, "samples": str(samples)}), encoding="utf-8")
    sys.stderr.write(f"accel: comparing: {_SENTENCES[way]} (its output goes to {work / 'log.txt'})\n")
    sys.stderr.flush()
    started = time.perf_counter()
    with (work / "log.txt").open("wb") as log:
        command = [sys.executable, "-m", "accel.tools.comparison.child", str(path)]
        code = subprocess.run(command, cwd=work, env=environment(way), stdout=log, stderr=log).returncode
    wall_s = time.perf_counter() - started
    path.unlink()
    summary = samples / "summary.json"
    if code or not summary.exists():
        tail = (work / "log.txt").read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL:]
        raise RunFailed("\n  ".join([f"the run on {way} ended with exit code {code}; its last output:", *tail]))
    return {**json.loads(summary.read_text(encoding="utf-8")), "wall_s": wall_s}


_SENTENCES = {
    "numpy": "running on NumPy",
    "accel": "running accelerated",
    "perturbed": "running on NumPy, perturbed in the last place",
}


def environment(way: str) -> dict[str, str]:
    """Return the environment of the child process.

    accel can be imported there, and relative paths are made absolute, because the working folder differs. Output is
    unbuffered: both streams go to one file, so the last lines written are the last in the file. No compile worker
    outlives the child, because it would slow down the next run.
    """
    paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    paths.append(str(own_code.PACKAGE.parent))
    own = {"QD_JAX_FINISH_S": "0"} if way == "accel" else {"QD_USE_JAX": "0"}
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1", **own}


# -- the result -------------------------------------------------------------------------------------------------------


def _result(spec: Mapping[str, Any], runs: Mapping[str, Any], out: Path) -> dict[str, Any]:
    step = _step(runs["numpy"])
    fields = _fields(out)
    return {
        "comparison": 1,
        "program": " ".join([spec["target"], *spec["args"]]),
        "step": step,
        "runs": {way: _figures(run, step) for way, run in runs.items()},
        "fields": fields,
        "perturbed": runs["perturbed"]["perturbed"],
        "accel": runs["accel"]["report"],
        "slips": runs["accel"]["slips"],
    }


def _step(run: Mapping[str, Any]) -> str | None:
    """Return the target whose calls are steps.

    It is the catalogue's step, or else the target with the most time among those called twice.
    """
    if run["step"] in run["starts"]:
        return str(run["step"])
    several = [target for target, starts in run["starts"].items() if len(starts) > 1]
    return max(several, key=lambda target: run["seconds"].get(target, 0.0), default=None)


def _figures(run: Mapping[str, Any], step: str | None) -> dict[str, Any]:
    starts = run["starts"].get(step, []) if step else []
    step_ms = [1e3 * (after - before) for before, after in itertools.pairwise(starts)]
    warm = step_ms[math.floor(WARM * len(step_ms)) :]
    return {
        "wall_s": run["wall_s"],
        "steps": len(starts),
        "ms_per_step": median(warm) if warm else None,
        "longest_step_ms": max(step_ms, default=None),
        "peak_mb": run["peak_mb"],
        "step_ms": step_ms,
    }


def _fields(out: Path) -> dict[str, dict[str, list[Any]]]:
    """Return, by field, the numbers of the sampled calls and the errors of the other two runs against NumPy's."""
    import numpy as np

    fields: dict[str, dict[str, list[Any]]] = {}
    files = {way: {path.stem: path for path in _samples(out, way).glob("*@*.npz")} for way in WAYS}
    common = sorted(set.intersection(*(set(each) for each in files.values())), key=_call_of)
    for stem in common:
        target, _, call = stem.rpartition("@")
        opened = {way: dict(np.load(files[way][stem])) for way in WAYS}
        for name, truth in opened["numpy"].items():
            row = fields.setdefault(f"{target}: {name}", {"calls": [], "accel": [], "perturbed": []})
            row["calls"].append(int(call))
            for way in WAYS[1:]:
                row[way].append(error_between(opened[way].get(name), truth))
    return fields


def _call_of(stem: str) -> tuple[int, str]:
    target, _, call = stem.rpartition("@")
    return int(call), target


def error_between(actual: Any, expected: Any) -> float:
    """Return the largest difference of two arrays, relative to the largest finite magnitude in `expected`.

    Infinite if `actual` is None, if shapes differ, or if NaN or infinities are at different places. Absolute if
    `expected` has no finite value but 0.
    """
    from accel.platform.distances import distance

    if actual is None or actual.shape != expected.shape:
        return math.inf
    difference, scale = distance(actual, expected)
    return difference / scale if scale > 0 else difference


# -- the report -------------------------------------------------------------------------------------------------------

_ROWS = (
    ("whole run, s", "wall_s"),
    ("steps", "steps"),
    ("ms per step, median after warm-up", "ms_per_step"),
    ("longest step, ms", "longest_step_ms"),
    ("peak memory, MB", "peak_mb"),
)


def _cell(value: object) -> str:
    return "-" if value is None else str(value) if isinstance(value, (int, str)) else f"{value:.3g}"


def _table(head: Sequence[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    return markdown_table(head, [list(map(_cell, row)) for row in rows])


def _ratio(result: Mapping[str, Any], key: str) -> float | None:
    above, below = result["runs"]["numpy"][key], result["runs"]["accel"][key]
    return above / below if above and below else None


def _last(result: Mapping[str, Any]) -> list[list[Any]]:
    """Return, by field, the last sampled call, accel's first and last errors, and the last drift."""
    rows = []
    for name, row in sorted(result["fields"].items()):
        rows.append([name, row["calls"][-1], row["accel"][0], row["accel"][-1], row["perturbed"][-1]])
    return rows


def _worst_by_call(result: Mapping[str, Any]) -> list[list[Any]]:
    worst: dict[int, list[Any]] = {}
    for row in result["fields"].values():
        for call, ours, drift in zip(row["calls"], row["accel"], row["perturbed"], strict=True):
            kept = worst.setdefault(call, [call, 0.0, 0.0])
            kept[1:] = max(kept[1], ours), max(kept[2], drift)
    return [worst[call] for call in sorted(worst)]


def _markdown(result: Mapping[str, Any]) -> str:
    runs = result["runs"]
    lines = [
        "# accel: comparison run",
        "",
        f"`{result['program']}`, in new processes one after the other. {_step_sentence(result)}",
        "",
        "## Time and memory",
        "",
        *_table(["", "NumPy", "accel", "NumPy perturbed"], [[label, *_each(runs, key)] for label, key in _ROWS]),
        "",
        f"Steps are {_times(_ratio(result, 'ms_per_step'))} as fast as NumPy's; the whole run, imports, recording and "
        f"compiling included, {_times(_ratio(result, 'wall_s'))} as fast. accel's run had {_compiled(result)}.",
        *(["", f"**Careful: {noise}.**"] if (noise := _noise(result)) else []),
        *(["", "![time per step](steps.png)"] if "steps.png" in result["charts"] else []),
        "",
        "## Differences",
        "",
        "The largest difference from NumPy's run, relative to the field's largest magnitude. *Drift* is the difference "
        "of a NumPy run whose state was changed by one unit in the last place before the first step. It shows how far "
        "the program itself amplifies such a small difference.",
        "",
        *_careful(_nothing_compiled(result)),
        *_careful(_other_steps(result)),
        *_careful("" if result["perturbed"] else "no array of floats was there to change: drift was not measured"),
        *_table(["after call", "accel, worst field", "drift, worst field"], _worst_by_call(result)),
        "",
        *_table(["field", "last call", "accel, first call", "accel, last call", "drift, last call"], _last(result)),
        *(["", "![differences](fields.png)"] if "fields.png" in result["charts"] else []),
    ]
    if not result["charts"]:
        lines += ["", f"No charts: {_why_no_charts(result)}."]
    if not result["fields"]:
        lines += ["", "No field was sampled: no observed function was called."]
    return "\n".join(lines) + "\n"


def _careful(sentence: str) -> list[str]:
    return [f"**Careful: {sentence}.**", ""] if sentence else []


def _why_no_charts(result: Mapping[str, Any]) -> str:
    if result["fields"] or result["runs"]["accel"]["step_ms"]:
        return "matplotlib is not installed"
    return "no field was sampled, and no steps were counted"


def _nothing_compiled(result: Mapping[str, Any]) -> str:
    """Return a sentence that the accelerated run compiled nothing, with advice; "" if it compiled something."""
    totals = result["accel"]["totals"]
    if totals["compiled_calls"]:
        return ""
    if totals["calls"]:
        return f"nothing was compiled, so that NumPy was compared with NumPy: {IN_FRONT}, compares more"
    return (
        "no accelerated function was called, so that NumPy was compared with NumPy: name functions in a catalogue; "
        "--auto compares the iterations of the script's own loops"
    )


def _each(runs: Mapping[str, Any], key: str) -> list[Any]:
    return [runs[way][key] for way in WAYS]


def _compiled(result: Mapping[str, Any]) -> str:
    """Return the share of the accelerated run that was compiled. Without it, equal results would prove nothing."""
    totals = result["accel"]["totals"]
    return f"{totals['compiled_calls']} of {plural(totals['calls'], 'call')} compiled"


def _times(ratio: float | None) -> str:
    return "not known to be" if ratio is None else f"{float(f'{ratio:.2g}'):g} times"


def _other_steps(result: Mapping[str, Any]) -> str:
    """Return a sentence if the runs made different numbers of steps, so that call N differs in meaning; else ""."""
    steps = _each(result["runs"], "steps")
    if len(set(steps)) == 1:
        return ""
    return f"the runs made different numbers of steps ({', '.join(map(str, steps))}): do not trust these differences"


def _noise(result: Mapping[str, Any]) -> str:
    """Return a sentence if the two NumPy runs, which do the same work, differ much in time; else ""."""
    times = [result["runs"][way]["ms_per_step"] or 0.0 for way in ("numpy", "perturbed")]
    if not all(times) or max(times) <= MOST_NOISE * min(times):
        return ""
    return (
        f"NumPy's two runs took {_cell(times[0])} and {_cell(times[1])} ms per step: something else used the machine, "
        "so do not trust these times"
    )


def _step_sentence(result: Mapping[str, Any]) -> str:
    if result["step"] is None:
        return "No function was called twice, so there are no steps."
    return f"A step is the time between the starts of two calls of `{result['step']}`."


def one_line_summary(result: Mapping[str, Any], out: Path) -> str:
    """Return the result of a comparison run in one line, with the path of the full report."""
    worst = _worst_by_call(result)
    other = "".join(f"; {careful}" for careful in (_other_steps(result), _noise(result)) if careful)
    if nothing := _nothing_compiled(result):
        return f"accel: {nothing}; {_compiled(result)}{other}; see {out / 'report.md'}\n"
    largest = f"largest difference {worst[-1][1]:.2g} after call {worst[-1][0]}" if worst else "no field was sampled"
    drift = ""
    if worst:
        drift = f", drift {worst[-1][2]:.2g}" if result["perturbed"] else ", drift not measured"
    step, whole = (_ratio(result, key) for key in ("ms_per_step", "wall_s"))
    steps = "no step timed" if step is None else f"steps {_times(step)} as fast as NumPy"
    return (
        f"accel: {steps}, whole run {_times(whole)}; {largest}{drift}, {_compiled(result)}{other}; "
        f"see {out / 'report.md'}\n"
    )
