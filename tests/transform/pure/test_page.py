"""The page on gradients: its examples run, and give what it says."""

from __future__ import annotations

import doctest
import re
from typing import Any

import pytest

from tests.conftest import ROOT

jax = pytest.importorskip("jax")


def test_the_examples_of_the_page_give_what_it_says() -> None:
    text = (ROOT / "docs" / "gradients.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```pycon\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 6
    names: dict[str, Any] = {"__name__": "page"}
    before = jax.config.jax_enable_x64
    try:
        for block in blocks:
            test = doctest.DocTestParser().get_doctest(block, names, "gradients.md", None, 0)
            runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
            said: list[str] = []
            runner.run(test, out=said.append, clear_globs=False)
            names.update(test.globs)
            assert runner.summarize(verbose=False).failed == 0, "".join(said)
    finally:
        jax.config.update("jax_enable_x64", before)
