"""The ablation benchmark: every mechanism can be switched off, here and in the processes that this one starts."""

from __future__ import annotations

import argparse
import sys

import pytest

from benchmarks import ablation
from benchmarks.harness import BadInput


@pytest.mark.parametrize("name", ablation.MECHANISMS)
def test_what_a_mechanism_names_is_there(name):
    for place in ablation.MECHANISMS[name]:
        module, attribute = place.split(":")
        found = pytest.importorskip(module)
        for each in attribute.split("."):
            found = getattr(found, each)
        assert callable(found)


STARTED = "from accel.rules import filling; print(filling.are_allowed())"
STARTING = """
import json, subprocess, sys
said = subprocess.run([sys.executable, "-c", {!r}], check=True, capture_output=True, text=True).stdout
open(sys.argv[3], "w").write(json.dumps(said))
"""


def test_names_are_replaced_in_processes_that_are_started(monkeypatch):
    monkeypatch.setattr(ablation, "CHILD", STARTING.format(STARTED))
    options = argparse.Namespace(npbench=None, only=[], pygcm=None)
    assert ablation.measured("calls on the host", "kernels", options) == "False\n"


def test_a_cell_compares_programs_that_are_compiled_both_ways():
    whole = {name: {"compile_s": 1.0, "run_s": 2.0, "share": 1.0} for name in "ab"}
    without = {"a": {"compile_s": 2.0, "run_s": 3.0, "share": 1.0}, "b": {"compile_s": 9.0, "run_s": 9.0, "share": 0.0}}
    assert ablation.cell(without, whole) == "2.00, 1.50, 50%"


def test_an_unknown_mechanism_is_named():
    with pytest.raises(BadInput, match="steam: not one of kernels, "):
        ablation.main(["--without", "steam"])


def test_nothing_is_replaced_without_a_name(monkeypatch):
    monkeypatch.delenv(ablation.VARIABLE, raising=False)
    before = list(sys.meta_path)
    ablation.switch_off()
    assert sys.meta_path == before
