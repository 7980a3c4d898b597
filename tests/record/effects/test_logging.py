"""Logging: a level that is off is a guard, what is logged is shown after the run, as the same records."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import accel
from accel.platform.ledger import open_ledger

LOG = logging.getLogger("accel-shown")
FORM = "%(levelname)s %(name)s %(filename)s:%(lineno)d %(funcName)s %(message)s"


class Model:
    """State that outlives the calls."""

    def __init__(self) -> None:
        self.n: Any = 0
        self.x = np.linspace(0.0, 1.0, 48)
        self.log = LOG


@pytest.fixture
def text() -> Iterator[io.StringIO]:
    """What LOG and the root logger show, with standard handlers; afterwards all is as it was."""
    stream, root = io.StringIO(), logging.getLogger()
    loggers, before = (LOG, root), []
    for logger in loggers:
        before.append((logger.handlers[:], logger.level, logger.propagate, logger.filters[:]))
        logger.handlers[:] = [handler_to(stream, "" if logger is LOG else "root: ")]
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
    yield stream
    logging.disable(logging.NOTSET)
    for logger, (handlers, level, propagate, filters) in zip(loggers, before, strict=True):
        logger.handlers[:], logger.propagate, logger.filters[:] = handlers, propagate, filters
        logger.setLevel(level)


def handler_to(stream: Any, first: str = "") -> logging.Handler:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(first + FORM))
    return handler


@pytest.fixture
def same_text(text: io.StringIO, foreground: None) -> Callable[..., Any]:
    """Give a function that plays calls plainly and accelerated, and compares text and state."""

    def run(
        function: Any,
        *,
        calls: int = 20,
        replays: int | None = None,
        reason: str = "",
        before: Callable[[int], Any] = lambda i: None,
    ) -> Any:
        name = f"logged.{function.__qualname__}"
        shown, fields = [], []
        for each in (function, accel.accelerate(function, name=name)):
            text.seek(0)
            text.truncate()
            model = Model()
            for i in range(calls):
                before(i)
                each(model)
            shown.append(text.getvalue())
            fields.append(model.x)
        assert shown[1] == shown[0]
        np.testing.assert_allclose(fields[1], fields[0], rtol=1e-10)
        ledger = open_ledger(name)
        refusals = {refusal.reason: refusal.message(name) for refusal in ledger.refusals}
        if reason:
            assert reason in refusals, refusals
            assert ledger.compiled_calls >= (replays or 0) and (replays or not ledger.compiled_calls)
        else:
            assert ledger.compiled_calls >= (calls - 6 if replays is None else replays), refusals
        return shown[0]

    return run


def all_levels(model: Any) -> Any:
    model.n += 1
    model.x = model.x * 0.9
    LOG.debug("not shown %s", model.x)
    LOG.info("step %d: mean %.3f of %s", model.n, model.x.mean(), model.x[:3])
    model.log.warning(f"at most {model.x.max():.2e}")
    LOG.error("100%")
    LOG.critical("%5.1f%% of %d, %s", 100 * model.x.mean(), 48, "text")
    LOG.log(logging.INFO, "by number %i", (model.x > 0.1).sum())
    return model.x


def test_levels(same_text: Any) -> None:
    shown = same_text(all_levels)
    assert shown.count("INFO accel-shown test_logging.py:") == 40


def test_level_changed_between_calls(same_text: Any) -> None:
    def before(i: int) -> None:
        LOG.setLevel(logging.DEBUG if i % 4 == 3 else logging.WARNING if i % 4 == 1 else logging.INFO)
        logging.disable(logging.INFO if i % 5 == 4 else logging.NOTSET)

    same_text(all_levels, calls=60, replays=25, before=before)


def guarded(model: Any) -> Any:
    model.x = model.x * 0.9
    if LOG.isEnabledFor(logging.DEBUG):
        LOG.debug(f"all of it: {model.x.sum():.3f}")
    return model.x


def test_questions_for_the_level_are_guards(same_text: Any) -> None:
    def before(i: int) -> None:
        LOG.setLevel(logging.DEBUG if 10 <= i < 20 else logging.INFO)

    assert same_text(guarded, calls=30, replays=18, before=before).count("all of it") == 10


def quiet(model: Any) -> Any:
    model.x = model.x * 0.9
    LOG.debug("x is %s, %r", model.x.mean(), [model.x])
    LOG.debug(f"x is {model.x.mean()}")
    return model.x


def test_full_precision_in_a_call_that_is_off_is_not_needed(same_text: Any) -> None:
    def lazily(model: Any) -> Any:
        model.x = model.x * 0.9
        LOG.debug("x is %s, %r", model.x.mean(), [model.x], exc_info=True, extra={"a": model})
        return model.x

    same_text(lazily)


def test_handlers_that_come_and_go(same_text: Any, text: io.StringIO) -> None:
    added = handler_to(text, "second: ")

    def before(i: int) -> None:
        (LOG.addHandler if i == 8 else LOG.removeHandler if i in (0, 14) else lambda handler: None)(added)
        LOG.propagate = 10 <= i < 12

    shown = same_text(all_levels, before=before)
    assert shown.count("second: ") == 30 and shown.count("root: ") == 10


def by_module(model: Any) -> Any:
    model.x = model.x * 0.9
    logging.debug("not shown")
    logging.warning(f"at most {model.x.max():.2f}")
    logging.log(logging.ERROR, "%.1f", model.x.max())
    return model.x


def test_functions_of_the_module(same_text: Any) -> None:
    assert same_text(by_module).count("root: WARNING root test_logging.py:") == 20


class Own(logging.Handler):
    """A handler of the program's own, which changes what the program computes from."""

    seen = 0

    def emit(self, record: logging.LogRecord) -> None:
        Own.seen += 1


