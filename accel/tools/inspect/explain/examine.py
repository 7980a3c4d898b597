"""Record one call in the forked child, up to the first line that stops it, and send the result.

The recorder refuses an effect before it happens, and then the process ends: nothing is printed, and no file is written.
An audit hook stops effects that the recorder does not see.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from accel.compiler.loops import rolled
from accel.entry.callables import PlainCall
from accel.platform.reasons import Refusal
from accel.record import Raised, Undone, record
from accel.record.state.recording import Recording
from accel.rules.rule import Unsupported
from accel.tools.inspect.explain import describe
from accel.tools.inspect.explain.apart import Message, Send
from accel.tools.inspect.explain.parts import parts

_FILES = frozenset(
    """os.remove os.rename os.mkdir os.rmdir os.link os.symlink os.truncate os.chmod os.chown os.utime shutil.rmtree
    shutil.move shutil.copyfile tempfile.mkstemp tempfile.mkdtemp sqlite3.connect""".split()
)
_BEYOND = frozenset(
    """os.system os.exec os.fork os.forkpty os.kill os.posix_spawn os.startfile subprocess.Popen socket.connect
    socket.sendto socket.bind webbrowser.open""".split()
)
"""Audit events with effects outside the process. For "open", the mode decides."""


def examine(call: PlainCall, max_nodes: int, with_jax: bool, passes: bool, send: Send) -> None:
    """Record `call` and send the result: one message, or two if the whole call is recorded and then lowered.

    passes: list the operations after each pass of the lowering.
    """
    watch = _RecordingWatcher(call, send)
    try:
        recorded = record(call.function, call.args, call.kwargs, max_nodes=max_nodes, watch=watch.start)
    except BaseException as error:
        watch.stop(_refusal_for(error))
    if isinstance(recorded, Undone):
        watch.stop(recorded.refusal)
    if isinstance(recorded, Raised):
        watch.stop(_refusal_for(recorded.error))
    if recorded.refusal is not None:
        watch.stop(recorded.refusal)
    watch.armed = False
    trace = recorded.trace
    assert trace is not None
    trace = rolled(trace)
    send({"verdict": "recorded", "stop": None, **watch.seen, **describe.program(trace)})
    from accel.tools.inspect.explain import second_look  # needs the lowering, and JAX where there is a choice

    try:
        send({"lowered": second_look.lowered(trace, watch.values, with_jax=with_jax, passes=passes)})
    except Unsupported as gap:
        where, detail = second_look.locate(gap.detail)
        send({"verdict": "stopped", "stop": describe.stop(Refusal(gap.reason, where, detail), None)})


def _refusal_for(error: BaseException) -> Refusal:
    return Refusal("path.exception", "", f"{type(error).__name__}: {error}")


class _RecordingWatcher:
    """Describes a recording while its frames still exist, and ends the process at the first stop.

    seen: the description so far. values: by slot, of the inputs.
    """

    def __init__(self, call: PlainCall, send: Send) -> None:
        self._call = call
        self._send = send
        self._recording: Recording | None = None
        self._at_exception: Message | None = None
        self.seen: Message = {}
        self.values: dict[int, Any] = {}
        self.armed = False

    def start(self, recording: Recording) -> None:
        self._recording = recording
        recording.watcher = self._look
        self.armed = True
        # Python cannot remove an audit hook: `armed` switches it off
        sys.addaudithook(self._audit)

    def _look(self) -> None:
        recording = self._recording
        assert recording is not None
        if recording.refusal is not None:
            self.stop(recording.refusal)
        if self._at_exception is not None:
            return
        self.seen = describe.so_far(recording)
        if recording.raised is not None:
            what, place = recording.raised
            refusal = Refusal("path.exception", describe.place_text(place), what)
            # kept, as its frames will be gone. The program may catch it: then something later may be the stop
            self._at_exception = describe.stop(refusal, recording)
            return
        self.values = {slot: value for slot, (value, _) in recording.entered.items()}
        recording.journal.undo()  # restore memory that is shared with other processes

    def stop(self, refusal: Refusal) -> NoReturn:
        """Send the refusal that stopped the recording, restore shared memory, and end the process."""
        self.armed = False
        recording = self._recording
        notes = []
        if refusal.reason == "path.exception" and self._at_exception is not None:
            stop = self._at_exception
        else:
            stop = describe.stop(refusal, recording)
            if self._at_exception is not None:
                notes = [f"before that, at {self._at_exception['where']}: {self._at_exception['why']}"]
            if recording is not None:
                self.seen = describe.so_far(recording) if recording.entered else self.seen
        stop["parts"] = parts(self._call, refusal)
        self._send({"verdict": "stopped", "stop": stop, "notes": notes, **self.seen})
        if recording is not None:
            recording.journal.undo()
        os._exit(0)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        """Stop before an effect that the recorder did not refuse. Called as an audit hook."""
        if not self.armed:
            return
        is_file = event in _FILES or (event == "open" and _for_writing(*args[1:3]))
        if is_file or event in _BEYOND:
            self.armed = False
            where = self._recording.writer.where_text() if self._recording is not None else ""
            reason = "effect.file" if is_file else "call.opaque"
            self.stop(Refusal(reason, where, f"{event}({', '.join(map(repr, args[:1]))})"))


def _for_writing(mode: object = None, flags: object = 0) -> bool:
    if isinstance(mode, str):
        return not set(mode).isdisjoint("wax+")
    return bool(isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))
