"""The disk cache: whole entries or none, nothing of another version's, and no file removed that is not accel's."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel
from accel.__main__ import main
from accel.backend import compile, lapack
from accel.backend.disk import cache, experience, products, refused, together
from accel.compiler.lower import lowering
from accel.dispatch.comparing import policy
from accel.ir import fingerprint
from accel.platform import config, ledger, own_code
from accel.platform.ledger import open_ledger
from accel.tools.cli import cache as command

KEY = "ab" * 20
OTHER = "cd" * 20
ROOT = Path(accel.__file__).parents[1]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A cache folder of its own, not made yet."""
    with config.override(cache_dir=tmp_path / "cache"):
        yield tmp_path / "cache"


@pytest.fixture
def asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder, asked for by the environment, as the command line sees it."""
    monkeypatch.setenv("QD_JAX_CACHE_DIR", str(folder))
    return folder


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def programs(folder: Path) -> list[Path]:
    return [path for path in files(folder) if path.suffix == cache.SUFFIX]


# -- entries -----------------------------------------------------------------------------------------------------------


def test_what_was_saved_is_found(folder: Path) -> None:
    assert cache.read(KEY) is None
    assert cache.save(KEY, b"program") == ""
    assert cache.read(KEY) == b"program"
    assert cache.read(OTHER) is None
    assert [path.name for path in files(folder)] == [f"{KEY}.program"]


def test_saving_again_replaces(folder: Path) -> None:
    cache.save(KEY, b"old")
    cache.save(KEY, b"new")
    assert cache.read(KEY) == b"new"
    assert len(files(folder)) == 1


@pytest.mark.parametrize("damage", [lambda old: old[:-1], lambda old: b"", lambda old: old[:-1] + b"X"])
def test_a_damaged_entry_is_removed_and_not_used(folder: Path, damage) -> None:
    cache.save(KEY, b"program")
    path = files(folder)[0]
    path.write_bytes(damage(path.read_bytes()))
    assert cache.read(KEY) is None
    assert files(folder) == []


@pytest.mark.parametrize("place", [(OTHER, cache.SUFFIX), (KEY, cache.TRACE)])
def test_an_entry_in_the_place_of_another_is_removed_and_not_used(folder: Path, place: tuple[str, str]) -> None:
    """A program of the same shapes would otherwise run, and give the numbers of another function."""
    cache.save(KEY, b"program")
    files(folder)[0].rename(cache._file(folder, *place))
    assert cache.read(*place) is None
    assert files(folder) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_an_entry_that_is_a_named_pipe_is_not_waited_for(folder: Path) -> None:
    cache.save(KEY, b"program")
    path = files(folder)[0]
    path.unlink()
    os.mkfifo(path, 0o600)
    assert cache.read(KEY) is None
    assert cache.save(KEY, b"program") == "" and cache.read(KEY) == b"program"


@pytest.mark.parametrize("payload", [b"", b"no text of json or pickle", b"[1, 2]", pickle.dumps([1, 2])])
@pytest.mark.parametrize(
    ("suffix", "read"),
    [
        (cache.PATH, experience.read),
        (cache.RECORDINGS, experience.recordings_of),
        (cache.REFUSED, refused.read),
        (cache.TRACE, products.read),
        (cache.COMING, products.is_coming),
        (cache.BEGUN, products.is_worth_a_try),
        (cache.TOGETHER, together.read),
    ],
)
def test_an_entry_of_another_form_counts_as_none(folder: Path, suffix: str, read: Any, payload: bytes) -> None:
    nothing = read(KEY)
    assert cache.save(KEY, payload, suffix) == ""
    if payload != b"[1, 2]" or suffix != cache.RECORDINGS:  # keys of which there is no recording
        assert read(KEY) == nothing


def test_without_a_folder_nothing_is_kept() -> None:
    with config.override(cache_dir=None):
        assert cache.save(KEY, b"program") == "the disk cache is off"
        assert cache.read(KEY) is None
        cache.discard(KEY)


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with config.override(cache_dir=tmp_path / "file"):
        assert cache.save(KEY, b"program") == f"cannot write to {tmp_path / 'file'} (Not a directory)"
        assert cache.read(KEY) is None


def test_a_write_that_fails_half_way_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert cache.save(KEY, b"program") == f"cannot write to {folder} (No space left on device)"
    assert files(folder) == []


FULL_DISK = """
import resource, sys
from pathlib import Path
from typing import Any
from accel.platform import config
from accel.backend.disk import cache, experience, products, refused, together
config.set_current(config.Settings(cache_dir=Path(sys.argv[1])))
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
print(cache.save("ab" * 20, b"x" * 50_000), cache.read("ab" * 20))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits here")
def test_a_disk_that_takes_no_more_is_no_error(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(folder)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"cannot write to {folder} (File too large) None\n"
    assert files(folder) == []


POSIX = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no POSIX permissions here")


@POSIX
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_to_is_not_used(
    folder: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    cache.save(KEY, b"program")
    files(folder)[0].parent.chmod(mode)
    with caplog.at_level("INFO", "accel"):
        assert [cache.read(KEY), cache.read(KEY)] == [None, None]
    assert len(caplog.messages) == 1 and "other users can write to it" in caplog.text
    assert "other users can write to it" in cache.save(OTHER, b"program")


@POSIX
def test_an_entry_that_others_may_write_to_is_not_used(folder: Path) -> None:
    cache.save(KEY, b"program")
    files(folder)[0].chmod(0o622)
    assert cache.read(KEY) is None


@POSIX
def test_the_folder_is_the_users_alone(folder: Path) -> None:
    cache.save(KEY, b"program")
    assert files(folder)[0].parent.stat().st_mode & 0o077 == 0
    assert files(folder)[0].stat().st_mode & 0o077 == 0


# -- shared with others ------------------------------------------------------------------------------------------------


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder with one entry, KEY, to be named as the shared one."""
    root = tmp_path / "shared"
    with config.override(cache_dir=root):
        cache.save(KEY, b"shared")
    root.chmod(0o755)
    return root


def contents(root: Path) -> list[tuple[Path, float, bytes]]:
    return [(path, path.stat().st_mtime, path.read_bytes()) for path in files(root)]


def test_what_is_shared_is_found_and_not_written(folder: Path, shared: Path) -> None:
    before = contents(shared)
    with config.override(cache_shared=shared):
        assert cache.read(KEY) == b"shared"
        cache.discard(KEY)
        assert cache.read(KEY) == b"shared"
        assert cache.save(KEY, b"own") == ""
        assert cache.read(KEY) == b"own", "one's own comes first"
        cache.discard(KEY)
        assert cache.read(KEY) == b"shared"
    assert contents(shared) == before


def test_it_is_known_what_the_shared_folder_holds(folder: Path, shared: Path) -> None:
    entries = [(KEY, cache.SUFFIX)]
    with config.override(cache_shared=shared):
        size = cache.size_of(entries)
        assert (cache.shared_with(entries), cache.shared_with([(KEY, cache.TRACE)])) == (shared, None)
        assert size > len(b"shared")
        cache.save(KEY, b"own")
        assert (cache.shared_with(entries), cache.size_of(entries)) == (None, size - len(b"shared") + len(b"own"))
    assert cache.shared_with(entries) is None
    with config.override(cache_dir=None, cache_shared=shared):
        assert (cache.shared_with(entries), cache.size_of(entries)) == (shared, size)


def test_what_is_shared_is_found_by_who_keeps_nothing(shared: Path) -> None:
    with config.override(cache_dir=None, cache_shared=shared):
        assert cache.is_used()
        assert cache.read(KEY) == b"shared"
    with config.override(cache_dir=None):
        assert not cache.is_used()


def test_a_damaged_shared_entry_stays_and_ones_own_takes_its_place(folder: Path, shared: Path) -> None:
    files(shared)[0].write_bytes(b"damaged")
    with config.override(cache_shared=shared):
        assert cache.read(KEY) is None
        cache.save(KEY, b"own")
        assert cache.read(KEY) == b"own"
    assert files(shared)[0].read_bytes() == b"damaged"


@pytest.fixture
def another(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user than the one to whom the shared folder belongs, and who is not root."""
    if os.geteuid() == 0:
        for path in (shared, *shared.rglob("*")):
            os.chown(path, 4_000_002, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_001)


@POSIX
def test_another_users_folder_is_used_only_where_it_is_named_as_shared(
    folder: Path, shared: Path, another: None
) -> None:
    with config.override(cache_dir=shared):
        assert cache.read(KEY) is None
        assert "belongs to another user" in cache.save(OTHER, b"x")
    with config.override(cache_shared=shared):
        assert cache.read(KEY) == b"shared"


@POSIX
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() != 0, reason="files can be given to root by root alone")
def test_roots_folder_is_used_and_not_written_to(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.save(KEY, b"program")

    def refused(path: Any, flags: int, *mode: Any) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied")
        return open_of(path, flags, *mode)

    open_of = os.open
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_001)
    monkeypatch.setattr(os, "open", refused)
    assert cache.read(KEY) == b"program"
    assert cache.save(OTHER, b"x") == f"cannot write to {folder} (Permission denied)"


@POSIX
@pytest.mark.parametrize("place", ["root", "folder", "entry"])
def test_a_shared_folder_that_others_may_write_to_is_not_used(folder: Path, shared: Path, place: str) -> None:
    entry = files(shared)[0]
    path = {"root": shared, "folder": entry.parent, "entry": entry}[place]
    path.chmod(path.stat().st_mode | 0o020)
    with config.override(cache_shared=shared):
        assert cache.read(KEY) is None


def test_other_surroundings_see_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.save(KEY, b"program")
    monkeypatch.setattr(cache, "environment_hash", lambda: "0" * 16)
    assert cache.read(KEY) is None


@pytest.mark.parametrize("what", ["versions.installed", "processors.description", "_own_code"])
def test_versions_processor_and_own_code_make_other_surroundings(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    before = cache.environment_hash.__wrapped__()
    assert cache.environment_hash.__wrapped__() == before
    monkeypatch.setattr(f"accel.backend.disk.cache.{what}", lambda *_: "another")
    assert cache.environment_hash.__wrapped__() != before


def test_own_code_is_all_of_accel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert Path(accel.__file__).resolve().parent == own_code.PACKAGE
    module = tmp_path / "rules" / "tables" / "ufuncs.py"
    module.parent.mkdir(parents=True)
    module.write_text("one")
    monkeypatch.setattr(own_code, "PACKAGE", tmp_path)
    before = cache._own_code()
    module.write_text("another")
    assert cache._own_code() != before


@pytest.mark.parametrize(("variable", "value"), [("XLA_FLAGS", "--xla_cpu_enable_fast_math=true"), ("NPROC", "3")])
def test_what_xla_is_told_makes_other_surroundings(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    before = cache.environment_hash.__wrapped__()
    monkeypatch.setenv(variable, value)
    assert cache.environment_hash.__wrapped__() != before


WRITER = """
import sys
from pathlib import Path
from typing import Any
from accel.platform import config
from accel.backend.disk import cache, experience, products, refused, together
config.set_current(config.Settings(cache_dir=Path(sys.argv[1])))
for i in range(200):
    cache.save("ab" * 20, sys.argv[2].encode() * 50_000)
    found = cache.read("ab" * 20)
    assert found is not None and len(set(found)) == 1 and len(found) == 50_000, found
"""


def test_processes_that_write_at_once_never_see_half_an_entry(folder: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(folder), letter], cwd=ROOT, stderr=subprocess.PIPE)
        for letter in "abc"
    ]
    assert [(writer.communicate()[1], writer.returncode) for writer in writers] == [(b"", 0)] * 3
    # another test's last compile may end meanwhile, and be kept here
    assert [path.name for path in files(folder) if path.name.startswith(KEY)] == [f"{KEY}.program"]


# -- programs ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def bare(foreground: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Do not compare, and keep programs in `folder`."""
    monkeypatch.setattr(policy, "FIRST_COMPARED", 0)
    with config.override(cache_dir=tmp_path / "cache"):
        yield


def settled(function, *arguments):
    """The result of a call that is compiled."""
    accelerated = accel.accelerate(function)
    for _ in range(6):
        result = accelerated(*arguments)
    entry = open_ledger(f"{function.__module__}:{function.__qualname__}")
    assert entry.compiled_calls > 0, entry
    return result


def blend(x, y, weight):
    return weight * np.roll(np.sin(x), 1, axis=0) + (1.0 - weight) * y[::-1]


def arguments() -> tuple:
    rng = np.random.default_rng(3)
    return rng.normal(size=(12, 16)), rng.normal(size=(12, 16)), 0.25


def test_a_program_is_found_again_and_computes_the_same(
    folder: Path, bare: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = settled(blend, *arguments())
    assert len(programs(folder)) == 1
    monkeypatch.setattr(compile, "_keep", lambda *_: pytest.fail("it was compiled, not found"))
    again = settled(blend, *arguments())
    np.testing.assert_array_equal(again, first)
    np.testing.assert_allclose(again, blend(*arguments()), rtol=1e-12)


def test_other_constants_and_shapes_are_other_programs(folder: Path, bare: None) -> None:
    x, y, _ = arguments()
    for case in [(x, y, 2), (x, y, 3), (x[:6], y[:6], 2), (x.astype("f4"), y, 2)]:
        np.testing.assert_allclose(settled(shifted, *case), shifted(*case), rtol=1e-6)
    assert len(programs(folder)) == 4


def shifted(x, y, places):
    return np.roll(x, places, axis=0) * y


def test_an_entry_that_is_no_program_is_replaced(folder: Path, bare: None) -> None:
    settled(blend, *arguments())
    key = programs(folder)[0].stem
    cache.save(key, b"nonsense")
    np.testing.assert_allclose(settled(blend, *arguments()), blend(*arguments()), rtol=1e-12)
    assert cache.read(key) not in (None, b"nonsense")


def factor(matrix):
    return np.linalg.cholesky(matrix)


def test_a_program_that_cannot_be_kept_says_why(
    folder: Path, bare: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def indescribable(*_: object) -> str:
        raise fingerprint.Indescribable("an object of user.Thing")

    monkeypatch.setattr(lowering, "fingerprint", indescribable)
    why = "it holds an object of user.Thing, which cannot be described to another process"
    with caplog.at_level("INFO", "accel"):
        settled(blend, *arguments())
    sentence = f"a program cannot be kept on disk and is compiled again at every start: {why}"
    assert sentence in caplog.text
    assert ledger.current_run().notes == [sentence]


def test_without_a_cache_nobody_is_told_that_nothing_is_kept(bare: None) -> None:
    with config.override(cache_dir=None):
        settled(blend, *arguments())
    assert ledger.current_run().notes == []


def test_without_kernels_no_program_is_kept(
    by_xla: None, folder: Path, bare: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Better compiled anew than a process that crashes."""
    monkeypatch.setattr(lapack, "unavailable", lambda names: "no such kernels" if names else "")
    with caplog.at_level("INFO", "accel"):
        np.testing.assert_allclose(settled(factor, np.eye(3) * 4.0), np.eye(3) * 2.0)
    recordings = {cache.PATH, cache.RECORDING, cache.RECORDINGS}
    assert [path for path in files(folder) if path.suffix not in recordings] == []
    assert "a program cannot be kept on disk and is compiled again at every start: no such kernels" in caplog.text


def test_without_kernels_no_program_is_taken_from_disk(
    by_xla: None, folder: Path, bare: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled(factor, np.eye(3) * 4.0)
    assert len(programs(folder)) == 1
    monkeypatch.setattr(lapack, "unavailable", lambda names: "no such kernels" if names else "")
    np.testing.assert_allclose(settled(factor, np.eye(3) * 9.0), np.eye(3) * 3.0)
    assert programs(folder) == []


def test_jaxs_own_cache_settings_are_left_alone(folder: Path, bare: None) -> None:
    import jax

    before = jax.config.jax_compilation_cache_dir
    settled(blend, *arguments())
    assert jax.config.jax_compilation_cache_dir == before


# -- the command -------------------------------------------------------------------------------------------------------


def told(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[object, str, str]:
    config.set_current(None)
    try:
        code: object = main(["cache", *args])
    except SystemExit as ended:
        code = ended.code
    return code, *capsys.readouterr()


def test_info_of_a_folder_that_is_not_there(asked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "info") == (0, f"folder      {asked}\nprograms    0\n", "")
    assert told(capsys, "clear") == (0, f"removed 0 programs, 0 kB, from {asked}\n", "")
    assert not asked.exists()


def test_info_counts_and_dates(asked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache.save(KEY, b"x" * 2_000_000)
    cache.save(OTHER, b"x")
    old = asked / "programs-0123456789abcdef"
    old.mkdir()
    (old / f"{KEY}.program").write_bytes(b"of an older version")
    os.utime(old / f"{KEY}.program", (0, 86_400 * 365))
    code, out, err = told(capsys, "info")
    assert (code, err) == (0, "")
    shown = dict(line.split("  ", 1) for line in out.splitlines())
    shown = {name: value.strip() for name, value in shown.items()}
    assert shown["programs"] == "3"
    assert shown["usable now"].startswith("2 (")
    assert shown["size"] == "2.0 MB, with what is known of them"
    assert shown["oldest"].startswith("197")
    assert shown["newest"].startswith(time.strftime("%Y-"))


def test_the_shared_folder_is_shown_and_not_cleared(
    asked: Path, shared: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QD_JAX_CACHE_SHARED", str(shared))
    code, out, err = told(capsys, "info")
    assert (code, err) == (0, "")
    assert out.startswith(f"folder      {asked}\nprograms    0\n\nshared      {shared}\nprograms    1\nusable now  1 (")
    shared.chmod(0o777)
    assert "usable now  0 (others can write to the folder" in told(capsys, "info")[1]
    shared.chmod(0o755)
    told(capsys, "clear")
    assert len(files(shared)) == 1
    monkeypatch.setenv("QD_JAX_CACHE_DIR", "off")
    assert told(capsys, "info")[1].startswith("The disk cache is off (QD_JAX_CACHE_DIR).\n\nshared ")


def test_clear_removes_what_accel_wrote_and_nothing_else(asked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache.save(KEY, b"x" * 1_000_000)
    cache.save(OTHER, b"x")
    inside = files(asked)[0].parent
    mine = [asked / "thesis.tex", asked / f"{KEY}.program", asked / "programs" / f"{KEY}.program", inside / "notes.txt"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("the user's own")
    (asked / "programs-fedcba9876543210").symlink_to(asked / "programs")
    assert told(capsys, "clear") == (0, f"removed 2 programs, 1.0 MB, from {asked}\n", "")
    assert [path for path in files(asked) if not path.is_symlink()] == sorted(mine)
    assert told(capsys, "info")[1].endswith("programs    0\n")


def test_clear_leaves_no_empty_folder(asked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache.save(KEY, b"x")
    told(capsys, "clear")
    assert list(asked.iterdir()) == []


def test_clear_leaves_what_is_being_written(asked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache.save(KEY, b"x")
    place = files(asked)[0].parent
    young, abandoned = place / f"{KEY}-abc_1.partial", place / f"{KEY}-xyz_2.partial"
    young.write_bytes(b"half")
    abandoned.write_bytes(b"half")
    os.utime(abandoned, (0, time.time() - 7200))
    told(capsys, "clear")
    assert files(asked) == [young]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may remove anything")
def test_clear_says_what_it_cannot_remove(asked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache.save(KEY, b"x")
    place = files(asked)[0].parent
    place.chmod(0o500)
    try:
        code, out, err = told(capsys, "clear")
    finally:
        place.chmod(0o700)
    assert (code, out) == (1, "")
    assert err == f"accel: {place / f'{KEY}.program'}: Permission denied\n"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([], "accel: the following arguments are required: info|clear (see --help)\n"),
        (["purge"], "accel: argument info|clear: invalid choice: 'purge' "),
        (["clear", "all"], "accel: unrecognized arguments: all; expected:  (see --help)\n"),
    ],
)
def test_anything_else_is_refused_in_one_line(
    asked: Path, capsys: pytest.CaptureFixture[str], args: list[str], text: str
) -> None:
    code, out, err = told(capsys, *args)
    assert (code, out) == (2, "") and err.startswith(text) and err.count("\n") == 1


def test_a_cache_that_is_off_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("QD_JAX_CACHE_DIR", "off")
    assert told(capsys, "info") == (0, "The disk cache is off (QD_JAX_CACHE_DIR).\n", "")


def test_a_setting_that_cannot_be_used_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QD_JAX_MODE", "fast")
    code, out, err = told(capsys, "clear")
    assert (code, out) == (2, "")
    assert err == "accel: QD_JAX_MODE='fast' cannot be used; expected: off, auto, verify, strict\n"


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, "--help")
    assert (code, err) == (0, "")
    assert out.startswith("usage: accel cache info|clear\n")


def test_sizes_in_words() -> None:
    found = [cache.size_text(size) for size in (0, 1, 84_200, 999_499, 999_500, 12_345_678)]
    assert found == ["0 kB", "1 kB", "85 kB", "1000 kB", "1.0 MB", "12.3 MB"]


# -- a folder that cannot be written -----------------------------------------------------------------------------------


@pytest.fixture
def unwritable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder below a file: it can neither be made nor be written to."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    folder = tmp_path / "file" / "cache"
    config.set_current(replace(config.current(), cache_dir=folder))
    cache.warn.cache_clear()
    return folder


def test_a_folder_that_cannot_be_written_is_said_at_once(unwritable: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "accel"):
        cache.warn()
        cache.warn()
    (record,) = caplog.records
    expected = f"results are unaffected, but no program can be kept in {unwritable}: it cannot be written to"
    assert record.getMessage().startswith(expected)


def test_a_folder_that_cannot_be_looked_for_is_no_error() -> None:
    folder = Path("/", "x" * 300, "cache")
    with config.override(cache_dir=folder, cache_shared=folder):
        assert cache.problem(makes=False).startswith("it cannot be written to (")
        assert cache.shared_with([("0" * 40, cache.SUFFIX)]) is None
        assert cache.read("0" * 40) is None


def test_no_next_run_is_promised_what_cannot_be_kept(unwritable: Path) -> None:
    from accel.reports import summary
    from accel.tools.cli import info

    assert summary._next_run().startswith("no program could be kept on disk: it cannot be")
    assert f"{unwritable} (it cannot be written to" in info.text()
    assert "No program can be kept there: it cannot be written to" in command._info(config.current())
