"""The check for NaN and infinity of values that a loop nest stores, while they are in registers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from accel.compiler.kernels.ir import Emitter, Value


@dataclass(slots=True)
class Check:
    """Instructions in and around one innermost loop, which has the blocks `before`, `next` and `after`.

    carried: at the loop's head. alone: instead of those where the body runs once. body: behind the loop's values. end:
    behind the loop; they go on to `after`.
    """

    carried: list[str] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    end: list[str] = field(default_factory=list)


def check_of(emitter: Emitter, values: Iterable[Value], flag: str, label: int) -> Check:
    """Return the check of these floats in the loop of this label. flag: pointer to a byte, which becomes 1.

    `x - x` is 0 for a number, and NaN for NaN and infinity. A sum that NaN was added to stays NaN.
    """
    sums: dict[np.dtype[np.generic], Value] = {}
    for value in values:
        difference = value - value
        sums[value.dtype] = sums[value.dtype] + difference if value.dtype in sums else difference
    check, level, found = Check(), emitter.innermost, "false"
    for dtype, differences in sums.items():
        kind, zero = emitter.type_of(dtype, level), emitter.widened(emitter.literal(0.0, dtype), level)
        name = f"%s{label}.{dtype.itemsize}"
        check.carried.append(f"{name} = phi {kind} [ {zero}, %before{label} ], [ {name}.n, %next{label} ]")
        check.alone.append(f"{name} = fadd {kind} {zero}, {zero}")
        check.body.append(f"{name}.n = fadd {kind} {name}, {emitter.widened(differences, level)}")
        check.end.append(f"{name}.m = fcmp uno {kind} {name}.n, {name}.n")
        bits = f"i{emitter.lanes if emitter.is_vector(level) else 1}"
        truth = emitter.type_of(np.dtype(bool), level)
        check.end.append(f"{name}.b = bitcast {truth} {name}.m to {bits}")
        check.end.append(f"{name}.any = icmp ne {bits} {name}.b, 0")
        check.end.append(f"{name}.or = or i1 {found}, {name}.any")
        found = f"{name}.or"
    if sums:
        check.end += [
            f"br i1 {found}, label %flag{label}, label %after{label}",
            f"flag{label}:",
            f"store atomic i8 1, ptr {flag} monotonic, align 1",
            f"br label %after{label}",
            f"after{label}:",
        ]
    return check
