"""The structure: imports point one way, accel knows no program, and importing it costs nothing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import accel

PACKAGE = Path(accel.__file__).parent
ROOT = PACKAGE.parent

LAYERS = (
    (
        "process.forks",
        "process.files",
        "process.filters",
        "process.jax_internals",
        "process.pickling",
        "process.processors",
        "process.tracebacks",
        "process.underflow",
    ),
    ("process.notebook_cells", "process.bars", "process.background"),
    ("process.interrupts", "process.ending", "process.status", "process.own_code", "process.bodies", "process.ranks"),
    ("process.observers",),
    ("project", "spelling", "distances"),
    ("config", "reasons", "logs", "process.memory", "reports.timeline", "machines.chatter"),
    ("process.tuning", "process.gain", "backend.callbacks"),
    ("cli.options", "versions", "variables"),
    (
        "reports.ledger",
        "catalogue",
        "backend.disk.cache",
        "backend.lapack",
        "backend.alignment",
        "backend.shards",
        "machines",
        "machines.crew",
        "machines.launchers",
        "machines.pieces",
    ),
    ("backend.devices",),
    ("ir.template", "ir.bits"),
    ("ir.tape", "ir.views", "ir.overlap"),
    ("ir.loop", "ir.vast"),
    ("ir.fingerprint",),
    ("ndimage",),
    ("rules",),
    ("record.state",),
    ("record.values",),
    ("record.objects",),
    ("record.run",),
    ("record",),
    ("merge.alignment", "merge.inputs"),
    ("merge.recorded",),
    ("merge.writer",),
    ("loops.draft",),
    ("loops.rounds",),
    ("loops.bodies",),
    ("loops.rolled",),
    ("loops",),
    ("merge.draws", "merge.outputs"),
    ("merge.members",),
    ("merge.following",),
    ("merge.placing",),
    ("merge.trace",),
    ("merge",),
    ("inspect.coverage",),
    ("lower.written",),
    ("lower.program",),
    ("lower.passes.rewriting",),
    (
        "lower.passes.union_find",
        "lower.repetition",
        "lower.passes.nesting",
        "lower.passes.positions",
        "lower.passes.loops.moving_box",
        "lower.passes.stretches",
        "lower.passes.value_store",
    ),
    ("lower.passes.loops.operands",),
    ("lower.passes.loops.loop",),
    ("lower.passes.loops.dependences", "lower.passes.loops.scan"),
    ("lower.passes.loops.reroll", "lower.passes.loops.batch"),
    ("lower.exact",),
    ("lower.operations",),
    ("lower.passes.aliasing", "lower.passes.branches"),
    ("lower.passes.arrange",),
    ("lower.folding", "lower.pipeline", "lower.listing"),
    ("lower.arguments", "lower.looping"),
    ("lower.values", "lower.renewing", "lower.precision.widths"),
    ("lower.precision.evaluation",),
    ("lower.precision", "lower.rounding"),
    ("lower.lowering",),
    ("lower",),
    ("kernels.graph", "kernels.ir", "kernels.machine_code"),
    ("kernels.elementary",),
    ("kernels.operations", "kernels.accumulators"),
    ("kernels.reductions", "kernels.jaxprs"),
    ("kernels.indexing",),
    ("kernels.plan", "kernels.importing"),
    ("kernels.memory",),
    ("kernels.nest", "kernels.sharing", "kernels.helpers"),
    ("kernels.module",),
    ("kernels.segments",),
    ("kernels",),
    ("backend.job", "backend.disk.experience"),
    ("backend.disk.together", "backend.disk.references", "backend.disk.products"),
    ("backend.disk.recordings", "backend.disk.vain"),
    ("backend.options",),
    ("machines.common",),
    ("backend.resident",),
    ("backend.executable", "machines.serving"),
    ("machines.joining",),
    ("backend.segmented", "backend.trial", "backend.refolding"),
    ("backend.serializing",),
    ("backend.compile",),
    ("backend.underway.priority",),
    ("backend.underway.last",),
    ("backend.underway.worker",),
    ("backend.underway.supervisor",),
    ("backend.underway.pending",),
    ("backend.underway.queues",),
    ("dispatch.replay.host", "dispatch.replay.build", "dispatch.replay.steps", "dispatch.replay.kept"),
    ("dispatch.replay.commit", "dispatch.replay.draws"),
    ("dispatch.replay.guards", "dispatch.replay.variant"),
    ("dispatch.replay.merged",),
    ("dispatch.replay",),
    ("dispatch.comparing.errors", "dispatch.comparing.snapshot"),
    ("dispatch.comparing.nonfinite",),
    ("dispatch.comparing.monte_carlo", "dispatch.comparing.changes", "dispatch.comparing.texts"),
    ("dispatch.comparing.comparison", "dispatch.comparing.first_run"),
    ("dispatch.call", "dispatch.refusals", "dispatch.paths.kinds", "dispatch.late"),
    ("dispatch.costs.budget", "dispatch.costs.rest", "dispatch.costs.speed", "dispatch.preconditions"),
    ("dispatch.costs.account", "dispatch.costs.parts", "dispatch.costs.second_look", "dispatch.costs.transfers"),
    ("dispatch.paths.constants", "dispatch.paths.refolds", "dispatch.paths.work"),
    ("dispatch.paths.path", "dispatch.recordings"),
    ("dispatch.paths.joint",),
    ("dispatch.paths.joining",),
    ("dispatch.paths.known",),
    ("dispatch.compiling", "dispatch.earlier"),
    ("dispatch.comparing.policy",),
    ("dispatch.numpy_calls", "dispatch.replaying"),
    ("dispatch.target",),
    ("reports.figures",),
    ("reports.children",),
    ("dispatch.decorator",),
    ("dispatch",),
    ("lift.names", "lift.source", "lift.tracebacks", "lift.between", "lift.passed"),
    ("lift.assigned",),
    ("lift.checks", "lift.regions"),
    ("lift.transform",),
    ("lift.switch",),
    ("lift.codes",),
    ("lift.lifting", "lift.holding", "lift.shares"),
    ("lift.rounds",),
    ("reports.words", "reports.advice"),
    ("reports.summary",),
    ("reports.text", "reports.markdown", "reports.brief", "reports.html"),
    ("reports.reporting",),
    ("reports.steps",),
    ("reports.drawing",),
    ("reports.profiling", "reports.last"),
    ("lift.decorator",),
    ("hook.loader",),
    ("hook.patterns", "hook.attributes", "hook.imports", "hook.lines", "hook.watching", "hook.hopeless"),
    ("hook.lifts", "hook.aliases"),
    ("hook.misnamed",),
    ("hook.installation",),
    ("hook.patching", "comparison.observer", "comparison.runs"),
    ("plugins.pytest_session",),
    ("plugins.pytest_options",),
    ("inspect.sources",),
    ("plugins.lines", "plugins.cell_errors"),
    ("plugins.notebook", "plugins.faster"),
    ("inspect.programs",),
    ("inspect.explain",),
    ("pure.recorded", "pure.ways", "pure.gates", "pure.host", "pure.norms", "pure.writes"),
    ("pure.places", "pure.stills"),
    ("pure.evaluation",),
    ("pure.results",),
    ("pure.program",),
    ("pure.function",),
    ("pure.transforms",),
    ("pure",),
    ("ensembles.addresses", "ensembles.division", "ensembles.groups"),
    ("ensembles.inventory", "ensembles.copies"),
    ("ensembles.working_copy",),
    ("ensembles.batch", "ensembles.values", "ensembles.unseen"),
    ("ensembles.paths", "ensembles.joining", "ensembles.dataset"),
    ("ensembles.agreement",),
    ("ensembles.ensemble", "ensembles.variables", "ensembles.perturbation", "ensembles.saving"),
    ("ensembles.loops",),
    ("ensembles.members",),
    ("ensembles",),
    ("inspect.doctor",),
    ("cli.starts",),
    ("cli.program",),
    ("cli.commandline", "cli.chosen", "cli.choices", "cli.enable", "cli.minutes", "cli.bundle"),
    ("cli.joining", "cli.lengths"),
    ("cli.running",),
    ("cli.run",),
    ("run", "comparison.child", "hook.starting"),
    ("precompile",),
    ("cli.info", "cli.docs", "cli.report"),
    ("cli.commands",),
    ("__main__",),
    (
        "cli",
        "comparison",
        "hook",
        "inspect",
        "lift",
        "reports",
        "plugins",
        "backend",
        "process",
        "ir",
        "lower.passes",
        "lower.passes.loops",
        "dispatch.paths",
        "dispatch.costs",
        "dispatch.comparing",
    ),
)
"""accel's modules and packages in the order of the pipeline: each may import those above it."""

RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
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


def _part(name: str) -> str | None:
    """Return the part of accel, as LAYERS has it, that a name under accel belongs to: the narrowest one."""
    while name not in RANK and "." in name:
        name = name.rpartition(".")[0]
    return name if name in RANK else None


def _parts_of_accel(path: Path) -> set[str]:
    """Return the parts of accel that a file imports."""
    names = {name for name in _imports(ast.parse(path.read_text(encoding="utf-8"))) if name.startswith("accel.")}
    return {part for part in (_part(name.removeprefix("accel.")) for name in names) if part is not None}


@pytest.mark.parametrize("name", MODULES)
def test_every_module_has_its_layer(name: str) -> None:
    assert _part(name) is not None, "put the new module into LAYERS, where the data flows through it"


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_one_way(name: str) -> None:
    own = _part(name)
    assert own is not None
    later = {part for part in _parts_of_accel(MODULES[name]) if part != own and RANK[part] >= RANK[own]}
    assert later == set(), f"accel.{name} imports from its own layer or a later one"


@pytest.mark.parametrize("name", MODULES)
def test_accel_imports_no_catalogue_and_no_program(name: str) -> None:
    tops = {each.split(".")[0] for each in _imports(ast.parse(MODULES[name].read_text(encoding="utf-8")))}
    assert tops & {"pygcm", "pygcm_patch", "benchmarks", "tests", "scripts"} == set()


def test_the_catalogue_imports_nothing_of_accel_but_what_rows_are() -> None:
    for path in (ROOT / "pygcm_patch").glob("*.py"):
        assert _parts_of_accel(path) <= {"catalogue"}


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
