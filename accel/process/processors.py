"""Processors: how many this process may use, which model they are, and what XLA compiles for."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def usable() -> int:
    """The number of processors that this process may run on, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def model() -> str:
    """The model's name; "unknown" where nothing tells."""
    models = [line.partition(":")[2].strip() for line in _lines() if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"


def description() -> str:
    """The model and the instruction sets. Where this is the same, compiled programs are interchangeable."""
    wanted = ("model name", "flags", "Features", "CPU part")
    return "\n".join(sorted({line for line in _lines() if line.startswith(wanted)})) or platform.processor()


def _lines() -> list[str]:
    """What Linux says of them; nothing elsewhere."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
