import pytest

from five.agent.model.native_reader import NativeReader


@pytest.fixture
def as_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read observations with PyTorch operators, as on a GPU, instead of natively."""
    monkeypatch.setattr(NativeReader, "accepts", staticmethod(lambda obs: False))
