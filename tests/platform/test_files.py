"""Paths where the current folder has been removed, and entries of `sys.path` that are no text."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from accel.platform import files, own_code, project, reasons


@pytest.fixture
def removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "removed"
    folder.mkdir()
    monkeypatch.chdir(folder)
    try:
        folder.rmdir()
    except OSError:
        pytest.skip("a folder in use cannot be removed here")


def test_with_a_current_folder_paths_are_those_of_os() -> None:
    assert files.current_folder() == os.getcwd()
    assert files.absolute("a/../b") == os.path.abspath("a/../b")
    assert files.resolved("b") == os.path.realpath("b")


@pytest.mark.usefixtures("removed")
def test_without_a_current_folder_paths_stay_relative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", "/lib"])
    assert (files.current_folder(), files.absolute("a"), files.absolute("/a")) == ("", "a", "/a")
    assert files.resolved("a") == "a"
    assert not own_code.is_project_file("no file of this name")
    assert project.find() is None
    assert reasons.source_line("/lib/a.py", 3) == "a.py:3"


def test_entries_of_the_path_that_are_no_text_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [b"/bytes", Path("/path"), 3, None, "/lib"])
    assert reasons.source_line("/lib/a.py", 3) == "a.py:3"
    assert reasons.place_of("no_file.py:3") == ("no_file.py", 3)
