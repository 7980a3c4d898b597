"""SciPy's own installed tests of `scipy.ndimage`, with accel's functions in place of SciPy's.

The test files are read from the installed SciPy; nothing of them is kept here. Which tests are left out, and which are
expected to fail, stands with a reason each in `scipy_suite.toml`; `conftest.py` applies it and counts.
"""

import functools
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import scipy
import scipy.ndimage
from hypothesis import settings

from accel import ndimage
from accel.ndimage.errors import NotCovered
from accel.ndimage.table import COVERED

INSTALLED = Path(scipy.ndimage.__file__).parent / "tests"
FILES = ("test_filters", "test_interpolation", "test_splines")


def _replacement() -> ModuleType:
    """A module like `scipy.ndimage`, in which covered functions are accel's."""
    module = ModuleType("scipy.ndimage")
    module.__dict__.update(scipy.ndimage.__dict__)
    module.__dict__.update(FUNCTIONS)
    return module


def _but_for_complex(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """accel's function, and SciPy's where complex numbers are not covered."""

    @functools.wraps(ours)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return ours(*args, **kwargs)
        except NotCovered as gap:
            if "complex" not in str(gap):
                raise
            return theirs(*args, **kwargs)

    return call


FUNCTIONS = {name: _but_for_complex(getattr(ndimage, name), getattr(scipy.ndimage, name)) for name in COVERED}


@contextmanager
def _in_place() -> Iterator[None]:
    """`scipy.ndimage` is the replacement, and SciPy's table of array-API capabilities knows accel's functions."""
    from scipy._lib import _array_api

    original, known = scipy.ndimage, getattr(_array_api, "xp_capabilities_table", {})
    pairs = [(ours, getattr(original, name)) for name, ours in FUNCTIONS.items()]
    added = {ours: known[theirs] for ours, theirs in pairs if theirs in known}
    known.update(added)
    sys.modules["scipy.ndimage"] = scipy.ndimage = _replacement()
    try:
        yield
    finally:
        sys.modules["scipy.ndimage"] = scipy.ndimage = original
        for function in added:
            del known[function]


def _adapt(tests: Iterable[Any]) -> None:
    """Turn iterators of parameters into lists: pytest deprecates what SciPy does there, and warnings are errors here.

    Property tests get no deadline, since a first call compiles, and few examples, the same in every run.
    """
    for test in tests:
        if isinstance(test, type):
            _adapt(vars(test).values())
        if getattr(test, "is_hypothesis_test", False):
            settings(derandomize=True, max_examples=10)(test)
        marks = getattr(test, "pytestmark", [])
        for place, mark in enumerate(marks):
            if mark.name == "parametrize" and not isinstance(mark.args[1], Collection):
                names, values = mark.args
                marks[place] = pytest.mark.parametrize(names, list(values), **mark.kwargs).mark


def _load(name: str) -> dict[str, Any]:
    """The tests of one installed file."""
    importlib.import_module("scipy.ndimage.tests")  # for its relative imports
    spec = importlib.util.spec_from_file_location(f"scipy.ndimage.tests.accel_{name}", INSTALLED / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _in_place():
        spec.loader.exec_module(module)
    tests = {key: value for key, value in vars(module).items() if key.startswith(("test_", "Test"))}
    _adapt(tests.values())
    return tests


if not all((INSTALLED / f"{name}.py").exists() for name in FILES):
    pytest.skip(f"this SciPy ({scipy.__version__}) is installed without its tests", allow_module_level=True)

for _tests in map(_load, FILES):
    assert not _tests.keys() & globals().keys(), "two of SciPy's files use one name: tests would be lost"
    globals().update(_tests)
