"""The structure: imports point one way, accel knows no program, and importing it costs nothing."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import accel

PACKAGE = Path(accel.__file__).parent
ROOT = PACKAGE.parent

ROOMS = (
    "platform",
    "ir",
    "ndimage",
    "rules",
    "record",
    "compiler",
    "backend",
    "policy",
    "reports",
    "dispatch",
    "entry",
    "transform",
    "tools",
)
"""The packages at the root of accel: each may import those before it."""

AT_THE_ROOT = {"catalogue": "entry", "run": "tools", "__main__": "tools"}
"""The modules at the root of accel, and the package that each counts as."""

RECORD = ("state", "values", "objects", "run")
"""The packages in accel.record: each may import those before it, for types too."""

HEAVY = ("jax", "jaxlib", "numpy", "scipy", "wrapt")


def _modules() -> Iterator[tuple[str, Path]]:
    """Yield the name under accel and the file of each module, `accel/__init__.py` apart."""
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE).with_suffix("")
        parts = relative.parts[:-1] if relative.name == "__init__" else relative.parts
        if parts:
            yield ".".join(parts), path


MODULES = dict(_modules())


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _imports(tree: ast.AST) -> Iterator[str]:
    """Yield the full name of everything imported at run time, inside functions too."""
    for node in ast.iter_child_nodes(tree):
        if _is_for_types(node):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the direction"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from _imports(node)


def _room(name: str) -> str:
    """Return the package at the root of accel that a name under accel belongs to."""
    first = name.partition(".")[0]
    return AT_THE_ROOT.get(first, first)


def _modules_of_accel(tree: ast.AST) -> set[str]:
    """Return the modules under accel that a source imports."""
    names = (name.removeprefix("accel.") for name in _imports(tree) if name.startswith("accel."))
    return {module for name in names if (module := name if name in MODULES else name.rpartition(".")[0]) in MODULES}


@functools.cache
def _trees() -> dict[str, ast.Module]:
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


@functools.cache
def _imported() -> dict[str, set[str]]:
    return {name: _modules_of_accel(tree) for name, tree in _trees().items()}


def _named(found: dict[str, set[str]]) -> dict[str, set[str]]:
    """Keep the modules of which something was found."""
    return {name: each for name, each in found.items() if each}


def test_the_rooms_are_the_packages_at_the_root() -> None:
    assert sorted(ROOMS) == sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    assert set(AT_THE_ROOT) == {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}


def test_imports_point_one_way() -> None:
    place = {room: number for number, room in enumerate(ROOMS)}
    later = {
        name: {each for each in imported if place[_room(each)] > place[_room(name)]}
        for name, imported in _imported().items()
    }
    assert _named(later) == {}


def test_modules_import_in_no_circle() -> None:
    waiting = {name: imported - {name} for name, imported in _imported().items()}
    while waiting:
        ready = {name for name, imported in waiting.items() if not imported & waiting.keys()}
        assert ready, f"each of these imports another one of them: {sorted(waiting)}"
        waiting = {name: imported for name, imported in waiting.items() if name not in ready}


def test_record_imports_one_way_for_types_too() -> None:
    later = {}
    for name in (name for name in MODULES if name.startswith("record.")):
        modules = [each.module or "" for each in ast.walk(_trees()[name]) if isinstance(each, ast.ImportFrom)]
        packages = {each.split(".")[2] for each in modules if each.startswith("accel.record.")}
        later[name] = packages - set(RECORD[: RECORD.index(name.split(".")[1]) + 1])
    assert later
    assert _named(later) == {}


def test_accel_imports_no_catalogue_and_no_program() -> None:
    tops = {name: {each.split(".")[0] for each in _imports(tree)} for name, tree in _trees().items()}
    outside = {"pygcm", "pygcm_patch", "benchmarks", "tests", "scripts"}
    assert _named({name: each & outside for name, each in tops.items()}) == {}


def test_the_catalogue_imports_nothing_of_accel_but_what_rows_are() -> None:
    for path in (ROOT / "pygcm_patch").glob("*.py"):
        assert _modules_of_accel(ast.parse(path.read_text(encoding="utf-8"))) <= {"catalogue"}


def _loaded_by(statement: str, names: tuple[str, ...]) -> str:
    code = f"import sys; {statement}; print([name for name in {names!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _packages_with_lists() -> Iterator[tuple[Path, set[str], set[str]]]:
    """Yield the packages whose docstring lists modules, with what it lists and what there is."""
    for init in sorted(PACKAGE.rglob("*/__init__.py")):
        folder = init.parent
        entries = {path.stem for path in folder.glob("*.py")} | {
            path.parent.name for path in folder.glob("*/__init__.py")
        }
        text = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        heads = re.findall(r"^ {0,2}(\w+/?(?:, \w+/?)*)  +\S", text, re.MULTILINE)
        listed = {name.strip("/ ") for head in heads for name in head.split(",")}
        if listed & entries:
            yield folder, listed, entries - {"__init__", "__main__"}


def test_lists_of_modules_are_whole() -> None:
    found = {folder.relative_to(PACKAGE): (listed, there) for folder, listed, there in _packages_with_lists()}
    assert len(found) > 15
    assert {folder: there - listed for folder, (listed, there) in found.items() if there - listed} == {}
    assert {folder: listed - there for folder, (listed, there) in found.items() if listed - there} == {}


def test_importing_accel_imports_nothing_heavy() -> None:
    assert _loaded_by("import accel", HEAVY) == "[]"


def test_the_hook_the_report_and_the_catalogue_import_no_jax() -> None:
    statement = "import accel; accel.report(); accel.uninstall(); import accel.run, pygcm_patch"
    assert _loaded_by(statement, ("jax", "jaxlib", "scipy")) == "[]"


def test_accel_removed_and_imported_again_is_the_same_accel() -> None:
    """Functions of two copies called one another: a call returned an object of the engine's, and np.sort failed."""
    statement = (
        "import warnings; warnings.simplefilter('ignore'); import numpy as np, accel; "
        "from accel.platform import config; "
        "config.set_current(config.Settings(cache_dir=None, ahead_of_time=False, policy='eager')); "
        "first = accel.accelerate(lambda x: np.sort(x, axis=1) * 2.0); x = np.ones((9, 40)); "
        "[first(x) for _ in range(6)]; assert first._self_target.paths; before = accel; "
        "[sys.modules.pop(name) for name in tuple(sys.modules) if name.partition('.')[0] == 'accel']; "
        "assert type(first(x)) is np.ndarray; import accel; assert accel is before; "
        "assert type(accel.accelerate(lambda x: np.sort(x) + 1.0)(x)) is np.ndarray"
    )
    assert _loaded_by(statement, ()) == "[]"


