"""`doctor --run`: what was measured, what really stops a function, and a catalogue that works."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from accel.tools.inspect.doctor import write
from accel.tools.inspect.doctor.command import main
from accel.tools.inspect.explain import apart


@pytest.fixture(scope="module")
def measured(climate: Any) -> dict[str, Any]:
    """The package's account, measured once; with the catalogue in rows.py."""
    done = climate.doctor(
        "climate", "--format", "json", "--catalogue", "rows.py", "--run", "climate.run", "an argument"
    )
    assert done.returncode == 0, done.stderr
    assert "argument ['an argument']" in done.stderr  # the program's output, so that stdout is the account alone
    account: dict[str, Any] = json.loads(done.stdout)
    account["by_name"] = {each["target"].removeprefix("climate."): each for each in account["functions"]}
    return account


def test_calls_and_times_are_counted_without_counting_twice(measured: dict[str, Any]) -> None:
    functions = measured["by_name"]
    step, diffuse, net = (
        functions[name] for name in ("core:Model.step", "core:Model.diffuse", "physics.radiation:net")
    )
    assert (step["calls"], diffuse["calls"], net["calls"], functions["__main__:main"]["calls"]) == (40, 40, 40, 1)
    assert step["total_ms"] == pytest.approx(step["own_ms"] + diffuse["total_ms"] + net["total_ms"])
    assert sum(each["own_ms"] for each in functions.values()) == pytest.approx(1e3 * measured["inside_s"])
    assert functions["__main__:main"]["share"] == pytest.approx(1.0, abs=0.05)
    assert measured["inside_s"] <= measured["wall_s"]


def test_verdicts_are_what_recording_a_real_call_says(measured: dict[str, Any]) -> None:
    verdicts = {name: each["verdict"] for name, each in measured["by_name"].items()}
    assert verdicts["core:Model.step"] == verdicts["core:Model.diffuse"] == verdicts["physics.radiation:net"] == "row"
    assert verdicts["physics.radiation:scale"] == verdicts["core:Model.mean"] == "row"
    assert verdicts["core:Model.noisy"] == verdicts["core:Model.tell"] == "stopped"
    assert verdicts["physics.radiation:made.<locals>.inner"] == "unreachable"
    assert verdicts["__main__:main"] == verdicts["core:Model.__post_init__"] == "rare"


def test_stops_are_told_with_their_lines(measured: dict[str, Any]) -> None:
    functions = measured["by_name"]
    (noise,) = functions["core:Model.noisy"]["stops"]
    assert noise["id"] == "effect.random" and noise["source"][noise["column"] :].startswith("np.random.bytes(")
    (tell,) = functions["core:Model.tell"]["stops"]
    assert (tell["id"], tell["source"]) == ("effect.print", 'print("mean", m)')


