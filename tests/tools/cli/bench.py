"""A folder with programs and a catalogue of its own, and a way to start them: plainly, and by accel's commands."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tests.processes import Done, without_settings

ROOT = Path(__file__).resolve().parents[3]

# What a program can see of how it was started; run plainly and under accel, the output must be the same.
MIRROR = """
import json, os, sys
names = {key: repr(globals().get(key, "missing")) for key in ("__name__", "__package__", "__file__", "__doc__")}
main = sys.modules["__main__"]
print(json.dumps({
    **names,
    "spec": getattr(__spec__, "name", None),
    "loader": type(__loader__).__name__,
    "cached": globals().get("__cached__"),
    "argv": sys.argv,
    "path0": sys.path[0],
    "cwd": os.getcwd(),
    "main": main.__dict__ is globals(),
    "names": [name for name in globals() if name.startswith("__")],
    "annotations": globals().get("__annotations__", "missing"),
    "builtins": repr(__builtins__),
    "stdin": sys.stdin.read(),
}))
"""
MODEL = """
import numpy as np

def warm(t):
    return t + 1.0

def fail(t):
    return {"a": t}["b"]
"""
CATALOGUE = """
from pathlib import Path
from accel.catalogue import Catalogue, Row
rows = (Row("model", "warm", "a test"), Row("model", "fail", "a test"), Row("gone", "f", "a test"))
CATALOGUE = Catalogue("test", rows, (), Path(__file__).parent / "demo", "scripts.main")
"""
FILES = {
    "catalogue_of_the_test.py": CATALOGUE,
    "catalogue_of_the_test-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: catalogue-of-the-test\nVersion: 1\n",
    "catalogue_of_the_test-1.dist-info/entry_points.txt": "[accel.catalogues]\na = catalogue_of_the_test:CATALOGUE\n",
    "demo/scripts/__init__.py": "",
    "demo/scripts/main.py": "import sys\nprint('demo', sys.argv[1:])\n",
    "work/model.py": MODEL,
    "work/mirror.py": MIRROR,
    "work/pack/__init__.py": "",
    "work/pack/mirror.py": MIRROR,
    "work/pack/__main__.py": MIRROR,
    "work/empty/__init__.py": "",
    "work/hollow/notes.txt": "",
    "work/failing/__main__.py": "def f():\n    1 / 0\n\nf()\n",
    "work/apart/__main__.py": MIRROR,
    "work/scripts/__init__.py": "",
    "work/scripts/go.py": "import model\nprint(float(model.warm(1.0)))\n",
    "work/scripts/fails.py": "import model\n\ndef main():\n    model.fail(1.0)\n\nmain()\n",
    "work/scripts/exits.py": "import sys\nfrom model import warm\nwarm(1.0)\nsys.exit(7)\n",
    "work/scripts/says.py": "import sys\nsys.exit('the planet froze')\n",
    "work/scripts/stops.py": "raise KeyboardInterrupt\n",
    "work/scripts/broken.py": "def f(:\n",
    "work/scripts/chained.py": "try:\n    1 / 0\nexcept Exception as e:\n    raise ValueError('w') from e\n",
    "work/scripts/hooked.py": "import sys\nsys.excepthook = lambda *a: print('mine', a[0].__name__)\n1 / 0\n",
    "work/scripts/ends.py": "import atexit\natexit.register(print, 'goodbye', flush=True)\nprint('hello')\n",
    "work/scripts/moves.py": "import os, tempfile\nos.chdir(tempfile.gettempdir())\n",
    "work/scripts/forks.py": "import os, sys\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\nsys.exit(0)\n",
    "work/scripts/installs.py": "import accel\naccel.install(only=['nothing'])\n",
    "work/scripts/warns.py": "import warnings\nwarnings.warn('look')\n",
    "checkout/pygcm/__init__.py": "",
    "checkout/scripts/__init__.py": "",
    "checkout/scripts/where.py": MIRROR,
}


class Bench:
    """A folder with programs and a catalogue of its own, and a way to start them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        for name, text in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        with zipfile.ZipFile(self.work / "packed.zip", "w") as packed:
            packed.writestr("__main__.py", MIRROR)
        with zipfile.ZipFile(self.work / "failing.zip", "w") as packed:
            packed.writestr("__main__.py", "1 / 0\n")
        for name in ("mirror.pyc", "no_suffix"):
            py_compile.compile(str(self.work / "mirror.py"), str(self.work / name), dfile="mirror.py")
        (self.work / "bad.pyc").write_bytes(b"\x00" * 40)

    def environment(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of the processes, with `env` in it."""
        paths = [str(ROOT), str(self.folder), os.environ.get("PYTHONPATH", "")]
        chosen = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "QD_JAX_CACHE_DIR": "off"}
        return {**without_settings(), **chosen, **(env or {})}

    def python(
        self, *args: str, cwd: str = "work", env: Mapping[str, str] | None = None, stdin: str | bytes = b""
    ) -> Done:
        """Run Python with `args` and return how it ended."""
        done = subprocess.run(
            [sys.executable, "-W", "error", *args],
            cwd=self.folder / cwd,
            env=self.environment(env),
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            timeout=300,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def accel(
        self, *args: str, cwd: str = "work", env: Mapping[str, str] | None = None, stdin: str | bytes = b""
    ) -> Done:
        """Run `python -m accel.run` with `args`."""
        return self.python("-m", "accel.run", *args, cwd=cwd, env=env, stdin=stdin)
