"""Vector of games in one process, stepped together by the compiled core on a thread pool.

All arrays are numpy arrays that the core writes in place: a step replaces their contents. A timestep is 4 engine
frames. The actions of a step were chosen from the observations before it and take effect one timestep after it begins
(Berner et al. 2019, appendix L): game and policy can work at the same time.

A step is one timestep, as in the paper, or as many as make ``GameConfig.frameskip`` frames: a policy then chooses in
the first of them and its heroes continue during the others; observations are written after the last.
"""

import copy
import operator
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dota import _core, registry
from dota.config import GameConfig
from dota.events import Event, events_of
from dota.replay import Replay
from dota.spaces import ActionPart, Layout
from dota.tables import HERO_PREFIX, core_layout, core_variant, hero_ids, load_tables, made_by

TEAMS = 2
MAX_VARIANTS = 64
PACKED = ("shared", "private")  # arrays that exist only in packed form with observations="packed"
STATS = ("last_hits", "denies", "kills", "deaths", "assists", "net_worth", "level", "xp", "hero_damage",
         "dropped")  # `dropped` is the whole game's: things that did not happen because a pool of the core was full
_COPIED_ARRAYS = ("signals", "stats", "winner", "game_time", "lineups", "controllers")
COMMANDS = (10, 8)  # heroes; action, delay, slot and generation of the target and of the teleport target, dx, dy

assert len(STATS) == _core.STAT_COUNT


class Winner(IntEnum):
    """Values of ``VecGame.winner``."""

    RUNNING = 0
    RADIANT = 1
    DIRE = 2
    DRAW = 3


class Controller(IntEnum):
    """Player of a team; values of ``VecGame.controllers``."""

    POLICY = 0
    RANDOM = 1
    EASY = 2
    SCRIPTED = 3
    HARD = 4


# The bots by the names that configurations, matches and ratings give them.
BOTS = {"random": Controller.RANDOM, "scripted-easy": Controller.EASY, "scripted": Controller.SCRIPTED,
        "scripted-hard": Controller.HARD}


