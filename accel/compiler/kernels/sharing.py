"""Sharing: the IR by which several threads run one module's steps together.

Each step is divided into chunks. A thread claims a chunk by its flag, and computes it. It goes on to the next step when
all chunks of this one are done. So a thread that comes late finds nothing to do, and none waits for it. Which thread
computes a chunk changes no result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from accel.compiler.kernels.graph import HALOED
from accel.compiler.kernels.plan import NestStage

_CHUNK_COST = 200_000
"""Minimum cost of a chunk, some 15 us. A thread that claims one waits 0.1 us for the memory of its flag."""

_MOST_CHUNKS = 64

_LOOKS = 20_000
"""Times that a thread looks for the end of others' chunks before it lets other processes run: two chunks' time."""

COUNTERS = 128
"""Bytes of counters for each step, 0 at first: the number of chunks that are done, and a flag for each chunk."""


def chunks_of(stage: NestStage) -> int:
    """Return the number of chunks into which a loop nest is divided along its outermost loop."""
    length = stage.shape[0] if stage.shape else 1
    # the ends of a single row are copied when all of it is computed
    if len(stage.shape) == 1 and any(node.op == HALOED for node in stage.stored):
        return 1
    return max(min(math.prod(stage.shape) * stage.cost // _CHUNK_COST, length, _MOST_CHUNKS), 1)


def text(name: str, chunks: Sequence[int], *, counters: int) -> str:
    """Return the function `name` that runs `@step0`, `@step1` and so on, by their numbers of chunks.

    counters: the index of their address in the pointer table.
    """
    shares = [
        f"%c{step} = getelementptr i8, ptr %counters, i64 {COUNTERS * step}\n"
        f"call void @share(ptr @step{step}, ptr %table, ptr %c{step}, i64 {count}, i64 %me, i64 %threads)"
        for step, count in enumerate(chunks)
    ]
    alone = [f"call void @step{step}(ptr %table, i64 0, i64 1)" for step in range(len(chunks))]
    return "\n".join(
        [
            _SHARE,
            f"define void @{name}(ptr %table, i64 %me, i64 %threads) {{",
            "%alone = icmp eq i64 %threads, 1",
            "br i1 %alone, label %one, label %several",
            "one:",
            *alone,
            "ret void",
            "several:",
            f"%place = getelementptr ptr, ptr %table, i64 {counters}",
            "%counters = load ptr, ptr %place",
            *shares,
            "ret void",
            "}",
        ]
    )


# a thread begins at a place of its own: it finds in its cache what it has computed in the step before
_SHARE = f"""declare i32 @sched_yield()
define internal void @share(ptr %step, ptr %table, ptr %done, i64 %chunks, i64 %me, i64 %threads) #1 {{
%flags = getelementptr i8, ptr %done, i64 {COUNTERS - _MOST_CHUNKS}
%scaled = mul i64 %me, %chunks
%first = udiv i64 %scaled, %threads
br label %next
next:
%n = phi i64 [ 0, %0 ], [ %more, %claimed ]
%turned = add i64 %first, %n
%chunk = urem i64 %turned, %chunks
%flag = getelementptr i8, ptr %flags, i64 %chunk
%seen = load atomic i8, ptr %flag monotonic, align 1
%is_free = icmp eq i8 %seen, 0
br i1 %is_free, label %claim, label %claimed
claim:
%was = atomicrmw xchg ptr %flag, i8 1 acq_rel
%is_mine = icmp eq i8 %was, 0
br i1 %is_mine, label %compute, label %claimed
compute:
call void %step(ptr %table, i64 %chunk, i64 %chunks)
%counted = atomicrmw add ptr %done, i64 1 release
br label %claimed
claimed:
%more = add i64 %n, 1
%goes_on = icmp slt i64 %more, %chunks
br i1 %goes_on, label %next, label %wait
wait:
%looks = phi i64 [ 0, %claimed ], [ %looks_more, %look ], [ 0, %yield ]
%finished = load atomic i64, ptr %done acquire, align 8
%is_done = icmp eq i64 %finished, %chunks
br i1 %is_done, label %end, label %look
look:
%looks_more = add i64 %looks, 1
%is_long = icmp sgt i64 %looks_more, {_LOOKS}
br i1 %is_long, label %yield, label %wait
yield:
call i32 @sched_yield()
br label %wait
end:
ret void
}}"""
