"""`[tool.accel]` in the program's pyproject.toml: settings and a catalogue, below the environment and the options."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel import catalogue
from accel.platform import config, project
from accel.platform.config import SettingError
from accel.tools.cli import info
from tests.tools.cli.bench import ROOT, Bench

ROWS = "from accel.catalogue import Catalogue, Row\nCATALOGUE = Catalogue('own', (Row('model', 'warm', 'a test'),))\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A program's folder in an empty environment."""
    for name in config.VARIABLES.values():
        monkeypatch.delenv(name, raising=False)
    project.set_home(str(tmp_path / "deep" / "er"))
    (tmp_path / "deep" / "er").mkdir(parents=True)
    yield tmp_path
    project.set_home(None)


def _write(folder: Path, *lines: str) -> Path:
    path = folder / "pyproject.toml"
    path.write_text("\n".join(["[project]", 'name = "x"', "[tool.accel]", *lines]) + "\n", encoding="utf-8")
    return path


def test_settings_of_the_nearest_file_above_the_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(folder, 'mode = "verify"', "threads = 2", "quiet = true", 'cache_dir = "programs"', 'rtol = "1e-6"')
    settings = config.from_environment()
    assert (settings.mode, settings.threads, settings.quiet, settings.rtol) == ("verify", 2, True, 1e-6)
    assert settings.cache_dir == folder / "programs"
    monkeypatch.setenv("QD_JAX_MODE", "strict")
    assert config.from_environment().mode == "strict"
    assert config.from_environment({}).mode == "auto"  # the caller's own environment, and nothing else
    (folder / "deep" / "pyproject.toml").write_text("[tool.other]\n", encoding="utf-8")
    assert config.from_environment().threads is None


def test_the_document_names_every_key() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8").partition("## In pyproject.toml")[2]
    assert {config.CATALOGUE, *config.VARIABLES} <= set(re.findall(r"`(\w+)`", text.partition("\n## ")[0]))


def test_off_switches_the_disk_cache_off(folder: Path) -> None:
    _write(folder, 'cache_dir = "off"')
    assert config.from_environment().cache_dir is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('mode = "fast"', "tool.accel.mode='fast' cannot be used; expected: off, auto, verify, strict"),
        ("threads = 0", "tool.accel.threads=0 cannot be used, in {path}; expected: a whole number from 1, or unset"),
        ("quiet = 1", "tool.accel.quiet=1 cannot be used, in {path}; expected: 1 or 0"),
        ("modus = 1", "tool.accel.modus=1 is unknown, in {path} (did you mean mode?); expected: enabled, platform, "),
        ("mode = ", "{path}='[tool.accel]' Invalid value (at line 4, column 8); expected: a file that tomllib"),
    ],
)
def test_what_cannot_be_used_is_an_error(folder: Path, line: str, said: str) -> None:
    path = _write(folder, line)
    with pytest.raises(SettingError) as caught:
        config.from_environment()
    assert str(caught.value).startswith(said.format(path=path))
    assert "\n" not in str(caught.value)


def test_a_broken_file_without_the_table_is_the_business_of_others(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[project\nname = 'accel'", encoding="utf-8")
    assert project.find() is None
    (folder / "pyproject.toml").write_bytes(b"\xff accel")
    assert project.find() is None
    (folder / "pyproject.toml").write_text("tool = 3\naccel = 1\n", encoding="utf-8")
    assert project.find() is None


def test_a_file_is_read_once_and_again_when_it_has_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _write(folder, 'mode = "verify"')
    read: list[Path] = []
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: read.append(self) or real(self))
    assert config.from_environment().mode == "verify"
    assert catalogue.default() == catalogue.discover()
    assert project.find() is project.find()
    assert read.count(path) == 1
    _write(folder, 'mode = "strict"', "threads = 2")
    assert config.from_environment().mode == "strict"
    assert read.count(path) == 2
    project.set_home(str(folder.parent))
    assert project.find() is None


def test_a_file_of_somebody_else_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(folder, 'mode = "verify"')
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    real = Path.stat

    def foreign(self: Path, **options: bool) -> os.stat_result:
        found = real(self, **options)
        owner = 777 if self.name == "pyproject.toml" else 12345
        return os.stat_result((*found[:4], owner, *found[5:10]))

    monkeypatch.setattr(Path, "stat", foreign)
    assert project.find() is None


def test_the_catalogue_is_relative_to_the_file(folder: Path) -> None:
    (folder / "rows.py").write_text(ROWS, encoding="utf-8")
    _write(folder, 'catalogue = "rows.py"')
    assert [each.name for each in catalogue.default()] == ["own"]
    _write(folder, 'catalogue = "gone.py"')
    with pytest.raises(SettingError, match=r"^tool\.accel\.catalogue='.*gone\.py' cannot be read \(FileNotFound"):
        catalogue.default()
    _write(folder, "catalogue = 3")
    with pytest.raises(SettingError, match=r"^tool\.accel\.catalogue=3 cannot be used, in "):
        catalogue.default()
    _write(folder)
    assert catalogue.default() == catalogue.discover()


def test_the_home_is_the_folder_of_the_script(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project.set_home(None)
    monkeypatch.setattr("__main__.__file__", str(folder / "deep" / "script.py"), raising=False)
    assert project.home() == str(folder / "deep")
    monkeypatch.delattr("__main__.__file__")
    monkeypatch.chdir(folder)
    assert project.home() == str(folder)


def test_every_command_obeys_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "bench")
    apart = bench.folder / "apart"
    apart.mkdir(parents=True)
    (apart / "rows.py").write_text(ROWS, encoding="utf-8")
    (apart / "model.py").write_text((bench.work / "model.py").read_text(encoding="utf-8"), encoding="utf-8")
    (apart / "go.py").write_text("import model\nprint(float(model.warm(1.0)))\n", encoding="utf-8")
    _write(apart, 'catalogue = "rows.py"', 'mode = "verify"', 'log = "info"', "quiet = true")
    path = tmp_path / "r.json"
    # from another folder: the file is the program's
    done = bench.accel("--report", str(path), "../apart/go.py")
    assert (done.code, done.out, "calls compiled" in done.err) == (0, "2.0\n", False)
    assert [each["target"] for each in json.loads(path.read_text(encoding="utf-8"))["functions"]] == ["model:warm"]
    # options go before it
    assert bench.accel("--mode", "off", "../apart/go.py").err.startswith("accel: not installed: ")
    # a program that installs accel itself
    code = "import accel\naccel.install()\nimport model\nmodel.warm(1.0)\nprint(accel.report('json'))\n"
    (apart / "installs.py").write_text(code, encoding="utf-8")
    shown = json.loads(bench.python("../apart/installs.py").out)
    assert [each["target"] for each in shown["functions"]] == ["model:warm"]
    found = bench.python("-m", "accel", "compare", "--out", str(tmp_path / "found"), "../apart/go.py")
    assert (found.code, found.out) == (0, ""), found.err
    compared = json.loads((tmp_path / "found" / "report.json").read_text(encoding="utf-8"))
    assert [each["target"] for each in compared["accel"]["functions"]] == ["model:warm"]


def test_info_lists_the_catalogue_that_the_project_names(folder: Path) -> None:
    _write(folder, 'catalogue = "rows.py"')
    (folder / "rows.py").write_text(ROWS, encoding="utf-8")
    assert dict(info._own_catalogue())["catalogue"].startswith("own (1 rows), the project's own")
    (folder / "rows.py").unlink()
    assert "rows.py" in dict(info._own_catalogue())["catalogue"]