class VecGame:
    """``games`` games of one configuration, or of several that share a layout.

    Attributes (all written by ``reset`` and ``step``; G games, H heroes a team):

    - ``layout``: the observation and action layout.
    - ``obs``: arrays of ``layout.array_specs()`` with leading dimensions [G, 2]; empty without observations. When
      observations are packed, it lacks the arrays of ``PACKED``, which `packed_obs` returns.
    - ``packed``: names of the packed arrays.
    - ``signals`` float32 [G, 2, H, 21]: reward signals of the last step (``dota.rewards.SIGNALS``).
    - ``stats`` float32 [G, 2, H, 10]: totals of the game, columns ``STATS``.
    - ``winner`` uint8 [G]: ``Winner``. A finished game does not change until its reset.
    - ``game_time`` float32 [G]: seconds since the horn, negative before it.
    - ``lineups`` int16 [G, 2, H]: heroes, indices into ``heroes``, the same in every patch.
    - ``controllers`` uint8 [G, 2]: ``Controller``, set by the caller.
    - ``variants``: the configurations, the first is ``config``; a game uses it until a reset names another.

    Game ``k`` of seed ``s`` plays the same episodes on any number of threads. With ``auto_reset`` a step restarts the
    games that ended in the previous step, instead of stepping them: their actions are ignored.

    ``observations`` are written in full (True), not at all (False), or ``"packed"``: then the two large arrays of a
    team-step exist only in packed form, for callers that send or store them.

    ``others`` are further variants: patch and rules may differ between games, observations and actions may not.

    Raises ValueError for a hero that the patch lacks or whose abilities are unsupported, and for a variant with another
    layout or frameskip.
    """

    def __init__(self, config: GameConfig, games: int, seed: int = 0, threads: int = 1, *, auto_reset: bool = False,
                 observations: bool | Literal["packed"] = True, others: Sequence[GameConfig] = ()) -> None:
        self.config = config
        self._arguments = (games, seed, threads, auto_reset, observations)
        self.layout = Layout(config)
        self.variants = [config]
        hero_ids(config)
        self.heroes = list(registry.load().heroes)
        self.games = games
        self.auto_reset = auto_reset
        self._core = _core.VecGame(core_layout(self.layout), [core_variant(config)], games,
                                   _core_seed(seed), threads)
        for other in others:
            self.add_variant(other)
        h = self.layout.heroes
        self.obs: dict[str, npt.NDArray[Any]] = self.layout.allocate(games, TEAMS) if observations else {}
        self.packed = PACKED if observations == "packed" else ()
        for name in self.packed:
            del self.obs[name]
        self.signals = np.zeros((games, TEAMS, h, _core.SIGNAL_COUNT), np.float32)
        self.stats = np.zeros((games, TEAMS, h, len(STATS)), np.float32)
        self.winner = np.zeros(games, np.uint8)
        self.game_time = np.zeros(games, np.float32)
        self.lineups = np.zeros((games, TEAMS, h), np.int16)
        self.controllers = np.zeros((games, TEAMS), np.uint8)
        buffers = {name: a.view(np.uint16) if a.dtype == np.float16 else a for name, a in self.obs.items()}
        self._core.bind(buffers | {"signals": self.signals, "stats": self.stats, "winner": self.winner,
                                   "game_time": self.game_time, "lineups": self.lineups})
        self._no_actions = np.zeros((games, TEAMS, h, len(ActionPart)), np.int16)
        self._recordings: dict[int, Replay] = {}
        self._episodes = np.zeros(games, np.int64)  # by env slot: how many games `reset` has started
        self._all_games = list(range(games))
        self.reset()

    def _check_variant(self, config: GameConfig) -> None:
        if config.frameskip != self.config.frameskip:
            raise ValueError(f"the variant has game.frameskip {config.frameskip}, the games have "
                             f"{self.config.frameskip}: games of one vector share game.frameskip")
        if (layout := Layout(config)).hash != self.layout.hash:
            raise ValueError(f"the variant has layout {layout.hash}, the games have {self.layout.hash}: "
                             "games of one vector share game.observation and game.heroes_per_team")
        hero_ids(config)

    def add_variant(self, config: GameConfig) -> int:
        """Add a configuration that games may use; return its index in ``variants``. An existing one is not added again.

        Raises ValueError for another layout or frameskip, for unsupported heroes, and for more than MAX_VARIANTS.
        """
        if config in self.variants:
            return self.variants.index(config)
        self._check_variant(config)
        if len(self.variants) >= MAX_VARIANTS:
            raise ValueError(f"the games have {MAX_VARIANTS} variants, used or not, which is the maximum: a restarted "
                             "process begins with one")
        self._core.add_variant(core_variant(config))
        self.variants.append(config)
        return len(self.variants) - 1

    def _indices(self, which: Sequence[int] | npt.NDArray[np.integer[Any]] | None) -> list[int]:
        return self._all_games if which is None else [int(i) for i in which]

    def lineup(self, heroes: Sequence[Sequence[str]]) -> npt.NDArray[np.int16]:
        """Convert hero names by team to a row of ``lineups``, int16 [2, H].

        Raises ValueError for a wrong number of heroes and for names that the patch lacks.
        """
        h = self.layout.heroes
        if len(heroes) != TEAMS or any(isinstance(team, str) or len(team) != h for team in heroes):
            raise ValueError(f"a lineup is {TEAMS} teams of {h} heroes, a list each, not {heroes!r}")
        for t, team in enumerate(heroes):
            for i, hero in enumerate(team):
                if HERO_PREFIX + hero not in load_tables(self.config.patch).heroes:
                    raise ValueError(f"lineup[{t}][{i}]: '{hero}' is not in patch {self.config.patch}")
        return np.array([[self.heroes.index(hero) for hero in team] for team in heroes], np.int16)

    def reset(self, indices: Sequence[int] | npt.NDArray[np.integer[Any]] | None = None,
              lineups: npt.NDArray[np.int16] | None = None, variants: Sequence[int] | None = None) -> None:
        """Start new games at ``indices`` (all by default) and write their first observations.

        ``lineups`` int16 [len(indices), 2, H] fixes the heroes; otherwise they are sampled from the pool. ``variants``
        gives the configuration of each as an index into the attribute; otherwise a game keeps its own. Recordings of
        these games end. Raises ValueError for a wrong shape, IndexError for an unknown game or variant.
        """
        which = self._indices(indices)
        if lineups is not None:
            _check("lineups", lineups, (len(which), TEAMS, self.layout.heroes), np.int16)
            lineups = np.ascontiguousarray(lineups)
        self._core.reset(which, lineups, None if variants is None else [int(v) for v in variants])
        np.add.at(self._episodes, which, 1)
        self._forget(which)

    def reset_as(self, index: int, seed: int, lineup: npt.NDArray[np.int16] | None = None, variant: int = 0) -> None:
        """Start a game with its own seed and variant; ``lineup`` int16 [2, H] is sampled from the seed by default."""
        if lineup is not None:
            _check("lineup", lineup, (TEAMS, self.layout.heroes), np.int16)
            lineup = np.ascontiguousarray(lineup)
        self._core.reset_as(index, variant, _core_seed(seed), lineup)
        self._forget([index])

    def variant(self, index: int) -> int:
        """Return the variant that a game uses, an index into ``variants``."""
        return int(self._core.variant(index))

    def _forget(self, which: list[int]) -> None:
        for i in which:
            self._recordings.pop(i, None)

    def step(self, actions: npt.NDArray[np.int16] | None = None,
             which: Sequence[int] | npt.NDArray[np.integer[Any]] | None = None) -> None:
        """Play one step, ``frameskip`` frames, of the games ``which`` (all by default).

        ``actions`` int16 [G, 2, H, 6], columns ``dota.spaces.ActionPart``, cover all games; rows of teams that a bot
        controls, and of games that are not stepped, are ignored. Any invalid action does nothing. Raises ValueError for
        another shape or dtype or an unknown controller, IndexError for an unknown game.
        """
        games = self._indices(which)
        if actions is None:
            actions = self._no_actions
        _check("actions", actions, self._no_actions.shape, np.int16)
        if self.auto_reset:
            over = [i for i in games if self.winner[i] != Winner.RUNNING]
            if over:
                self.reset(over)
                games = [i for i in games if i not in over]
        running = [i for i in self._recordings if i in games and self.winner[i] == Winner.RUNNING]
        self._core.step(games, np.ascontiguousarray(actions), self.controllers)
        for i in running:
            tape = self._recordings[i]
            for commands in self.commands(i):
                tape.append(commands)
            if len(tape) % tape.check_every == 0:
                tape.check(self.hash(i))

    def commands(self, index: int) -> npt.NDArray[np.int16]:
        """Return the heroes' commands in each timestep of the game's last step, int16 [timesteps, 10, 8], as in
        recordings."""
        return np.frombuffer(b"".join(self._core.commands(index)), np.int16).reshape(-1, *COMMANDS)

    def step_commands(self, commands: npt.NDArray[np.int16],
                      which: Sequence[int] | npt.NDArray[np.integer[Any]] | None = None) -> None:
        """Play one timestep of the games ``which`` (all by default) by ``commands`` int16 [len(which), 10, 8], which
        replace actions and bots and are not recorded.

        Raises ValueError for another shape or dtype and for an unknown command, IndexError for an unknown game.
        """
        games = self._indices(which)
        _check("commands", commands, (len(games), *COMMANDS), np.int16)
        self._core.step_commands(games, np.ascontiguousarray(commands))

    def packed_obs(self, name: str, which: Sequence[int] | npt.NDArray[np.integer[Any]] | None = None) -> list[bytes]:
        """Return the array ``name`` of the games ``which`` (all by default) in packed form (``dota.packing``), one row
        a team-step: Radiant's and Dire's of one game after another. Needs ``observations="packed"``.

        Raises ValueError for other games and for a name that is not in ``PACKED``, IndexError for an unknown game.
        """
        if name not in self.packed:
            raise ValueError(f"'{name}' is not packed; packed arrays: {', '.join(self.packed) or 'none'}")
        return list(self._core.packed(PACKED.index(name), self._indices(which)))

    def record(self, index: int) -> Replay:
        """Start recording a game that was just reset; the returned replay grows with each step until the next reset.

        Raises ValueError when the game has already begun.
        """
        config = self.variants[self.variant(index)]
        begun = self.game_time[index] > config.start_seconds + 1e-3
        if begun:
            raise ValueError(f"game {index} has begun: start recording right after a reset")
        replay = Replay(config=config, seed=self.seed(index), lineup=self.lineups[index].copy(),
                        made_by=made_by(config.patch))
        self._recordings[index] = replay
        return replay

    def time_parts(self, steps: int, bots: Controller) -> dict[str, float]:
        """Play ``steps`` timesteps of all games with ``bots`` on both sides and return the time of each part.

        Times are seconds of processor time of one thread: ``engine``, ``bots``, ``views``, ``encode`` (0 without
        observations), and ``alone``: the same commands replayed without any work between timesteps. For benchmarks: no
        game may end, and signals, stats and observations are not updated. Raises ValueError for zero steps and for a
        controller that is not a bot.
        """
        return dict(self._core.time_parts(steps, int(bots)))

    def seed(self, index: int) -> int:
        """Return the seed of the current game."""
        return int(self._core.seed(index))

    def hash(self, index: int) -> int:
        """Return the 64-bit hash of the game's state: equal states have equal hashes."""
        return int(self._core.hash(index))

    def snapshot(self, index: int) -> bytes:
        """Return a snapshot, from which ``restore`` continues in the same variant. It carries fingerprints of the core,
        the data and the settings, and is valid for those only."""
        return bytes(self._core.snapshot(index))

    def restore(self, index: int, snapshot: bytes) -> None:
        """Restore a snapshot into a game and write its observation; signals keep the values of the last step.

        Raises ValueError for a damaged snapshot, or for another core, data or settings, and names the difference.
        Nothing changes then.
        """
        self._core.restore(index, snapshot)
        self._forget([index])

    def branch(self, index: int, seed: int, building_health: float = 1.0) -> None:
        """Give a game the random state of another seed, so that it continues differently, and write its observation.

        The health of standing buildings is multiplied by ``building_health``, above 0 and at most 1, which gives no
        reward signals. Raises ValueError for another factor and for a game that is recorded.
        """
        if not 0.0 < building_health <= 1.0:
            raise ValueError(f"building_health {building_health}: above 0 and at most 1 is allowed")
        if index in self._recordings:
            raise ValueError(f"game {index} is recorded: a replay repeats a game from its seed")
        self._core.branch(index, _core_seed(seed), building_health)

    def __getstate__(self) -> dict[str, Any]:
        """Return all games as snapshots for copies and pickles, valid for the same build only."""
        arrays = {name: getattr(self, name).copy() for name in _COPIED_ARRAYS}
        return {"variants": self.variants, "arguments": self._arguments, "episodes": self._episodes.copy(),
                "arrays": arrays, "games": [self.snapshot(i) for i in self._all_games],
                "recordings": copy.deepcopy(self._recordings)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        games, seed, threads, auto_reset, observations = state["arguments"]
        first, *others = state["variants"]
        self.__init__(first, games, seed, threads, auto_reset=auto_reset,  # type: ignore[misc]
                      observations=observations, others=others)
        for index, episodes in enumerate(state["episodes"].tolist()):
            for _ in range(episodes - 1):  # so that the copy's next game has the seed of the original's next game
                self._core.reset([index], None, None)
            self.restore(index, state["games"][index])
        self._episodes = state["episodes"]
        for name, array in state["arrays"].items():
            getattr(self, name)[...] = array
        self._recordings = state["recordings"]

    def events(self, index: int) -> list[Event]:
        """Return the events of the game's last step in order, possibly empty; after a reset, those of its start."""
        return events_of(self._core.events(index))

    def spectate(self, index: int) -> dict[str, Any]:
        """Return the whole state for a viewer, without fog of war: ``time``, ``winner``, ``units`` (kind, name, team,
        x, y, hp, ...), ``projectiles`` (x, y, team), ``areas`` (x, y, radius, team)."""
        return dict(self._core.spectate(index))

    def write_seen(self, index: int, out: dict[str, npt.NDArray[Any]]) -> None:
        """Write the content of ``spectate`` as numbers into the arrays of a frame of ``dota.spectator.schema``.

        Raises ValueError for a frame that lacks a part or has one of another size.
        """
        self._core.write_seen(index, out)

    def slot_units(self, index: int, team: int) -> npt.NDArray[np.int16]:
        """Return the game's unit in each unit slot of a team's observation, int16 [units]; -1 for none."""
        return np.frombuffer(self._core.slot_units(index, team), np.int16)

    def building_slots(self) -> npt.NDArray[np.int16]:
        """Map each side's ``enemy_buildings`` slots to the owner's ``allied_buildings`` slots, int16 [2, n]; -1 for
        none.

        Slots count from the first of their group. A standing building is visible to its owner always, and to the enemy
        only with vision.
        """
        count = self.layout.groups["enemy_buildings"].count
        out = np.full((TEAMS, count), -1, np.int16)
        for team, own, enemy in self._core.building_slots():
            if max(own, enemy) < count:
                out[1 - team, enemy] = own
        return out


def _core_seed(seed: int) -> int:
    """Return a seed as an unsigned 64-bit number. Raises TypeError for anything but an integer."""
    return operator.index(seed) % 2**64  # numpy's integers do not reach 2**64


def _check(name: str, array: npt.NDArray[Any], shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != np.dtype(dtype):
        kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{name} must be a numpy array of {np.dtype(dtype)}, not {kind}")
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; expected {shape}")
