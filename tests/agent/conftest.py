import pytest

from five.agent import native_tensors
from five.agent.model.native_reader import NativeReader


@pytest.fixture
def as_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute everything with PyTorch operators, as on a GPU, instead of natively."""
    monkeypatch.setattr(NativeReader, "accepts", staticmethod(lambda obs: False))
    monkeypatch.setattr(native_tensors, "is_native", lambda tensor: False)
