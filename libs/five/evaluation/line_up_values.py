"""Win probabilities of line-ups by a policy: from a game of each, or factored into a part for each team."""

import logging
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dota.config import GameConfig, evaluation_game
from dota.vec_game import TEAMS
from five.agent.draft.leaves import Floats, HeroPool, Ints, win_from_heads
from five.agent.model.factored_win_head import FactoredWinHead
from five.agent.model.policy import Policy
from five.run.line_ups import LineUps

log = logging.getLogger(__name__)
BATCH = 32  # line-ups of one forward pass; more would exceed a core's cache
FACTORED_BATCH = 256  # line-ups of one pass of the layers after the sum of two parts
MIN_LINE_UPS_PER_GAME = 4  # factoring is faster from so many on; it plays one game for each set of heroes and side
VERIFIED_LINE_UPS = 32  # compared with real games
TOLERANCES = 1e-4, 0.02  # largest difference of a probability in float32, and in bfloat16


class LineUpReader(Protocol):
    """Source of win probabilities of line-ups."""

    def read(self, leaves: Ints) -> Floats:
        """Return the win probabilities of leaves (their numbers, [k]), float32 [k]."""
        ...


class PerGameReader:
    """Reader that sets up a game for each line-up. Not thread-safe."""

    def __init__(self, policy: Policy, game: GameConfig, pool: HeroPool, batch: int = BATCH) -> None:
        self._line_ups = LineUps(evaluation_game(game), pool, batch)
        self._policy = policy

    def read(self, leaves: Ints) -> Floats:
        batch = self._line_ups.games
        return np.concatenate([self._read_batch(leaves[at:at + batch]) for at in range(0, len(leaves), batch)])

    def _read_batch(self, leaves: Ints) -> Floats:
        seen = _tensors(self._policy, self._line_ups.observe(leaves))
        acted = self._policy.act(seen, self._policy.initial_state(len(leaves) * TEAMS), greedy=True)
        heads = acted.aux["win_probability"].float().cpu().numpy()
        return win_from_heads(heads.reshape(len(leaves), TEAMS, -1))


class FactoredReader:
    """Reader that plays one game for each set of heroes on each side, and combines their parts by `FactoredWinHead`.

    The parts take 4 * 4 bytes for each set, hero of a team and value of the LSTM's input. Thread-safe.
    """

    def __init__(self, policy: Policy, game: GameConfig, pool: HeroPool, batch: int = BATCH) -> None:
        self._pool = pool
        self._win_head = FactoredWinHead(policy)
        line_ups = LineUps(evaluation_game(game), pool, batch)
        sets = pool.radiant
        shape = (TEAMS, len(sets), pool.team, policy.config.lstm_input)
        self._own, self._enemies = (torch.empty(shape, device=policy.device) for _ in range(2))
        # The opponents appear only in the enemies' part, so any other heroes will do.
        rivals = sets.members if pool.shared else sets.others[:, :pool.team]
        for side in range(TEAMS):
            for at in range(0, len(sets), batch):
                these = slice(at, min(at + batch, len(sets)))
                teams = [sets.members[these], rivals[these]]
                seen = line_ups.observe_teams(np.stack(teams if side == 0 else teams[::-1], axis=1))
                own, enemies = self._win_head.encode(_tensors(policy, seen))
                self._own[side, these] = own.view(-1, TEAMS, *own.shape[1:])[:, side]
                self._enemies[1 - side, these] = enemies.view(-1, TEAMS, *own.shape[1:])[:, 1 - side]

    def read(self, leaves: Ints) -> Floats:
        return np.concatenate([self._read_batch(leaves[at:at + FACTORED_BATCH])
                               for at in range(0, len(leaves), FACTORED_BATCH)])

    def _read_batch(self, leaves: Ints) -> Floats:
        sides = [torch.from_numpy(numbers).to(self._own.device) for numbers in self._pool.sets(leaves)]
        heads = [self._win_head.win_probability(self._own[side][sides[side]], self._enemies[side][sides[1 - side]])
                 for side in range(TEAMS)]
        return win_from_heads(torch.stack(heads, 1).cpu().numpy())


def factored_reader(policy: Policy, game: GameConfig, pool: HeroPool, batch: int = BATCH) -> FactoredReader | None:
    """Return a factored reader, verified against real games for some line-ups.

    None if games are as fast, or if an observation does not factor because it depends on both teams together.
    """
    if pool.line_ups < MIN_LINE_UPS_PER_GAME * TEAMS * len(pool.radiant):
        return None
    parts = FactoredReader(policy, game, pool, batch)
    some = np.random.default_rng(0).choice(pool.line_ups, min(VERIFIED_LINE_UPS, pool.line_ups), replace=False)
    difference = float(np.abs(parts.read(some) - PerGameReader(policy, game, pool, batch).read(some)).max())
    if difference <= TOLERANCES[policy.config.precision == "bfloat16"]:
        return parts
    log.warning("factored win probabilities differ from real games by %.5f: each line-up is evaluated in its own game",
                difference)
    return None


def _tensors(policy: Policy, seen: Mapping[str, npt.NDArray[Any]]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array).to(policy.device) for name, array in seen.items()}
