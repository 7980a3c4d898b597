"""Merging: several recorded paths of one target become one trace, whose program answers a call of any of them.

alignment   which operations of two recordings are the same line of the program, reached in the same way
inputs      the slots of all paths as one list: a call is matched with all paths at once
recorded    what merging needs to know of one recording
writer      the merged tape, with a phi wherever paths that come together bring different values
draws       random numbers that several paths draw alike
outputs     what the paths return and leave, as one list of arrays and numbers
members     where each path finds what
placing     the proof that it computes a path that was recorded later
trace       a merged trace, and what its paths find where in it: `merged`
sides       which of the paths a call may take, and which one a run has taken

Soundness does not depend on the alignment, which only decides how much the paths share. A run counts only if its
outcomes are those of a recorded path. The merged tape, followed as that path goes, must be the path's own tape, node
for node. `writer.check` makes sure of that whenever paths are merged.
"""

from accel.compiler.merge.inputs import ABSENT, Matched, paths_of
from accel.compiler.merge.members import Member, Placement
from accel.compiler.merge.trace import MergedTrace, NotMergeable, merged, reassembled

__all__ = [
    "ABSENT",
    "Matched",
    "Member",
    "MergedTrace",
    "NotMergeable",
    "Placement",
    "merged",
    "paths_of",
    "reassembled",
]
