"""The profile: what counts as a step, what the page holds, and that it needs nothing from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from types import ModuleType

import pytest

from accel.platform import timeline
from accel.platform.reasons import Refusal
from accel.platform.timeline import CallRecord
from accel.reports import drawing, profiling, words

VOID = {"meta", "wbr"}


class Balanced(HTMLParser):
    """Fails where tags do not match; keeps what the page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [str(value) for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def calls(*rows: tuple[str, str, float, float]) -> list[CallRecord]:
    return [CallRecord(*row) for row in rows]


RUN = calls(
    ("step", "numpy", 1.0, 0.5),
    ("flux", "numpy", 1.2, 0.1),
    ("step", "compiled", 2.0, 0.25),
    ("flux", "compiled", 2.1, 0.05),
    ("step", "compared", 3.0, 0.6),
)


def test_a_step_is_from_the_end_of_one_call_to_the_end_of_the_next() -> None:
    first, second = drawing.steps_of(RUN, "step")
    assert first.seconds == pytest.approx(1.0)
    assert first.parts == pytest.approx({"numpy": 0.1, "compiled": 0.25, "other": 0.65})
    assert second.parts == pytest.approx({"compiled": 0.05, "compared": 0.6, "other": 0.35})
    assert drawing.steps_of(RUN, None) == []


def test_steps_are_counted_by_the_named_target_or_by_the_one_with_most_time() -> None:
    assert drawing.pacing_target(RUN, None) == "step"
    assert drawing.pacing_target(RUN, "flux") == "flux"
    assert drawing.pacing_target(RUN, "absent") == "step"
    assert drawing.pacing_target(RUN[:2], None) is None


def test_many_steps_become_means_of_neighbours() -> None:
    many = [drawing.Step(i, i, float(i), {"numpy": float(i)}) for i in range(1, 8)]
    assert [(each.first, each.last, each.seconds) for each in drawing.binned(many, 3)] == [
        (1, 3, 2.0),
        (4, 6, 5.0),
        (7, 7, 7.0),
    ]
    assert drawing.binned([], 3) == []


def test_the_usual_step_of_each_kind_fits_into_the_chart() -> None:
    numpy = [drawing.Step(i, i, 0.03, {"numpy": 0.03}) for i in range(1, 4)]
    compiled = [drawing.Step(i, i, 0.002, {"compiled": 0.002}) for i in range(4, 100)]
    heights = re.findall(r'height="([0-9.]+)" class="numpy"', drawing.steps_chart(numpy + compiled))
    assert len(heights) == 3 and all(0.0 < float(each) < drawing.HEIGHT - 41 for each in heights)


@pytest.mark.parametrize(("top", "last"), [(47.0, 40.0), (1.0, 1.0), (0.0042, 0.004), (0.0, 0.0), (950.0, 800.0)])
def test_ticks_are_round_and_within(top: float, last: float) -> None:
    ticks = drawing._ticks(top)
    assert ticks[0] == 0.0
    assert ticks[-1] == pytest.approx(last)
    assert len(ticks) <= 6


def _some_run(books: ModuleType) -> None:
    timeline.start()
    book = books.open_ledger("model.<step>")
    timeline.note_event(timeline.RECORDED, "model.<step>", "70 operations", 0.01)
    for _ in range(4):
        book.count_numpy(0.002)
    timeline.note_event(timeline.COMPILE, "model.<step>", "70 operations", 0.5)
    for _ in range(9):
        book.count_compiled(0.0005, 0.0015)
    timeline.note_event(timeline.DEMOTED, "model.<step>", "a < b & c")


def test_the_page_is_whole_and_fetches_nothing(books: ModuleType) -> None:
    _some_run(books)
    page = profiling.page("scripts.run <x>")
    parser = Balanced()
    parser.feed(page.removeprefix("<!doctype html>\n"))
    assert parser.open == []
    assert parser.links == []
    assert "<script" not in page
    assert not any(each in page for each in ("http", "src=", "@import", "url("))
    assert page.count("<svg") == 2
    assert "<h1>scripts.run &lt;x&gt;</h1>" in page
    assert "<code>model.&lt;step&gt;</code> to the end of its next" in page
    assert "a &lt; b &amp; c" in page
    assert re.search(r"step 12: [\d.]+ [um]s, of which [\d.]+ [um]s compiled", page)
    for word in ("recorded", "compiling", "demoted", "70 operations"):
        assert word in page


def test_a_factor_near_zero_is_not_told_by_its_digits() -> None:
    factors = [words.as_factor(factor) for factor in (None, 0.0, 0.0079, 0.1, 0.83, 2.54, 12.3)]
    assert factors == ["-", "0.1x or less", "0.1x or less", "0.1x", "0.83x", "2.5x", "12x"]


def test_times_are_in_units_that_people_read() -> None:
    assert [words.in_time(seconds) for seconds in (0.0, 2e-7, 4.2e-5, 0.0123, 10.6, 95.0, 7384.0, -0.5)] == [
        "0 us",
        "0.2 us",
        "42 us",
        "12.3 ms",
        "10.6 s",
        "95 s",
        "123 min",
        "-500 ms",
    ]
    assert [drawing._tick_label(ms) for ms in (0.0, 0.2, 5.0, 2e4)] == ["0 ms", "200 us", "5 ms", "20 s"]


def test_the_table_has_reasons_with_their_lines(books: ModuleType) -> None:
    _some_run(books)
    book = books.open_ledger("stopping_model.f")
    book.count_numpy(10.6)
    book.state = books.State.NUMPY
    book.refuse(Refusal("effect.print", "stopping_model.py:2"))
    page = profiling.page("run")
    assert re.search(r">stopping_model.py:2: [^<]*\[effect.print\], 1 times; print or log [^<]*<", page)
    assert ">10.6 s<" in page


def test_a_run_without_steps_says_so(books: ModuleType) -> None:
    timeline.start()
    page = profiling.page("nothing")
    assert "No function was called twice, so there are no steps to show." in page


def test_what_was_dropped_is_said(books: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MAX_EVENTS", 2)
    timeline.start(capacity=5)
    book = books.open_ledger("m.f")
    for _ in range(8):
        book.count_numpy(0.001)
        timeline.note_event(timeline.RECORDED, "m.f")
    page = profiling.page("long")
    assert "The first 3 calls are not shown" in page
    assert "6 later events are not shown." in page
