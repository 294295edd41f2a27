"""Fixtures of the command's tests."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def own_handlers() -> Iterator[None]:
    """Restore the handlers of SIGINT and SIGTERM: a command that a signal ends leaves both ignored."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
