"""Comparison of two observations of one game: the simulator's own, and the one made of its world states' bytes."""

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dota.client_state import ClientCommand, ClientGame
from dota.config import GameConfig
from dota.play import InteractiveGame
from dota.spaces import Array, Layout
from dota.vec_game import COMMANDS, Controller

ROUNDING: Final = 2e-3  # relative: two units in the last place of a 16-bit float, which hold sums of other order
SMALL: Final = 2e-4
ARRAYS: Final[tuple[Array, ...]] = ("shared", "private", "shared_ids", "private_ids")
CHOICES: Final = ("available", "target_mask")
PER_HERO: Final = ("private", "private_ids")
BY_SIDE: Final = ("heroes", "abilities", "items", "hero_modifiers")  # blocks whose second half is the enemies'
NAMES: Final = {"available": "choices.available", "target_mask": "choices.target_mask"}


class Listed(NamedTuple):
    """Field that may differ: by at most ``within`` from rounding, and beyond that in at most ``share`` of its nonzero
    values."""

    within: float
    share: float
    reason: str


@dataclass
class Differences:
    """Values of each field over a game: how many were not 0 on either side, and how many differed by more than its
    listed rounding."""

    layout: Layout
    listed: dict[str, Listed]
    values: dict[str, int] = field(default_factory=dict)
    beyond: dict[str, int] = field(default_factory=dict)
    largest: dict[str, float] = field(default_factory=dict)
    example: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = [f"{b.name}.{f.name}" for b in self.layout.blocks.values() for f in b.fields]
        self.names += [f"enemy {name}" for name in self.names if name.split(".")[0] in BY_SIDE]
        self.names += list(NAMES.values())
        index = {name: i for i, name in enumerate(self.names)}
        self._field: dict[str, npt.NDArray[np.intp]] = {}
        for array in ARRAYS:
            width = self.layout.array_specs()[array][0][-1]
            owner = np.full(width, -1, np.intp)
            for block in self.layout.blocks.values():
                rows = owner[block.span(array)].reshape(block.instances, block.width(array))
                for f in block.fields:
                    if f.array == array:
                        name, place = f"{block.name}.{f.name}", slice(f.offset, f.offset + f.count)
                        rows[:, place] = index[name]
                        if block.name in BY_SIDE:
                            rows[block.instances // 2:, place] = index[f"enemy {name}"]
            assert owner.min() >= 0
            self._field[array] = owner
        self._within = np.array([self.listed[n].within if n in self.listed else 0.0 for n in self.names], np.float32)

    def add(self, wanted: dict[str, npt.NDArray[Any]], got: dict[str, npt.NDArray[Any]], note: str) -> None:
        """Compare one team's observation."""
        for array in (*ARRAYS, *CHOICES):
            a, b = wanted[array], got[array]
            if array in NAMES:
                fields = np.full(a.size, self.names.index(NAMES[array]), np.intp)
            else:
                fields = np.tile(self._field[array], self.layout.heroes if array in PER_HERO else 1)
            a, b = a.reshape(-1).astype(np.float32), b.reshape(-1).astype(np.float32)
            used = np.flatnonzero((a != 0) | (b != 0))
            a, b, fields = a[used], b[used], fields[used]
            apart = np.abs(a - b)
            exact = array not in ("shared", "private")
            allowed = self._within[fields] + (0 if exact else SMALL + ROUNDING * np.abs(a))
            far = apart > allowed
            seen = np.bincount(fields, minlength=len(self.names))
            wrong = np.bincount(fields[far], minlength=len(self.names))
            for i in np.flatnonzero(seen):
                self.values[self.names[i]] = self.values.get(self.names[i], 0) + int(seen[i])
            for i in np.flatnonzero(wrong):
                name = self.names[i]
                self.beyond[name] = self.beyond.get(name, 0) + int(wrong[i])
                mine = np.flatnonzero(far & (fields == i))
                worst = mine[np.argmax(apart[mine])]
                if apart[worst] > self.largest.get(name, 0.0):
                    self.largest[name] = float(apart[worst])
                    self.example[name] = f"{note}, {array}[{used[worst]}]: {a[worst]:.4g}, client {b[worst]:.4g}"

    def share(self, name: str) -> float:
        return self.beyond.get(name, 0) / max(self.values.get(name, 0), 1)

    def faults(self, spare: float = 0.0) -> list[str]:
        """Return a line for each field that differs more than it may, by more than ``spare`` of its values."""
        return [f"{name}: {self.beyond[name]} of {self.values[name]} ({self.share(name):.5f}); {self.example[name]}"
                for name in sorted(self.beyond)
                if self.share(name) > spare + (self.listed[name].share if name in self.listed else 0.0)]


def bot_handle(slot: int, generation: int) -> int:
    """Return the handle that world states give a unit; 0 for none."""
    return 0 if slot < 0 else slot + 1 | (generation & 0x3FFF) << 10


def commands_of(game: InteractiveGame, team: int) -> list[ClientCommand]:
    """Return a team's commands of the last timestep with handles."""
    rows = np.frombuffer(game._play.commands(), np.int16).reshape(COMMANDS)[team * 5:team * 5 + 5].astype(int)
    return [ClientCommand(int(r[0]), int(r[1]), bot_handle(int(r[2]), int(r[3])), bot_handle(int(r[4]), int(r[5])),
                          int(r[6]), int(r[7])) for r in rows]


def compare_game(config: GameConfig, seed: int, listed: dict[str, Listed], bots: Controller = Controller.SCRIPTED,
                 lose_every: int = 0) -> tuple[Differences, int]:
    """Play a game of bots to its end and compare every observation of both teams. Return the differences and the
    number of timesteps. With ``lose_every`` each so many frames one is cut, and not compared."""
    game = InteractiveGame(config.model_copy(update={"hide_unseen": True}), seed)
    game.controllers[:] = bots
    clients = [ClientGame(config), ClientGame(config)]
    found = Differences(game.layout, listed)
    steps = 0
    while not game.winner:
        for team, client in enumerate(clients):
            if steps:
                client.remember(commands_of(game, team))
            frame = game.world_state(team)
            if lose_every and steps % lose_every == lose_every - 1:
                assert client.update(frame[:len(frame) // 2])
                continue
            reason = client.update(frame)
            assert not reason, reason
            assert client.team == team
            found.add({name: array[team] for name, array in game.obs.items()}, client.obs,
                      f"team {team} at {game.time:.2f}")
        game.step()
        steps += 1
    assert all(client.counts["unknown_fields"] == 0 for client in clients)
    return found, steps
