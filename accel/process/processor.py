"""The processor that this process runs on: its model, and what XLA compiles for."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def model() -> str:
    """The model's name; "unknown" where nothing tells."""
    models = [line.partition(":")[2].strip() for line in _lines() if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"


def description() -> str:
    """The model and the instruction sets: programs for two processors are interchangeable if this is the same."""
    wanted = ("model name", "flags", "Features", "CPU part")
    return "\n".join(sorted({line for line in _lines() if line.startswith(wanted)})) or platform.processor()


def usable_cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _lines() -> list[str]:
    """What Linux says of it; nothing elsewhere."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