def test_a_package_shows_each_of_its_modules_under_the_modules_name() -> None:
    """`accel._bring_back` finds them so."""
    statement = (
        "import pkgutil, importlib, accel; "
        "names = [each.name for each in pkgutil.walk_packages(accel.__path__, 'accel.') if 'main' not in each.name]; "
        "[importlib.import_module(name) for name in names]; before = dict(sys.modules); "
        "[sys.modules.pop(name) for name in tuple(sys.modules) if name.partition('.')[0] == 'accel']; import accel; "
        "assert all(sys.modules.get(name) is before[name] for name in names)"
    )
    assert _loaded_by(statement, ()) == "[]"


def test_public_names_are_there_and_unknown_ones_are_not() -> None:
    assert set(accel.__all__) <= set(dir(accel))
    for name in accel.__all__:
        assert getattr(accel, name) is not None
    with pytest.raises(AttributeError, match=r"^module 'accel' has no attribute 'accellerate'$"):
        accel.accellerate  # noqa: B018


def test_a_program_without_scipy_records_without_it() -> None:
    statement = (
        "import warnings; warnings.simplefilter('ignore'); import numpy as np, accel; "
        "from accel.platform import config; "
        "config.set_current(config.Settings(cache_dir=None)); "
        "fast = accel.accelerate(lambda x: np.sin(x) + 1.0, mode='verify'); [fast(np.ones(9)) for _ in range(2)]; "
        "assert fast._self_target.paths"
    )
    assert _loaded_by(statement, ("scipy.ndimage", "jax")) == "[]"
