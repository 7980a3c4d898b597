"""Processors: how many this process may use, which model they are, and what XLA compiles for."""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""File in which Linux keeps the quota of a container: microseconds of processor time, and the period."""

_TIMES = Path("/proc/stat")
"""File in which Linux keeps what each processor has done so far."""


def usable() -> int:
    """The number of processors that this process may keep busy, at least 1: those that it may run on, and its quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    granted = _granted(_QUOTA)
    return max(1, count if granted is None else min(count, granted))


def idle_s() -> float | None:
    """The seconds for which the processors that this process may run on have had nothing to do, together; None where
    nothing tells."""
    try:
        lines = [line.split() for line in _TIMES.read_text(encoding="ascii").splitlines() if line.startswith("cpu")]
        own = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        ticks = sum(int(idle) + int(waiting) for name, _, _, _, idle, waiting, *_ in lines if name in own)
        return ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return None


@functools.cache
def _granted(quota: Path) -> int | None:
    """The processors' time that a container grants, in whole processors; None where there is no limit."""
    try:
        granted, period = quota.read_text(encoding="ascii").split()
        return int(granted) // int(period)
    except (OSError, ValueError):  # "max", or no such file
        return None


def model() -> str:
    """The model's name; "unknown" where nothing tells."""
    models = [line.partition(":")[2].strip() for line in _lines() if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"


def description() -> str:
    """The model and the instruction sets. Where this is the same, compiled programs are interchangeable."""
    wanted = ("model name", "flags", "Features", "CPU part")
    return "\n".join(sorted({line for line in _lines() if line.startswith(wanted)})) or platform.processor()


def _lines() -> list[str]:
    """Lines of Linux's /proc/cpuinfo; none on other systems."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
