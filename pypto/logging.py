"""The compiler's log: lines on standard error, filtered by a process-wide or per-thread level."""

from __future__ import annotations

import os
import sys
import threading
import time
from enum import IntEnum


class LogLevel(IntEnum):
    """Lowest level that is shown; ``NONE`` shows nothing."""

    DEBUG = 0
    INFO = 1
    WARN = 2
    ERROR = 3
    FATAL = 4
    EVENT = 5
    NONE = 6


_MARKS = {
    LogLevel.DEBUG: "D",
    LogLevel.INFO: "I",
    LogLevel.WARN: "W",
    LogLevel.ERROR: "E",
    LogLevel.FATAL: "F",
    LogLevel.EVENT: "V",
}


def _level_from_environment() -> LogLevel:
    name = os.environ.get("PYPTO_LOG_LEVEL", "info").strip().upper()
    return LogLevel.__members__.get(name, LogLevel.INFO)


_level = _level_from_environment()
_thread = threading.local()


def set_log_level(level: LogLevel) -> None:
    """Set the level for the whole process. ``PYPTO_LOG_LEVEL`` gives the one it starts with (default ``info``)."""
    global _level
    _level = LogLevel(level)


def get_log_level() -> LogLevel:
    """The process-wide level, whatever the calling thread overrides."""
    return _level


def _set_thread_log_level(level: LogLevel) -> None:
    _thread.level = LogLevel(level)


def _clear_thread_log_level() -> None:
    _thread.__dict__.clear()


def log(level: LogLevel, message: str) -> None:
    if level < getattr(_thread, "level", _level):
        return
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
    sys.stderr.write(f"{stamp}.{int(now * 1000) % 1000:03d} {_MARKS[level]} | {message}\n")


def log_debug(message: str) -> None:
    log(LogLevel.DEBUG, message)


def log_info(message: str) -> None:
    log(LogLevel.INFO, message)


def log_warn(message: str) -> None:
    log(LogLevel.WARN, message)


def log_error(message: str) -> None:
    log(LogLevel.ERROR, message)


def log_fatal(message: str) -> None:
    log(LogLevel.FATAL, message)


def log_event(message: str) -> None:
    log(LogLevel.EVENT, message)
