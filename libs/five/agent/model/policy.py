"""The policy network: inference calls it to act, the optimizer to learn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dota.spaces import Layout
from five.agent.compute import uses_bfloat16
from five.agent.config import ModelConfig
from five.agent.model.batch_index import BatchIndex, BatchIndexer
from five.agent.model.cross_hero import cross_hero_pool
from five.agent.model.embeddings import Embeddings
from five.agent.model.heads import ActionHeads, AuxiliaryHeads
from five.agent.model.inputs import Inputs
from five.agent.model.native_reader import NativeReader
from five.agent.model.normaliser import REWARD_PRIOR, Normaliser, RewardStatistics
from five.agent.model.process_set import SplitLinear
from five.agent.model.recurrent_core import RecurrentCore
from five.agent.model.recurrent_state import state_specs
from five.agent.model.trunk import Trunk, TrunkOutput

State = dict[str, Tensor]
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class PolicyOutput:
    """Result of `Policy.act`: ``actions`` int16 [B, H, 6], ``logp`` and ``values`` float32 [B, H], probabilities
    ``aux``, and the recurrent ``state`` for the next step. ``primary`` [B, H, 30] and ``unit`` [B, H, U] are those of
    `HeadOutput`.
    """

    actions: Tensor
    logp: Tensor
    values: Tensor
    aux: dict[str, Tensor]
    state: State
    primary: Tensor | None = None
    unit: Tensor | None = None


class OutputArrays(NamedTuple):
    """The fields of `PolicyOutput` as numpy arrays."""

    actions: npt.NDArray[np.int16]
    logp: Array
    values: Array
    aux: dict[str, Array]
    state: dict[str, Array]
    primary: Array
    unit: Array


class PolicyActor(Protocol):
    """Another implementation of `Policy.act` for constant parameters (`five.agent.model.native_actor.NativeActor`).

    ``nbytes`` is the memory that it takes besides the policy.
    """

    nbytes: int

    def accepts(self, obs: Mapping[str, Array]) -> bool:
        """Return whether it can read these arrays."""
        ...

    def __call__(self, obs: Mapping[str, Array], state: Mapping[str, Array], generator: torch.Generator | None = None,
                 greedy: bool = False) -> OutputArrays:
        """Choose one action per hero."""
        ...


@dataclass(frozen=True)
class UnrollOutput:
    """Result of `Policy.unroll`, all float32: ``logp``, ``entropy``, ``values`` [T, B, H], ``aux`` logits,
    ``entropies`` by head [T, B, H], whose sum is ``entropy``, and the detached ``state`` after the last step.
    ``max_entropies`` by head [T, B, H] are the entropies of uniform choices.

    ``observation_moments`` float64 [3, F] are raw moments for ``update_normaliser``, about the present means. Several
    optimizers average theirs before each merges the result; the statistics then count the data of one.
    """

    logp: Tensor
    entropy: Tensor
    values: Tensor
    aux: dict[str, Tensor]
    entropies: dict[str, Tensor]
    max_entropies: dict[str, Tensor]
    state: State
    observation_moments: Tensor


class Policy(nn.Module):
    """Policy network shared by all heroes of a team. Heroes are a batch dimension with a recurrent state each.

    ``state_dict()`` (parameters, input and reward statistics) is the content of a version.

    Attributes that are not part of a version: ``dense`` computes everything on all slots, absent ones too, in the same
    sequence of kernels for all batches of a size, so the host never waits. Results are equal up to rounding. ``actor``
    evaluates `act` in the policy's place where it is set (`five.agent.model.native_actor.freeze`).
    """

    actor: PolicyActor | None

    def __init__(self, layout: Layout, config: ModelConfig) -> None:
        super().__init__()
        self.layout = layout
        self.config = config
        self.dense = False
        self.actor = None
        self.embeddings = Embeddings(config)
        self.trunk = Trunk(layout, config, self.embeddings)
        widths = self.trunk.reader.widths()
        self.normaliser = Normaliser(widths, config.input_clip)
        self.rewards = RewardStatistics(REWARD_PRIOR)
        self.reads_last_action = layout.blocks["previous_action"].has("action")
        previous = widths["previous_action"][1] + config.key * (1 + self.reads_last_action)
        self.join = SplitLinear(self.trunk.shared_width, self.trunk.private_width + previous, config.lstm_input)
        self.core = RecurrentCore(config.lstm_input, config.lstm)
        self.heads = ActionHeads(layout, config)
        self.value = nn.Linear(config.lstm, 1)
        self.auxiliary = AuxiliaryHeads(layout, config)
        # Tuples keep these out of the module, so that they stay on the host.
        self._indexer = (BatchIndexer(layout, config),)
        self._native_reader = (NativeReader(self.trunk.reader),)

    @property
    def device(self) -> torch.device:
        """Return the device of the parameters."""
        return self.value.weight.device

    def initial_state(self, teams: int) -> State:
        """Return the state at the start of a game, [teams, ...], on the policy's device."""
        return {name: torch.zeros((teams, *shape), device=self.device)
                for name, (shape, _) in state_specs(self.layout, self.config).items()}

    @torch.no_grad()
    def act(self, obs: dict[str, Tensor], state: State, *, generator: torch.Generator | None = None,
            greedy: bool = False, replay: Tensor | None = None) -> PolicyOutput:
        """Choose one action per hero. ``obs`` arrays and ``state`` lead with [B] and are on the policy's device.

        With a ``generator`` the choice is a function of its state and the inputs; ``greedy`` takes the most likely
        action. ``replay`` int16 [B, H, 6] holds actions that were already played, -1 in a row that is to be chosen. It
        rebuilds a lost state from the actions that were taken.
        """
        if self.actor is not None and replay is None and not self.dense:
            arrays = {name: array.numpy() for name, array in obs.items()}
            if self.actor.accepts(arrays):
                return _as_tensors(self.actor(arrays, {name: array.numpy() for name, array in state.items()}, generator,
                                              greedy))
        with self._autocast():
            inputs, trunk, floats, _ = self._encode(obs)
            joined = self._join(inputs, trunk, floats, state["target_embedding"])
            h, c = self.core.step(joined, state["h"], state["c"])
            chosen = self.heads(h, trunk, obs, self.embeddings.table("action"), None, generator, greedy)
            primary, unit = chosen.primary, chosen.unit
            if replay is not None:
                taken = torch.where(replay[..., :1] >= 0, replay.long(), chosen.actions)
                chosen = self.heads(h, trunk, obs, self.embeddings.table("action"), taken)
            values = self.value(h)[..., 0]
            aux = self.auxiliary(h)
        new = {"h": h.float(), "c": c.float(), "target_embedding": _embedding_of(chosen.target, trunk)}
        probabilities = {"win_probability": aux["win_probability"].sigmoid(),
                         "net_worth_rank": aux["net_worth_rank"].softmax(-1),
                         "building_events": aux["building_events"].sigmoid()}
        return PolicyOutput(chosen.actions.to(torch.int16), chosen.logp, values.float(), probabilities, new, primary,
                            unit)

    def index_batch(self, obs: dict[str, Tensor], actions: Tensor, resets: Tensor) -> BatchIndex:
        """Return the index that `unroll` would otherwise search for on its device. The arrays are on the host.

        With it no unroll on a GPU makes the host wait. It is safe on another thread.
        """
        return self._indexer[0](obs, actions, resets)

    def unroll(self, obs: dict[str, Tensor], actions: Tensor, state: State,
               resets: Tensor | None = None, index: BatchIndex | None = None) -> UnrollOutput:
        """Evaluate given actions over a sequence.

        ``obs`` arrays [T, B, ...], ``actions`` [T, B, H, 6], ``state`` [B, ...] before the first step. ``resets`` bool
        [T, B] marks steps at which a new game starts, before which the state is zero; None: nowhere. ``index`` is that
        of the same arrays, on the policy's device; a dense policy needs none.
        """
        steps, teams = actions.shape[:2]
        flat = {name: array.flatten(0, 1) for name, array in obs.items()}
        with self._autocast():
            inputs, trunk, floats, moments = self._encode(flat, index, moments=True)
            assert moments is not None
            previous = self._previous_targets(actions, obs, state["target_embedding"], trunk, resets)
            joined = self._join(inputs, trunk, floats, previous)
            core, h, c = self.core(_restore_leading(joined, steps, teams), state["h"], state["c"], resets,
                                   None if index is None else index.starts, self.dense)
            core = core.flatten(0, 1)
            chosen = self.heads(core, trunk, flat, self.embeddings.table("action"), actions.flatten(0, 1),
                                targets=None if index is None else index.targets)
            values = self.value(core)[..., 0].float()
            aux = self.auxiliary(core)
        entropies, max_entropies = ({name: _restore_leading(e, steps, teams) for name, e in by_head.items()}
                                    for by_head in (chosen.entropies, chosen.max_entropies))
        last = _restore_leading(_embedding_of(chosen.target, trunk), steps, teams)[-1]
        aux = {name: _restore_leading(logits, steps, teams) for name, logits in aux.items()}
        return UnrollOutput(
            _restore_leading(chosen.logp, steps, teams), torch.stack(list(entropies.values())).sum(0),
            _restore_leading(values, steps, teams), aux, entropies, max_entropies,
            {"h": h.detach().float(), "c": c.detach().float(), "target_embedding": last}, moments)

    @torch.no_grad()
    def scores(self, obs: dict[str, Tensor], actions: Tensor, state: State, resets: Tensor | None = None
               ) -> dict[str, Tensor]:
        """Return the inputs of the distributions over a sequence, to compare two policies; arguments as in `unroll`.

        The result has `ActionHeads.scores` [T, B, H, ...], ``values`` [T, B, H] and the auxiliary logits as
        ``aux/<name>``, all float32.
        """
        steps, teams = actions.shape[:2]
        flat = {name: array.flatten(0, 1) for name, array in obs.items()}
        with self._autocast():
            inputs, trunk, floats, _ = self._encode(flat)
            previous = self._previous_targets(actions, obs, state["target_embedding"], trunk, resets)
            joined = self._join(inputs, trunk, floats, previous)
            core, _, _ = self.core(_restore_leading(joined, steps, teams), state["h"], state["c"], resets,
                                   step_by_step=self.dense)
            core = core.flatten(0, 1)
            scores = self.heads.scores(core, trunk, flat, self.embeddings.table("action"), actions.flatten(0, 1))
            scores["values"] = self.value(core)[..., 0].float()
            scores |= {f"aux/{name}": logits for name, logits in self.auxiliary(core).items()}
        return {name: _restore_leading(logits, steps, teams) for name, logits in scores.items()}

    def update_normaliser(self, moments: Tensor) -> None:
        """Merge ``UnrollOutput.observation_moments``, averaged over the optimizers, into the running statistics."""
        self.normaliser.merge(moments)

    @property
    def reward_std(self) -> float:
        """Return the divisor of rewards; 1.0 before any was seen."""
        return self.rewards.std()

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=uses_bfloat16(self.config, self.device))

    def _encode(self, obs: dict[str, Tensor], index: BatchIndex | None = None, moments: bool = False
                ) -> tuple[Inputs, TrunkOutput, dict[str, Tensor], Tensor | None]:
        present, targets = (None, None) if index is None else (index.present, index.targets)
        with torch.autocast(self.device.type, enabled=False):
            if not self.dense and self._native_reader[0].accepts(obs):
                inputs, floats, seen = self._native_reader[0](obs, self.normaliser, present, moments)
            else:
                inputs = self.trunk.reader(obs, present, self.dense)
                floats = self.normaliser(inputs)
                seen = self.normaliser.stream_moments(inputs) if moments else None
        return inputs, self.trunk(inputs, floats, self.embeddings, targets), floats, seen

    def _join(self, inputs: Inputs, trunk: TrunkOutput, floats: dict[str, Tensor], target: Tensor) -> Tensor:
        """Return the LSTM's input [N, H, I]; ``target`` [N, H, K] are embeddings of the units targeted the step
        before."""
        private = [trunk.private, floats["previous_action"], target]
        if self.reads_last_action:
            private.append(self.embeddings.embed("action", inputs.ids["previous_action"]))
        joined = torch.relu(self.join(trunk.shared, torch.cat(private, -1)))
        return cross_hero_pool(joined, self.config.pooled)

    def _previous_targets(self, actions: Tensor, obs: dict[str, Tensor], first: Tensor, trunk: TrunkOutput,
                          resets: Tensor | None) -> Tensor:
        """Return [T * B, H, K]: the state's embedding at the first step, then those of the step before; 0 after a
        reset."""
        steps, teams = actions.shape[:2]
        flat = {name: obs[name].flatten(0, 1) for name in ("available", "target_mask")}
        rows = self.heads.target_rows(actions.flatten(0, 1), flat, trunk)
        targets = _restore_leading(_embedding_of(rows, trunk), steps, teams)
        previous = torch.cat((first[None], targets[:-1]))
        if resets is not None:
            previous = previous.masked_fill(resets[:, :, None, None], 0.0)
        return previous.flatten(0, 1)


def _as_tensors(output: OutputArrays) -> PolicyOutput:
    tensor = torch.from_numpy
    return PolicyOutput(
        tensor(output.actions), tensor(output.logp), tensor(output.values),
        {name: tensor(array) for name, array in output.aux.items()},
        {name: tensor(array) for name, array in output.state.items()}, tensor(output.primary), tensor(output.unit))


def _restore_leading(x: Tensor, *lead: int) -> Tensor:
    return x.view(*lead, *x.shape[1:])


def _embedding_of(rows: Tensor, trunk: TrunkOutput) -> Tensor:
    """Return float32 [N, H, K]: embeddings of targets by their rows in the trunk's units int64 [N, H], without
    gradient; zero for -1."""
    units = trunk.units.detach()
    if len(units) == 0:
        return units.new_zeros(*rows.shape, units.shape[-1], dtype=torch.float32)
    hero = torch.arange(rows.shape[1], device=rows.device)
    return units[rows.clamp_min(0), hero].float() * (rows >= 0)[..., None]
