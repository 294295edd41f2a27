"""Game configuration: rules, observations, randomisation and rewards."""

from collections.abc import Mapping
from typing import Any, Literal

from dota.hero_pools import expanded
from dota.sections import BaseModel, ConfigDict, Field, model_validator


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _numpy_as_python(cls, given: Any) -> Any:
        """Convert numpy's scalars, which pydantic's strict mode refuses."""
        if not isinstance(given, Mapping):
            return given
        return {key: value.item() if getattr(value, "shape", None) == () else value for key, value in given.items()}


MAP_SIDE = 16640.0  # world units
FRAMES_PER_SECOND = 30
MAX_GAME_SECONDS = 8000  # the core's durations are exact up to 8,192 s (docs/game.md)

FIELDS = 1  # generation of the table of fields; see dota.omission


class ObservationConfig(_Section):
    """Slot counts of the observation (Berner et al. 2019, table 4). The defaults are the paper's."""

    allied_creeps: int = Field(30, ge=0, le=64, description="Slots for allied creeps; the enemy has as many.")
    neutral_creeps: int = Field(15, ge=0, le=64, description="Slots for neutral creeps.")
    buildings: int = Field(21, ge=1, le=32, description="Slots for a team's buildings, most important first.")
    wards: int = Field(30, ge=0, le=64, description="Slots for a team's wards.")
    couriers: int = Field(1, ge=0, le=1, description="Slots for a team's courier.")
    hero_modifiers: int = Field(10, ge=0, le=32, description="Modifier slots of a hero.")
    unit_modifiers: int = Field(2, ge=0, le=8, description="Modifier slots of any other unit.")
    pickups: int = Field(6, ge=0, le=6, description="Slots for runes, by the places where they appear.")
    minimap: int = Field(10, ge=1, le=32, description="Cells along a side of the minimap.")
    nearby_map: int = Field(8, ge=2, le=16, description="Cells along a side of the terrain grid around a hero.")
    passability: int = Field(14, ge=2, le=16, description="Cells along a side of an allied hero's passability grid.")
    omit: tuple[str, ...] = Field(
        (), strict=False, description="Fields of the paper's table that are left out, as block.field, or a whole block "
        "(minimap, nearby_map, abilities, items). Surgery puts them in again.")
    generation: int = Field(
        FIELDS, ge=1, le=1_000_000, description="Generation of the table of fields. Fields that a later release adds "
        "are left out of earlier runs until surgery adds them.")
    mirror_dire: bool = Field(
        False, description="Show the map to Dire turned by 180 degrees (positions, facings, offsets), so that both "
        "sides look alike. Not in the paper; it halves what a small run has to learn.")


class RandomisationConfig(_Section):
    """Per-game randomisation (Berner et al. 2019, appendix O.2). The paper does not publish magnitudes; 0 disables one.
    A null magnitude of a hero statistic takes the value of ``stats``."""

    stats: float = Field(0.0, ge=0, le=1, description="Standard deviation of each of the following stats of a hero "
                         "that is null; ten times it for magic resistance.")
    attributes: float | None = Field(None, ge=0, le=1, description="Standard deviation of the factors on strength, "
                                     "agility and intelligence; null: stats.")
    armor: float | None = Field(None, ge=0, le=10, description="Standard deviation of an offset of armor; null: stats.")
    move_speed: float | None = Field(None, ge=0, le=1, description="Standard deviation of the factor on movement "
                                     "speed; null: stats.")
    hp_regen: float | None = Field(None, ge=0, le=10, description="Health regeneration grows by the absolute value of "
                                   "a normal variable with this standard deviation; null: stats.")
    mana_regen: float | None = Field(None, ge=0, le=10, description="Mana regeneration grows by the absolute value of "
                                     "a normal variable with this standard deviation; null: stats.")
    magic_resistance: float | None = Field(None, ge=0, le=25, description="Standard deviation of an offset of magic "
                                           "resistance, clipped to ±25; null: ten times stats.")
    gold: float = Field(0.0, ge=0, le=1, description="Standard deviation of the factor on starting gold.")
    xp: float = Field(0.0, ge=0, le=10, description="Mean of the exponential starting XP, in levels.")
    item_drop: float = Field(0.0, ge=0, le=1, description="Chance that an item of the build order is left out.")
    item_insert: float = Field(0.0, ge=0, le=1, description="Chance that an item is inserted before the rest of the "
                               "build, from the game's own list for this hero or from its build.")
    consumables: float = Field(0.0, ge=0, le=1, description="Chance, for each of tango, salve, clarity and town "
                               "portal, that a hero keeps a random number of charges, uniform from 0 to twice that of "
                               "game.consumables; and that they are bought until a random time, uniform from 0 to "
                               "until_seconds.")
    skill: float = Field(0.0, ge=0, le=1, description="Chance that two neighbours in the skill order swap.")
    lane: float = Field(0.0, ge=0, le=1, description="Chance that a hero is assigned a subset of the lanes.")
    lane_until_seconds: float = Field(600.0, ge=0, le=MAX_GAME_SECONDS, description="Latest game time to which an "
                                      "assignment lasts: it ends at a time sampled uniformly from 0 to this.")
    roshan: bool = Field(False, description="Start Roshan with a uniform share of his health.")

    def magnitudes(self) -> dict[str, float]:
        """Return all magnitudes as numbers; null ones take the value of ``stats``; ``roshan`` is 0 or 1."""
        derived = {"magic_resistance": 10 * self.stats}
        return {name: float(derived.get(name, self.stats) if value is None else value)
                for name, value in self.model_dump().items() if name != "stats"}


