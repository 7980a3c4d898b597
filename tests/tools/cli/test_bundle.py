"""Bundles: what is compiled here runs elsewhere, if the versions are the same."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from accel.backend.disk import cache
from accel.platform import config
from accel.platform.config import Settings
from accel.tools.cli import bundle

KEY = "0123456789" * 4


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A bundle of a program and a recording; the cache is then empty."""
    config.set_current(Settings(quiet=True, cache_dir=tmp_path / "login"))
    assert cache.save(KEY, b"a program") == cache.save(KEY, b"a recording", cache.RECORDING) == ""
    assert bundle.main([str(tmp_path / "b.zip")]) == 0
    config.set_current(Settings(quiet=True, cache_dir=tmp_path / "node"))
    return tmp_path / "b.zip"


def _changed(file: Path, **given: str) -> None:
    with zipfile.ZipFile(file) as before:
        content = {name: before.read(name) for name in before.namelist()}
    content[bundle.MANIFEST] = json.dumps({**json.loads(content[bundle.MANIFEST]), **given}).encode()
    with zipfile.ZipFile(file, "w") as after:
        for name, value in content.items():
            after.writestr(name, value)


def test_a_bundle_brings_programs_to_an_equal_machine(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cache.read(KEY) is None
    assert bundle.main(["--load", str(file)]) == 0
    assert "1 program loaded into " in capsys.readouterr().out
    assert (cache.read(KEY), cache.read(KEY, cache.RECORDING)) == (b"a program", b"a recording")


def test_another_processor_gets_the_recordings_alone(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _changed(file, **{"compiled for": "another"})
    assert bundle.main(["--load", str(file)]) == 0
    assert "1 recording loaded; programs were compiled for another processor" in capsys.readouterr().out
    assert (cache.read(KEY), cache.read(KEY, cache.RECORDING)) == (None, b"a recording")


def test_what_cannot_be_loaded_is_told_in_a_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _changed(file, numpy="1.0")
    assert bundle.main(["--load", str(file)]) == 2
    assert "is for numpy 1.0; expected: a bundle for numpy " in capsys.readouterr().err
    file.write_text("no zip")
    assert bundle.main(["--load", str(file)]) == 2
    assert "expected: a file that accel bundle writes" in capsys.readouterr().err
    with zipfile.ZipFile(file, "w") as other:
        other.writestr("x", "")
    assert bundle.main(["--load", str(file)]) == 2 and "is no bundle" in capsys.readouterr().err
    assert cache.read(KEY) is None


def test_a_damaged_entry_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile(file) as before:
        manifest = before.read(bundle.MANIFEST)
    with zipfile.ZipFile(file, "w") as after:
        after.writestr(bundle.MANIFEST, manifest)
        after.writestr(f"../{KEY}.program", "wrong")
    assert bundle.main(["--load", str(file)]) == 2
    assert "holds a damaged entry" in capsys.readouterr().err


def test_an_empty_cache_gives_no_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.set_current(Settings(quiet=True, cache_dir=tmp_path / "none"))
    assert bundle.main([str(tmp_path / "b.zip")]) == 2
    assert "would be empty; expected: programs in the cache: accel compile TARGET" in capsys.readouterr().err
