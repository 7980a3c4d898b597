"""How a step divided by rows scales: the bytes that its halos take, counted in compiled programs, and a model of time.

`python -m benchmarks.scaling [--grid 128x240] [--latency-us 10] [--bandwidth 100] [--out FILE.json]` compiles a
stencil of four rounds for 1, 2, 4 and 8 virtual devices of this CPU, compares each with NumPy, and counts what its
program sends. The count on another grid must be what the first one's gives by columns; else the exit code is 1. Then it
derives the time of a step on large grids: one device's time, measured here, by cells; plus messages times latency; plus
bytes by bandwidth.

Virtual devices share the processors and the memory of one machine. They show what is sent and that results are right,
and neither how fast devices compute nor how fast they send: latency and bandwidth are assumed.
"""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from accel.backend.shards import equal_parts
from accel.platform import config
from benchmarks import gpu, harness

DEVICES = (1, 2, 4, 8)
LARGE = ((721, 1440), (2881, 5760))
COUNTS = (8, 64, 512)
TOLERANCE = 1e-12

SENT = re.compile(r"= (\w+)\[([\d,]*)\]\S* (collective-permute|all-gather|all-reduce|all-to-all)\(")
"""A line of XLA's text in which a device gives something to others, with what each device has of it after."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__.split("\n\n")[0])
    arguments.add_argument(
        "--grid", type=harness.parse_grid, default=(128, 240), help="rows: a multiple of 8 (128x240)"
    )
    arguments.add_argument("--latency-us", type=harness.positive_float, default=10.0, help="of a message (assumed: 10)")
    arguments.add_argument("--bandwidth", type=harness.positive_float, default=100.0, help="GB/s (assumed: 100)")
    arguments.add_argument("--budget", type=harness.positive_float, default=1.0, help="s of timing (1)")
    arguments.add_argument("--out", metavar="FILE.json", help="write the result as JSON")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write; 0 if the counts are as predicted, else 1."""
    options = parser().parse_args(argv)
    harness.check_writable(options.out)
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={max(DEVICES)}"
    rows, columns = options.grid
    measured = [of_grid(grid, options.budget) for grid in ((rows, columns), (2 * rows, 3 * columns))]
    first, second = measured
    agrees = all(
        (there["sends"], there["bytes"]) == (here["sends"], 3 * here["bytes"])
        for here, there in zip(first["runs"], second["runs"], strict=True)
    )
    result = {
        "benchmark": "scaling",
        "measured": measured,
        "predicted_bytes_hold": agrees,
        "derived": [row for grid in LARGE for row in derived(grid, second, options.latency_us, options.bandwidth)],
        "assumed": {"latency_us": options.latency_us, "bandwidth_gb_s": options.bandwidth},
        "machine": harness.machine(),
        "versions": harness.versions(),
    }
    print(describe(result))
    if options.out:
        harness.write_json(options.out, result)
    return 0 if agrees else 1


def of_grid(grid: tuple[int, int], budget_s: float) -> dict[str, Any]:
    """What the stencil sends on this grid among so many devices, its error, and its time on them, in ms."""
    fields = [np.random.default_rng(seed).normal(size=grid) for seed in range(3)]
    return {"grid": list(grid), "runs": [of_devices(number, fields, budget_s) for number in DEVICES]}


def of_devices(number: int, fields: Sequence[np.ndarray], budget_s: float) -> dict[str, Any]:
    """One number of devices. sends, bytes: of each device, in one step."""
    with config.override(devices=number):
        variant, values = gpu.variant_on("cpu", gpu.stencil, fields)
        staged: Any = variant.run(values)
        error = harness.relative_error(staged.made[0], gpu.stencil(*fields))
        if not error <= TOLERANCE:
            raise harness.BadInput(f"on {number} devices the stencil differs from NumPy by {error:.2g}")
        times = harness.interleaved({"step": lambda: variant.run(values)}, lambda: (), budget_s=budget_s)
    sent = sent_by(variant.executable.compiled.as_text())
    shards = variant.executable.shards
    return {
        "devices": len(shards.devices) if shards else 1,
        "sends": len(sent),
        "bytes": sum(sent),
        "error": error,
        "ms": harness.median_ms(times["step"]),
    }


def sent_by(text: str) -> list[int]:
    """Bytes of each message that a device takes part in, by XLA's text of a program."""
    sizes = []
    for dtype, shape, _ in SENT.findall(text):
        itemsize = int(re.sub(r"\D", "", dtype) or 8) // 8  # f64, s32; pred, which has no number, is one byte
        sizes.append(itemsize * math.prod(int(each) for each in shape.split(",") if each))
    return sizes


def derived(
    grid: tuple[int, int], measured: dict[str, Any], latency_us: float, bandwidth: float
) -> list[dict[str, Any]]:
    """A step on a large grid. used: devices that divide its rows, or its columns where those are more. ms: on these."""
    rows, columns = grid
    one, last = measured["runs"][0], measured["runs"][-1]
    cells = measured["grid"][0] * measured["grid"][1]
    ms_per_cell, bytes_per_column = one["ms"] / cells, last["bytes"] / measured["grid"][1]
    message_ms = last["sends"] * latency_us * 1e-3
    alone = ms_per_cell * rows * columns
    found = []
    for count in COUNTS:
        used = max(equal_parts(rows, count), equal_parts(columns, count))
        halo = bytes_per_column * (columns if used == equal_parts(rows, count) else rows)
        ms = alone / used + (message_ms + halo / (bandwidth * 1e6) if used > 1 else 0.0)
        found.append(
            {
                "grid": f"{rows}x{columns}",
                "devices": count,
                "used": used,
                "halo_kb": halo / 1e3,
                "ms": ms,
                "times": alone / ms,
            }
        )
    return found


def describe(result: dict[str, Any]) -> str:
    """The tables that are printed."""
    runs = [
        ["x".join(map(str, each["grid"])), *(run[key] for key in ("devices", "sends", "bytes", "error", "ms"))]
        for each in result["measured"]
        for run in each["runs"]
    ]
    assumed = result["assumed"]
    return "\n\n".join(
        [
            "a stencil of four rounds, divided by rows; the times of virtual devices say nothing of real ones "
            f"({result['machine']['cpu']}):",
            harness.markdown_table(["grid", "devices", "messages", "bytes", "error", "ms"], runs),
            f"bytes on the larger grid are those of the smaller by columns: {result['predicted_bytes_hold']}",
            f"derived, for {assumed['latency_us']:g} us and {assumed['bandwidth_gb_s']:g} GB/s (assumed):",
            harness.markdown_table(list(result["derived"][0]), [list(row.values()) for row in result["derived"]]),
        ]
    )


if __name__ == "__main__":
    harness.run_command(main)
