"""The loss of proximal policy optimization (Schulman et al. 2017; Berner et al. 2019, section 3.2 and table 2).

L = -E[min(r A, clip(r, 1 ± ε) A)] + c_v E[(V - R)² / 2] - c_s E[S] + auxiliary losses,

with r = exp(log π_new - log π_behaviour) and S the sum of the heads' entropies, each times its weight
(`learning.entropy_weights`). Log-probabilities are summed over the primary action and its parameters.
Expectations are over hero-steps whose mask is 1. All arrays are time first: [T, B, H].
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from five.agent.config import EntropyWeightsConfig, LearnerConfig
from five.agent.learning.auxiliary import (
    auxiliary_diagnostics,
    auxiliary_losses,
    auxiliary_weights,
    cross_entropies,
)
from five.agent.learning.diagnostics import UnrolledPolicy, compute_diagnostics

AllReduce = Callable[[list[Tensor]], None]
"""Averages each tensor over all optimizers, in place."""

MAX_LOG_RATIO = 20.0  # bounds exp(); larger ratios are clipped anyway


@dataclass(frozen=True)
class PpoLoss:
    """``total`` to differentiate, ``terms`` with the weighted summands, and ``metrics`` with detached scalars."""

    total: Tensor
    terms: dict[str, Tensor]
    metrics: dict[str, Tensor]


def normalise_advantages(advantages: Tensor, mask: Tensor, all_reduce: AllReduce | None = None) -> Tensor:
    """Scale to zero mean and unit deviation over masked hero-steps, of all optimizers if ``all_reduce`` is given."""
    weighted = advantages.double() * mask
    moments = torch.stack((weighted.sum(), (weighted * advantages).sum(), mask.double().sum()))
    if all_reduce is not None:
        all_reduce([moments])
    total, squares, count = moments.unbind()
    mean = total / count.clamp(min=1e-12)
    variance = (squares / count.clamp(min=1e-12) - mean.square()).clamp(min=0.0)
    return ((advantages - mean) / (variance.sqrt() + 1e-8)).to(advantages.dtype)


def ppo_loss(
    unrolled: UnrolledPolicy,
    batch: Mapping[str, Tensor],
    config: LearnerConfig,
    entropy_coefficient: float | Tensor,
    all_reduce: AllReduce | None = None,
) -> PpoLoss:
    """Return the loss of a batch.

    ``batch`` holds the arrays of `five.agent.learning.samples`. ``all_reduce`` is used if advantages are normalised
    over all optimizers.
    """
    mask = batch["mask"]
    weight = mask / mask.sum().clamp(min=1.0)

    def mean(x: Tensor) -> Tensor:
        return (x * weight).sum()

    advantages = batch["advantages"]
    if config.normalise_advantages:
        advantages = normalise_advantages(advantages, mask, all_reduce if config.advantage_scope == "all" else None)
    log_ratio = (unrolled.logp - batch["behaviour_logp"]).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - config.ppo_clip, 1.0 + config.ppo_clip)
    terms = {
        "policy": -mean(torch.minimum(ratio * advantages, clipped * advantages)),
        "value": config.value_loss_weight * 0.5 * mean((unrolled.values - batch["returns"]).square()),
        "entropy": -entropy_coefficient * mean(_weighted_entropy(unrolled.entropies, config.entropy_weights))}
    weights = auxiliary_weights(config)
    entropies = cross_entropies(unrolled.aux, batch)
    for name, loss in auxiliary_losses(entropies, mask, batch["outcome_mask"]).items():
        terms[name] = weights[name] * loss

    total = torch.stack(list(terms.values())).sum()
    metrics = compute_diagnostics(unrolled, batch, log_ratio, config.ppo_clip)
    metrics |= auxiliary_diagnostics(entropies, batch)
    metrics |= {f"loss_{name}": term.detach() for name, term in terms.items()}
    return PpoLoss(total, terms, metrics | {"loss": total.detach()})


def _weighted_entropy(entropies: Mapping[str, Tensor], weights: EntropyWeightsConfig) -> Tensor:
    """Return the sum of the heads' entropies [T, B, H], each times its weight. A weight of 0 leaves a head out."""
    counted = [(getattr(weights, head), entropy) for head, entropy in entropies.items() if getattr(weights, head)]
    if not counted:
        return torch.zeros_like(next(iter(entropies.values())))
    return torch.stack([weight * entropy for weight, entropy in counted]).sum(0)
