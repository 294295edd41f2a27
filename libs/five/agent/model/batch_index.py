"""Index of a batch's rows, computed on the host before the batch is on its device.

The numbers of present units, set rows and targets are the sizes of what the network computes. To search them on a GPU
would make the host wait at every step. The host has a batch's observations and actions beforehand.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from dota.spaces import Layout
from five.agent.config import ModelConfig
from five.agent.model.distribution import ActionTable, chosen_action, valid_targets
from five.agent.model.inputs import InputReader, PresentRows
from five.agent.model.native_reader import NativeReader


class Targets(NamedTuple):
    """Unit slots that given actions can target: int64 [M] each, ordered by team-step."""

    step: Tensor
    hero: Tensor
    slot: Tensor


@dataclass(frozen=True)
class BatchIndex:
    """Index of a batch of N = T * B team-steps.

    ``present`` are its rows, ``targets`` the valid targets of its actions. ``starts`` are the timesteps at which a
    segment without a reset starts; 0 is always one.
    """

    present: PresentRows
    targets: Targets
    starts: list[int]

    def tensors(self) -> tuple[Tensor, ...]:
        """Return the tensors that must be on the batch's device."""
        return (self.present.column, self.present.step, *self.targets)

    def moved(self, tensors: tuple[Tensor, ...]) -> "BatchIndex":
        """Return a copy with ``tensors``, those of `tensors` on a device."""
        return BatchIndex(PresentRows(tensors[0], tensors[1], self.present.ends), Targets(*tensors[2:]), self.starts)


class BatchIndexer:
    """Builder of batch indices on the host, for a policy on any device."""

    def __init__(self, layout: Layout, config: ModelConfig) -> None:
        self._reader = InputReader(layout)
        self._native_reader = NativeReader(self._reader)
        self._table = ActionTable(layout, config)

    @torch.no_grad()
    def __call__(self, obs: dict[str, Tensor], actions: Tensor, resets: Tensor) -> BatchIndex:
        """Return the index of ``obs`` arrays [T, B, ...], ``actions`` [T, B, H, 6] and ``resets`` bool [T, B] on the
        host."""
        flat = {name: obs[name].flatten(0, 1) for name in ("shared", "shared_ids", "available", "target_mask")}
        given = actions.flatten(0, 1).long()
        if self._native_reader.accepts(obs):
            present, is_present = self._native_reader.search(flat)
        else:
            presence = self._reader.presence(flat["shared"], flat["shared_ids"].long())
            present, is_present = self._reader.search(presence), self._reader.units_of(presence)
        action = chosen_action(flat["available"].long(), given)
        mask = valid_targets(self._table, flat["target_mask"], action, is_present)
        starts = [0, *(t for t in resets.any(1).nonzero().squeeze(1).tolist() if t > 0)]
        return BatchIndex(present, Targets(*mask.nonzero(as_tuple=True)), starts)