class ConsumablesConfig(_Section):
    """Consumables that the scripted buyer keeps in stock for a hero, in addition to its build. In Berner et al. 2019
    used consumables are bought again until some game time. The paper does not publish amounts, time or budget."""

    tango: int = Field(1, ge=0, le=16, description="Charges of tango; 0 buys none.")
    salve: int = Field(1, ge=0, le=16, description="Charges of healing salve; 0 buys none.")
    clarity: int = Field(1, ge=0, le=16, description="Charges of clarity; 0 buys none.")
    town_portal: int = Field(1, ge=0, le=16, description="Charges of town portal scroll; 0 buys none.")
    until_seconds: float = Field(600.0, ge=0, le=1e9, description="Game time until which tango, salve and clarity are "
                                 "bought.")
    income_share: float = Field(0.2, ge=0, le=1, description="Largest share of a hero's income, including starting "
                                "gold, spent on consumables, scrolls and wards; the build takes its gold first.")


class GameConfig(_Section):
    """Rules of a game."""

    patch: Literal["7.21d", "7.19"] = Field("7.21d", description="Which game data are played.")
    mode: Literal["1v1_mid", "5v5"] = Field("5v5", description="1v1_mid: middle lane only, won by two kills or the "
                                            "tower, as at The International 2017.")
    heroes_per_team: int = Field(5, ge=1, le=5, description="Heroes of a team.")
    hero_pool: list[str] = Field(
        ["nevermore", "sniper", "lion", "crystal_maiden", "sven", "viper"],
        min_length=1, description="Heroes that lineups are sampled from, without the npc_dota_hero_ prefix. "
        "finals_2019 stands for the 17 of the paper's finals, ti8_2018 for these and Lich, heroes_25 for all 25.")
    mirror_match: bool = Field(False, description="Both teams play the same lineup; with a pool of one hero, always.")
    max_game_seconds: float = Field(3600.0, gt=0, le=MAX_GAME_SECONDS,
                                    description="Game time after which a game is a draw.")
    start_seconds: float = Field(-90.0, ge=-90, le=0, description="Game time at which play begins (0 is the horn).")
    kills_to_win: int = Field(2, ge=0, le=1000, description="1v1_mid: deaths that lose the game; 0: never.")
    courier: Literal["scripted", "direct"] = Field("direct", description="How bought items reach a hero.")
    neutrals: bool = Field(True, description="Whether neutral camps spawn.")
    roshan: bool = Field(True, description="Whether Roshan spawns.")
    runes: bool = Field(True, description="Whether runes spawn.")
    buyback: bool = Field(True, description="Whether heroes may buy back.")
    frameskip: Literal[4, 8, 12, 16] = Field(
        4, description="Engine frames, 30 a second, between two choices of a policy; meanwhile its heroes continue "
        "their orders. Bots always choose at every fourth frame.")
    commit_windups: bool = Field(
        False, description="A policy that has chosen an attack or a cast is offered no other action until it is "
        "executed. Without this a random policy cancels almost all of its attacks. Not in the paper; bots are exempt.")
    commit_moves: int = Field(
        0, ge=0, le=8, description="Choices after a move or follow in which a policy is offered neither, so that its "
        "hero keeps walking; it may attack and cast. Without this a random policy walks on the spot. Not in the paper; "
        "bots are exempt.")
    save_consumables: bool = Field(
        False, description="Offer a policy items that restore health or mana only while less than 75 % of it is left "
        "and no other of the kind restores it. Without this, trained policies used them up on the way to "
        "their lanes. Not in the paper; bots are exempt.")
    hide_unseen: bool = Field(
        False, description="Leave out an enemy hero's cooldowns and charges, which a player cannot see. The paper's "
        "observation holds the cooldowns of all ten heroes, and so does the default.")
    aggro_orders: bool = Field(
        False, description="Offer attack orders on own lane creeps above half of their health, too. They deal "
        "no damage, but lane creeps that attack the hero turn away from him. Agents that were trained without these "
        "orders give them by mistake.")
    offset_cell: float = Field(100.0, ge=1, le=MAP_SIDE / 4, description="World units of one step of an offset. Four "
                               "steps, the largest offset, reach across the map at most.")
    scripted_actions: list[Literal["buyback", "glyph", "shrine"]] = Field(
        [], description="Actions that neither policies nor bots may take, until a surgery offers them.")
    observation: ObservationConfig = Field(default_factory=lambda: ObservationConfig(),
                                           description="Slots of the observation.")
    consumables: ConsumablesConfig = Field(default_factory=lambda: ConsumablesConfig(),
                                           description="What the scripted buyer keeps in stock.")
    randomisation: RandomisationConfig = Field(default_factory=lambda: RandomisationConfig(),
                                               description="Per-game randomisation.")

    @model_validator(mode="before")
    @classmethod
    def _named_pools(cls, given: Any) -> Any:
        pool = given.get("hero_pool") if isinstance(given, Mapping) else None
        if not isinstance(pool, list) or not all(isinstance(name, str) for name in pool):
            return given
        return {**given, "hero_pool": expanded(pool)}

    @property
    def timestep_seconds(self) -> float:
        """Game time between two choices of a policy, in seconds."""
        return self.frameskip / FRAMES_PER_SECOND

    @model_validator(mode="after")
    def _pool_fits(self) -> "GameConfig":
        needed = self.heroes_per_team
        if len(set(self.hero_pool)) != len(self.hero_pool):
            twice = next(hero for i, hero in enumerate(self.hero_pool) if hero in self.hero_pool[:i])
            raise ValueError(f"hero_pool names a hero twice: {twice!r}")
        if len(self.hero_pool) < needed:
            raise ValueError(f"hero_pool has {len(self.hero_pool)} heroes, a team needs {needed} different ones")
        return self


