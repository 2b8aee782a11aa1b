"""The log."""

from __future__ import annotations

import re
import threading

import pytest

from pypto import logging as log
from pypto.logging import LogLevel


@pytest.fixture(autouse=True)
def _restore_level():
    saved = log.get_log_level()
    yield
    log.set_log_level(saved)


def test_lines_carry_time_mark_and_message(capsys):
    log.set_log_level(LogLevel.DEBUG)
    for write in (log.log_debug, log.log_info, log.log_warn, log.log_error, log.log_fatal, log.log_event):
        write("100% {x}")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[2] for line in lines] == list("DIWEFV")
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \w \| 100% \{x\}", line) for line in lines)


@pytest.mark.parametrize("level, shown", [(LogLevel.INFO, "iwe"), (LogLevel.ERROR, "e"), (LogLevel.NONE, "")])
def test_level_filters(capsys, level, shown):
    log.set_log_level(level)
    log.log_debug("d")
    log.log_info("i")
    log.log_warn("w")
    log.log_error("e")
    assert "".join(line[-1] for line in capsys.readouterr().err.splitlines()) == shown


def test_thread_override_stays_in_its_thread(capsys):
    log.set_log_level(LogLevel.INFO)

    def work():
        log._set_thread_log_level(LogLevel.ERROR)
        log.log_info("hidden")
        log._clear_thread_log_level()
        log.log_info("shown")
        assert log.get_log_level() is LogLevel.INFO

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    err = capsys.readouterr().err
    assert "shown" in err and "hidden" not in err


@pytest.mark.parametrize(
    "value, level", [("Warn", LogLevel.WARN), ("none", LogLevel.NONE), ("bogus", LogLevel.INFO), (None, LogLevel.INFO)]
)
def test_environment_gives_the_first_level(monkeypatch, value, level):
    if value is None:
        monkeypatch.delenv("PYPTO_LOG_LEVEL", raising=False)
    else:
        monkeypatch.setenv("PYPTO_LOG_LEVEL", value)
    assert log._level_from_environment() is level
