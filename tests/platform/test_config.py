"""Settings: where they come from, and what is said about values that cannot be used."""

from __future__ import annotations

import dataclasses
import pickle
import re
from pathlib import Path

import pytest

from accel.platform import config
from accel.platform.config import SettingError, Settings, from_environment
from tests.conftest import ROOT


def test_an_empty_environment_gives_the_defaults_with_a_disk_cache() -> None:
    settings = from_environment({})
    assert dataclasses.replace(settings, cache_dir=None) == Settings()
    assert settings.cache_dir == Path("~/.cache/pygcm-accel").expanduser()


def test_settings_made_in_code_keep_nothing_on_disk() -> None:
    assert Settings().cache_dir is None


def test_every_field_has_a_variable_of_its_own() -> None:
    assert set(config.VARIABLES) == {field.name for field in dataclasses.fields(Settings)}
    assert len(set(config.VARIABLES.values())) == len(config.VARIABLES)


@pytest.mark.parametrize(
    ("variable", "text", "field", "value"),
    [
        ("QD_USE_JAX", "0", "enabled", False),
        ("QD_USE_JAX", " 1 ", "enabled", True),
        ("QD_USE_JAX", "off", "enabled", False),
        ("QD_USE_JAX", "", "enabled", True),
        ("QD_JAX_PLATFORM", "CPU", "platform", "cpu"),
        ("QD_JAX_PLATFORM", "  ", "platform", None),
        ("QD_JAX_DEVICES", "4", "devices", 4),
        ("QD_JAX_THREADS", "2", "threads", 2),
        ("QD_JAX_THREADS", "", "threads", None),
        ("QD_JAX_AOT", "0", "ahead_of_time", False),
        ("QD_JAX_MODE", "Verify", "mode", "verify"),
        ("QD_JAX_LOG", "debug", "log", "debug"),
        ("QD_JAX_MAX_VARIANTS", "3", "max_variants", 3),
        ("QD_JAX_MAX_NODES", "100", "max_nodes", 100),
        ("QD_JAX_MAX_COMPILE_S", "1e3", "max_compile_s", 1000.0),
        ("QD_JAX_RTOL", "1e-6", "rtol", 1e-6),
        ("QD_JAX_POLICY", "Eager", "policy", "eager"),
        ("QD_JAX_CHECK_SHARE", "0.1", "check_share", 0.1),
        ("QD_JAX_QUIET", "1", "quiet", True),
        ("QD_JAX_CACHE_DIR", "/a/b", "cache_dir", Path("/a/b")),
        ("QD_JAX_CACHE_DIR", "off", "cache_dir", None),
        ("QD_JAX_CACHE_SHARED", "/a/b", "cache_shared", Path("/a/b")),
        ("QD_JAX_CACHE_SHARED", "off", "cache_shared", None),
        ("QD_JAX_CACHE_SHARED", "", "cache_shared", None),
    ],
)
def test_a_variable_sets_its_field(variable: str, text: str, field: str, value: object) -> None:
    assert getattr(from_environment({variable: text}), field) == value


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("QD_USE_JAX", "maybe", "QD_USE_JAX='maybe' cannot be used; expected: 1 or 0"),
        ("QD_JAX_PLATFORM", "gup", "QD_JAX_PLATFORM='gup' cannot be used; expected: cpu, gpu, tpu, or unset"),
        ("QD_JAX_THREADS", "0", "QD_JAX_THREADS='0' cannot be used; expected: a whole number from 1, or unset"),
        ("QD_JAX_AOT", "2", "QD_JAX_AOT='2' cannot be used; expected: 1 or 0"),
        ("QD_JAX_MODE", "fast", "QD_JAX_MODE='fast' cannot be used; expected: off, auto, verify, strict"),
        ("QD_JAX_LOG", "loud", "QD_JAX_LOG='loud' cannot be used; expected: off, error, warning, info, debug"),
        ("QD_JAX_MAX_VARIANTS", "0", "QD_JAX_MAX_VARIANTS='0' cannot be used; expected: a whole number from 1"),
        ("QD_JAX_MAX_NODES", "1.5", "QD_JAX_MAX_NODES='1.5' cannot be used; expected: a whole number from 1"),
        ("QD_JAX_MAX_COMPILE_S", "inf", "QD_JAX_MAX_COMPILE_S='inf' cannot be used; expected: seconds, more than 0"),
        ("QD_JAX_POLICY", "lazy", "QD_JAX_POLICY='lazy' cannot be used; expected: budget, eager"),
        ("QD_JAX_CHECK_SHARE", "0", "QD_JAX_CHECK_SHARE='0' cannot be used; expected: a number more than 0, up to 1"),
        ("QD_JAX_CHECK_SHARE", "2", "QD_JAX_CHECK_SHARE='2' cannot be used; expected: a number more than 0, up to 1"),
        ("QD_JAX_QUIET", "x", "QD_JAX_QUIET='x' cannot be used; expected: 1 or 0"),
        ("QD_JAX_RTOL", "nan", "QD_JAX_RTOL='nan' cannot be used; expected: a number more than 0"),
    ],
)
def test_a_malformed_variable_is_named_with_its_value_and_what_is_possible(
    variable: str, text: str, message: str
) -> None:
    with pytest.raises(SettingError) as caught:
        from_environment({variable: text})
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)


def test_settings_made_in_code_are_held_to_the_same_rules() -> None:
    with pytest.raises(SettingError, match=r"^mode='quick' cannot be used; expected: off, auto, verify, strict$"):
        Settings(mode="quick")
    with pytest.raises(SettingError, match="max_nodes=True"):
        Settings(max_nodes=True)


def test_an_error_survives_pickling_and_renaming() -> None:
    error = SettingError("QD_JAX_PLATFORM", "tpu", "cpu", "is not there")
    assert str(pickle.loads(pickle.dumps(error))) == "QD_JAX_PLATFORM='tpu' is not there; expected: cpu"
    assert str(error.renamed("--platform")) == "--platform='tpu' is not there; expected: cpu"


def test_current_reads_the_environment_once(monkeypatch: pytest.MonkeyPatch) -> None:
    config.set_current(None)
    monkeypatch.setenv("QD_JAX_MODE", "strict")
    first = config.current()
    monkeypatch.setenv("QD_JAX_MODE", "verify")
    assert first.mode == "strict"
    assert config.current() is first


def test_override_is_undone_even_after_an_error() -> None:
    before = config.current()
    with pytest.raises(RuntimeError), config.override(mode="strict", max_nodes=5):
        assert (config.current().mode, config.current().max_nodes) == ("strict", 5)
        raise RuntimeError
    assert config.current() is before


def test_override_names_an_unknown_setting() -> None:
    with (
        pytest.raises(SettingError, match=r"^setting='speed' is unknown; expected: enabled, platform,"),
        config.override(speed=11),
    ):
        pass


def test_a_bad_override_leaves_the_settings_alone() -> None:
    before = config.current()
    with pytest.raises(SettingError), config.override(mode="quick"):
        pass
    assert config.current() is before


def test_the_page_lists_every_variable_with_its_default() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(QD_\w+)` \| `?([^`|]+?)`? \|", text, re.MULTILINE)
    assert [name for name, _ in rows] != []
    assert sorted(name for name, _ in rows) == sorted(config.VARIABLES.values())
    stated = {name: "" if default == "unset" else default for name, default in rows}
    assert from_environment(stated) == from_environment({})
