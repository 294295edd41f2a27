"""Action heads, value and auxiliary heads (Berner et al. 2019, figure 18 and appendix I)."""

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
from five.agent.model.embeddings import rows_of
from five.agent.model.head_names import DELAYS, offset_pairs, unit_splits
from five.agent.model.input_structure import id_rows
from five.agent.model.trunk import TrunkOutput

POLICY_SCALE = 0.1  # of the usual initial weights: the first policy is close to uniform over what is available


class HeadOutput(NamedTuple):
    """``actions`` int64 [N, H, 6]; ``logp`` float32 [N, H]; ``entropies`` by head, [N, H], 0 where the action does not
    read it (none at all where actions were not given but chosen); ``target`` int64 [N, H], the row of the targeted unit
    in the trunk's packed units (-1: no target). Where it was chosen: ``primary`` [N, H, 30] and ``unit`` [N, H, U],
    float32 log-probabilities of what was available, and of the units that the action chosen could aim at."""

    actions: Tensor
    logp: Tensor
    entropies: dict[str, Tensor]
    target: Tensor
    primary: Tensor | None = None
    unit: Tensor | None = None


class ActionHeads(nn.Module):
    """Primary action by dot product with the embeddings of what is available; then its parameters."""

    small_parts: Tensor
    unread: Tensor

    def __init__(self, layout: Layout, config: ModelConfig) -> None:
        super().__init__()
        self.table = ActionTable(layout, config)
        self.pairs = len(offset_pairs(config))
        self.primary = nn.Linear(config.lstm, config.key)
        self.unit = nn.Linear(config.lstm, config.key)
        self.teleport = nn.Linear(config.lstm, config.key)
        self.gate = nn.Embedding(id_rows(config, "action"), config.key, padding_idx=0)
        self.delay = nn.Linear(config.lstm, DELAYS)
        self.offsets = nn.Linear(config.lstm, self.pairs * 2 * OFFSETS)
        self.unit_splits = nn.ModuleDict({name: nn.Linear(config.lstm, config.key) for name in unit_splits(config)})
        parts = (ActionPart.DELAY, ActionPart.OFFSET_X, ActionPart.OFFSET_Y)
        self.register_buffer("small_parts", torch.tensor(parts), persistent=False)
        self.register_buffer("unread", torch.tensor((0, OFFSETS // 2, OFFSETS // 2)), persistent=False)
        nn.init.zeros_(self.gate.weight)
        with torch.no_grad():
            for layer in (self.primary, self.unit, self.teleport, self.delay, self.offsets,
                          *self.unit_splits.values()):
                for parameter in layer.parameters():
                    parameter.mul_(POLICY_SCALE)

    def forward(self, core: Tensor, trunk: TrunkOutput, obs: dict[str, Tensor], action_embedding: Tensor,
                actions: Tensor | None = None, generator: torch.Generator | None = None,
                greedy: bool = False, targets: Targets | None = None) -> HeadOutput:
        """core [N, H, D]; obs arrays with leading [N]; ``actions`` [N, H, 6] to evaluate, or None to choose;
        ``targets``: what these could have aimed at, where it was searched for before."""
        available = obs["available"].long()
        given = None if actions is None else actions.long()

        def choose(logp: Tensor, part: ActionPart) -> Tensor:
            if given is not None:
                return given[..., part]
            return logp.argmax(-1) if greedy else sample(logp, generator)

        said = self._linear(core)
        possible = available != 0
        acts = possible.any(-1)  # not in the padding after a game's end
        primary_logp = masked_log_softmax(_primary_logits(said, available, action_embedding), possible)
        slot = choose(primary_logp, ActionPart.SLOT)
        action = available.gather(-1, slot[..., None])[..., 0]
        logp = torch.where(acts, _picked(primary_logp, slot), 0.0)

        # Delay, x and y side by side: three small heads cost what one does.
        small_logp = self._small_heads(said, action)
        if given is not None:
            small = given.index_select(-1, self.small_parts)
        else:
            small = small_logp.argmax(-1) if greedy else sample(small_logp, generator)
        reads_offset = self.table.reads_offset[action]
        counts = torch.stack((acts, reads_offset, reads_offset), -1)
        small = torch.where(counts, small, self.unread)
        logp = logp + torch.where(counts, _picked(small_logp, small), 0.0).sum(-1)

        teleports = self.table.reads_teleport[action]
        mask = valid_targets(self.table, obs["target_mask"], action, trunk.rows >= 0)
        unit_logp = masked_log_softmax(self._unit_logits(said, action, teleports, mask, trunk, targets), mask)
        counted = mask.any(-1)
        if given is not None:
            unit = torch.where(teleports, given[..., ActionPart.TELEPORT], given[..., ActionPart.UNIT])
        else:
            unit = unit_logp.argmax(-1) if greedy else sample(unit_logp, generator)
        unit = torch.where(counted, unit, 0)
        logp = logp + torch.where(counted, _picked(unit_logp, unit), 0.0)
        entropies = {}
        if given is not None:
            small_entropy = torch.where(counts, entropy(small_logp), 0.0)
            entropies = {"action": torch.where(acts, entropy(primary_logp), 0.0), "delay": small_entropy[..., 0],
                         "offset": small_entropy[..., 1:].sum(-1),
                         "unit": torch.where(counted, entropy(unit_logp), 0.0)}

        chosen = torch.stack((slot, small[..., 0], torch.where(teleports, 0, unit), torch.where(teleports, unit, 0),
                              small[..., 1], small[..., 2]), -1)
        target = torch.where(counted, trunk.rows.gather(1, unit), -1)
        if given is not None:
            return HeadOutput(chosen, logp, entropies, target)
        return HeadOutput(chosen, logp, entropies, target, primary_logp, unit_logp.masked_fill(~mask, -torch.inf))

    def target_rows(self, actions: Tensor, obs: dict[str, Tensor], trunk: TrunkOutput) -> Tensor:
        """int64 [N, H]: the rows in ``trunk.units`` that given actions [N, H, 6] target; -1 where there is none."""
        given = actions.long()
        action = chosen_action(obs["available"].long(), given)
        teleports = self.table.reads_teleport[action]
        counted = valid_targets(self.table, obs["target_mask"], action, trunk.rows >= 0).any(-1)
        unit = torch.where(teleports, given[..., ActionPart.TELEPORT], given[..., ActionPart.UNIT])
        return torch.where(counted, trunk.rows.gather(1, unit), -1)

    def scores(self, core: Tensor, trunk: TrunkOutput, obs: dict[str, Tensor], action_embedding: Tensor,
               actions: Tensor) -> dict[str, Tensor]:
        """What the distributions are made of, float32, for given actions [N, H, 6]; -inf where there is no choice.

        ``primary`` [N, H, 30] logits of the available actions; ``unit`` [N, H, U] of the target units, for the action
        given; ``small`` [N, H, 3, 9] log-probabilities of its delay, x and y.
        """
        available, given, said = obs["available"].long(), actions.long(), self._linear(core)
        primary = _primary_logits(said, available, action_embedding).float()
        action = chosen_action(available, given)
        teleports = self.table.reads_teleport[action]
        mask = valid_targets(self.table, obs["target_mask"], action, trunk.rows >= 0)
        unit = self._unit_logits(said, action, teleports, mask, trunk)
        small = self._small_heads(said, action)
        reads = torch.stack((available[..., 0] != 0, *[self.table.reads_offset[action]] * 2), -1)[..., None]
        small = small.masked_fill(~reads | (small < torch.finfo(torch.float32).min / 2), -torch.inf)
        return {"primary": primary.masked_fill(available == 0, -torch.inf),
                "unit": unit.masked_fill(~mask, -torch.inf), "small": small}

    def _linear(self, core: Tensor) -> "_Linear":
        """All that is linear in the LSTM's output."""
        splits = [cast(nn.Linear, layer) for layer in self.unit_splits.values()]
        layers = [self.primary, self.unit, self.teleport, self.delay, self.offsets, *splits]
        primary, unit, teleport, delay, offsets, *of_splits = side_by_side(core, layers)
        return _Linear(primary, unit, teleport, delay, offsets, of_splits)

    def _small_heads(self, said: "_Linear", action: Tensor) -> Tensor:
        """float32 log-probabilities [N, H, 3, 9]: delay (only its 4 can be drawn), and x and y of the offset pair
        that the action reads."""
        offsets = said.offsets.float().view(*action.shape, self.pairs, 2, OFFSETS)
        pair = self.table.offset_pair[action][..., None, None, None].expand(*action.shape, 1, 2, OFFSETS)
        delay = F.pad(said.delay.float(), (0, OFFSETS - DELAYS), value=torch.finfo(torch.float32).min)
        return torch.cat((delay[..., None, :], offsets.gather(2, pair)[:, :, 0]), 2).log_softmax(-1)

    def _unit_logits(self, said: "_Linear", action: Tensor, teleports: Tensor, mask: Tensor,
                     trunk: TrunkOutput, targets: Targets | None = None) -> Tensor:
        """float32 [N, H, U]. Only valid targets are scored: most actions have few or none.

        The sigmoid gates the query instead of the keys, which gives the same products.
        """
        query = torch.where(teleports[..., None], said.teleport, said.unit)
        for i, split in enumerate(said.splits, 1):
            query = torch.where((self.table.unit_split[action] == i)[..., None] & ~teleports[..., None], split, query)
        query = query * torch.sigmoid(rows_of(self.gate.weight, action))
        if trunk.column is not None:
            return _all_scores(query, trunk.units, trunk.column)
        step, hero, slot = targets or mask.nonzero(as_tuple=True)
        keys = trunk.units[trunk.rows[step, slot], hero]
        # Queries repeat, keys do not: the gradient of index_select adds up in a fixed order, that of [...] does not.
        scores = (keys * query.flatten(0, 1).index_select(0, step * mask.shape[1] + hero)).sum(-1)
        return scores.new_zeros(mask.shape, dtype=torch.float32).index_put((step, hero, slot), scores.float())


class AuxiliaryHeads(nn.Module):
    """Win probability, net-worth rank at the end, and a part in destroying each enemy building soon.

    Only win probability sends its gradient into the LSTM; the others read it without shaping it.
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
        """[..., D] -> float32 logits: win_probability [...], net_worth_rank [..., 5], building_events [..., n]."""
        apart = {"net_worth_rank": self.net_worth_rank, "building_events": self.building_events}
        hidden = side_by_side(core.detach(), [cast(nn.Linear, head[0]) for head in apart.values()])
        return {"win_probability": self.win_probability(core)[..., 0].float(),
                **{name: head[1:](x).float() for (name, head), x in zip(apart.items(), hidden, strict=True)}}


class _Linear(NamedTuple):
    """What the heads' linear layers make of the LSTM's output: queries [N, H, K] (``splits``: of the split heads), and
    logits of delays and of all offsets."""

    primary: Tensor
    unit: Tensor
    teleport: Tensor
    delay: Tensor
    offsets: Tensor
    splits: list[Tensor]


def side_by_side(x: Tensor, layers: Sequence[nn.Linear]) -> list[Tensor]:
    """What each of these layers makes of the same [..., D], by one product for all of them."""
    weight, bias = torch.cat([layer.weight for layer in layers]), torch.cat([layer.bias for layer in layers])
    return list(torch.split(F.linear(x, weight, bias), [layer.out_features for layer in layers], -1))


def _primary_logits(said: _Linear, available: Tensor, embedding: Tensor) -> Tensor:
    # Scoring the whole vocabulary is one matrix product; gathering embeddings first would move 30 keys a hero.
    logits: Tensor = said.primary @ embedding.t()
    return logits.gather(-1, available)


def _all_scores(query: Tensor, units: Tensor, column: Tensor) -> Tensor:
    """float32 [N, H, U]: every query [N, H, K] with the keys of all slots, ``units`` [U * N, H, K] with those of slot u
    at ``column[u]``. In float32 whatever the precision, as the products of single pairs are."""
    steps, heroes, width = query.shape
    keys = units.view(len(column), steps * heroes, width).transpose(0, 1)
    with torch.autocast(query.device.type, enabled=False):
        scores = torch.bmm(keys.float(), query.float().view(steps * heroes, width, 1))
    return scores.view(steps, heroes, -1).index_select(-1, column)


def _picked(logp: Tensor, index: Tensor) -> Tensor:
    return logp.gather(-1, index[..., None])[..., 0]
