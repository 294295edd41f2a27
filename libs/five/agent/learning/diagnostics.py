"""Metrics of a gradient step other than its loss, computed without gradients."""

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor


class UnrolledPolicy(Protocol):
    """Output of a policy's unroll that the learner reads: `five.agent.model.policy.UnrollOutput`."""

    @property
    def logp(self) -> Tensor: ...
    @property
    def entropy(self) -> Tensor: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def aux(self) -> dict[str, Tensor]: ...
    @property
    def entropies(self) -> dict[str, Tensor]: ...
    @property
    def max_entropies(self) -> dict[str, Tensor]: ...
    @property
    def observation_moments(self) -> Tensor: ...


def relative_entropies(means: Mapping[str, float]) -> dict[str, float]:
    """Return each action head's entropy as a share of its maximum, by ``of_max_entropy_<head>``, from means of
    `compute_diagnostics`. A head without a choice or an entropy is left out."""
    prefix = "max_entropy_"
    heads = [name.removeprefix(prefix) for name in means if name.startswith(prefix)]
    return {f"of_max_entropy_{head}": means[f"entropy_{head}"] / means[prefix + head] for head in heads
            if means[prefix + head] > 0 and f"entropy_{head}" in means}


@torch.no_grad()
def compute_diagnostics(unrolled: UnrolledPolicy, batch: Mapping[str, Tensor], log_ratio: Tensor, clip: float
                ) -> dict[str, Tensor]:
    """Return scalars, averaged over the hero-steps whose mask is 1.

    ``log_ratio`` [T, B, H] is that of the new policy to the behaviour policy. ``clip`` bounds the probability ratio.
    """
    mask, returns = batch["mask"], batch["returns"]
    weight = mask / mask.sum().clamp(min=1.0)

    def mean(x: Tensor) -> Tensor:
        return (x * weight).sum()

    def variance(x: Tensor) -> Tensor:
        return ((x - mean(x)).square() * weight).sum()

    ratio, error = log_ratio.exp(), returns - unrolled.values
    found = {
        "ratio_mean": mean(ratio),
        "ratio_max": torch.where(mask > 0, ratio, 0.0).amax(),
        "approx_kl": mean(ratio - 1.0 - log_ratio),
        "clip_fraction": mean(((ratio - 1.0).abs() > clip).float()),
        "entropy": mean(unrolled.entropy),
        "value_mean": mean(unrolled.values),
        "return_mean": mean(returns),
        "return_std": variance(returns).sqrt(),
        "value_error": mean(error.square()).sqrt(),
        "explained_variance": 1.0 - variance(error) / variance(returns).clamp(min=1e-8),
        "advantage_std": variance(batch["advantages"]).sqrt(),
        "masked_fraction": 1.0 - mask.mean()}
    found |= {f"entropy_{name}": mean(entropy) for name, entropy in unrolled.entropies.items()}
    return found | {f"max_entropy_{name}": mean(entropy) for name, entropy in unrolled.max_entropies.items()}
