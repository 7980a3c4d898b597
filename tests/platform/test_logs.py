"""Logging: one logger, a NullHandler, each message once, and nothing unsaid where nobody listens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PRELUDE = """
import logging, sys
import accel
from accel.catalogue import Catalogue
from accel.platform import logs
"""


def said(code: str, **env: str) -> tuple[str, str]:
    """Standard output and standard error of a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PRELUDE + code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "QD_JAX_QUIET": "1", **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


def test_a_library_alone_is_silent() -> None:
    code = "print([type(each).__name__ for each in logs.LOGGER.handlers]); logs.LOGGER.warning('psst')"
    assert said(code) == ("['NullHandler']\n", "")


def test_installed_it_speaks_once_where_nobody_listens() -> None:
    code = "none = Catalogue('none', ())\naccel.install(none)\naccel.install(none)\nlogs.LOGGER.warning('look')"
    assert said(code) == ("", "accel: look\n")


def test_the_programs_own_logging_takes_over_even_when_it_comes_later() -> None:
    code = (
        "accel.install(Catalogue('none', ()))\n"
        "logging.basicConfig(stream=sys.stdout, format='mine %(name)s %(message)s')\n"
        "logs.LOGGER.warning('look')"
    )
    assert said(code) == ("mine accel look\n", "")


def test_a_handler_on_accels_own_logger_takes_over_too(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    code = (
        "accel.install(Catalogue('none', ()))\n"
        f"logs.LOGGER.addHandler(logging.FileHandler({str(log)!r}))\n"
        "logs.LOGGER.warning('look')"
    )
    assert said(code) == ("", "")
    assert log.read_text() == "look\n"


TALK = """
import numpy as np, warnings
warnings.simplefilter("ignore")
accel.install(Catalogue("none", ()))
@accel.accelerate(name="work")
def work(x):
    return np.exp(x) * 2.0
@accel.accelerate(name="masked")
def masked(x):
    return np.fromiter(x, float)
for i in range(8):
    work(np.arange(5.0) + i)
    masked(np.arange(5.0) - i)
"""


@pytest.mark.parametrize(("level", "expected"), [("warning", 0), ("info", 3), ("debug", 5)])
def test_each_place_is_told_of_once_at_the_level_asked_for(level: str, expected: int) -> None:
    _, err = said(TALK, QD_JAX_LOG=level, QD_JAX_AOT="0", QD_JAX_CACHE_DIR="off")
    lines = [line for line in err.splitlines() if not line.startswith("  ")]
    assert all(line.startswith("accel: ") for line in lines)
    assert len(lines) == expected, err
    if expected:
        assert sum("work recorded, " in line for line in lines) == 1
        assert sum("work compiled in " in line for line in lines) == 1
        assert sum("masked stayed on NumPy  [call.opaque]" in line for line in lines) == 1
    assert sum("work compared with NumPy, largest error " in line for line in lines) == max(0, expected - 3)


PROGRAM_LISTENS = """
import numpy as np, warnings
warnings.simplefilter("ignore")
logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, format="%(name)s %(levelname)s")
@accel.accelerate
def work(x):
    return np.exp(x) * 2.0
for i in range(8):
    work(np.arange(5.0) + i)
assert work._self_target.ledger.compiled_calls
import jax, atexit
from jax._src import api
print(jax.config.jax_logging_level, [type(each).__name__ for each in logging.getLogger("jax").handlers])
jax.jit(lambda x: x + 1)(1)
atexit.unregister(api.clean_up)
"""


def test_a_program_that_listens_to_everything_hears_nothing_of_what_accel_does_with_jax() -> None:
    """But of what it does itself: the loggers are as they would be."""
    out, err = said(PROGRAM_LISTENS, QD_JAX_AOT="0", QD_JAX_CACHE_DIR="off")
    before, settings, after = out.partition("NOTSET []\n")
    assert settings and "jax" not in before and "jax._src.dispatch DEBUG" in after
    assert err == ""
