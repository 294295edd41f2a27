import pytest

from five.agent.model.native_reader import NativeReader


@pytest.fixture
def as_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read observations by PyTorch's operators, as on a GPU, and not natively."""
    monkeypatch.setattr(NativeReader, "takes", staticmethod(lambda obs: False))
