"""Compiling: when a target's paths get their programs, and what happens until then."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from accel.backend import resident
from accel.backend.disk import cache
from accel.dispatch import late
from accel.dispatch.earlier import Earlier
from accel.dispatch.paths import joining
from accel.dispatch.paths.constants import Refold
from accel.dispatch.paths.joint import JointPath
from accel.dispatch.paths.path import Path, Stage
from accel.dispatch.state import TargetState
from accel.platform import config, gain, logs, timeline
from accel.platform.ledger import current_run, open_ledger
from accel.platform.reasons import Refusal
from accel.policy import budget, prices
from accel.policy.call import Call, note_counted

if TYPE_CHECKING:
    from accel.backend.executable import Executable

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

    def advance(self, path: Path, values: list[Any], call: Call) -> Refusal | None:
        """Take a path on towards its program, as far as this call allows. Returns why it gets none, if so."""
        if path.stage is Stage.OBSERVING and self.may_start(path):
            self._observe(path, values, call)
            self.keep([path])
        if path.is_ready():
            return self.finish(path)
        if path.pending is not None:  # what only later runs will use comes after all else
            path.pending.is_for_this_run = not self._state.parts.end_before(path.compile_s)
        return path.abandon_if_overdue()

    def may_start(self, path: Path) -> bool:
        """Whether the budget covers what it takes in this process to have a path compiled."""
        if not path.may_start:
            state = self._state
            # they are looked through together, to give them one program
            price_s = sum(other.start_s for other in self._paths)
            covers = budget.covers(state.ledger, price_s, state.account.call_s, state.account.total_s)
            missed = state.parts.pay and budget.grants(price_s)
            path.may_start = covers or missed or not state.is_limited or budget.for_later_runs
        return path.may_start

    def keep(self, paths: Iterable[Path]) -> None:
        """Keep what later runs can use of paths that have programs or soon will."""
        if self._earlier.keep(paths):
            self._state.parts.note_begun()

    def _observe(self, path: Path, values: list[Any], call: Call) -> None:
        """Observe one more call's inputs, and start compiling the path if it is due."""
        path.observe(values)
        if budget.for_later_runs:
            self._let_others_observe(path, call)
        # `observed` includes this call: compiling starts at the next call after OBSERVED of them
        if path.observed > OBSERVED and self._is_due(path):
            started = time.perf_counter()
            path.constants.compare(values, looks_at_all=True)
            # a later run may meet the paths in another order: each gets a program, and in the end all get one together
            alone = budget.for_later_runs or path is self._paths.joint
            joint = None if alone else joining.joint_with(path, self._paths, self._name)
            if joint is not None and self._paths.joint is not None:
                joint.fold_no_more_than(self._paths.joint)
            self.start(path, call, joint)
            operations = sum(len(other.trace.tape.nodes) for other in ((path,) if joint is None else joint.members))
            (prices.loading if path.is_on_disk else prices.describing).note(time.perf_counter() - started, operations)

    def _let_others_observe(self, path: Path, call: Call) -> None:
        """Let the other paths observe the call too, if it matches them: a later run may have recorded them first."""
        for other in self._paths:
            if other is not path and other.stage is Stage.OBSERVING and other.observed < MIN_OBSERVED:
                values = other.matcher.match(call.args, call.kwargs)
                if isinstance(values, list):
                    other.observe(values)

    def _is_due(self, path: Path) -> bool:
        """Whether to compile the path: not before its calls have taken a share of its expected compile time.

        Nor before the paths that its program should have besides have been recorded. If no budget holds, at once.
        """
        limited, parts = self._state.is_limited, self._state.parts
        if limited and path not in self._earlier.taken and not path.is_on_disk:
            if parts.end_before(path.compile_s) and not parts.are_for_later_runs:
                return False
            if not parts.show_their_kinds(path.waited_s, path.compile_s, path.price_s + path.start_s):
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
        # whether programs could have saved enough so far for the first of them to be compiled or loaded
        starts = gain.potential_gain.is_worth_starting(on_disk=cache.holds_programs)
        return starts and self._paths.is_worth_compiling(path, parts.certain_miss_s)

    # -- its program --------------------------------------------------------------------------------------------------

    def start(self, path: Path, call: Call, joint: JointPath | None = None) -> None:
        """Compile the path, or the joint one in its place. The call's inputs are those that the program is tried on.

        If the call waits for that, the time does not count as the call's own.
        """
        started = time.perf_counter()
        # what an earlier run has compiled, it has tried
        path.start(joint, None if path.is_on_disk else (joint or path).trial_on(call, *self._state.tolerance))
        waited = time.perf_counter() - started
        call.began += waited
        note_counted(waited)

    def join_at_once(self, path: Path) -> None:
        """Let a new path have the program of others without waiting, if that computes it."""
        joint = self._paths.joint
        if joint is not None and not budget.for_later_runs:
            joint.admit(path)

    def finish(self, path: Path) -> Refusal | None:
        """Put the program that is ready to use. Returns why there is none, if so."""
        joint, before = path.joint, path.variant if path.has_program else None
        refusal = path.finish()
        # it failed with others, and is compiled alone; or the program in use stays
        if refusal is not None or path.stage is Stage.PENDING or (path.has_program and path.variant is before):
            return refusal
        if path.stage is Stage.JOINED:
            assert joint is not None
            self._paths.use(joint)
            # paths that were recorded while it was compiled; it may be an earlier run's
            for other in self._paths:
                if other.stage is Stage.OBSERVING and joining.may_join(other):
                    self.join_at_once(other)
            path = joint
        for inlined in path.trace.inlined:
            inlined.ledger.count_inlined()
        self.note_compiled(path)
        self.keep(self._paths)
        return None

    def note_compiled(self, path: Path) -> None:
        """Enter a new program of a path into the books."""
        executable, ledger = path.variant.executable, open_ledger(self._name)
        operations = executable.program.operations
        if not path.found_on_disk:
            prices.compiling.note(executable.seconds, len(path.trace.tape.nodes))
        ledger.compile_s += executable.seconds
        ledger.variants = len(self._paths.with_program)
        ledger.describe = self._paths.describe
        timeline.note_event(timeline.COMPILE, self._name, f"{operations} operations", executable.seconds)
        _note_device(executable)
        text = "%s compiled in %.2f s: %d operations, %d folded"
        logs.LOGGER.info(text, self._name, executable.seconds, operations, executable.program.folded)

    def renew_constants(self, path: Path, changed: tuple[int, ...], values: list[Any], call: Call) -> Refold:
        """Constants have changed: give the program the new ones, or compile it again, with them as inputs.

        values: of the call's slots. Returns what becomes of the program that was in use.
        """
        names = [path.trace.inputs.name(slot) for slot in changed]
        arrays = {slot: values[slot] for slot in changed if isinstance(values[slot], np.ndarray)}
        often, is_first = path.changes_often, not path.refolded.issuperset(changed)
        found = path.refold(arrays) if len(arrays) == len(changed) else Refold.ANOTHER
        if found is Refold.ANOTHER:
            logs.LOGGER.info("%s is compiled again: %s changed", self._name, ", ".join(names))
            path.respecialize(changed)
            # what changes on one path is likely to change on the others: spare each of them a run in vain and a compile
            self._paths.stop_folding(names, path)
            self.start(path, call)
            return found
        if is_first and found is Refold.GOES_ON:
            logs.LOGGER.info("%s goes on with other constants: %s changed", self._name, ", ".join(names))
        if (often or found is Refold.OTHER_WAY) and path.replace(changed):
            logs.LOGGER.info("%s is compiled again meanwhile: %s changed", self._name, ", ".join(names))
            self._paths.stop_folding(names, path)
        return found

    def renew_precision(self, path: Path, call: Call) -> None:
        """The settings name another precision than the path's program has: compile it again."""
        resident.current.bring_up_to_date("the settings have changed")
        logs.LOGGER.info("%s is compiled again, in %s", self._name, config.current().precision)
        path.drop_program()
        self.start(path, call)

    def start_remaining(self) -> Iterator[Path]:
        """Compile what this process had no occasion to, each before it is given; see `Target.compile_remaining`."""
        changed = self._paths.varying_names()
        for path in self._paths:
            too_few = path.stage is Stage.OBSERVING and path.observed >= MIN_OBSERVED
            slots = path.folded_slots(changed) if path.stage is Stage.COMPILED else ()
            if slots:
                path.respecialize(slots)
            if slots or too_few:
                path.start()
                yield path
        # all that have programs get one together
        joint = joining.joint_of(list(filter(joining.may_join, self._paths)), self._name)
        if joint is not None:
            joint.start()
            yield joint


def is_quiet() -> bool:
    """Whether nothing is being compiled or loaded: times that are taken meanwhile are not worth comparing.

    Nor are those that are taken while the worker starts.
    """
    if late.early.under_way:
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
