"""Fixtures of the fuzz targets."""

from collections.abc import Iterator

import pytest

from rapid import codec
from tests.fuzz.message_targets import register_codec


@pytest.fixture(autouse=True)
def core_codec(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Decode with the core's codec, as the services do."""
    monkeypatch.setattr(codec, "_used", codec._used)
    register_codec()
    yield
