"""Building: a program is compiled, in the background or at once, and what becomes of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accel.dispatch.paths.constants import as_known
from accel.dispatch.paths.stages import Stage
from accel.platform import config, interrupts, logs
from accel.platform.clocks import time
from accel.platform.ledger import open_ledger
from accel.platform.reasons import Refusal

if TYPE_CHECKING:
    from accel.backend.job import Trial
    from accel.backend.underway.pending import PendingProgram
    from accel.compiler.lower import Known
    from accel.dispatch.paths.program import Program


def start(program: Program, joint: Program | None = None, trial: Trial | None = None) -> None:
    """Compile a program: in the background, or at once if `Settings.ahead_of_time` is off.

    joint: compile that one, which has this one's path among others. trial: how the executable is tried.
    """
    program.joint = joint
    program.pending = compile_again(joint or program, program.whole.numpy_call_s + program.whole.waited_s, trial)
    program.enter(Stage.PENDING)


def compile_again(program: Program, missed_s: float, trial: Trial | None = None) -> PendingProgram:
    """Compile a program, whatever its stage.

    missed_s: seconds of calls that had no program so far, which are the first priority in the queue.
    """
    from accel.backend.job import samples_of
    from accel.backend.underway import queues
    from accel.backend.underway.pending import PendingProgram

    started, trace = time.perf_counter(), program.whole.trace
    pending = PendingProgram((trace, _folded(program), samples_of(trace)), missed_s, program.name, trial)
    try:
        return queues.compile_in_background(pending) if config.current().ahead_of_time else queues.compile_now(pending)
    finally:
        open_ledger(program.name).charge("loading", time.perf_counter() - started)


def _folded(program: Program) -> Known:
    """The constants that the next executable is folded for: those that are worth it, or that one on disk has."""
    constants = program.whole.constants
    if program.source is not None:
        return as_known(constants.values)
    constants.rule_out_dear(program.whole.numpy_call_s)
    return constants.worth_folding(program.whole.trace)


def abandon_if_overdue(program: Program) -> Refusal | None:
    """Abandon a compile that takes longer than `Settings.max_compile_s`. Returns why the program is to be given up."""
    limit = config.current().max_compile_s
    if program.pending is None or not program.pending.seconds() > limit:
        return None
    from accel.backend.underway import queues

    pending, program.pending = program.pending, None
    queues.abandon(pending)
    if program.joint is not None:
        _start_alone(program, f"compiling it with others took more than {limit:g} s")
        return None
    return Refusal("limit.compile", "", f"more than {limit:g} s")


def _start_alone(program: Program, why: str) -> None:
    """Compile a path by itself after all. why: not with others."""
    program.whole.apart, program.joint = why, None
    program.pending = compile_again(program, program.whole.numpy_call_s)


def finish(program: Program) -> Refusal | None:
    """Use what has been compiled from now on. Returns why there is none if compiling failed, else None.

    Where compiling it with others failed, the path is compiled alone. An executable in use stays then.
    """
    from accel.rules.rule import Unsupported

    assert program.pending is not None
    pending, program.pending = program.pending, None  # whatever comes of it, the path waits for it no longer
    try:
        (program.joint or program).install(pending)
        if program.joint is not None:
            program.joint.take(*program.joint.paths)
        return None
    except Unsupported as gap:
        refusal = Refusal(gap.reason, "", gap.detail)
    except Exception as error:
        if interrupts.raised_by_handler(error):
            program.pending = pending  # the program is still there for the next call
            raise
        refusal = Refusal("compile.failed", "", f"{type(error).__name__}: {error}")
    if program.stage is Stage.COMPILED:  # the program in use stays
        logs.LOGGER.info("%s could not be compiled again: %s", program.name, refusal.detail)
        return None
    if program.joint is None:
        return refusal
    _start_alone(program, f"compiling it with others failed: {refusal.detail}")
    return None
