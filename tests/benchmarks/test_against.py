"""Two trees in turns: which trees, which cases, whose turn, and what becomes a row. No figure is judged here."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from benchmarks import against, cases, harness
from benchmarks.harness import BadInput
from benchmarks.lockstep import ChildFailed

no_commit = shutil.which("git") is None or against.git("rev-parse", "--verify", "--quiet", "HEAD").returncode != 0
needs_git = pytest.mark.skipif(no_commit, reason="git holds no commit of this tree")


# -- the command -------------------------------------------------------------------------------------------------------


@needs_git
def test_a_program_and_a_kernel_of_two_trees(toy, tmp_path, capsys):
    pytest.importorskip("accel.dispatch")
    out = tmp_path / "result.json"
    arguments = ["HEAD", "--pygcm", toy, "--cases", "old", "softmax", "--size", 16, "--out", out]
    arguments += ["--rounds", 1, "--steps", 3, "--settle", 0.05, "--budget", 0.02]
    assert against.main([str(each) for each in arguments]) == 0
    result = json.loads(out.read_text())
    found = {(row["case"], row["what"]): row for row in result["rows"]}
    of_program = {("old", what) for what in ("process, s", "its CPU, s", "exit, s", "step, ms")}
    assert set(found) == of_program | {("softmax", "call, ms")}
    for row in found.values():
        assert row["before"] > 0.0
        assert row["ratio"] == row["least"] == row["most"] == pytest.approx(row["before"] / row["after"])
    assert result["before"] == against.resolved("HEAD")
    assert {"machine", "versions", "after", "cache"} <= result.keys()
    shown = capsys.readouterr().out
    assert "| softmax | call, ms" in shown
    assert "kernels, geometric mean: " in shown


@needs_git
def test_a_child_that_fails_is_quoted_and_told(toy, tmp_path, capsys):
    arguments = ["HEAD", "--pygcm", str(toy), "--cases", "old", "--rounds", "1", "--steps", "3"]
    assert against.main([*arguments, "--env", "TOY_FAIL_AT=1"]) == 1
    said = capsys.readouterr()
    assert "ArithmeticError: the toy broke" in said.err
    assert "- old: failed" in said.out


@needs_git
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["no-such-branch"], "COMMIT no-such-branch: git knows no such commit here"),
        (["HEAD", "--cases", "mars"], "--cases mars: no such case; there are old, .*, kernels, heat, "),
        (["HEAD", "--out", "/nowhere/x.json"], "--out /nowhere/x.json: its folder does not exist"),
    ],
)
def test_bad_input_is_named(arguments, text):
    with pytest.raises(BadInput, match=text):
        against.main(arguments)


# -- the trees ---------------------------------------------------------------------------------------------------------


@needs_git
def test_a_commit_is_unpacked_without_its_benchmarks_and_git_keeps_nothing(tmp_path):
    before = against.git("worktree", "list").stdout
    tree = against.unpacked(against.resolved("HEAD"), tmp_path / "tree")
    assert (tree / "accel" / "__init__.py").is_file()
    assert not (tree / "benchmarks").exists()
    assert against.git("worktree", "list").stdout == before


def test_accel_is_found_in_the_tree_and_the_benchmarks_here(tmp_path):
    here = str(harness.REPOSITORY)
    assert cases.python_path(harness.REPOSITORY) == here
    assert cases.python_path(tmp_path).startswith(str(tmp_path))
    assert cases.python_path(tmp_path).endswith(here)


@needs_git
def test_a_folder_without_commits_has_no_version(tmp_path):
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    assert harness.commit(tmp_path) == ""


# -- turns and rows ----------------------------------------------------------------------------------------------------


def test_trees_take_turns_and_runs_of_one_tree_share_a_folder(tmp_path):
    seen = []

    def contest(tree, folder, kept):
        seen.append((tree, folder.name, kept.name))
        return {("case", "process, s"): 1.0}

    found = against.in_turns(contest, {"before": tmp_path / "b", "after": tmp_path / "a"}, tmp_path, rounds=2)
    assert [folder for _, folder, _ in seen] == ["before-0", "after-0", "after-1", "before-1"]
    assert {(tree.name, kept) for tree, _, kept in seen} == {("b", "before-kept"), ("a", "after-kept")}
    assert {name: len(figures) for name, figures in found.items()} == {"before": 2, "after": 2}


def test_one_contest_that_fails_leaves_the_others(tmp_path):
    class Contest:
        def __init__(self, name, works):
            self.name, self.works = name, works

        def __call__(self, tree, folder, kept):
            if not self.works:
                raise ChildFailed("broke")
            return {(self.name, "process, s"): 1.0}

        def __str__(self):
            return self.name

    trees = {"before": tmp_path, "after": tmp_path}
    rows, failed = against.held([Contest("a", False), Contest("b", True)], trees, tmp_path, rounds=1)
    assert [row["case"] for row in rows] == ["b"]
    assert failed == ["a"]
