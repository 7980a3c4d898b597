"""The flow of a text through a function's code: what may see it, by the instructions alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accel.record.values.text.flow import readers
from accel.record.values.text.opcodes import instructions, pops_and_pushes


def seen_by(function: Callable[..., Any]) -> list[set[str] | None]:
    """For each formatted value in the function's code, the names of the functions that its text reaches."""
    code = function.__code__
    found = []
    for each in instructions(code):
        if each.opname in ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC"):
            reached = readers(code, each.offset, "format")
            found.append(None if reached is None else {origin.name for origin in reached})
    return found


def straight(x: Any, log: Any) -> None:
    print(f"{x:.2f} of {x:.1f}", "b", f"{x:d}", end=f"{x:.0f}")
    log.info(f"{x:.2f}")


def by_variables(x: Any, c: bool) -> None:
    text = "a"
    text += f"{x:.2f}"
    if c:
        text = text + f"b {x:.3f}"
    print(text)


def chosen(x: Any, c: bool) -> None:
    print("none" if c else f"{x:.2f}", [1, c], {"a": -x})


def in_a_loop(x: Any) -> None:
    for i in range(3):
        text = f"{x[i]:.2f}"
        print(i, text)


def dropped(x: Any) -> None:
    text = f"{x:.2f}"
    text = "other"
    print(len(text))


@pytest.mark.parametrize("function", [straight, by_variables, chosen, in_a_loop])
def test_a_text_that_only_calls_take(function: Any) -> None:
    assert all(reached and reached <= {"print", "info"} for reached in seen_by(function))


def test_a_text_that_nobody_takes() -> None:
    assert seen_by(dropped) == [set()]


def returned(x: Any) -> str:
    return f"{x:.2f}"


def compared(x: Any) -> bool:
    return f"{x:.2f}" == "0.00"


def compared_later(x: Any) -> None:
    text = f"{x:.2f}"
    print(text)
    if text == "1.00":
        print("one")


def compared_in_the_next_round(x: Any) -> None:
    text = ""
    for value in x:
        if text == "1.00":
            break
        text = f"{value:.2f}"
        print(text)


def kept(x: Any, box: Any) -> None:
    text = f"{x:.2f}"
    box.text = text
    print(text)


def in_a_list(x: Any) -> None:
    print([f"{x:.2f}"])


def indexed(x: Any) -> None:
    print(f"{x:.2f}"[:2])


def joined_with_anything(x: Any, y: Any) -> None:
    print(y + f"{x:.2f}")


def multiplied(x: Any) -> None:
    print(f"{x:.2f}" * 2)


def of_a_closure(x: Any) -> Any:
    text = f"{x:.2f}"
    return lambda: text


def unpacked(x: Any) -> None:
    print(*f"{x:.2f}")


def asked(x: Any) -> None:
    print(f"{x:.2f}".strip())


def a_condition(x: Any) -> None:
    if f"{x:.2f}":
        print("text")


def seen_by_locals(x: Any) -> None:
    text = f"{x:.2f}"
    print(text, locals())


def kept_for_a_method(x: Any, log: Any) -> None:
    text = f"{x:.2f}"
    log.info(text)


def matched(x: Any) -> None:
    match f"{x:.2f}":
        case "0.00":
            print("zero")


def walrus(x: Any) -> None:
    if (text := f"{x:.2f}") != "0.00":
        print(text)


@pytest.mark.parametrize(
    "function",
    [
        returned,
        compared,
        compared_later,
        compared_in_the_next_round,
        kept,
        in_a_list,
        indexed,
        joined_with_anything,
        multiplied,
        of_a_closure,
        unpacked,
        asked,
        a_condition,
        seen_by_locals,
        kept_for_a_method,
        matched,
        walrus,
    ],
)
def test_a_text_that_something_else_may_see(function: Any) -> None:
    assert None in seen_by(function)


def test_a_padded_text_is_no_part_of_what_is_shown() -> None:
    def padded(x: Any) -> None:
        print(f"{f'{x:.2f}':>9}")

    assert seen_by(padded) == [None, {"print"}]


def test_the_table_of_instructions_covers_everyday_code() -> None:
    """The rest are instructions that end the search; see `pops_and_pushes`, which asks Python for each effect."""
    found = [each for function in (straight, by_variables, chosen, dropped) for each in instructions(function.__code__)]
    assert [each.opname for each in found if pops_and_pushes(each) is None] == []