def test_each_key_of_the_json_is_explained(measured: dict[str, Any]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "command-line.md").read_text(encoding="utf-8")
    section = page.partition("\n## accel doctor\n")[2].partition("\n## ")[0]
    names = [line.partition(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    keys = set(measured) - {"by_name"} | set(measured["functions"][0])
    assert keys == set(re.findall(r"`(\w+)`", " ".join(names)))


CHECK = """
import numpy as np
import accel
from accel.platform import ledger
from climate import Model
from climate.physics import radiation
from rows import CATALOGUE

def play():
    model, found = Model.of_size(120), []
    for _ in range(12):
        model.step(0.1)
        found += [model.t.copy(), radiation.scale(model.t), model.mean, model.tell()]
    return found

plain = play()
with accel.installed(CATALOGUE):
    fast = play()
assert Model.step.__qualname__ == "Model.step" and not hasattr(Model.step, "__wrapped__")
for left, right in zip(plain, fast, strict=True):
    assert type(left) is type(right)
    np.testing.assert_allclose(right, left, rtol=1e-12)
compiled = sorted(book.target for book in ledger.ledgers() if book.compiled_calls)
print("compiled", *compiled)
print(accel.report(full=True))
"""


def test_the_catalogue_works_and_agrees_with_numpy(climate: Any, measured: dict[str, Any]) -> None:
    assert measured["catalogue"] == "rows.py"
    done = climate.python("-c", CHECK)
    assert done.returncode == 0, done.stderr
    compiled = next(line for line in done.stdout.splitlines() if line.startswith("compiled"))
    assert "climate.core:Model.step" in compiled.split() and "climate.physics.radiation:scale" in compiled.split()


def test_the_catalogues_text_is_tidy(climate: Any, measured: dict[str, Any]) -> None:
    text = (Path(climate.folder) / "rows.py").read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 120
    assert text.count('"Model.step"') == 1 and "<locals>" not in text


# -- a script ----------------------------------------------------------------------------------------------------------


def test_a_script_is_measured_and_told_how_to_go_on(script: Any) -> None:
    done = script.doctor("nbody.py", "--run", "nbody.py")
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 100
    rows = done.stdout.partition("worth a row in a catalogue (2)")[2].partition("\n\n")[0]
    assert "__main__:step" in rows and "__main__:acceleration" in rows
    assert "catalogue: accel doctor nbody.py --catalogue NAME.py --run nbody.py" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("argument", "code", "says", "trace"),
    [
        ("7", 1, "note: the program ended with exit code 7", ""),
        ("fail", 1, "note: the program failed (ValueError: the sun went out)", "ValueError: the sun went out"),
        ("stop", 0, "note: the program was interrupted", ""),
        ("fork", 1, "note: the program ended with exit code 3", ""),
    ],
)
def test_what_was_seen_of_a_program_that_ends_early_is_kept(
    script: Any, argument: str, code: int, says: str, trace: str
) -> None:
    done = script.doctor("nbody.py", "--run", "nbody.py", argument)
    assert done.returncode == code and says in done.stdout and trace in done.stderr
    assert "__main__:step" in done.stdout


def test_a_program_that_leaves_no_measurements_is_told(bench_of: Any) -> None:
    bench = bench_of({"abrupt.py": "import os\n\ndef f(x):\n    return x\n\nf(1)\nos._exit(4)\n"})
    done = bench.doctor("abrupt.py", "--run", "abrupt.py")
    assert done.returncode == 1
    assert "the program ended with exit code 4 and left no measurements" in " ".join(done.stdout.split())


def test_without_fork_functions_are_only_timed(
    script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(apart, "available", lambda: False)
    monkeypatch.chdir(script.folder)
    assert main(["nbody.py", "--run", "nbody.py"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "note: functions were timed, but not recorded: that needs os.fork" in out
    assert "worth a row" not in out.partition("next")[0] and "__main__: step, acceleration" in out


def test_where_nothing_is_worth_a_row_no_catalogue_is_written(bench_of: Any) -> None:
    bench = bench_of({"idle.py": "def f(x):\n    return x + 1\n\nprint(f(1))\n"})
    done = bench.doctor("idle.py", "--catalogue", "rows.py", "--run", "idle.py")
    assert done.returncode == 0 and done.stderr == "2\naccel: rows.py was not written: no function is worth a row\n"
    assert "nothing is worth a row here" in done.stdout and not (bench.folder / "rows.py").exists()


def test_a_flat_script_is_told_of_auto(bench_of: Any) -> None:
    flat = "x = 0\nwhile x < 3_000_000:\n    x += 1\n"
    done = bench_of({"flat.py": flat}).doctor("flat.py", "--run", "flat.py")
    told = " ".join(done.stdout.split())
    assert "accel run --auto flat.py compiles the iterations of the script's loops" in told


# -- what JAX says -----------------------------------------------------------------------------------------------------

GROWING = {
    "grow.py": """
        import numpy as np

        def appends(history, u):
            history.append(np.sqrt(u * u + 1.0).mean())

        def fits(x, y):
            return np.polyfit(x, y, 2)

        def main():
            u, two = np.linspace(0.0, 1.0, 400_000), []
            x = u[:100_000].astype(np.float32)
            for _ in range(20):
                fits(x, x)
                appends(two, u)

        if __name__ == "__main__":
            main()
        """
}


@pytest.fixture(scope="module")
def growing(bench_of: Any) -> Any:
    """A program whose list grows, and its account."""
    done = bench_of(GROWING).doctor("grow.py", "--format", "json", "--run", "grow.py")
    assert done.returncode == 0, done.stderr
    return {each["qualname"]: each for each in json.loads(done.stdout)["functions"]}


def test_jax_is_asked_whether_it_takes_what_was_recorded(growing: Any) -> None:
    assert growing["appends"]["jax"] is True and growing["main"]["jax"] is None
    assert growing["fits"]["verdict"] == "stopped"
    assert growing["fits"]["stops"][0]["id"] == "rule.parameter" and "polyfit" in growing["fits"]["stops"][0]["why"]


def test_rows_for_which_jax_was_not_asked_are_named(growing: Any) -> None:
    row = growing["appends"] | {"jax": False}
    account = {
        **dict.fromkeys(("target", "run"), "grow.py"),
        **dict.fromkeys(("wall_s", "inside_s"), 1),
        "ending": "",
        "tried": True,
        "functions": [row],
    }
    said = "note __main__:appends: recorded, but JAX was not asked whether it takes all their operations;"
    assert said in " ".join(write.as_text(account, None).split())
    row["jax"] = True
    assert "not asked" not in write.as_text(account, None)
