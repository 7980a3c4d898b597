"""The page of a profile in a real browser without a window: it opens and unfolds, and nothing is cut off.

It needs Chromium (or Chrome) and its driver on the PATH; Debian's packages are `chromium` and `chromium-driver`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from accel.platform import timeline
from accel.platform.ledger import State
from accel.platform.reasons import Refusal
from accel.reports import profiling

selenium = pytest.importorskip("selenium.webdriver", reason="needs Selenium, which the extra `test` installs")

WIDTHS = (360, 700, 1280)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("needs Chromium and its driver, chromedriver, on the PATH")
    options = selenium.ChromeOptions()
    options.binary_location = program
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for each in OPTIONS:
        options.add_argument(each)
    opened = selenium.Chrome(options=options, service=selenium.ChromeService(driver))
    yield opened
    opened.quit()


@pytest.fixture
def page(books: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, browser: Any) -> Path:
    """The page of a run with a function of each kind, opened in the browser."""
    (tmp_path / "shown_model.py").write_text("def f(x):\n    print(x < 1, 'a long line of the source' * 3)\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    timeline.start()
    for name, calls in (("model.dynamics.SpectralModel.time_step", 40), ("model.ocean.Slab.step", 9)):
        book = books.open_ledger(name)
        timeline.note_event(timeline.RECORDED, name, "70 operations", 0.01)
        for _ in range(5):
            book.count_numpy(0.02)
        timeline.note_event(timeline.COMPILE, name, "70 operations", 0.5)
        for _ in range(calls):
            book.count_compiled(0.002, 0.018)
        book.count_compared(0.03, 0.02)
        book.compared(2e-14)
    stopped = books.open_ledger("shown_model.f")
    for _ in range(3):
        stopped.count_numpy(10.6)
        stopped.refuse(Refusal("effect.print", "shown_model.py:2"))
    stopped.state = State.NUMPY
    timeline.note_event(timeline.REFUSED, "shown_model.f", "[effect.print] shown_model.py:2")
    file = tmp_path / "page.html"
    file.write_text(profiling.page("run <x>"), encoding="utf-8")
    browser.get_log("browser")  # what earlier pages said
    browser.get(file.as_uri())
    return file


def errors(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")]


@pytest.mark.usefixtures("page")
def test_what_is_folded_unfolds(browser: Any) -> None:
    folds = browser.find_elements("tag name", "details")
    assert [fold.find_element("tag name", "summary").text for fold in folds] == ["device, times, costs, versions"]
    for fold in folds:
        before = fold.size["height"]
        fold.find_element("tag name", "summary").click()
        assert fold.size["height"] > before
    assert "versions: python" in folds[0].text
    assert errors(browser) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_off(browser: Any, page: Path, width: int, scheme: str) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    whole, shown = browser.execute_script(
        "const it = document.documentElement; return [it.scrollWidth, it.clientWidth]"
    )
    assert whole == shown <= width, "the page itself does not scroll sideways; wide tables and charts do, inside"
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 25, 29)"
    )
    image = page.with_suffix(".png")
    assert browser.save_screenshot(str(image))
    assert image.read_bytes().startswith(b"\x89PNG")
    assert errors(browser) == []


def test_an_error_on_the_console_is_noticed(browser: Any, page: Path) -> None:
    page.write_text("<script>missing()</script>", encoding="utf-8")
    browser.get(page.as_uri())
    assert "missing is not defined" in errors(browser)[0]
