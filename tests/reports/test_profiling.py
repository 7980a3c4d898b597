"""The profile: what counts as a step, what the page holds, and that it needs nothing from elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest

from accel.platform import timeline
from accel.platform.reasons import Refusal
from accel.platform.timeline import CallRecord
from accel.reports import drawing, profiling, steps, words

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
    first, second = steps.steps_of(RUN, "step")
    assert first.seconds == pytest.approx(1.0)
    assert first.parts == pytest.approx({"numpy": 0.1, "compiled": 0.25, "other": 0.65})
    assert second.parts == pytest.approx({"compiled": 0.05, "compared": 0.6, "other": 0.35})
    assert steps.steps_of(RUN, None) == []


def test_steps_are_counted_by_the_named_target_or_by_the_one_with_most_time() -> None:
    assert steps.pacing_target(RUN, None) == "step"
    assert steps.pacing_target(RUN, "flux") == "flux"
    assert steps.pacing_target(RUN, "absent") == "step"
    assert steps.pacing_target(RUN[:2], None) is None


def test_many_steps_become_means_of_neighbours() -> None:
    many = [steps.Step(i, i, float(i), {"numpy": float(i)}) for i in range(1, 8)]
    assert [(each.first, each.last, each.seconds) for each in steps.binned(many, 3)] == [
        (1, 3, 2.0),
        (4, 6, 5.0),
        (7, 7, 7.0),
    ]
    assert steps.binned([], 3) == []


def test_the_usual_step_on_numpy_is_a_line_also_where_all_steps_are_compiled() -> None:
    numpy = [steps.Step(i, i, 0.03, {"numpy": 0.02, "other": 0.01}) for i in range(1, 4)]
    compiled = [steps.Step(i, i, 0.002, {"compiled": 0.001, "other": 0.001}) for i in range(4, 100)]
    assert drawing.usual_on_numpy(numpy + compiled, 9.0) == 0.03
    assert drawing.usual_on_numpy(compiled) is None and "reference" not in drawing.steps_chart(compiled)
    assert drawing.usual_on_numpy(compiled, 0.02) == pytest.approx(0.021)
    chart = drawing.steps_chart(compiled, 0.021)
    (height,) = re.findall(r'<line class="reference"[^>]* y1="([-0-9.]+)"', chart)
    assert 0.0 < float(height) < drawing.HEIGHT and "on NumPy: 21 ms" in chart


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
    assert page.count("<script") == 1
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


def test_the_table_has_reasons_with_their_source_and_the_net_gain(
    books: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stopping_model.py").write_text("def f(x):\n    print(x < 1)\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    _some_run(books)
    book = books.open_ledger("stopping_model.f")
    book.count_numpy(10.6)
    book.state = books.State.NUMPY
    book.refuse(Refusal("effect.print", "stopping_model.py:2"))
    page = profiling.page("run")
    assert "at stopping_model.py:2 <b>effect.print</b>, 1 time<br><code>print(x &lt; 1)</code>" in page
    assert '<td data-by="10.6">10.6 s<div class="bar">' in page
    assert re.search(r'<td data-by="-?[\d.e-]+">[+-][\d.]+ ms</td>', page)  # the net gain of the compiled function
    assert "e+0" not in page


def test_a_click_on_a_title_sorts(books: ModuleType) -> None:
    """In a JavaScript engine with as much of a page as the script uses, where there is one."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node")
    done = subprocess.run([node, "-e", _PAGE + profiling._SCRIPT + _CLICKS], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert json.loads(done.stdout) == [["9", "10", "-"], ["-", "10", "9"], ["a", "b", "c"], ["c", "b", "a"]]


_PAGE = """
const attributed = extra => ({ values: {}, ...extra,
  getAttribute(name) { return this.values[name] ?? null; },
  setAttribute(name, value) { this.values[name] = value; },
  removeAttribute(name) { delete this.values[name]; } });
const rows = [["b", 10, "10"], ["a", 9e9, "9"], ["c", -Infinity, "-"]].map(([text, by, shown]) => ({ children: [
  { dataset: {}, textContent: text }, { dataset: { by: String(by) }, textContent: shown }] }));
const body = { rows, append(...lines) { this.rows = lines; } };
const heads = [attributed({}), attributed({})], row = { children: heads, closest: () => ({ tBodies: [body] }) };
const buttons = heads.map(head => ({ parentElement: Object.assign(head, { parentElement: row }),
  addEventListener(_, act) { this.click = act; } }));
const document = { querySelectorAll: () => buttons };
"""
_CLICKS = """
const seen = [];
for (const place of [1, 1, 0, 0]) {
  buttons[place].click();
  seen.push(body.rows.map(line => line.children[place].textContent));
}
console.log(JSON.stringify(seen));
"""


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
