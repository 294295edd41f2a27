"""Harm on purpose: the learner's parameters are overwritten for as long as a test says so."""

from pathlib import Path

import numpy as np
import pytest
import torch

from five.services.optimizer import faults


def test_parameters_are_those_of_the_file_while_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = torch.nn.Linear(2, 3)
    before = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    np.savez(tmp_path / "bad.npz", bias=np.full(3, 7, np.float32))
    (tmp_path / "faults").write_text(f"version weights {tmp_path / 'bad.npz'}\n")
    faults.overwrite(lambda: pytest.fail("parameters are gathered only for a fault"))  # nothing names the file
    assert torch.equal(layer.bias, before["bias"])
    monkeypatch.setenv(faults.VARIABLE, str(tmp_path / "faults"))
    faults.overwrite(layer.state_dict)
    assert layer.bias.tolist() == [7, 7, 7] and torch.equal(layer.weight, before["weight"])
    layer.load_state_dict(before)
    (tmp_path / "faults").write_text("")
    faults.overwrite(layer.state_dict)
    assert torch.equal(layer.bias, before["bias"])
    np.savez(tmp_path / "bad.npz", no_such=np.zeros(3))
    (tmp_path / "faults").write_text(f"version weights {tmp_path / 'bad.npz'}\n")
    with pytest.raises(KeyError, match="no_such"):
        faults.overwrite(layer.state_dict)
