"""Matches in this process: policies and the game's bots against each other, in pairs of games with sides swapped.

Both games of a pair have one seed, which gives them the same line-ups and map events. The first contestant plays
Radiant in one and Dire in the other. The games are planned in advance and each is played to its end: stopping at the
first results would overcount short games.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dota.config import GameConfig, evaluation_game
from dota.replay import Replay
from dota.spaces import ActionPart
from dota.vec_game import BOTS, STATS, TEAMS, Controller, VecGame, Winner
from five.agent.compute import torch_threads
from five.agent.model.native_actor import freeze
from five.agent.model.policy import Policy
from five.agent.ratings import pairs_interval

Floats = npt.NDArray[np.float64]
OnStep = Callable[[VecGame, int, int], None]
"""Receives the games, the env slot of one that has just played a timestep, and the side of the first contestant."""

# Parameters from which on several threads are faster. `Policy.act` of 32 team-steps took, on one and on two threads of
# an Intel Xeon (torch 2.13.0): 8.9 and 11.5 ms with 0.5 million, 13.4 and 26.3 with 2.9, 140 and 92 with 13.
MULTITHREAD_PARAMETERS = 5_000_000
SEED_STREAM = 0x6D61  # keeps the games' seeds apart from other uses of a match's seed
SAMPLING_STRIDE = 1_000_003  # between the seeds of the policies' choices of two parts of a match


@dataclass(frozen=True)
class Contestant:
    """Player of a side: a policy on the CPU in evaluation mode, or the game's bot ``controller``."""

    name: str
    policy: Policy | None = None
    controller: Controller = Controller.POLICY

    @classmethod
    def bot(cls, name: str) -> "Contestant":
        """Return a bot of the game. Raises ValueError naming the known bots."""
        if name not in BOTS:
            raise ValueError(f"unknown bot {name!r}; known bots: {', '.join(BOTS)}")
        return cls(name, None, BOTS[name])


class MatchGame(NamedTuple):
    """A finished game. ``score`` of the first contestant: 1 won, 0.5 drawn, 0 lost. ``statistics`` float32 [2, K]: the
    first contestant's row first, means over heroes, columns ``dota.vec_game.STATS``."""

    pair: int
    side: int
    score: float
    seconds: float
    statistics: npt.NDArray[np.float32]


