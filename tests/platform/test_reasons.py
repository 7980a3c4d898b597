"""Reasons and refusals: the table is complete, and every message says what happened, where, why and what to do."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import accel
from accel.platform.reasons import REASONS, Reason, Refusal, source_line
from accel.reports import markdown
from tests.conftest import ROOT

EXPECTED = {
    "effect.print": "this path shows text that a compiled replay could not show as NumPy does",
    "effect.file": "this path reads or writes a file; a compiled replay would not",
    "effect.clock": "this path reads the clock; a compiled replay would always see the recorded time",
    "effect.random": "this path draws random numbers in a way that a replay cannot repeat",
    "effect.global": "this path changes a module's or class's state in a way that a replay cannot repeat",
    "call.opaque": "a recorded value was passed to a function that accel has no rule for and cannot record",
    "object.opaque": "an object that accel does not look into was asked for an attribute",
    "call.generator": "generators and coroutines are suspended half-way, which a recording cannot be",
    "code.unsupported": "the function's code contains a statement that cannot be recorded",
    "value.forced": "Python needed an array element as a plain number, which the recording would turn into a constant",
    "array.unknown": "an array came from a place from which accel cannot fetch it in the next call",
    "array.records": "what is done here with an array of records is not recorded; its fields are",
    "array.masked": "masked arrays (numpy.ma) are not recorded",
    "alias.overlap": "two inputs share memory and one of them is written",
    "escape.object": "what the call returns or stores holds an object that a replay could not make or find again",
    "shape.dynamic": "the shape of a result depends on values, and a compiled program has fixed shapes",
    "shape.scattered": "Python needed a number that the arrays decide, such as a length, and it is another one "
    "in each call",
    "rule.missing": "accel has no rule for this NumPy or SciPy function",
    "rule.parameter": "accel has a rule for this function, but not for this parameter or combination of arguments",
    "path.exception": "an exception was raised on this path, and whether it is may depend on values",
    "fp.errstate": "np.errstate or a warning filter turns floating-point events into errors, which "
    "compiled programs cannot raise",
    "environment.traced": "a debugger, a tracer or an outer JAX transformation watches this call",
    "environment.busy": "another call of this function was in progress, in another thread or around this one",
    "environment.versions": "a package that accel depends on is missing or too old",
    "guard.unstable": "an input that selects the path is different in almost every call",
    "code.elements": "a loop over single elements: Numba compiles these",
    "limit.nodes": "the recording exceeded accel's limits on operations or on time",
    "limit.compile": "the program is too large, or compiling it took longer than accel's limit",
    "limit.variants": "this function takes more different paths than accel keeps compiled programs for",
    "lower.mismatch": "JAX's result of this operation has another shape or dtype than NumPy's",
    "lower.failed": "this operation could not be translated to JAX",
    "compile.failed": "JAX could not compile or run the program",
    "compile.trial": "another process tried the program: it crashed, or gave other values than NumPy",
    "compile.unfinished": "another process tried the program: it was killed, took too long, or had too little memory",
    "compile.exact": "QD_JAX_EXACT asks for NumPy's bits, and the compiled program would have others",
    "recorder.gap": "accel's recorder failed, and the call ran on NumPy without it",
    "verify.mismatch": "the compiled result differed from NumPy's by more than the tolerance; NumPy's was returned",
    "speed.slower": "by measurement, the compiled program is no faster than NumPy here",
    "wait.calls": "too few of its calls or iterations have run to repay compiling",
    "wait.compile": "its program was not compiled yet when the function was last called",
    "lift.source": "a loop is lifted by its source, and this code is not what its source file says",
    "lift.code": "the loop holds a statement that would not work, or work otherwise, in a function of its own",
    "pure.example": "an example call has other flags, shapes or types than the first one",
    "pure.paths": "the recorded paths share too little to be one function",
    "pure.inputs": "the function reads nothing that JAX could differentiate or map over",
    "pure.result": "the function returns something that is no array or number, or another structure on each path",
    "pure.state": "the function changes a list, dict or set whose elements have no names to return them by",
    "pure.static": "the function changes a flag or object that decides its path: its next call would take another one",
    "pure.alias": "two names hold one array before or after a call, and one is changed: the next call sees it in both",
    "pure.host": "Python computes this number from an input in a way that JAX cannot",
    "pure.derivative": "JAX has no derivative of this operation",
    "pure.unrecorded": "the call takes a path that could not be recorded",
    "ensemble.copy": "the objects of the call cannot be copied for the members",
    "ensemble.place": "what differs between members has to live in an argument of the call, or in an object below one",
    "mode.off": "acceleration is switched off",
    "choice.excluded": "this function was left out by `only` or `exclude`",
    "choice.declined": "the catalogue declines this function",
    "choice.callable": "the name is not bound to a Python function",
}


@pytest.mark.parametrize("id_", sorted(EXPECTED))
def test_the_wording_of_each_reason(id_: str) -> None:
    assert REASONS[id_].why == EXPECTED[id_]


@pytest.mark.parametrize("row", REASONS.values(), ids=str)
def test_a_row_is_fit_to_print(row: Reason) -> None:
    assert row.id.count(".") == 1
    assert row.id == row.id.lower()
    for sentence in (row.why, row.hint):
        assert sentence == sentence.strip()
        assert sentence
        assert not sentence.endswith(".")
        assert "\n" not in sentence


def test_ids_are_listed_once_and_the_table_cannot_be_changed() -> None:
    source = Path(accel.__file__).with_name("platform").joinpath("reason_table.py").read_text(encoding="utf-8")
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    rows = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "Reason"]
    ids = [ast.literal_eval(node.args[0]) for node in rows if ast.literal_eval(node.args[0])]
    assert sorted(ids) == sorted(REASONS)
    with pytest.raises(TypeError):
        REASONS["new.id"] = REASONS["mode.off"]  # type: ignore[index]


def test_a_message_says_what_where_why_and_what_to_do() -> None:
    refusal = Refusal("effect.print", "pygcm/ocean.py:371")
    assert refusal.message("pygcm.ocean.WindDrivenSlabOcean.step") == (
        "accel: pygcm.ocean.WindDrivenSlabOcean.step stayed on NumPy  [effect.print]\n"
        "  where  pygcm/ocean.py:371\n"
        "  why    this path shows text that a compiled replay could not show as NumPy does\n"
        "  hint   print or log numbers in a format with few digits, such as f'{x:.3f}'; none needed if rare"
    )


def test_a_message_carries_the_detail_and_copes_without_a_line() -> None:
    refusal = Refusal("rule.missing", detail="numpy.kron")
    assert refusal.message("m.f", "was demoted").splitlines() == [
        "accel: m.f was demoted  [rule.missing]",
        "  where  not at one line",
        "  why    accel has no rule for this NumPy or SciPy function (numpy.kron)",
        "  hint   use a function that has one (`accel docs coverage` lists them), or ask for this one by name",
    ]


def test_a_refusal_with_an_unlisted_reason_does_not_raise_into_the_users_code() -> None:
    message = Refusal("no.such", "a.py:1").message("m.f")
    assert "[no.such]" in message
    assert "a reason that is not in accel's table" in message


def test_equal_refusals_are_one_key() -> None:
    assert len({Refusal("mode.off", "a.py:1"), Refusal("mode.off", "a.py:1"), Refusal("mode.off", "a.py:2")}) == 2


def _refusals_in_source() -> Iterator[tuple[str, str]]:
    """Yield ("file:line", id) for each `Refusal("id", ...)` that is written out in accel."""
    root = Path(accel.__file__).parent
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "Refusal":
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Constant):
                    yield f"{path.relative_to(root)}:{node.lineno}", first.value


def test_every_reason_that_accel_gives_is_listed() -> None:
    unlisted = {where: id_ for where, id_ in _refusals_in_source() if id_ not in REASONS}
    assert unlisted == {}


def test_a_source_line_is_relative_to_where_the_module_was_imported_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "deeper")])
    assert source_line(str(tmp_path / "pygcm" / "ocean.py"), 371) == "pygcm/ocean.py:371"
    assert source_line(str(tmp_path / "deeper" / "pkg" / "m.py"), 2) == "pkg/m.py:2"
    assert source_line(os.path.join(os.sep, "elsewhere", "m.py"), 3).endswith("elsewhere/m.py:3")
    assert source_line("<string>", 1) == "<string>:1"


def test_every_reason_is_given_in_some_test() -> None:
    """By name: the tests that make accel give a reason assert its id."""
    tests = Path(__file__).parent.parent
    others = [path for path in tests.rglob("test_*.py") if path.name != Path(__file__).name]
    text = "".join(path.read_text(encoding="utf-8") for path in others)
    assert [id_ for id_ in REASONS if f'"{id_}"' not in text] == []


def test_the_page_lists_the_reasons_from_the_table() -> None:
    page = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    assert page.endswith(f"\n\n{markdown.reasons_table()}"), "paste what `python -m accel reasons` prints"
