"""The documents: what they list is what the code has, and what they name is there."""

from __future__ import annotations

import ast
import importlib
import io
import re
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import accel
from accel import ndimage
from accel.catalogue import TRAITS
from accel.tools.cli import commandline, commands
from tests.conftest import ROOT

DOCS = sorted((ROOT / "docs").glob("*.md"))
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *DOCS]
LONGEST_README = 120
MOST_WORDS = 20_000
MOST_TERMS = 40


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _section(text: str, title: str) -> str:
    """What stands under a heading."""
    found = re.search(rf"^##+ {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def _first_column(table: str) -> list[str]:
    """The names in the first column of a table, each without what follows it in its backticks."""
    cells = re.findall(r"^\| (`[^|]*`) \|", table, re.MULTILINE)
    return [name.split()[0] for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_the_readme_is_short() -> None:
    assert len(_text("README.md").splitlines()) <= LONGEST_README


def test_the_documents_are_short() -> None:
    """A page that must be read three times is not read."""
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in [ROOT / "README.md", *DOCS]) <= MOST_WORDS
    assert len(re.findall(r"^\| ", _text("docs/glossary.md"), re.MULTILINE)) - 1 <= MOST_TERMS


def test_users_are_not_told_to_install_editable() -> None:
    """In the folder above the clone, the clone's own folder would be taken for the package."""
    for name in ("README.md", "docs/howto.md", "docs/tutorial.md"):
        assert re.search(r"pip install (-e|--editable)", _text(name)) is None, name


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(path: Path) -> None:
    """Anchors within the pages are checked by `mkdocs build --strict`."""
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    local = [target for target in targets if not target.startswith("http")]
    assert [target for target in local if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "accel"], ids=lambda path: path.name)
def test_modules_that_are_named_are_there(path: Path) -> None:
    """Names of two parts are left out: operations, reasons and entry points have such, too."""
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    named = {name for file in files for name in re.findall(r"(?<![\w./-])accel(?:\.\w+){2,}", file.read_text("utf-8"))}
    assert [name for name in sorted(named) if not _is_there(name)] == []


def _is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    depths = [depth for depth in range(len(parts), 0, -1) if _is_module(ROOT.joinpath(*parts[:depth]))]
    value: object = importlib.import_module(".".join(parts[: depths[0]]))
    for part in parts[depths[0] :]:
        value = getattr(value, part, None)
    return value is not None


def _is_module(path: Path) -> bool:
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_are_named_are_there(path: Path) -> None:
    named = re.findall(
        r"`((?:accel|tests|docs|examples|pygcm_patch)/[\w/]*(?:\.\w+)?)`", path.read_text(encoding="utf-8")
    )
    made_later = {"docs/results"}
    assert [name for name in named if name not in made_later and not (ROOT / name).exists()] == []


def test_no_message_points_to_a_file_that_is_not_installed() -> None:
    """`accel docs` prints the documents wherever accel is installed; their files lie elsewhere, or nowhere."""
    pointing = re.compile(r"\bdocs/\w|\b(README|CHANGELOG|CONTRIBUTING)\b|\btests/")
    texts = [
        (path.name, node.value)
        for path in sorted((ROOT / "accel").rglob("*.py"))
        for node in _texts(ast.parse(path.read_text(encoding="utf-8")))
        if pointing.search(node.value)
    ]
    assert [each for each in texts if each[0] != "docs.py"] == []  # it prints the files that it finds


def _texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """The texts in a source, without docstrings."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield from _texts(node)


def test_make_check_runs_what_is_there() -> None:
    done = subprocess.run(["make", "--dry-run", "check"], cwd=ROOT, capture_output=True, text=True, check=True)
    (line,) = [line for line in done.stdout.splitlines() if " pytest " in line]
    named = [word for word in line.split() if word.startswith("tests/")]
    assert {"tests/entry/hook", "tests/tools/cli/test_commands.py"} <= {*named}
    assert [word for word in named if not (ROOT / word).exists()] == []


def test_every_page_is_in_the_navigation() -> None:
    """Those that are made from files in the repository's root, too."""
    listed = re.findall(r"^ +- .+: (\S+\.md)$", _text("mkdocs.yml"), re.MULTILINE)
    made = dict(re.findall(r'"(\w+\.md)": "(\w+\.md)"', _text("docs/hooks.py")))
    assert [name for name in made if not (ROOT / name).is_file()] == []
    assert sorted(listed) == sorted([*made.values(), *(path.name for path in DOCS)])


def test_the_options_of_run_are_those_of_the_code() -> None:
    listed = [
        name for name in _first_column(_section(_text("docs/command-line.md"), "accel run")) if name.startswith("--")
    ]
    assert sorted(listed) == sorted(option.name for option in commandline.PLACES + commandline.OPTIONS)


def test_every_command_is_described() -> None:
    text = _text("docs/command-line.md")
    assert [name for name in commands.COMMANDS if f"`accel {name}" not in text] == []


def test_the_packages_are_the_folders() -> None:
    section = _section(_text("docs/architecture.md"), "Packages")
    folders = [path.parent.name for path in (ROOT / "accel").glob("*/__init__.py")]
    assert sorted(_first_column(section)) == sorted(folders)
    starts = re.findall(r"`(\w+/[\w/]*(?:\.py)?)`", section)
    names = [name for name in starts if not name.startswith(("accel/", "tests/", "pygcm_patch/", "benchmarks/"))]
    assert [name for name in names if not (ROOT / "accel" / name).exists()] == []


def test_the_api_page_has_every_public_name() -> None:
    text = _text("docs/api.md")
    names = [name for name in accel.__all__ if name != "ndimage"]
    assert [name for name in names if f"::: accel.{name}\n" not in text] == []
    assert dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.MULTILINE)) == TRAITS
    assert [name for name in ndimage.__all__ if name != "NotCovered" and f"`{name}`" not in text] == []


def test_the_changelog_begins_with_this_version() -> None:
    assert re.search(r"^## (\S+)", _text("CHANGELOG.md"), re.MULTILINE)[1] == accel.__version__  # type: ignore[index]
    assert f'\nversion = "{accel.__version__}"\n' in _text("pyproject.toml")


def test_the_tape_reads_as_the_guide_says() -> None:
    section = _section(_text("CONTRIBUTING.md"), "Read a tape")
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    shown = re.findall(r"^ {4}(.+)$", section.partition("without the line numbers:")[2], re.MULTILINE)
    said = io.StringIO()
    with redirect_stdout(said):
        exec(compile(code[1], "<guide>", "exec"), {"__name__": "guide"})
    printed = [re.sub(r" line \d+$", "", line) for line in said.getvalue().splitlines()]
    assert printed == shown


def test_the_demo_has_one_length_and_make_says_what_to_type_after_it() -> None:
    makefile, readme = _text("Makefile"), _text("README.md")
    assert "DAYS ?=" not in makefile and "$(if $(DAYS),QD_SIM_DAYS=$(DAYS))" in makefile, "the planet has the length"
    assert '@echo "now: . $(BIN)/activate"' in makefile
    assert "planet accelerated, for about a minute" in makefile and "a small planet, for about a minute" in readme


def test_the_loops_that_examples_name_are_there() -> None:
    places = [ROOT / "accel/tools/inspect/explain/command.py", ROOT / "docs/tutorial.md"]
    numbers = [int(line) for path in places for line in re.findall(r"__main__:(\d+)", path.read_text("utf-8"))]
    program = _text("examples/plate/simulate.py").splitlines()
    assert len(numbers) >= 2
    assert [line for line in numbers if not program[line - 1].startswith("for ")] == []
