"""What SciPy's own tests need of pytest: fixtures, marks, the data file of exceptions, and a summary of the outcome."""

import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import LONG
from tests.rules.cases import stable_hash
from tests.xla_options import compile_quickly

SUITE = "test_scipy_suite.py::"
RULES: dict[str, list[dict[str, str]]] = tomllib.loads(Path(__file__).with_name("scipy_suite.toml").read_text())
MARKS = (
    "skip_xp_backends",
    "xfail_xp_backends",
    "uses_xp_capabilities",  # from SciPy 1.18 on
    "thread_unsafe",
    "parallel_threads_limit",
    "fail_slow",
)
COMPILED_EACH = 1  # parameter sets of a test that run compiled, as they do for users
PART = 1 if LONG else 4
"""One of so many of a test's other parameter sets is run."""
outcomes: Counter[str] = Counter()


def pytest_configure(config: pytest.Config) -> None:
    for name in MARKS:
        config.addinivalue_line("markers", f"{name}: SciPy's own")
    config.addinivalue_line("markers", "uncompiled: run accel.ndimage operation by operation")


@pytest.fixture
def xp() -> Any:
    """The array namespace to test: NumPy."""
    from scipy._lib._array_api import np_compat

    return np_compat


@pytest.fixture
def num_parallel_threads() -> int:
    return 1


def _rule(kind: str, test: str) -> dict[str, str] | None:
    return next((rule for rule in RULES.get(kind, []) if fnmatchcase(test, rule["test"])), None)


@pytest.fixture(autouse=True)
def _cheaply(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests compile without optimisation, and most parameter sets of SciPy's run operation by operation.

    Compiling all of them as for users would take ten minutes; test_against_scipy.py does.
    """
    from accel.ndimage import dispatch

    if "test_against_scipy.py" not in request.node.nodeid:
        compile_quickly(monkeypatch)
    if SUITE in request.node.nodeid:
        monkeypatch.setattr(dispatch, "compiling", not request.node.get_closest_marker("uncompiled"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seen: Counter[str] = Counter()
    kept = []
    for item in items:
        kept.append(item)
        test = item.nodeid.partition(SUITE)[2]
        if not test:
            continue
        seen[test.partition("[")[0]] += 1
        if seen[test.partition("[")[0]] > COMPILED_EACH:
            item.add_marker("uncompiled")
        if rule := _rule("left_out", test):
            item.add_marker(pytest.mark.skip(reason=rule["reason"]))
        elif rule := _rule("expected_failure", test):
            item.add_marker(pytest.mark.xfail(reason=rule["reason"], strict=True))
        elif seen[test.partition("[")[0]] > COMPILED_EACH and stable_hash(test) % PART:
            kept.pop()
    items[:] = kept


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if SUITE not in report.nodeid:
        return
    if hasattr(report, "wasxfail"):
        if report.when == "call" and report.skipped:
            outcomes["expected failures"] += 1
    elif report.skipped:
        outcomes["left out"] += 1
    elif report.failed or report.when == "call":
        outcomes["failed" if report.failed else "passed"] += 1


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if outcomes:
        counted = [f"{outcomes[name]} {name}" for name in ("passed", "expected failures", "left out", "failed")]
        terminalreporter.write_line(f"SciPy's own ndimage tests under accel: {', '.join(counted)}")
