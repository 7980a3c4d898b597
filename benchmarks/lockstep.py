"""The parent's side: children that run the same program in different ways, block by block, never at once.

Each child is a fresh Python process. While it is not its turn it is stopped (SIGSTOP), worker threads and all, so that
a compile in one child's background costs that child's own time and no other's.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from benchmarks import harness
from benchmarks.harness import REPOSITORY, BadInput, rotated

LOG_TAIL = 25
ENOUGH = 40
"""Steps that must be left where a child was still compiling after its warm-up, to be steady without that."""


class ChildFailed(Exception):
    """A child ended before its run was complete; the text holds the end of its log."""


class Child:
    """One way of running the program: a process, its step times and what it reports at its end.

    `module` and `arguments` name the worker; `folder` is its scratch working directory, kept out of any checkout;
    `settings` are environment variables on top of the parent's; `block` is the number of steps of one turn.
    """

    def __init__(
        self,
        name: str,
        module: str,
        arguments: Sequence[str],
        folder: Path,
        settings: Mapping[str, str],
        block: int = 10,
    ):
        folder.mkdir(parents=True)
        self.name, self.folder, self.block = name, folder, block
        self.times: list[float] = []
        self.wall_s = 0.0
        self.startup_s = 0.0
        self.running = True
        self.summary: dict[str, Any] = {}
        self._log = (folder / "log.txt").open("wb")
        self._spawned = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=folder,
            env=environment(settings),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def start(self) -> None:
        """Wait until the program stands before its first step."""
        answer = self._hear()
        if answer["event"] == "refused":
            raise BadInput(answer["text"])
        if answer["event"] != "ready":
            raise self._failure("reached no step")
        self._freeze()
        self.wall_s = self.startup_s = time.perf_counter() - self._spawned

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            stream.close()  # type: ignore[union-attr]

    def run_block(self) -> None:
        """Let the child do its next block of steps, or fewer when the program ends; adds to `times` and `wall_s`."""
        begin = time.perf_counter()
        self._process.send_signal(signal.SIGCONT)
        self._say(f"go {self.block}")
        if self._hear()["event"] == "end":
            self.running = False
            self._finish()
        else:
            self._freeze()
        self.wall_s += time.perf_counter() - begin

    def act(self, verb: str, argument: object) -> None:
        """Have the child do one of its worker's actions between two blocks; not counted in any time."""
        self._process.send_signal(signal.SIGCONT)
        self._say(f"{verb} {argument}")
        self._hear()
        self._freeze()

    def steady_from(self, warmup: float) -> int:
        """The first steady step: after `warmup`, and after what the child was compiling, if enough steps are left."""
        first = math.floor(len(self.times) * warmup)
        settled = self.summary.get("settled", 0)
        return settled if first < settled <= len(self.times) - ENOUGH else first

    def figures(self, first: int) -> dict[str, float]:
        """The ended child's figures, each name led by its own: ms per step from `first` on, s of wall time, MB."""
        steady = self.times[first:]
        longest = max(range(len(self.times)), key=self.times.__getitem__)
        figures = {
            "ms_per_step": harness.median_ms(steady),
            "mean_ms_per_step": harness.mean_ms(steady),
            "longest_step_ms": 1e3 * self.times[longest],
            "longest_step": longest,
            "steps_s": sum(self.times),
            "startup_s": self.startup_s,
            "wall_s": self.wall_s,
            "peak_rss_mb": self.summary["peak_rss_mb"],
        }
        return {f"{self.name}_{name}": figure for name, figure in figures.items()}

    def check_plain(self) -> None:
        """Refuse a child that had to be plain NumPy and yet imported accel."""
        if self.summary["accel"]:
            raise ChildFailed(f"the {self.name} child had imported accel: it is no plain run")

    def _finish(self) -> None:
        """Wait for the program's own end, such as its last plots and restart file, and for the process's."""
        self.summary = self._hear()
        code = self._process.wait()
        if code:
            raise self._failure(f"ended with exit code {code}")

    def _freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def _say(self, command: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failure("went away") from None

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._failure(f"ended too early, exit code {self._process.wait()}")
        answer = json.loads(line)
        self.times += answer.pop("times", [])
        return answer

    def _failure(self, what: str) -> ChildFailed:
        lines = (self.folder / "log.txt").read_text(errors="replace").splitlines()
        return ChildFailed("\n".join([f"the {self.name} child {what}; its last words:", *lines[-LOG_TAIL:]]))


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The child's environment: no display, no byte code in the checkout, the benchmarks importable.

    Whether JAX is used is for the benchmark to say, so the parent's QD_USE_JAX is not handed down. It leaves nothing
    behind that compiles, unless the settings say so: it would take the processor from what is measured next.
    """
    return {
        **{name: value for name, value in os.environ.items() if name != "QD_USE_JAX"},
        "MPLBACKEND": "Agg",
        "QD_JAX_FINISH_S": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(REPOSITORY),
        "PYTHONUNBUFFERED": "1",
        **settings,
    }


def run_lockstep(children: Sequence[Child], between: Callable[[], None] = lambda: None) -> None:
    """Run all children to their ends, a block of each in turn; who comes first changes from round to round.

    `between()` is called after every round that no child has ended in.
    """
    round_ = 0
    while any(child.running for child in children):
        for child in rotated(children, round_):
            if child.running:
                child.run_block()
        if all(child.running for child in children):
            between()
        round_ += 1


def concluded(
    measure: Callable[[], dict[str, Any]], describe: Callable[[dict[str, Any]], str], out: str | None
) -> dict[str, Any] | None:
    """Measure, print, and write JSON to `out`. None, after one line on standard error, where a child failed."""
    try:
        result = measure()
    except ChildFailed as failure:
        print(f"error: {failure}", file=sys.stderr)
        return None
    print(describe(result))
    if out:
        harness.write_json(out, result)
    return result


def figures_table(result: Mapping[str, Any], columns: Mapping[str, str]) -> str:
    """The children's figures side by side; `columns` maps their names to what the reader is told."""
    labels = {
        "ms_per_step": "ms per step, median",
        "mean_ms_per_step": "ms per step, mean",
        "longest_step_ms": "longest step, ms",
        "longest_step": "which step that was",
        "startup_s": "start-up, s",
        "wall_s": "whole run, s",
        "peak_rss_mb": "peak memory, MB",
    }
    rows = [[label, *(result[f"{name}_{key}"] for name in columns)] for key, label in labels.items()]
    return harness.markdown_table(["", *columns.values()], rows)
