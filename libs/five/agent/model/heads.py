"""Action heads, value head and auxiliary heads (Berner et al. 2019, figure 18 and appendix I)."""

import math
from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dota.spaces import OFFSETS, ActionPart, Layout
from five.agent.config import ModelConfig
from five.agent.model.batch_index import Targets
from five.agent.model.distribution import (
    ActionTable,
    chosen_action,
    entropy,
    masked_log_softmax,
    sample,
    valid_targets,
)
from five.agent.model.embeddings import lookup
from five.agent.model.head_names import DELAYS, offset_pairs, unit_splits
from five.agent.model.input_structure import id_rows
from five.agent.model.trunk import TrunkOutput

POLICY_SCALE = 0.1  # of the usual initial weights: the first policy is nearly uniform over the available actions


class HeadOutput(NamedTuple):
    """Output of the action heads.

    ``actions`` int64 [N, H, 6]; ``logp`` float32 [N, H]; ``target`` int64 [N, H], the targeted unit's row in the
    trunk's units (-1: none). ``entropies`` [N, H] by head are set for given actions only, and 0 for a head that the
    action does not read; ``max_entropies`` are those of uniform choices. ``primary`` [N, H, 30] and ``unit`` [N, H, U]
    are set for chosen actions only: float32 log-probabilities of the available actions, and of the valid targets of
    the chosen one.
    """

    actions: Tensor
    logp: Tensor
    entropies: dict[str, Tensor]
    max_entropies: dict[str, Tensor]
    target: Tensor
    primary: Tensor | None = None
    unit: Tensor | None = None


