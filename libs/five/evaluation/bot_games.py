"""Games between two of the game's bots, with statistics of each game.

Games come in pairs of one seed with sides swapped, as in `five.evaluation.match`. A bot against itself plays each
seed once, since the swapped game would be equal. Statistics come from the spectator's view, read once every
``OBSERVE_SECONDS`` of game time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig, ObservationConfig, evaluation_game
from dota.registry import load
from dota.rewards import SIGNALS
from dota.vec_game import BOTS, STATS, TEAMS, VecGame, Winner

OBSERVE_SECONDS = 10.0
MARKS = (5, 10, 20, 30)  # minutes at which MARKED statistics are recorded
MARKED = ("net_worth", "xp", "level", "last_hits")
# Finished items whose first time is recorded.
TIMED_ITEMS = ("item_boots", "item_magic_wand", "item_power_treads", "item_blink", "item_black_king_bar",
               "item_ultimate_scepter")


def full_game_config() -> GameConfig:
    """Return a game of five against five with all heroes, until an Ancient falls or for 80 minutes."""
    return GameConfig(hero_pool=list(load().heroes), max_game_seconds=4800.0)


def quick_game_config() -> GameConfig:
    """Return a mirror match in the middle lane, which two kills or a fallen tower end within minutes."""
    return GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], start_seconds=-30,
                      max_game_seconds=900, neutrals=False, roshan=False, runes=False,
                      observation=ObservationConfig(neutral_creeps=0, buildings=3, wards=0, couriers=0))


@dataclass
class TeamRecord:
    """Statistics of one team in a game; means are over its heroes."""

    kills: float = 0
    last_hits: float = 0
    denies: float = 0
    towers_lost: int = 0
    roshans: int = 0
    first_roshan: float | None = None  # game time, seconds
    marks: dict[int, dict[str, float]] = field(default_factory=dict)  # by minute of MARKS: MARKED statistics
    items: dict[str, list[float]] = field(default_factory=dict)  # minutes, one for each hero that bought it


@dataclass
class BotGameRecord:
    """A finished game. ``teams`` are Radiant and Dire; ``first_side`` is the first bot's side (0, 1)."""

    pair: int
    first_side: int
    winner: Winner
    seconds: float
    teams: tuple[TeamRecord, TeamRecord]
    first_tower: float | None = None  # game time, seconds

    @property
    def score(self) -> float:
        """Score of the first bot: 1 won, 0.5 drawn, 0 lost."""
        if self.winner == Winner.DRAW:
            return 0.5
        return float((self.winner == Winner.RADIANT) == (self.first_side == 0))


class _GameObserver:
    """Statistics of a running game."""

    def __init__(self) -> None:
        self.teams = (TeamRecord(), TeamRecord())
        self.first_tower: float | None = None
        self.next_observation = 0.0
        self._initial_towers: list[int] | None = None  # of each team, at the first observation
        self._held: set[tuple[int, str]] = set()

    def observe(self, games: VecGame, slot: int) -> None:
        """Read the spectator's view and update the statistics."""
        seconds = float(games.game_time[slot])
        seen = games.spectate(slot)
        units = seen["units"]
        towers = [sum(u["kind"] == "tower" and u["team"] == team for u in units) for team in range(TEAMS)]
        if self._initial_towers is None:
            self._initial_towers = towers
        for team in range(TEAMS):
            self.teams[team].towers_lost = self._initial_towers[team] - towers[team]
        if self.first_tower is None and towers != self._initial_towers:
            self.first_tower = seconds
        for unit in units:
            if unit["hero"] < 0:
                continue
            for item in unit["items"]:
                if item in TIMED_ITEMS and (unit["hero"], item) not in self._held:
                    self._held.add((unit["hero"], item))
                    self.teams[unit["team"]].items.setdefault(item, []).append(seconds / 60)
        for mark in MARKS:
            if seconds >= 60 * mark and mark not in self.teams[0].marks:
                for team in range(TEAMS):
                    totals = dict(zip(STATS, games.stats[slot, team].mean(0).tolist(), strict=True))
                    self.teams[team].marks[mark] = {name: totals[name] for name in MARKED}

    def count_aegis(self, taken: npt.NDArray[np.float32], seconds: float) -> None:
        """Count a taken Aegis, which is signalled to every hero of the team (``taken`` [2])."""
        for record, got in zip(self.teams, taken.tolist(), strict=True):
            if got > 0:
                record.roshans += 1
                record.first_roshan = seconds if record.first_roshan is None else record.first_roshan


def play(game: GameConfig, first: str, second: str, pairs: int, seed: int = 0, *, concurrent: int = 8, threads: int = 1,
         observe: bool = True, on_game: Callable[[BotGameRecord], None] = lambda game: None) -> list[BotGameRecord]:
    """Play ``pairs`` pairs of games, ``first`` against ``second``; as many single games if they are the same bot.

    Without ``observe`` only winners and lengths are recorded. Equal arguments give equal games for any ``concurrent``
    and ``threads``. Raises ValueError for an unknown bot and for fewer than one pair.
    """
    if pairs < 1:
        raise ValueError(f"{pairs} pairs of games: at least 1 is required")
    for name in (first, second):
        if name not in BOTS:
            raise ValueError(f"unknown bot {name!r}; known bots: {', '.join(BOTS)}")
    plan = [(pair, side) for pair in range(pairs) for side in range(TEAMS if first != second else 1)]
    games = VecGame(evaluation_game(game), min(concurrent, len(plan)), seed, threads, observations=False)
    aegis = SIGNALS.index("aegis")
    playing: dict[int, tuple[int, int, _GameObserver]] = {}
    done: list[BotGameRecord] = []

    def begin(slot: int) -> None:
        if not plan:
            return
        pair, side = plan.pop(0)
        games.controllers[slot, side], games.controllers[slot, 1 - side] = BOTS[first], BOTS[second]
        games.reset_as(slot, int(np.random.SeedSequence([seed, pair]).generate_state(1, np.uint64)[0]))
        playing[slot] = (pair, side, _GameObserver())

    for slot in range(games.games):
        begin(slot)
    while playing:
        live = sorted(playing)
        games.step(which=live)
        for slot in live:
            pair, side, observer = playing[slot]
            over = games.winner[slot] != Winner.RUNNING
            if observe:
                observer.count_aegis(games.signals[slot, :, 0, aegis], float(games.game_time[slot]))
                if over or games.game_time[slot] >= observer.next_observation:
                    observer.next_observation = float(games.game_time[slot]) + OBSERVE_SECONDS
                    observer.observe(games, slot)
            if not over:
                continue
            for team in range(TEAMS):
                totals = dict(zip(STATS, games.stats[slot, team].mean(0).tolist(), strict=True))
                record = observer.teams[team]
                record.kills = float(games.stats[slot, team, :, STATS.index("kills")].sum())
                record.last_hits, record.denies = totals["last_hits"], totals["denies"]
            done.append(BotGameRecord(pair, side, Winner(int(games.winner[slot])), float(games.game_time[slot]),
                                      observer.teams, observer.first_tower))
            on_game(done[-1])
            del playing[slot]
            begin(slot)
    return sorted(done, key=lambda g: (g.pair, g.first_side))
