"""The passes: what each gives for small programs, as listed; and that none changes the tape."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from accel.compiler.lower import Known, lower
from accel.compiler.lower.listing import listing
from accel.ir.tape import Node
from accel.record import record
from tests.compiler.lower.passes import after_pass


def recorded(program: Any, *arrays: Any) -> Any:
    trace = record(program, tuple(np.array(array) for array in arrays), {}, max_nodes=10_000).trace
    assert trace is not None
    return trace


_PLACE = re.compile(r"  \S+\.py:[0-9]+$")


def lines(name: str, program: Any, *arrays: Any) -> list[str]:
    """The listing after a pass, without the places in this file."""
    return [_PLACE.sub("", line) for line in listing(after_pass(name, recorded(program, *arrays)))]


x = np.linspace(0.0, 1.0, 12)


def test_only_what_is_needed_stays() -> None:
    def program(a: Any) -> Any:
        np.sin(a)
        return a * np.sqrt(2.0) + np.arange(12)

    assert lines("recorded", program, x) == [
        "%0 = input float64[12] slot 3",
        "%1 = sin float64[12] (%0)",
        "%2 = sqrt float64[] (2.0)",
        "%3 = multiply float64[12] (%0, %2)",
        "%4 = arange int64[12] (start_or_stop=12)",
        "%5 = add float64[12] (%3, %4)",
    ]
    assert lines("needed", program, x) == ["%3 = multiply float64[12] (%0, %2)", "%5 = add float64[12] (%3, %4)"]


def test_writes_of_what_they_overwrite_are_copied_first() -> None:
    def program(a: Any) -> Any:
        b = a.reshape(4, 3) * 2.0
        b[1:] = b[:-1]
        return b

    assert [line for line in lines("aliasing", program, x) if "copied" in line] == [
        "%4 = accel.write float64[4,3] (%2, [1:], %3)  copied"
    ]


def test_boxes_at_known_positions_are_static_views() -> None:
    def program(a: Any, i: int, j: int) -> Any:
        a[i] += 1.0
        a[i, 1:] = a[j - 2, i : i + 2]
        return a

    trace = record(program, (x.reshape(4, 3), 1, -1), {}, max_nodes=1000).trace
    assert trace is not None
    first, second = trace.scalar_slots

    def views(known: Known) -> list[str]:
        parts = listing(after_pass("positions", trace, known))
        return [line.partition("  ")[0] for line in parts if "accel.read" in line or "accel.write" in line]

    assert views(Known()) == [
        "%4 = accel.read_at float64[3] (%0, [., 3], (%1, 0))",
        "%6 = accel.write_at float64[4,3] (%0, [., 3], %5, (%1, 0))",
        "%11 = accel.read_at float64[2] (%6, [., 2], (%7, %1))",
        "%12 = accel.write_at float64[4,3] (%6, [., 2], %11, (%1, 1))",
    ]
    assert views(Known({first: 1, second: -1})) == [
        "%4 = accel.read float64[3] (%0, [1, :])",
        "%6 = accel.write float64[4,3] (%0, [1, :], %5)",
        "%11 = accel.read float64[2] (%6, [1, 1:3])",
        "%12 = accel.write float64[4,3] (%6, [1, 1:3], %11)",
    ]
    assert "accel.read_at" in views(Known({second: -1}))[0]


def test_loops_are_listed_by_their_first_round() -> None:
    def program(a: Any) -> Any:
        for k in range(20):
            a = np.sin(a) * 0.5 + k
        return a

    head, *body = lines("loops", program, x)
    assert head == "loop, 20 iterations"
    assert [line.split()[2] for line in body] == ["sin", "multiply", "add"]


def test_the_tape_stays_as_it_is() -> None:
    """Another thread may be lowering it, with other constants."""

    def program(a: Any, c: Any) -> Any:
        b = a.reshape(4, 3) * 2.0
        b[1:] = b[:-1]
        for k in range(12):
            c = np.floor(c / 0.01) + k * np.sin(c) + b.sum()
        return b, c

    def state(trace: Any) -> list[dict[str, Any]]:
        return [{name: getattr(node, name) for name in Node.__slots__} for node in trace.tape.nodes]

    trace = recorded(program, x, x)
    before = state(trace)
    lower(trace, Known())
    assert state(trace) == before


def test_views_of_views_are_parts_of_the_array_itself() -> None:
    def program(work: Any) -> Any:
        lower, diag = work[:2]
        for i in range(1, 3):
            diag[i] -= lower[i - 1]
        return work

    assert lines("nesting", program, np.arange(36.0).reshape(3, 3, 4)) == [
        "%3 = accel.read float64[4] (%0, [1, 1])",
        "%5 = accel.read float64[4] (%0, [0, 0])",
        "%6 = subtract float64[4] (%3, %5)",
        "%9 = accel.write float64[3,3,4] (%0, [1, 1], %6)",
        "%12 = accel.read float64[4] (%9, [1, 2])",
        "%14 = accel.read float64[4] (%9, [0, 1])",
        "%15 = subtract float64[4] (%12, %14)",
        "%18 = accel.write float64[3,3,4] (%9, [1, 2], %15)",
    ]


def test_a_view_that_was_replaced_meanwhile_is_written_as_a_whole() -> None:
    def program(a: Any, b: Any) -> Any:
        part = a[2:8]
        part[1:] = b[:5]
        a[2:8] = b[2:8]  # the view shows this now
        part[:2] += 1.0
        return a

    written = [line for line in lines("nesting", program, x, x + 1.0) if "accel.write" in line]
    assert [line.partition("(")[2] for line in written] == ["%0, [3:8], %2)", "%5, [2:8], %6)", "%7, [2:4], %10)"]
