"""Metrics of a gradient step, computed by hand for two hero-steps and a masked one."""

import math

import pytest
import torch

from five.agent.learning.diagnostics import compute_diagnostics, relative_entropies
from tests.agent.standins import Unrolled

JUNK = 50.0  # of the masked hero-step


def row(*values: float) -> torch.Tensor:
    """Return [T, B, H] with the two values and the junk."""
    return torch.tensor([[[*values, JUNK]]])


def case() -> tuple[Unrolled, dict[str, torch.Tensor], torch.Tensor]:
    unrolled = Unrolled(row(0.0, 0.0).requires_grad_(), row(1.0, 3.0).requires_grad_(), row(1.0, 2.0).requires_grad_(),
                        {}, {"action": row(0.5, 1.5)}, torch.zeros(3, 0), {"action": row(2.0, 1.0)})
    batch = {"mask": torch.tensor([[[1.0, 1.0, 0.0]]]), "returns": row(3.0, 7.0), "advantages": row(1.0, -1.0)}
    log_ratio = row(math.log(2.0), math.log(0.5)).requires_grad_()
    return unrolled, batch, log_ratio


@pytest.mark.parametrize(("name", "value"), [
    ("ratio_mean", 1.25), ("ratio_max", 2.0), ("approx_kl", 0.25), ("clip_fraction", 0.5), ("entropy", 2.0),
    ("value_mean", 1.5), ("return_mean", 5.0), ("return_std", 2.0), ("value_error", math.sqrt((2**2 + 5**2) / 2)),
    ("explained_variance", 1 - 1.5**2 / 2**2), ("advantage_std", 1.0), ("masked_fraction", 1 / 3),
    ("entropy_action", 1.0), ("max_entropy_action", 1.5)])
def test_metric_by_hand(name: str, value: float) -> None:
    unrolled, batch, log_ratio = case()
    found = compute_diagnostics(unrolled, batch, log_ratio, clip=0.6)
    assert found[name].item() == pytest.approx(value, rel=1e-5)
    assert not found[name].requires_grad


@pytest.mark.parametrize(("clip", "share"), [(0.49, 1.0), (0.51, 0.5), (0.99, 0.5), (1.01, 0.0)])
def test_clip_counts_ratios_on_both_sides(clip: float, share: float) -> None:
    assert compute_diagnostics(*case(), clip=clip)["clip_fraction"].item() == share


def test_ratio_at_the_clip_is_not_clipped() -> None:
    unrolled, batch, _ = case()
    found = compute_diagnostics(unrolled, batch, torch.zeros(1, 1, 3), clip=0.0)
    assert found["clip_fraction"] == 0 and found["approx_kl"] == 0


def test_single_hero_step_has_full_weight() -> None:
    unrolled, batch, log_ratio = case()
    batch["mask"] = torch.tensor([[[0.0, 1.0, 0.0]]])
    found = compute_diagnostics(unrolled, batch, log_ratio, clip=0.2)
    assert (found["value_mean"], found["return_mean"], found["return_std"]) == (2.0, 7.0, 0.0)


def test_fully_masked_batch_is_finite() -> None:
    unrolled, batch, log_ratio = case()
    batch["mask"] = torch.zeros(1, 1, 3)
    found = compute_diagnostics(unrolled, batch, log_ratio, clip=0.2)
    assert found["masked_fraction"] == 1 and found["ratio_max"] == 0 and found["value_mean"] == 0
    assert all(value.isfinite() for value in found.values())


def test_equal_returns_explain_everything_or_nothing() -> None:
    """The variance of the returns is 0, and the floor of the division is 1e-8."""
    unrolled, batch, log_ratio = case()
    batch["returns"] = row(4.0, 4.0)
    unrolled.values = row(4.0, 4.0)
    assert compute_diagnostics(unrolled, batch, log_ratio, 0.2)["explained_variance"] == 1
    unrolled.values = row(4.0, 4.002)
    found = compute_diagnostics(unrolled, batch, log_ratio, 0.2)
    assert found["explained_variance"].item() == pytest.approx(1 - 0.001**2 / 1e-8, rel=1e-2)


def test_relative_entropy_needs_a_choice() -> None:
    means = {"entropy_action": 0.5, "max_entropy_action": 2.0, "entropy_unit": 0.0, "max_entropy_unit": 0.0,
             "entropy": 0.5, "entropy_coefficient": 0.01}
    assert relative_entropies(means) == {"of_max_entropy_action": 0.25}
