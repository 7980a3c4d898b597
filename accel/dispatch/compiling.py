"""Compiling: when a target's paths get their programs, and what happens until then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from accel.backend import resident
from accel.backend.disk import cache
from accel.dispatch import late
from accel.dispatch.earlier import Earlier
from accel.dispatch.paths import building, joining, refolding, several
from accel.dispatch.paths.path import RecordedPath
from accel.dispatch.paths.program import Program
from accel.dispatch.paths.refolding import Refold
from accel.dispatch.paths.stages import Stage
from accel.dispatch.state import TargetState
from accel.platform import config, gain, logs, timeline
from accel.platform.clocks import time
from accel.platform.ledger import current_run, open_ledger
from accel.platform.reasons import Refusal
from accel.policy import budget, prices
from accel.policy.call import Call, note_counted

if TYPE_CHECKING:
    from accel.backend.executable import Executable
    from accel.backend.job import Trial

OBSERVED = 2
"""Calls on NumPy after a recording, during which accel observes which inputs change."""

MIN_OBSERVED = 2
"""The fewest observed calls: one call alone cannot show a change."""

MAX_OBSERVED = 12
"""Maximum number of calls that a path waits for nested targets to have programs of their own. For processes that
compile for later runs."""


class Compiling:
    """Gets the paths of one target compiled."""

    def __init__(self, state: TargetState, earlier: Earlier) -> None:
        self._state = state
        self._earlier = earlier
        self._name = state.name
        self._paths = state.paths

    # -- before a program is there ------------------------------------------------------------------------------------

    def advance(self, program: Program, values: list[Any], call: Call) -> Refusal | None:
        """Take a program on towards being compiled, as far as this call allows. Returns why it is not, if so."""
        if program.stage is Stage.OBSERVING and self.may_start(program.whole):
            self._observe(program, values, call)
            self.keep(program.paths)
        if program.is_ready():
            return self.finish(program)
        if program.pending is not None:  # what only later runs will use comes after all else
            program.pending.is_for_this_run = not self._state.parts.end_before(program.whole.compile_s)
        return building.abandon_if_overdue(program)

    def may_start(self, path: RecordedPath) -> bool:
        """Whether the budget covers what it takes in this process to have a path compiled."""
        if not path.may_start:
            state = self._state
            # they are looked through together, to give them one program
            price_s = sum(other.start_s for other in self._paths)
            covers = budget.covers(state.ledger, price_s, state.account.total_s)
            missed = state.parts.pay and budget.grants(price_s, state.parts.certain_miss_s(path.compile_s))
            path.may_start = covers or missed or not state.is_limited or budget.for_later_runs
            if path.may_start:
                state.parts.note_paid()
        return path.may_start

    def keep(self, paths: Iterable[RecordedPath]) -> None:
        """Keep what later runs can use of paths that have programs or soon will."""
        if self._earlier.keep(paths):
            self._state.parts.note_begun()

    def _observe(self, program: Program, values: list[Any], call: Call) -> None:
        """Observe one more call's inputs, and start compiling the program if it is due."""
        path = program.whole
        path.observe(values)
        if budget.for_later_runs:
            self._let_others_observe(path, call)
        # `observed` includes this call: compiling starts at the next call after OBSERVED of them
        if path.observed > OBSERVED and self._is_due(path):
            started = time.perf_counter()
            path.constants.compare(values, looks_at_all=True)
            # a later run may meet the paths in another order: each gets a program, and in the end all get one together
            alone = budget.for_later_runs or program.is_merged
            joint = None if alone else joining.joint_with(path, self._paths)
            if joint is not None and self._paths.joint is not None:
                several.fold_no_more_than(joint, self._paths.joint)
            self.start(program, call, joint)
            operations = sum(len(other.trace.tape.nodes) for other in (joint or program).paths)
            (prices.loading if path.is_on_disk else prices.describing).note(time.perf_counter() - started, operations)

    def _let_others_observe(self, path: RecordedPath, call: Call) -> None:
        """Let the other paths observe the call too, if it matches them: a later run may have recorded them first."""
        for other in self._paths:
            if other is not path and other.stage is Stage.OBSERVING and other.observed < MIN_OBSERVED:
                values = other.matcher.match(call.args, call.kwargs)
                if isinstance(values, list):
                    other.observe(values)

    def _is_due(self, path: RecordedPath) -> bool:
        """Whether to compile the path: not before its calls have lost what that costs. If no budget holds, at once."""
        limited, parts = self._state.is_limited, self._state.parts
        comes_late = limited and parts.end_before(path.compile_s) and not parts.are_for_later_runs
        # asked last: to look for a path on disk takes its key
        if comes_late and not path.is_on_disk:
            return False
        if budget.for_later_runs:
            # the programs of nested targets first: a later run may call them before it has the outer one's
            return path.observed > MAX_OBSERVED or not any(nested.is_observing for nested in path.trace.inlined)
        if not limited:
            gain.potential_gain.stop_waiting()
        # with QD_JAX_AOT=0 the call waits for its program: nothing is weighed
        settings = config.current()
        if not settings.ahead_of_time or settings.policy == config.EAGER:
            return True
        if self._paths.may_scatter(path) and not path.is_on_disk:
            return False
        # whether programs could have saved enough so far for the first of them to be compiled or loaded
        certain_s = parts.certain_miss_s(path.compile_s)
        before_s = parts.missed_before_s(path.observed) if len(self._paths) == 1 else 0.0
        starts = gain.potential_gain.is_worth_starting(on_disk=cache.holds_programs)
        price_s = path.price_s + gain.potential_gain.wanting_s
        if not starts and not prices.are_paid(price_s, 0.0, certain_s, is_recorded=True):
            return False
        return self._paths.is_worth_compiling(path, certain_s, before_s)

    # -- its program --------------------------------------------------------------------------------------------------

    def start(self, program: Program, call: Call, joint: Program | None = None) -> None:
        """Compile the program, or the one of several paths in its place. It is tried on the call's inputs.

        If the call waits for that, the time does not count as the call's own.
        """
        started = time.perf_counter()
        # what an earlier run has compiled, it has tried
        trial = None if program.whole.is_on_disk else self._trial((joint or program).whole, call)
        building.start(program, joint, trial)
        waited = time.perf_counter() - started
        call.began += waited
        note_counted(waited)

    def _trial(self, path: RecordedPath, call: Call) -> Trial | None:
        """The worker's trial of the path's program, on a call's inputs; None if there is none."""
        from accel.backend.underway.supervisor import has_worker
        from accel.dispatch.comparing.first_run import first_run

        values = path.matcher.match(call.args, call.kwargs) if has_worker() else None
        if not isinstance(values, list):
            return None
        return first_run(path.trace, values, path.numpy_call_s, self._state.tolerance)

    def join_at_once(self, path: RecordedPath) -> None:
        """Let a new path have the program of others without waiting, if that computes it."""
        joint = self._paths.joint
        if joint is not None and not budget.for_later_runs:
            several.admit(joint, path)

    def finish(self, program: Program) -> Refusal | None:
        """Put the program that is ready to use. Returns why there is none, if so."""
        joint, before = program.joint, program.variant if program.has_program else None
        refusal = building.finish(program)
        if joint is not None and joint.has_program:
            self._paths.use(joint)
            # paths that were recorded while it was compiled; it may be an earlier run's
            for other in self._paths:
                if other.stage is Stage.OBSERVING and joining.may_join(other):
                    self.join_at_once(other)
            program = joint
        # it failed with others, and is compiled alone; or the executable in use stays
        elif refusal is not None or program.stage is Stage.PENDING or (before and program.variant is before):
            return refusal
        for inlined in program.whole.trace.inlined:
            inlined.ledger.count_inlined()
        self.note_compiled(program)
        self.keep(self._paths)
        return None

    def note_compiled(self, program: Program) -> None:
        """Enter a new executable into the books."""
        executable, ledger = program.variant.executable, open_ledger(self._name)
        operations = executable.program.operations
        if not program.found_on_disk:
            prices.worker_s = 0.0
            prices.compiling.note(executable.seconds, len(program.whole.trace.tape.nodes))
        ledger.compile_s += executable.seconds
        ledger.variants = len(self._paths.with_program)
        ledger.describe = self._paths.describe
        timeline.note_event(timeline.COMPILE, self._name, f"{operations} operations", executable.seconds)
        _note_device(executable)
        text = "%s compiled in %.2f s: %d operations, %d folded"
        logs.LOGGER.info(text, self._name, executable.seconds, operations, executable.program.folded)

    def renew_constants(self, program: Program, changed: tuple[int, ...], values: list[Any], call: Call) -> Refold:
        """Constants have changed: give the program the new ones, or compile it again, with them as inputs.

        values: of the call's slots. Returns what becomes of the program that was in use.
        """
        names = [program.whole.trace.inputs.name(slot) for slot in changed]
        arrays = {slot: values[slot] for slot in changed if isinstance(values[slot], np.ndarray)}
        often, is_first = program.refolds.are_often, not program.refolded.issuperset(changed)
        found = refolding.refold(program, arrays) if len(arrays) == len(changed) else Refold.ANOTHER
        if found is Refold.ANOTHER:
            logs.LOGGER.info("%s is compiled again: %s changed", self._name, ", ".join(names))
            refolding.respecialize(program, changed)
            # what changes on one path is likely to change on the others: spare each of them a run in vain and a compile
            self._paths.stop_folding(names, program)
            self.start(program, call)
            return found
        if is_first and found is Refold.GOES_ON:
            logs.LOGGER.info("%s goes on with other constants: %s changed", self._name, ", ".join(names))
        if (often or found is Refold.OTHER_WAY) and refolding.replace(program, changed):
            logs.LOGGER.info("%s is compiled again meanwhile: %s changed", self._name, ", ".join(names))
            self._paths.stop_folding(names, program)
        return found

    def renew_precision(self, program: Program, call: Call) -> None:
        """The settings name another precision than the program has: compile it again."""
        resident.current.bring_up_to_date("the settings have changed")
        logs.LOGGER.info("%s is compiled again, in %s", self._name, config.current().precision)
        program.drop_program()
        self.start(program, call)

    def start_remaining(self) -> Iterator[Program]:
        """Compile what this process had no occasion to, each before it is given; see `Target.compile_remaining`."""
        changed = self._paths.varying_names()
        for path in self._paths.alone:
            too_few = path.stage is Stage.OBSERVING and path.observed >= MIN_OBSERVED
            slots = path.folded_slots(changed) if path.stage is Stage.COMPILED else ()
            if slots:
                refolding.respecialize(path.program, slots)
            if slots or too_few:
                building.start(path.program)
                yield path.program
        # all that have programs get one together
        joint = joining.joint_of(list(filter(joining.may_join, self._paths)))
        if joint is not None:
            building.start(joint)
            yield joint


def is_quiet() -> bool:
    """Whether nothing is being compiled or loaded: times that are taken meanwhile are not worth comparing.

    Nor are those that are taken while the worker starts.
    """
    if late.is_starting:
        return False
    if not late.imported:
        return True
    from accel.backend.underway import queues

    return not queues.busy()


def _note_device(executable: Executable) -> None:
    run, chosen = current_run(), executable.device
    if executable.precision not in run.precisions:
        run.precisions.append(executable.precision)
    if executable.shards is not None:
        run.devices = max(run.devices, len(executable.shards.devices))
    if run.device is None:
        run.platform, run.device = chosen.platform, chosen.device_kind