@dataclass
class PairedMatch:
    """Games of a match between two contestants, two a pair."""

    first: str
    second: str
    games: list[MatchGame] = field(default_factory=list)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Games that the first contestant won, drew and lost."""
        scores = [g.score for g in self.games]
        return scores.count(1.0), scores.count(0.5), scores.count(0.0)

    @property
    def score(self) -> float:
        """Mean score of the first contestant; a drawn game counts as half a win."""
        return float(np.mean([g.score for g in self.games]))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of `score` from the means of the pairs, whose two games are not
        independent."""
        return pairs_interval(self.pair_scores().tolist(), confidence)

    def pair_scores(self) -> Floats:
        """Return the mean score of each pair's two games, float64 [pairs], in order of the pairs."""
        pairs = sorted({g.pair for g in self.games})
        return np.array([np.mean([g.score for g in self.games if g.pair == p]) for p in pairs])

    def statistics(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return the means of each statistic over the games, of the first contestant and of the second."""
        means = np.mean([g.statistics for g in self.games], axis=0)
        return (dict(zip(STATS, means[0].tolist(), strict=True)), dict(zip(STATS, means[1].tolist(), strict=True)))

    @property
    def seconds(self) -> float:
        """Mean length of a game, seconds of game time."""
        return float(np.mean([g.seconds for g in self.games]))


def play(game: GameConfig, first: Contestant, second: Contestant, pairs: int, seed: int = 0, *, greedy: bool = False,
         concurrent: int = 32, threads: int = 1, on_game: Callable[[MatchGame], None] = lambda game: None,
         on_step: OnStep | None = None, record: Callable[[Replay, int], None] | None = None) -> PairedMatch:
    """Play ``pairs`` pairs of games of ``game`` under evaluation settings.

    ``greedy`` policies take their most probable action instead of sampling. ``on_step`` is called after each timestep
    of a game, ``record`` with the first game's replay and final hash. Equal arguments give equal games on one machine
    with one number of PyTorch threads. Raises ValueError if a policy's layout is not the game's, or for fewer than one
    pair.
    """
    if pairs < 1:
        raise ValueError(f"{pairs} pairs of games: at least 1 is required")
    return play_planned(game, first, second, [(pair, side) for pair in range(pairs) for side in range(TEAMS)], seed,
                        greedy=greedy, concurrent=concurrent, threads=threads, on_game=on_game, on_step=on_step,
                        record=record)


def play_planned(game: GameConfig, first: Contestant, second: Contestant, planned: Sequence[tuple[int, int]],
                 seed: int = 0, *, greedy: bool = False, concurrent: int = 32, threads: int = 1,
                 on_game: Callable[[MatchGame], None] = lambda game: None, on_step: OnStep | None = None,
                 record: Callable[[Replay, int], None] | None = None) -> PairedMatch:
    """Play the games of ``planned``, each a pair's number and the side of ``first``, as `play` does.

    They may be a part of a match. Policies sample other random numbers in each part, so that pairs are independent.
    """
    game = evaluation_game(game)
    plan = deque(planned)
    games = VecGame(game, min(concurrent, len(plan)), seed, threads)
    for contestant in (first, second):
        if contestant.policy is not None and contestant.policy.layout.hash != games.layout.hash:
            raise ValueError(f"{contestant.name} reads layout {contestant.policy.layout.hash}, the game's is "
                             f"{games.layout.hash}")
    with torch_threads(_threads(first.policy, second.policy)):
        return _MatchPlayer(games, first, second, plan, seed, greedy, on_game, on_step, record).run()


def freeze_for_matches(policy: Policy) -> None:
    """Compile a policy for the native actor, unless matches play it on several threads of PyTorch."""
    with torch_threads(_threads(policy)):  # `freeze` supports policies only while PyTorch has one thread
        freeze(policy)


def _threads(*policies: Policy | None) -> int:
    """Return the number of PyTorch threads that suits these networks."""
    sizes = [sum(p.numel() for p in policy.parameters()) for policy in policies if policy is not None]
    return 1 if max(sizes, default=0) < MULTITHREAD_PARAMETERS else torch.get_num_threads()


class _MatchPlayer:
    """A match in progress: the game of each env slot, and each side's recurrent state."""

    def __init__(self, games: VecGame, first: Contestant, second: Contestant, plan: "deque[tuple[int, int]]", seed: int,
                 greedy: bool, on_game: Callable[[MatchGame], None], on_step: OnStep | None,
                 record: Callable[[Replay, int], None] | None) -> None:
        self._games = games
        self._contestants = (first, second)
        self._plan = plan
        self._seed = seed
        pair, side = plan[0]
        self._generator = torch.Generator().manual_seed(seed + SAMPLING_STRIDE * (TEAMS * pair + side))
        self._greedy = greedy
        self._on_game = on_game
        self._on_step = on_step
        self._record = record
        self._replay: tuple[int, Replay] | None = None
        self._playing: dict[int, tuple[int, int]] = {}  # env slot -> pair, side of the first contestant
        self._states: list[dict[str, Tensor]] = [
            c.policy.initial_state(games.games) if c.policy is not None else {} for c in self._contestants]
        self._actions = np.zeros((games.games, TEAMS, games.layout.heroes, len(ActionPart)), np.int16)
        self._match = PairedMatch(first.name, second.name)

    def run(self) -> PairedMatch:
        for slot in range(self._games.games):
            self._begin_game(slot)
        while self._playing:
            self._act()
            live = sorted(self._playing)
            self._games.step(self._actions, live)
            for slot in live:
                if self._on_step is not None:
                    self._on_step(self._games, slot, self._playing[slot][1])
                if self._games.winner[slot] != Winner.RUNNING:
                    self._end(slot)
                    self._begin_game(slot)
        return self._match

    def _begin_game(self, slot: int) -> None:
        if not self._plan:
            return
        pair, side = self._plan.popleft()
        # Not spawn(): both games of a pair need one seed, whatever the order of their starts.
        seed = int(np.random.SeedSequence([self._seed, SEED_STREAM, pair]).generate_state(1, np.uint64)[0])
        for index, contestant in enumerate(self._contestants):
            self._games.controllers[slot, side if index == 0 else 1 - side] = contestant.controller
            for state in self._states[index].values():
                state[slot] = 0.0
        self._games.reset_as(slot, seed)
        if self._record is not None and self._replay is None:
            self._replay = (slot, self._games.record(slot))
        self._playing[slot] = (pair, side)

    def _act(self) -> None:
        slots = np.array(sorted(self._playing), np.int64)
        sides = np.array([self._playing[int(slot)][1] for slot in slots], np.int64)
        for index, contestant in enumerate(self._contestants):
            if contestant.policy is None:
                continue
            teams = sides if index == 0 else 1 - sides
            observation = {name: torch.from_numpy(array[slots, teams]) for name, array in self._games.obs.items()}
            rows = torch.from_numpy(slots)
            before = {name: state[rows] for name, state in self._states[index].items()}
            acted = contestant.policy.act(observation, before, generator=self._generator, greedy=self._greedy)
            for name, state in self._states[index].items():
                state[rows] = acted.state[name]
            self._actions[slots, teams] = acted.actions.numpy()

    def _end(self, slot: int) -> None:
        pair, side = self._playing.pop(slot)
        winner = int(self._games.winner[slot])
        score = 0.5 if winner == Winner.DRAW else float(winner - 1 == side)
        by_side = self._games.stats[slot].mean(axis=1)
        game = MatchGame(pair, side, score, float(self._games.game_time[slot]), by_side[[side, 1 - side]].copy())
        self._match.games.append(game)
        if self._replay is not None and self._replay[0] == slot and self._record is not None:
            self._record(self._replay[1], self._games.hash(slot))
            self._record = None
        self._on_game(game)
