"""Translation of a client's GameConfig into a game of the simulator."""

from collections.abc import Sequence
from dataclasses import dataclass

from dota.config import GameConfig, ObservationConfig, RandomisationConfig
from dota.valve_ids import TEAMS, valve_ids
from five.protos.valve import dotaservice_pb2 as pb
from five.run.config.dotaservice import DotaServiceConfig

PLAYERS = 10
TEAM_PLAYERS = 5
MODES = {pb.DOTA_GAMEMODE_1V1MID: "1v1_mid", pb.DOTA_GAMEMODE_AP: "5v5", pb.DOTA_GAMEMODE_CM: "5v5",
         pb.DOTA_GAMEMODE_ALL_DRAFT: "5v5"}
# No policy reads observations here, so the encoder should have little to do.
SMALL_OBSERVATION = ObservationConfig(allied_creeps=0, neutral_creeps=0, buildings=1, wards=0, couriers=0,
                                      hero_modifiers=0, unit_modifiers=0, pickups=0, omit=("minimap", "nearby_map"))


@dataclass(frozen=True)
class GamePlan:
    """Game that a client requested.

    Attributes:
        config: rules of the game.
        lineup: hero names by team.
        heroes: Valve's number of each player's hero.
        controls: HeroControlMode of each player.
        playing: ids of the players that have a hero in the game. An id is also the hero's number in the core, team * 5
            + seat.
        ticks: engine frames between observations.
    """

    config: GameConfig
    lineup: list[list[str]]
    heroes: tuple[int, ...]
    controls: tuple[int, ...]
    playing: tuple[int, ...]
    ticks: int

    def players(self, control: int, team: int | None = None) -> list[int]:
        """Return the playing players with a control mode, of one team (0, 1) or both."""
        return [p for p in self.playing if self.controls[p] == control and team in (None, p // TEAM_PLAYERS)]


def game_plan(message: pb.GameConfig, game: GameConfig, settings: DotaServiceConfig) -> GamePlan:
    """Return the game that a client's ``message`` describes, with the rules of ``game``.

    Raises ValueError that names the field, its value and what is allowed.
    """
    ticks = message.ticks_per_observation
    if not 1 <= ticks <= settings.max_ticks:
        raise ValueError(f"ticks_per_observation {ticks}: 1 to {settings.max_ticks} are allowed "
                         "(services.dotaservice.max_ticks)")
    mode = MODES.get(message.game_mode)
    if mode is None:
        allowed = ", ".join(f"{pb.GameMode.Name(number)} ({number})" for number in MODES)
        raise ValueError(f"game_mode {pb.GameMode.Name(message.game_mode)}: allowed are {allowed}")
    picks = message.hero_picks
    if len(picks) != PLAYERS:
        raise ValueError(f"hero_picks: {PLAYERS} are needed, one for each player, not {len(picks)}")
    for player, pick in enumerate(picks):
        if pick.team_id != TEAMS[player // TEAM_PLAYERS]:
            raise ValueError(f"hero_picks[{player}].team_id {pick.team_id}: the first five picks are Radiant's "
                             f"({TEAMS[0]}), the others Dire's ({TEAMS[1]})")
    seats = TEAM_PLAYERS if mode == "5v5" else _middle_seats(picks)
    playing = tuple(p for p in range(PLAYERS) if p % TEAM_PLAYERS < seats)
    names = {player: _hero_name(player, picks[player].hero_id, game.patch, settings.hero_pool) for player in playing}
    lineup = [[names[p] for p in playing if p // TEAM_PLAYERS == team] for team in range(len(TEAMS))]
    config = GameConfig.model_validate(game.model_dump() | {
        "mode": mode, "heroes_per_team": seats, "hero_pool": list(settings.hero_pool), "mirror_match": False,
        "frameskip": 4, "observation": SMALL_OBSERVATION, "randomisation": RandomisationConfig()})
    return GamePlan(config, lineup, tuple(pick.hero_id for pick in picks), tuple(pick.control_mode for pick in picks),
                    playing, ticks)


def _middle_seats(picks: Sequence[pb.HeroPick]) -> int:
    """Return the heroes of a team in the middle lane: up to the last pick of a side that is not idle, at least one."""
    return 1 + max((player % TEAM_PLAYERS for player, pick in enumerate(picks)
                    if pick.control_mode != pb.HERO_CONTROL_MODE_IDLE), default=0)


def _hero_name(player: int, number: int, patch: str, pool: Sequence[str]) -> str:
    heroes = valve_ids(patch).heroes
    name = heroes.get(number, "")
    if name not in pool:
        allowed = ", ".join(f"{n} ({hero})" for n, hero in sorted(heroes.items()) if hero in pool)
        raise ValueError(f"hero_picks[{player}].hero_id {number}{f' ({name})' if name else ''}: not a hero of this "
                         f"server; it has {allowed} (services.dotaservice.hero_pool)")
    return name
