"""Experience: what runs have shown of a recorded path, kept on disk beside its programs for later runs.

What a run takes for constant depends on the calls that it happens to watch, and where its arrays lie in memory on
chance. A later run that decided anew would look for programs that no earlier one has made; so it goes by what is known.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from accel.backend import cache


@dataclass(frozen=True, slots=True)
class Experience:
    """Of one path. varied: slots of numbers that changed in some run. spanned: slots of arrays that want spans.

    threads: for which its programs were compiled, 0 for all there are; None where that is not known.
    """

    varied: frozenset[int] = frozenset()
    spanned: frozenset[int] = frozenset()
    threads: int | None = None


def load(key: str) -> Experience:
    """What is known of a path. key: its name on disk."""
    text = cache.load(key, cache.PATH)
    if text is None:
        return Experience()
    found = json.loads(text)
    return Experience(frozenset(found["varied"]), frozenset(found["spanned"]), found["threads"])


def save(key: str, known: Experience) -> None:
    """Keep what is known of a path, where that can be kept."""
    plain = {"varied": sorted(known.varied), "spanned": sorted(known.spanned), "threads": known.threads}
    cache.save(key, json.dumps(plain).encode(), cache.PATH)
