"""The loss of proximal policy optimization (Schulman et al. 2017; Berner et al. 2019, section 3.2 and table 2).

L = -E[min(r A, clip(r, 1 ± ε) A)] + c_v E[(V - R)² / 2] - c_s E[S] + auxiliary losses,

with r = exp(log π_new - log π_behaviour), the log-probabilities summed over the primary action and the parameters that
it uses. Expectations are over hero-steps whose mask is 1. All arrays are time first: [T, B, H].
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from five.config import LearnerConfig
from five.learning.auxiliary import auxiliary_losses, auxiliary_weights

Reduce = Callable[[list[Tensor]], None]
"""Averages each tensor over all optimizers, in place."""

MAX_LOG_RATIO = 20.0  # beyond it a ratio says nothing more, and exp() overflows


class UnrolledPolicy(Protocol):
    """What the learner reads of a policy's unroll: see `five.model.policy.Unrolled`."""

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
    def observation_moments(self) -> Tensor: ...


@dataclass(frozen=True)
class Loss:
    """``total`` to differentiate; ``terms`` the weighted summands; ``metrics`` detached scalars to watch."""

    total: Tensor
    terms: dict[str, Tensor]
    metrics: dict[str, Tensor]


def normalise_advantages(advantages: Tensor, mask: Tensor, reduce: Reduce | None = None) -> Tensor:
    """Zero mean and unit deviation over the masked hero-steps; over all optimizers' when ``reduce`` is given."""
    weighted = advantages.double() * mask
    moments = torch.stack((weighted.sum(), (weighted * advantages).sum(), mask.double().sum()))
    if reduce is not None:
        reduce([moments])
    total, squares, count = moments.unbind()
    mean = total / count.clamp(min=1e-12)
    variance = (squares / count.clamp(min=1e-12) - mean.square()).clamp(min=0.0)
    return ((advantages - mean) / (variance.sqrt() + 1e-8)).to(advantages.dtype)


def ppo_loss(
    unrolled: UnrolledPolicy,
    batch: Mapping[str, Tensor],
    config: LearnerConfig,
    entropy_coefficient: float,
    reduce: Reduce | None = None,
) -> Loss:
    """The loss of a batch.

    ``batch``: the learning arrays of `five.learning.samples`. ``reduce`` is used only where advantages are normalised
    over all optimizers.
    """
    mask = batch["mask"]
    weight = mask / mask.sum().clamp(min=1.0)

    def mean(x: Tensor) -> Tensor:
        return (x * weight).sum()

    advantages = batch["advantages"]
    if config.normalise_advantages:
        advantages = normalise_advantages(advantages, mask, reduce if config.advantage_scope == "all" else None)
    log_ratio = (unrolled.logp - batch["behaviour_logp"]).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - config.ppo_clip, 1.0 + config.ppo_clip)
    terms = {
        "policy": -mean(torch.minimum(ratio * advantages, clipped * advantages)),
        "value": config.value_loss_weight * 0.5 * mean((unrolled.values - batch["returns"]).square()),
        "entropy": -entropy_coefficient * mean(unrolled.entropy)}
    weights = auxiliary_weights(config)
    auxiliary = auxiliary_losses(unrolled.aux, batch["win_label"], batch["rank_label"], batch["building_label"], mask)
    for name, loss in auxiliary.items():
        terms[name] = weights[name] * loss

    with torch.no_grad():
        returns = batch["returns"]
        error = returns - unrolled.values
        metrics = {
            "ratio_mean": mean(ratio),
            "ratio_max": torch.where(mask > 0, ratio, 0.0).amax(),
            "approx_kl": mean(ratio - 1.0 - log_ratio),
            "clip_fraction": mean(((ratio - 1.0).abs() > config.ppo_clip).float()),
            "entropy": mean(unrolled.entropy),
            "value_mean": mean(unrolled.values),
            "return_mean": mean(returns),
            "return_std": _variance(returns, weight).sqrt(),
            "value_error": mean(error.square()).sqrt(),
            "explained_variance": 1.0 - _variance(error, weight) / _variance(returns, weight).clamp(min=1e-8),
            "advantage_std": _variance(batch["advantages"], weight).sqrt(),
            "masked_fraction": 1.0 - mask.mean()}
        for name, entropy in unrolled.entropies.items():
            metrics[f"entropy_{name}"] = mean(entropy)
        for name, term in terms.items():
            metrics[f"loss_{name}"] = term.detach()
    total = torch.stack(list(terms.values())).sum()
    metrics["loss"] = total.detach()
    return Loss(total, terms, metrics)


def _variance(x: Tensor, weight: Tensor) -> Tensor:
    mean = (x * weight).sum()
    return ((x - mean).square() * weight).sum()
