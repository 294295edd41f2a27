import pytest

from five.agent.model import in_core
from five.agent.model.native_reader import NativeReader


@pytest.fixture
def as_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's operators alone, as on a GPU: what is in the host's memory the core would read and compute there."""
    monkeypatch.setattr(NativeReader, "takes", staticmethod(lambda obs: False))
    monkeypatch.setattr(in_core, "takes", lambda *arrays: False)
