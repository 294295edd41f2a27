"""Policy and versions that count, so that every output identifies the steps that led to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dota.config import GameConfig, ObservationConfig
from dota.rewards import SIGNALS
from dota.spaces import Layout

HEROES = 1
GAME = GameConfig(
    mode="1v1_mid", heroes_per_team=HEROES, hero_pool=["nevermore"],
    observation=ObservationConfig(allied_creeps=1, neutral_creeps=0, buildings=1, wards=0, couriers=0,
                                  hero_modifiers=1, unit_modifiers=0, pickups=0, minimap=1, nearby_map=2,
                                  passability=2))
LAYOUT = Layout(GAME)
STATE_SPECS: dict[str, tuple[tuple[int, ...], Any]] = {
    "count": ((HEROES, 1), np.float32), "trace": ((HEROES, 2), np.float32)}
BUILDINGS = 1


@dataclass(frozen=True)
class Output:
    actions: torch.Tensor
    logp: torch.Tensor
    values: torch.Tensor
    aux: dict[str, torch.Tensor]
    state: dict[str, torch.Tensor]
    primary: torch.Tensor | None = None
    unit: torch.Tensor | None = None


class CountingPolicy:
    """Policy with the state ``count``, steps since the zero state, and ``trace``, a decaying sum over all observations
    and one over all actions, which reveals a missing, repeated or reordered step. Values are the first trace,
    log-probabilities are minus the version; the primary action is the count plus ``bias``, modulo 7."""

    def __init__(self) -> None:
        self.version = -1.0
        self.bias = 0
        self.reward_std = 1.0
        self.calls: list[int] = []
        self.fail = False

    def act(self, obs: dict[str, torch.Tensor], state: dict[str, torch.Tensor], *,
            generator: torch.Generator | None = None, greedy: bool = False,
            replay: torch.Tensor | None = None) -> Output:
        if self.fail:
            raise RuntimeError("the forward pass broke")
        seen = obs["shared"][:, 0].float()
        batch = len(seen)
        self.calls.append(batch)
        count = state["count"] + 1
        actions = torch.zeros(batch, HEROES, 6, dtype=torch.int16)
        actions[..., 0] = 29 if greedy else (count[..., 0].long() + self.bias) % 7
        if replay is not None:
            actions = torch.where(replay[..., :1] >= 0, replay, actions)
        trace = 0.5 * state["trace"]
        trace[..., 0] += seen[:, None]
        trace[..., 1] += actions[..., 0]
        values = trace[..., 0].clone()
        aux = {"win_probability": torch.full((batch, HEROES), 0.5) + 0.01 * self.version,
               "net_worth_rank": torch.full((batch, HEROES, 5), 0.2),
               "building_events": torch.full((batch, HEROES, BUILDINGS), 0.1)}
        return Output(actions, torch.full((batch, HEROES), -float(self.version)), values, aux,
                      {"count": count, "trace": trace}, torch.log(1 / (1 + count).expand(batch, HEROES, 30)))


class CountingBuilder:
    """Builder that loads counting policies from `Versions`. Each takes one byte."""

    def __init__(self) -> None:
        self.created: list[CountingPolicy] = []

    def nbytes(self, policy: Any) -> int:
        return 1

    def create(self, past: bool = False) -> CountingPolicy:
        self.created.append(CountingPolicy())
        return self.created[-1]

    def load(self, policy: Any, tensors: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> None:
        policy.version = float(tensors["version"][0])
        policy.bias = int(tensors["bias"][0])
        policy.reward_std = float(meta.get("reward_std", 1.0))


class Versions:
    """In-memory version store; ``bias`` shifts the actions of versions published later."""

    def __init__(self, *versions: int) -> None:
        self.published: dict[int, tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]] = {}
        self.bias = 0
        self.fetches: list[int] = []
        for version in versions:
            self.publish(version)

    def publish(self, version: int, reward_std: float = 1.0) -> None:
        self.published[version] = (
            {"version": np.array([version]), "bias": np.array([self.bias])}, {"reward_std": reward_std})

    def head(self) -> int | None:
        return max(self.published, default=None)

    def digests(self, versions: Sequence[int]) -> dict[int, str]:
        return {v: repr(self.published[v]) for v in versions if v in self.published}

    def fetch(self, version: int) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
        self.fetches.append(version)
        if version not in self.published:
            raise KeyError(f"version {version} was never published")
        return self.published[version]


def observations(*counts: float) -> dict[str, npt.NDArray[Any]]:
    """Return team-steps whose first shared value is the given count, and whose only available action is the first."""
    arrays = LAYOUT.allocate(len(counts))
    arrays["shared"][:, 0] = counts
    arrays["available"][:, :, 0] = 1
    return arrays


class CountingGames:
    """G games that count.

    The first shared values of each side's observation are the game's step, its episode in the slot, and slot and side
    as one number. One of the Dire's buildings, as its owner sees them, is destroyed after ``falls_at`` steps. Radiant's
    hero gains the step's number in gold. ``lengths[g][e]`` is the number of steps of episode e; the last entry repeats.
    Winners rotate: Radiant, Dire, draw.
    """

    statistic_names = ("last_hits", "net_worth")

    def __init__(self, lengths: list[list[int]], falls_at: int = 5) -> None:
        self.lengths = lengths
        self.falls_at = falls_at
        self.age = np.zeros(len(lengths), int)
        self.episode = np.full(len(lengths), -1)
        self.steps = 0
        self.actions: list[npt.NDArray[np.int16]] = []
        self.controllers = np.zeros((len(lengths), 2), np.uint8)
        self.rules: dict[int, Any] = {}  # configuration of each slot's current game
        self.branches: list[tuple[int, int, float]] = []  # slot, age, building_health
        self.lose_at: set[int] = set()
        units = LAYOUT.blocks["units"]
        self.building = units.field("max_hp").offset + LAYOUT.groups["allied_buildings"].start * units.stride["shared"]
        self.building += units.offset["shared"]

    def _write(self, game: int, out: dict[str, npt.NDArray[Any]]) -> None:
        for side in (0, 1):
            shared = out["shared"][game, side]
            shared[:3] = (self.age[game], self.episode[game], 2 * game + side)
            shared[self.building] = float(side == 0 or self.age[game] < self.falls_at)
        out["available"][game, :, :, 0] = 1

    async def reset(self, games: npt.NDArray[np.int32], controllers: npt.NDArray[np.uint8],
                    out: dict[str, npt.NDArray[Any]], rules: Sequence[Any] = ()) -> npt.NDArray[np.int16]:
        self.controllers[games] = controllers
        self.rules.update(zip(games.tolist(), rules, strict=True) if len(rules) else {})
        for game in games.tolist():
            self.age[game] = 0
            self.episode[game] += 1
            self._write(game, out)
        # The slot of a game selects its heroes.
        return np.stack([np.full((2, HEROES), game, np.int16) for game in games.tolist()])

    async def snapshot(self, slot: int) -> bytes:
        return bytes([self.age[slot]])

    async def branch(self, slot: int, snapshot: bytes, seed: int, building_health: float,
                     out: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.int16]:
        self.age[slot] = snapshot[0]
        self.branches.append((slot, snapshot[0], building_health))
        self._write(slot, out)
        return np.full((2, HEROES), 100 + slot, np.int16)

    async def step(self, actions: npt.NDArray[np.int16], out: dict[str, npt.NDArray[Any]]) -> Any:
        from five.services.rollout.environment import StepResult

        self.steps += 1
        if self.steps in self.lose_at:
            raise ConnectionError("the games are gone")
        self.actions.append(actions.copy())
        n = len(self.lengths)
        signals = np.zeros((n, 2, HEROES, len(SIGNALS)), np.float32)
        signals[:, 0, :, SIGNALS.index("gold")] = self.age[:, None]
        self.age += 1
        winners = np.zeros(n, np.uint8)
        for game, lengths in enumerate(self.lengths):
            episode = int(self.episode[game])
            if self.age[game] == lengths[min(episode, len(lengths) - 1)]:
                winners[game] = 1 + episode % 3
            self._write(game, out)
        statistics = np.zeros((n, 2, HEROES, 2), np.float32)
        statistics[:, 0, :, 0] = self.age[:, None]
        return StepResult(signals, winners, self.age.astype(np.float32), statistics)

    async def close(self) -> None:
        pass
