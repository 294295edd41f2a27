"""`five config KEY` describes a key; without a key it prints the run's configuration."""

import json

import pytest

from five.cli.main import main


def test_config_describes_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "learning.batch_samples"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "learning.batch_samples"
    rows = dict(line.split(None, 1) for line in told[1:])
    assert rows["type"] == "integer, >= 1" and rows["default"] == "120" and rows["unit"] == "samples"
    assert rows["source"] == "Berner et al. 2019, table 2, Rerun" and "gradient step" in rows["meaning"]
    assert "laptop-1v1: 48" in rows["presets"]


def test_config_lists_a_sections_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "buffer", "--json"]) == 0
    keys = json.loads(capsys.readouterr().out)
    assert {key["path"] for key in keys} >= {"buffer.sample_reuse", "buffer.capacity_samples"}
    assert all(key["path"].startswith("buffer.") for key in keys)
    assert main(["config", "buffer"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("Sample buffer of an optimizer") and "buffer.sample_reuse" in told


@pytest.mark.parametrize(("typed", "near"), [
    ("batch_samples", "learning.batch_samples"), ("learning.batch_sample", "learning.batch_samples"),
    ("sample_reuse", "buffer.sample_reuse"),
])
def test_unknown_key_suggests_similar_keys(typed: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", typed]) == 2
    assert near in capsys.readouterr().err
