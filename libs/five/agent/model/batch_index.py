"""Which rows a batch has, found before the batch is on its device.

How many units, sets and targets are present decides the sizes of what the network computes. A GPU's host
would wait for them at every step. The host knows a batch's observations and actions beforehand.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from dota.spaces import Layout
from five.agent.config import ModelConfig
from five.agent.model.distribution import ActionTable, chosen_action, valid_targets
from five.agent.model.inputs import InputReader, Present
from five.agent.model.native_reader import NativeReader


class Targets(NamedTuple):
    """Unit slots that given actions could have aimed at: int64 [M] each, in order of the team-step."""

    step: Tensor
    hero: Tensor
    slot: Tensor


@dataclass(frozen=True)
class BatchIndex:
    """Of a batch of N = T * B team-steps: its ``present`` rows, the ``targets`` of its actions, and ``starts``, the
    timesteps at which a stretch without a game's beginning starts (0 is always one)."""

    present: Present
    targets: Targets
    starts: list[int]

    def tensors(self) -> tuple[Tensor, ...]:
        """What has to be where the batch is."""
        return (self.present.column, self.present.step, *self.targets)

    def moved(self, tensors: tuple[Tensor, ...]) -> "BatchIndex":
        """The same with ``tensors``, those of `tensors` brought to a device."""
        return BatchIndex(Present(tensors[0], tensors[1], self.present.ends), Targets(*tensors[2:]), self.starts)


class BatchIndexer:
    """Finds rows on the host, for a policy that may be anywhere."""

    def __init__(self, layout: Layout, config: ModelConfig) -> None:
        self._reader = InputReader(layout)
        self._on_host = NativeReader(self._reader)
        self._table = ActionTable(layout, config)

    @torch.no_grad()
    def __call__(self, obs: dict[str, Tensor], actions: Tensor, resets: Tensor) -> BatchIndex:
        """``obs`` arrays [T, B, ...], ``actions`` [T, B, H, 6], ``resets`` bool [T, B], all in the host's memory."""
        flat = {name: obs[name].flatten(0, 1) for name in ("shared", "shared_ids", "available", "target_mask")}
        given = actions.flatten(0, 1).long()
        if self._on_host.takes(obs):
            present, there = self._on_host.search(flat)
        else:
            presence = self._reader.presence(flat["shared"], flat["shared_ids"].long())
            present, there = self._reader.search(presence), self._reader.units_of(presence)
        action = chosen_action(flat["available"].long(), given)
        mask = valid_targets(self._table, flat["target_mask"], action, there)
        starts = [0, *(t for t in resets.any(1).nonzero().squeeze(1).tolist() if t > 0)]
        return BatchIndex(present, Targets(*mask.nonzero(as_tuple=True)), starts)
