"""Interface of a policy that the learner trains."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from five.agent.learning.diagnostics import UnrolledPolicy


class RunningRewards(Protocol):
    """Running deviation of rewards: `five.agent.model.normaliser.RewardStatistics`."""

    def merge_sums(self, sums: Tensor) -> None: ...

    def deviation(self) -> Tensor: ...

    def std(self) -> float: ...


class LearningPolicy(Protocol):
    """Policy that the learner trains: `five.agent.model.policy.Policy`, or a test double."""

    dense: bool

    @property
    def rewards(self) -> RunningRewards: ...

    def index_batch(self, obs: dict[str, Tensor], actions: Tensor, resets: Tensor) -> Any: ...

    def unroll(self, obs: dict[str, Tensor], actions: Tensor, state: dict[str, Tensor],
               resets: Tensor | None = None, index: Any = None) -> UnrolledPolicy: ...

    def update_normaliser(self, moments: Tensor) -> None: ...

    def named_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]: ...

    def state_dict(self) -> dict[str, Tensor]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any: ...

    def to(self, device: torch.device) -> Any: ...