class Filter(logging.Filter):
    """A filter of the program's own."""

    def filter(self, record: logging.LogRecord) -> bool:
        Own.seen += 1
        return True


def one_line(model: Any) -> Any:
    model.x = model.x * 0.9
    LOG.info("mean %.3f", model.x.mean())
    return model.x


def _add_handler(i: int) -> None:
    if not any(isinstance(handler, Own) for handler in LOG.handlers):
        LOG.addHandler(Own())


def _add_filter(i: int) -> None:
    LOG.filters[:] = [Filter()]


def _add_filter_to_handler(i: int) -> None:
    LOG.handlers[0].filters[:] = [Filter()]


class Form(logging.Formatter):
    """A formatter of the program's own."""

    def format(self, record: logging.LogRecord) -> str:
        Own.seen += 1
        return super().format(record)


def _set_formatter(i: int) -> None:
    LOG.handlers[0].setFormatter(Form(FORM))


@pytest.mark.parametrize("before", [_add_handler, _add_filter, _add_filter_to_handler, _set_formatter])
def test_code_of_the_programs_sees_every_record(same_text: Any, before: Any) -> None:
    Own.seen = 0
    same_text(one_line, calls=9, reason="effect.print", before=before)
    assert Own.seen == 18


def test_a_handler_of_its_own_that_comes_later(same_text: Any) -> None:
    def before(i: int) -> None:
        LOG.handlers[:] = [handler for handler in LOG.handlers if not isinstance(handler, Own)]
        if i >= 12:
            _add_handler(i)

    Own.seen = 0
    same_text(one_line, reason="effect.print", replays=5, before=before)
    assert Own.seen == 16


def test_a_record_factory_of_its_own(same_text: Any) -> None:
    made = []

    def factory(*args: Any, **kwargs: Any) -> logging.LogRecord:
        made.append(args)
        return logging.LogRecord(*args, **kwargs)

    logging.setLogRecordFactory(factory)
    try:
        same_text(one_line, calls=9, reason="effect.print")
    finally:
        logging.setLogRecordFactory(logging.LogRecord)
    assert len(made) == 18


def test_a_method_of_its_own(same_text: Any, monkeypatch: Any) -> None:
    told = []
    monkeypatch.setattr(LOG, "info", lambda *args: told.append(len(args)), raising=False)
    same_text(one_line, calls=9, reason="object.opaque")
    assert len(told) == 18


def with_exc_info(model: Any) -> Any:
    model.x = model.x * 0.9
    LOG.info("mean", exc_info=True)
    return model.x


def with_extra(model: Any) -> Any:
    model.x = model.x * 0.9
    LOG.info("mean", extra={"of": "x"})
    return model.x


def with_full_precision(model: Any) -> Any:
    model.x = model.x * 0.9
    LOG.info("mean %s", model.x.mean())
    return model.x


def with_a_dict(model: Any) -> Any:
    model.x = model.x * 0.9
    LOG.info("mean %(a).2f", {"a": model.x.mean()})
    return model.x


@pytest.mark.parametrize("function", [with_exc_info, with_extra, with_full_precision, with_a_dict])
def test_what_stays_on_numpy(same_text: Any, function: Any) -> None:
    same_text(function, calls=9, reason="effect.print")


def test_an_adapter_stays_on_numpy(same_text: Any) -> None:
    adapter = logging.LoggerAdapter(LOG, {"a": 1})

    def adapted(model: Any) -> Any:
        model.x = model.x * 0.9
        adapter.info("mean %.3f", model.x.mean())
        return model.x

    same_text(adapted, calls=9, reason="effect.print")


def in_a_handler(model: Any) -> Any:
    model.x = model.x * 0.9
    try:
        model.x.missing  # noqa: B018
    except AttributeError:
        LOG.exception("no such attribute")
    return model.x


def test_an_exception_that_is_logged(text: io.StringIO, foreground: None) -> None:
    accelerated, model = accel.accelerate(in_a_handler, name="logged.exception"), Model()
    for _ in range(6):
        accelerated(model)
    assert text.getvalue().count("no such attribute") == 6
    assert open_ledger("logged.exception").compiled_calls == 0


def test_verify_logs_once(text: io.StringIO, foreground: None) -> None:
    accelerated, model = accel.accelerate(all_levels, name="logged.verified", mode="verify"), Model()
    for _ in range(10):
        accelerated(model)
    ledger = open_ledger("logged.verified")
    assert ledger.comparisons and not ledger.differences
    assert text.getvalue().count("step") == 10
    assert "handle" not in vars(LOG)


def test_without_any_handler(foreground: None, capsys: Any) -> None:
    log = logging.getLogger("accel-shown.alone")
    log.propagate = False

    def alone(model: Any) -> Any:
        model.x = model.x * 0.9
        log.warning("mean %.3f", model.x.mean())
        return model.x

    accelerated, model = accel.accelerate(alone, name="logged.alone"), Model()
    for _ in range(12):
        accelerated(model)
    assert capsys.readouterr().err.count("mean 0.") == 12
    assert open_ledger("logged.alone").compiled_calls
