"""What every test starts from."""

from collections.abc import Iterator

import pytest

from rapid.telemetry.metrics import REGISTRY


@pytest.fixture(autouse=True)
def nobody_in_particular() -> Iterator[None]:
    """A service that a test starts in this process names it on every metric: not beyond that test."""
    yield
    REGISTRY.common = {}