def evaluation_game(game: GameConfig) -> GameConfig:
    """Return the configuration without randomisation, for evaluation and human play (Berner et al. 2019, appendix O.2).
    """
    return game.model_copy(update={"randomisation": RandomisationConfig()})


# Reward signals of a hero in a timestep, in the order of the core's enum Signal.
SignalName = Literal[
    "win", "hero_death", "courier_death", "xp", "gold", "gold_spent", "health", "mana", "killed_hero", "last_hit",
    "deny", "aegis", "ancient_hp", "megas", "tower1", "tower2", "tower3", "tower4", "shrine", "barracks",
    "lane_assign"]


MAX_WEIGHT = 1e6  # rewards and their squares are float32


class RewardConfig(_Section):
    """Reward terms and their scaling (Berner et al. 2019, table 6 and appendix G)."""

    preset: Literal["paper", "gist"] = Field("paper", description="paper: the published table. gist: the weights "
                                             "released in June 2018, all of them scaled by game time.")
    weights: dict[SignalName, float] = Field({}, description="Weights that differ from the preset's, by signal.")
    time_decay: float = Field(0.6, gt=0, le=1, description="Factor on rewards for every time_decay_seconds of game "
                              "time; 1 turns it off.")
    time_decay_seconds: float = Field(600.0, gt=0, le=1e9, description="Game time over which rewards shrink by "
                                      "time_decay.")

    @model_validator(mode="after")
    def _weights_fit(self) -> "RewardConfig":
        for name, weight in self.weights.items():
            if abs(weight) > MAX_WEIGHT:
                raise ValueError(f"weights.{name} {weight:g}: -{MAX_WEIGHT:g} to {MAX_WEIGHT:g} is allowed")
        return self