class ActionHeads(nn.Module):
    """The primary action by dot product with the embeddings of the available actions, then its parameters."""

    small_parts: Tensor
    default_parts: Tensor

    def __init__(self, layout: Layout, config: ModelConfig) -> None:
        super().__init__()
        self.table = ActionTable(layout, config)
        self.pairs = len(offset_pairs(config))
        self.fixed_delay = config.fixed_delay
        self.primary = nn.Linear(config.lstm, config.key)
        self.unit = nn.Linear(config.lstm, config.key)
        self.teleport = nn.Linear(config.lstm, config.key)
        self.gate = nn.Embedding(id_rows(config, "action"), config.key, padding_idx=0)
        self.delay = nn.Linear(config.lstm, DELAYS)
        self.offsets = nn.Linear(config.lstm, self.pairs * 2 * OFFSETS)
        self.unit_splits = nn.ModuleDict({name: nn.Linear(config.lstm, config.key) for name in unit_splits(config)})
        parts = (ActionPart.DELAY, ActionPart.OFFSET_X, ActionPart.OFFSET_Y)
        self.register_buffer("small_parts", torch.tensor(parts), persistent=False)
        self.register_buffer("default_parts", torch.tensor((0, OFFSETS // 2, OFFSETS // 2)), persistent=False)
        nn.init.zeros_(self.gate.weight)
        with torch.no_grad():
            for layer in (self.primary, self.unit, self.teleport, self.delay, self.offsets,
                          *self.unit_splits.values()):
                for parameter in layer.parameters():
                    parameter.mul_(POLICY_SCALE)

    def forward(self, core: Tensor, trunk: TrunkOutput, obs: dict[str, Tensor], action_embedding: Tensor,
                actions: Tensor | None = None, generator: torch.Generator | None = None,
                greedy: bool = False, targets: Targets | None = None) -> HeadOutput:
        """Choose or evaluate actions for core [N, H, D] and obs arrays [N, ...].

        ``actions`` [N, H, 6] are evaluated; None chooses. ``targets`` are the valid targets of given actions, if they
        were searched before.
        """
        available = obs["available"].long()
        given = None if actions is None else actions.long()

        def choose(logp: Tensor, part: ActionPart) -> Tensor:
            if given is not None:
                return given[..., part]
            return logp.argmax(-1) if greedy else sample(logp, generator)

        outputs = self._linear(core)
        possible = available != 0
        can_act = possible.any(-1)  # False in the padding after a game's end.
        primary_logp = masked_log_softmax(_primary_logits(outputs, available, action_embedding), possible)
        slot = choose(primary_logp, ActionPart.SLOT)
        action = available.gather(-1, slot[..., None])[..., 0]
        logp = torch.where(can_act, _gather(primary_logp, slot), 0.0)

        # Delay, x and y in one tensor: three small heads cost as much as one.
        small_logp = self._small_heads(outputs, action)
        if given is not None:
            small = given.index_select(-1, self.small_parts)
        else:
            small = small_logp.argmax(-1) if greedy else sample(small_logp, generator)
        reads_offset = self.table.reads_offset[action]
        reads_delay = self._reads_delay(can_act)
        is_read = torch.stack((reads_delay, reads_offset, reads_offset), -1)
        small = torch.where(is_read, small, self.default_parts)
        logp = logp + torch.where(is_read, _gather(small_logp, small), 0.0).sum(-1)

        teleports = self.table.reads_teleport[action]
        mask = valid_targets(self.table, obs["target_mask"], action, trunk.rows >= 0)
        unit_logp = masked_log_softmax(self._unit_logits(outputs, action, teleports, mask, trunk, targets), mask)
        has_target = mask.any(-1)
        if given is not None:
            unit = torch.where(teleports, given[..., ActionPart.TELEPORT], given[..., ActionPart.UNIT])
        else:
            unit = unit_logp.argmax(-1) if greedy else sample(unit_logp, generator)
        unit = torch.where(has_target, unit, 0)
        logp = logp + torch.where(has_target, _gather(unit_logp, unit), 0.0)
        chosen = torch.stack((slot, small[..., 0], torch.where(teleports, 0, unit), torch.where(teleports, unit, 0),
                              small[..., 1], small[..., 2]), -1)
        target = torch.where(has_target, trunk.rows.gather(1, unit), -1)
        if given is None:
            return HeadOutput(chosen, logp, {}, {}, target, primary_logp, unit_logp.masked_fill(~mask, -torch.inf))
        small_entropy = torch.where(is_read, entropy(small_logp), 0.0)
        entropies = {"action": torch.where(can_act, entropy(primary_logp), 0.0), "delay": small_entropy[..., 0],
                     "offset": small_entropy[..., 1:].sum(-1), "unit": torch.where(has_target, entropy(unit_logp), 0.0)}
        max_entropies = {"action": _log_count(possible), "delay": reads_delay.float() * math.log(DELAYS),
                         "offset": reads_offset.float() * (2 * math.log(OFFSETS)), "unit": _log_count(mask)}
        return HeadOutput(chosen, logp, entropies, max_entropies, target)

    def target_rows(self, actions: Tensor, obs: dict[str, Tensor], trunk: TrunkOutput) -> Tensor:
        """Return int64 [N, H]: the row in ``trunk.units`` that given actions [N, H, 6] target; -1 for none."""
        given = actions.long()
        action = chosen_action(obs["available"].long(), given)
        teleports = self.table.reads_teleport[action]
        has_target = valid_targets(self.table, obs["target_mask"], action, trunk.rows >= 0).any(-1)
        unit = torch.where(teleports, given[..., ActionPart.TELEPORT], given[..., ActionPart.UNIT])
        return torch.where(has_target, trunk.rows.gather(1, unit), -1)

    def scores(self, core: Tensor, trunk: TrunkOutput, obs: dict[str, Tensor], action_embedding: Tensor,
               actions: Tensor) -> dict[str, Tensor]:
        """Return the inputs of the distributions for given actions [N, H, 6], float32; -inf marks invalid entries.

        ``primary`` [N, H, 30] are logits of the available actions. ``unit`` [N, H, U] are logits of the target units of
        the given action. ``small`` [N, H, 3, 9] are log-probabilities of its delay, x and y.
        """
        available, given, outputs = obs["available"].long(), actions.long(), self._linear(core)
        primary = _primary_logits(outputs, available, action_embedding).float()
        action = chosen_action(available, given)
        teleports = self.table.reads_teleport[action]
        mask = valid_targets(self.table, obs["target_mask"], action, trunk.rows >= 0)
        unit = self._unit_logits(outputs, action, teleports, mask, trunk)
        small = self._small_heads(outputs, action)
        reads_offset = self.table.reads_offset[action]
        reads = torch.stack((self._reads_delay(available[..., 0] != 0), reads_offset, reads_offset), -1)[..., None]
        small = small.masked_fill(~reads | (small < torch.finfo(torch.float32).min / 2), -torch.inf)
        return {"primary": primary.masked_fill(available == 0, -torch.inf),
                "unit": unit.masked_fill(~mask, -torch.inf), "small": small}

    def _reads_delay(self, can_act: Tensor) -> Tensor:
        """Return which actions read the delay: those of heroes that can act, none with a fixed delay."""
        return torch.zeros_like(can_act) if self.fixed_delay else can_act

    def _linear(self, core: Tensor) -> "_HeadOutputs":
        """Evaluate all heads that are linear in the LSTM's output."""
        splits = [cast(nn.Linear, layer) for layer in self.unit_splits.values()]
        layers = [self.primary, self.unit, self.teleport, self.delay, self.offsets, *splits]
        primary, unit, teleport, delay, offsets, *split_queries = batched_linear(core, layers)
        return _HeadOutputs(primary, unit, teleport, delay, offsets, split_queries)

    def _small_heads(self, outputs: "_HeadOutputs", action: Tensor) -> Tensor:
        """Return float32 log-probabilities [N, H, 3, 9] of the delay, of which 4 are valid, and of x and y of the
        offset pair that the action reads."""
        offsets = outputs.offsets.float().view(*action.shape, self.pairs, 2, OFFSETS)
        pair = self.table.offset_pair[action][..., None, None, None].expand(*action.shape, 1, 2, OFFSETS)
        delay = F.pad(outputs.delay.float(), (0, OFFSETS - DELAYS), value=torch.finfo(torch.float32).min)
        return torch.cat((delay[..., None, :], offsets.gather(2, pair)[:, :, 0]), 2).log_softmax(-1)

    def _unit_logits(self, outputs: "_HeadOutputs", action: Tensor, teleports: Tensor, mask: Tensor,
                     trunk: TrunkOutput, targets: Targets | None = None) -> Tensor:
        """Return float32 [N, H, U]. Only valid targets are scored, because most actions have few or none.

        The sigmoid gates the query instead of the keys, which gives the same products.
        """
        query = torch.where(teleports[..., None], outputs.teleport, outputs.unit)
        for i, split in enumerate(outputs.splits, 1):
            query = torch.where((self.table.unit_split[action] == i)[..., None] & ~teleports[..., None], split, query)
        query = query * torch.sigmoid(lookup(self.gate.weight, action))
        if trunk.column is not None:
            return _all_scores(query, trunk.units, trunk.column)
        step, hero, slot = targets or mask.nonzero(as_tuple=True)
        keys = trunk.units[trunk.rows[step, slot], hero] if targets is None or trunk.keys is None else trunk.keys
        # Only queries repeat. index_select sums its gradient in a fixed order, indexing by tensors does not.
        scores = (keys * query.flatten(0, 1).index_select(0, step * mask.shape[1] + hero)).sum(-1)
        return scores.new_zeros(mask.shape, dtype=torch.float32).index_put((step, hero, slot), scores.float())


class AuxiliaryHeads(nn.Module):
    """Win probability, net-worth rank at the end, and participation in destroying each enemy building soon.

    Only the win probability sends its gradient into the LSTM.
    """

    def __init__(self, layout: Layout, config: ModelConfig) -> None:
        super().__init__()
        def head(out: int) -> nn.Sequential:
            return nn.Sequential(nn.Linear(config.lstm, config.auxiliary_hidden), nn.ReLU(),
                                 nn.Linear(config.auxiliary_hidden, out))

        self.win_probability = head(1)
        self.net_worth_rank = head(5)
        self.building_events = head(layout.observation.buildings)

    def forward(self, core: Tensor) -> dict[str, Tensor]:
        """Map [..., D] to float32 logits: win_probability [...], net_worth_rank [..., 5], building_events [..., n]."""
        detached = {"net_worth_rank": self.net_worth_rank, "building_events": self.building_events}
        hidden = batched_linear(core.detach(), [cast(nn.Linear, head[0]) for head in detached.values()])
        return {"win_probability": self.win_probability(core)[..., 0].float(),
                **{name: head[1:](x).float() for (name, head), x in zip(detached.items(), hidden, strict=True)}}


class _HeadOutputs(NamedTuple):
    """Outputs of the heads' linear layers: queries [N, H, K], ``splits`` those of the split heads, and logits of the
    delay and of all offsets."""

    primary: Tensor
    unit: Tensor
    teleport: Tensor
    delay: Tensor
    offsets: Tensor
    splits: list[Tensor]


def batched_linear(x: Tensor, layers: Sequence[nn.Linear]) -> list[Tensor]:
    """Evaluate several layers on the same input [..., D] with one matrix product."""
    weight, bias = torch.cat([layer.weight for layer in layers]), torch.cat([layer.bias for layer in layers])
    return list(torch.split(F.linear(x, weight, bias), [layer.out_features for layer in layers], -1))


def _primary_logits(outputs: _HeadOutputs, available: Tensor, embedding: Tensor) -> Tensor:
    # Scoring the whole vocabulary is one matrix product; gathering embeddings first would move 30 keys a hero.
    logits: Tensor = outputs.primary @ embedding.t()
    return logits.gather(-1, available)


def _all_scores(query: Tensor, units: Tensor, column: Tensor) -> Tensor:
    """Return float32 [N, H, U]: every query [N, H, K] times the keys of all slots.

    ``units`` [U * N, H, K] has the keys of slot u at ``column[u]``. The products are in float32 in every precision.
    """
    steps, heroes, width = query.shape
    keys = units.view(len(column), steps * heroes, width).transpose(0, 1)
    with torch.autocast(query.device.type, enabled=False):
        scores = torch.bmm(keys.float(), query.float().view(steps * heroes, width, 1))
    return scores.view(steps, heroes, -1).index_select(-1, column)


def _log_count(mask: Tensor) -> Tensor:
    """Return the logarithm of the number of valid entries, float32; 0 without any."""
    return mask.sum(-1).clamp(min=1).float().log()


def _gather(logp: Tensor, index: Tensor) -> Tensor:
    return logp.gather(-1, index[..., None])[..., 0]
