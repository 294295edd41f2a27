"""Measurement of how often each layout field, action and reward signal varies in bot games.

``python -m tests.dota.liveness --games 20`` plays whole games and prints what never varies.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig, RandomisationConfig
from dota.registry import load
from dota.rewards import SIGNALS
from dota.spaces import Block, Layout, actions_of
from dota.vec_game import Controller, VecGame, Winner

ALL_HEROES = list(load().heroes)
# Everything on: all heroes, the courier that can die, the paper's randomisation.
WHOLE = GameConfig(hero_pool=ALL_HEROES, courier="scripted", max_game_seconds=4800.0, randomisation=RandomisationConfig(
    stats=0.05, gold=0.1, xp=0.2, item_drop=0.05, item_insert=0.05, consumables=0.5, skill=0.1, lane=0.2,
    roshan=True))
COMPONENTS = 16  # a field of more numbers than this counts as one
ACTION = 0  # column of a recorded command


@dataclass
class Range:
    """Minimum and maximum of each observed component, and the number of observed changes."""

    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    changed: npt.NDArray[np.int64]

    @property
    def varies(self) -> npt.NDArray[np.bool_]:
        """Return whether each component ever varied, bool [components]."""
        return self.low < self.high


@dataclass
class Liveness:
    """Statistics of games. ``fields`` by ``block.field``; unit slots also by ``units of group``."""

    looks: int = 0
    fields: dict[str, Range] = field(default_factory=dict)
    offered: Counter[str] = field(default_factory=Counter)
    taken: Counter[str] = field(default_factory=Counter)
    signals: Counter[str] = field(default_factory=Counter)
    groups: Counter[str] = field(default_factory=Counter)

    def dead_fields(self) -> list[str]:
        """Return each ``block.field``, or ``block.field[component]``, whose value never varied."""
        dead = []
        for name, seen in self.fields.items():
            varies = seen.varies
            if not varies.any():
                dead.append(name)
            else:
                dead += [f"{name}[{i}]" for i in np.flatnonzero(~varies)]
        return dead

    def dead_actions(self, patch: str = "7.21d") -> list[str]:
        """Return the patch's actions that no hero ever took."""
        return [a.name for a in actions_of(patch) if a.name != "none" and not self.taken[a.name]]

    def dead_signals(self) -> list[str]:
        """Return the reward terms that never occurred."""
        return [name for name in SIGNALS if not self.signals[name]]


def values_of(layout: Layout, obs: dict[str, npt.NDArray[np.generic]], game: int, block: Block,
              name: str) -> npt.NDArray[np.float64]:
    """Return a field's values for both teams (and heroes), float64 [many, components]."""
    f = block.field(name)
    rows = obs[f.array][game]
    rows = rows.reshape(-1, rows.shape[-1])[:, block.span(f.array)]
    values = rows.reshape(-1, block.width(f.array))[:, f.offset:f.offset + f.count]
    return values.astype(np.float64)


def watch(games: VecGame, found: Liveness, places: Sequence[int], before: dict[tuple[int, str], int]) -> None:
    """Record the last observations of these games."""
    layout = games.layout
    for place in places:
        found.looks += 1
        for block in layout.blocks.values():
            for f in block.fields:
                if f.array == "model":
                    continue
                key = f"{block.name}.{f.name}"
                values = values_of(layout, games.obs, place, block, f.name)
                if f.count > COMPONENTS:
                    values = values.reshape(-1, 1)
                low, high = values.min(0), values.max(0)
                seen = found.fields.get(key)
                if seen is None:
                    seen = found.fields[key] = Range(low, high, np.zeros(len(low), np.int64))
                np.minimum(seen.low, low, out=seen.low)
                np.maximum(seen.high, high, out=seen.high)
                mark = hash(values.tobytes())
                seen.changed += before.get((place, key), mark) != mark
                before[place, key] = mark
        units = values_of(layout, games.obs, place, layout.blocks["units"], "max_hp").reshape(2, -1)
        for group in layout.groups.values():
            found.groups[group.name] += int((units[:, group.start:group.start + group.count] != 0).any())


def play(config: GameConfig, sides: Sequence[tuple[Controller, Controller]], seconds: float, every: int = 30,
         seed: int = 1) -> Liveness:
    """Play one game for each pair of bots, for at most ``seconds`` of game time, and observe every ``every``-th
    timestep; count actions and rewards in all timesteps."""
    games = VecGame(config, len(sides), seed=seed)
    games.controllers[:] = np.array(sides, np.uint8)
    found, before = Liveness(), {}
    names = {a.id: a.name for a in games.layout.actions}
    replays = [games.record(place) for place in range(len(sides))]
    step = 0
    while (running := np.flatnonzero((games.winner == Winner.RUNNING) & (games.game_time < seconds))).size:
        games.step(which=running)
        step += 1
        told = (games.signals[running] != 0).sum((0, 1, 2))
        for name, count in zip(SIGNALS, told.tolist(), strict=True):
            found.signals[name] += int(count)
        if step % every:
            continue
        ids, counts = np.unique(games.obs["available"][running], return_counts=True)
        for action, count in zip(ids.tolist(), counts.tolist(), strict=True):
            found.offered[names.get(action, "none")] += count
        watch(games, found, running.tolist(), before)
    for replay in replays:
        ids, counts = np.unique(replay.orders[:, :, ACTION], return_counts=True)
        for action, count in zip(ids.tolist(), counts.tolist(), strict=True):
            found.taken[names.get(int(action), "none")] += count
    return found


def main() -> None:
    """Print the variation of everything, and what never varied."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--games", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=4800.0)
    arguments = parser.parse_args()
    kinds = ((Controller.HARD, Controller.HARD), (Controller.HARD, Controller.SCRIPTED),
             (Controller.RANDOM, Controller.EASY))
    found = play(WHOLE, [kinds[i % 3] for i in range(arguments.games)], arguments.seconds)
    print(f"{found.looks} looks")
    for name, seen in found.fields.items():
        print(f"{name:40} {' '.join(f'{c / found.looks:.3f}' for c in seen.changed[:1])}")
    for title, names in (("fields", found.dead_fields()), ("actions", found.dead_actions()),
                         ("signals", found.dead_signals())):
        print(f"{title} that never vary: {', '.join(names) or 'none'}")
    print({name: count / found.looks for name, count in found.groups.items()})
    print(found.signals)
    print("never offered:", [a.name for a in actions_of("7.21d") if not found.offered[a.name]])


if __name__ == "__main__":
    main()
