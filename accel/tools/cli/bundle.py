"""`accel bundle FILE`, `accel bundle --load FILE`: compiled programs and recordings as one file, for other machines."""

from __future__ import annotations

import json
import platform
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from accel.backend.disk import cache
from accel.backend.disk.cache import KNOWN, RECORDING, RECORDINGS
from accel.platform import config, processors, versions
from accel.platform.config import SettingError
from accel.platform.options import Parser, refuse
from accel.reports.words import plural

MANIFEST = "manifest.json"

PORTABLE = (RECORDING, RECORDINGS, KNOWN)
"""Suffixes of entries that serve on any processor: what was recorded, so that it need only be compiled."""

_PROCESSOR = "processor"
_COMPILED = "compiled for"


def main(args: Sequence[str]) -> int:
    """Run the command. Returns the exit code: 2 for bad input."""
    parser = Parser(
        prog="accel bundle",
        usage="accel bundle [--load] FILE",
        description="Write what is compiled and recorded for this environment to FILE, or read such a file. A bundle "
        "holds code: load only what you trust.",
    )
    parser.add_argument("--load", action="store_true", help="read FILE into the disk cache")
    parser.add_argument("file", metavar="FILE")
    options = parser.parse_args(args)
    try:
        if why := cache.problem():
            value = str(config.current().cache_dir or "off")
            raise SettingError(config.VARIABLES["cache_dir"], value, "a folder that only you can write to", why)
        sys.stdout.write((load if options.load else write)(Path(options.file)))
    except SettingError as error:
        return refuse(error)
    except (OSError, zipfile.BadZipFile) as error:
        return refuse(
            SettingError("FILE", options.file, "a file that accel bundle writes", f"cannot be used ({error})")
        )
    return 0


def environment() -> dict[str, str]:
    """The machine that a bundle is for: versions, the processor, and a hash of all that programs depend on."""
    packages = {name: versions.installed(name) or "none" for name in ("pygcm-accel", *versions.FLOORS, "llvmlite")}
    described = f"{platform.machine()} {processors.description()}"
    return {"Python": sys.version, **packages, _PROCESSOR: described, _COMPILED: cache.environment_hash()}


def write(path: Path) -> str:
    """Write a bundle. Returns what to tell."""
    root = config.current().cache_dir
    assert root is not None, "it was checked"
    own = [each for each in cache.entries(root) if each.complete and _is_of_this_environment(each.path)]
    if not any(each.is_program for each in own):
        possible = "programs in the cache: accel compile TARGET, or a run of accel run TARGET"
        raise SettingError("FILE", str(path), possible, "would be empty")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr(MANIFEST, json.dumps({"bundle": 1, **environment()}))
        for each in own:
            bundle.write(each.path, each.path.name)
    programs = plural(sum(each.is_program for each in own), "program")
    return f"{path}: {programs}, {cache.size_text(path.stat().st_size)}. Elsewhere: accel bundle --load {path.name}\n"


def _is_of_this_environment(path: Path) -> bool:
    return path.parent.name.endswith(cache.environment_hash())


def load(path: Path) -> str:
    """Read a bundle into the disk cache. Returns what to tell. Raises SettingError if it is for other versions."""
    with zipfile.ZipFile(path) as bundle:
        equal = _check(path, bundle)
        names = [name for name in bundle.namelist() if name != MANIFEST]
        suffixes = {name: PurePosixPath(name).suffix for name in names}
        wanted = [name for name in names if equal or suffixes[name] in PORTABLE]
        for name in wanted:
            key = PurePosixPath(name).stem
            payload = cache.payload_of(key, suffixes[name], bundle.read(name))
            if len(key) != 40 or payload is None:
                raise SettingError("FILE", str(path), "an undamaged bundle", f"holds a damaged entry ({name})")
            if why := cache.save(key, payload, suffixes[name]):
                raise SettingError(config.VARIABLES["cache_dir"], str(config.current().cache_dir), "more room", why)
    programs = sum(suffixes[name] == cache.SUFFIX for name in wanted)
    if equal:
        return f"{plural(programs, 'program')} loaded into {config.current().cache_dir}, ready to run\n"
    recorded = sum(suffixes[name] == RECORDING for name in wanted)
    return (
        f"{plural(recorded, 'recording')} loaded; programs were compiled for another processor or other flags: a first "
        "run compiles them here\n"
    )


def _check(path: Path, bundle: zipfile.ZipFile) -> bool:
    """Whether its programs run here; False if its recordings do. Raises SettingError for other versions."""
    try:
        made: dict[str, Any] = json.loads(bundle.read(MANIFEST))
    except (KeyError, ValueError):
        raise SettingError("FILE", str(path), "a file that accel bundle writes", "is no bundle") from None
    here = environment()
    for name, version in here.items():
        if name not in (_PROCESSOR, _COMPILED) and made.get(name) != version:
            problem = f"is for {name} {made.get(name)}".replace("\n", " ")
            raise SettingError("FILE", str(path), f"a bundle for {name} {version}".replace("\n", " "), problem)
    return made.get(_COMPILED) == here[_COMPILED]
