"""Wait for a condition in tests. A failure says what was awaited and what was seen last."""

import asyncio
import inspect
import linecache
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

SHOWN = 300  # characters of each value in a message


def eventually(condition: Callable[[], Any], seconds: float = 30.0, what: str = "", every: float = 0.02,
               details: Callable[[], str] | None = None) -> Any:
    """Return the first true value of ``condition``.

    Fail after ``seconds`` with ``what`` was awaited (by default the call's source), the last value, the variables that
    the condition reads, and ``details`` such as a log.
    """
    what = what or _source_of(inspect.currentframe())
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise AssertionError(_message(condition, value, seconds, what, details))
        time.sleep(every)


async def eventually_async(condition: Callable[[], Any], seconds: float = 30.0, what: str = "",
                           every: float = 0.01) -> Any:
    """Return the first true value of ``condition`` while other tasks run. Fail like `eventually`."""
    what = what or _source_of(inspect.currentframe())
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise AssertionError(_message(condition, value, seconds, what, None))
        await asyncio.sleep(every)


def _message(condition: Callable[[], Any], value: Any, seconds: float, what: str,
             details: Callable[[], str] | None) -> str:
    read = inspect.getclosurevars(condition).nonlocals if inspect.isfunction(condition) else {}
    seen = [f"last value: {_shown(value)}", *(f"{name}: {_shown(variable)}" for name, variable in read.items())]
    return "\n  ".join([f"not within {seconds:g} s: {what}", *seen, *([details()] if details else [])])


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"


def _source_of(frame: FrameType | None) -> str:
    """Return the source of the statement that called the function of that frame."""
    caller = frame.f_back if frame else None
    if caller is None:
        return "a condition"
    positions = inspect.getframeinfo(caller).positions
    first = positions.lineno if positions and positions.lineno else caller.f_lineno
    last = positions.end_lineno if positions and positions.end_lineno else first
    lines = (linecache.getline(caller.f_code.co_filename, number).strip() for number in range(first, last + 1))
    return " ".join(lines) or "a condition"
