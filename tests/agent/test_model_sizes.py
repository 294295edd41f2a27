"""Parameter counts of the paper and the presets."""

from pathlib import Path

import pytest
import torch
import yaml
from pydantic import ValidationError

from dota.config import GameConfig
from dota.spaces import Layout
from five.agent.config import ModelConfig
from five.agent.model.policy import Policy

PAPER_PARAMETERS = 158_502_815
CONFIGS = Path(__file__).parents[2] / "configs"


def parameter_counts(policy: Policy) -> dict[str, int]:
    """Return the number of parameters by part, and their ``total``."""
    counts = {name: sum(p.numel() for p in part.parameters()) for name, part in policy.named_children()}
    return {**counts, "total": sum(p.numel() for p in policy.parameters())}


def test_parameter_count_is_close_to_the_papers() -> None:
    """Berner et al. 2019, table 1: 158,502,815 parameters, of which the LSTM has 84%."""
    with torch.device("meta"):
        counts = parameter_counts(Policy(Layout(GameConfig()), ModelConfig()))
    print(f"parameters {counts['total']:,}, the paper's {PAPER_PARAMETERS:,}; by part {counts}")
    assert counts["total"] == pytest.approx(PAPER_PARAMETERS, rel=0.02)
    assert counts["core"] / counts["total"] == pytest.approx(0.84, abs=0.02)
    assert sum(n for part, n in counts.items() if part != "total") == counts["total"]


@pytest.mark.parametrize("preset", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_presets_build(preset: Path) -> None:
    values = yaml.safe_load(preset.read_text())
    with torch.device("meta"):
        policy = Policy(Layout(GameConfig(**values.get("game", {}))), ModelConfig(**values.get("model", {})))
    assert parameter_counts(policy)["total"] > 100_000


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(ValidationError, match="at most unit"):
        ModelConfig(key=64, unit=32)
    with pytest.raises(ValidationError, match="lstms"):
        ModelConfig(lstms=3)  # type: ignore[call-arg]
    assert ModelConfig().pooled == 1024
