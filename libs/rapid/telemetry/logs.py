"""Logs as text for people or JSON for machines, with fields such as run, version and game.

Modules log as usual (``logging.getLogger(__name__)``). Give fields as ``extra={"game": ...}``, or with
``fields(version=...)`` for everything below a call.
"""

import json
import logging
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from rapid.config import TelemetryConfig
from rapid.redaction import redact
from rapid.telemetry.metrics import LOGGED

_context: ContextVar[dict[str, Any]] = ContextVar("log_fields", default={})  # noqa: B039 - never mutated
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_hidden: set[str] = set()
# Control characters, separators of lines, and marks that reverse the direction of text.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_QUIET = ("grpc", "asyncio", "urllib3", "matplotlib")


def hide_secrets(*secrets: str) -> None:
    """Hide these strings from all records, also before logging is configured."""
    _hidden.update(form for secret in secrets if secret for form in (secret, json.dumps(secret)[1:-1]))


def _escape(text: str) -> str:
    """Return text on one line without control characters: names in it may come over the network."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


@contextmanager
def fields(**values: Any) -> Iterator[None]:
    """Add fields to every record logged within, in this task or thread."""
    token = _context.set({**_context.get(), **values})
    try:
        yield
    finally:
        _context.reset(token)


class _Formatter(logging.Formatter):
    def __init__(self, base: dict[str, Any]) -> None:
        super().__init__()
        self._base = base

    def values(self, record: logging.LogRecord) -> dict[str, Any]:
        extra = {k: v for k, v in record.__dict__.items() if k not in _STANDARD}
        return {**self._base, **extra, **_context.get()}

    def clean(self, text: str) -> str:
        for secret in sorted(_hidden, key=len, reverse=True):  # one may be a part of another
            text = text.replace(secret, "***")
        return redact(text)

    def trace(self, record: logging.LogRecord) -> str:
        return self.formatException(record.exc_info) if record.exc_info else ""


class JsonFormatter(_Formatter):
    """Formatter of one JSON object per line: time, level, logger, message, and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        row = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage(),
            **self.values(record),
        }
        if record.exc_info:
            row["exception"] = self.trace(record)
        return self.clean(json.dumps(row, default=str))


class TextFormatter(_Formatter):
    """Formatter of text: time, level, service, message, and the fields as name=value.

    A record is one line, and indented lines for an exception, so no received text looks like another record.
    """

    def format(self, record: logging.LogRecord) -> str:
        values = self.values(record)
        who = f"{values.pop('service', '')}-{values.pop('id', '')}".strip("-") or record.name
        values.pop("run", None)
        line = (f"{time.strftime('%H:%M:%S', time.localtime(record.created))}.{int(record.msecs):03d} "
                f"{record.levelname[0]} {who}: {record.getMessage()}")
        if values:
            line += "  " + " ".join(f"{k}={v}" for k, v in values.items())
        lines = [line, *(f"  {part}" for part in self.trace(record).split("\n") if record.exc_info)]
        return self.clean("\n".join(map(_escape, lines)))


def _count(record: logging.LogRecord) -> bool:
    if record.levelno >= logging.WARNING:
        LOGGED.labels("warning" if record.levelno < logging.ERROR else "error").inc()
    return True


def configure_logs(config: TelemetryConfig, run: str = "", service: str = "", identity: str = "",
                   secrets: Sequence[str] = (), stream: TextIO | None = None) -> None:
    """Configure the logging of the process, once. ``secrets`` never appear in a record."""
    base = {k: v for k, v in (("run", run), ("service", service), ("id", identity)) if v}
    hide_secrets(*secrets)
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter((JsonFormatter if config.log_json else TextFormatter)(base))
    handler.addFilter(_count)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(config.log_level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
