"""The game core: data, map, world, views, games. Made with `python -m nanobind.stubgen -m dota._core`."""
# ruff: noqa: E501

from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

INTERFACE: int = 6
RULES_REVISION: int = 6

FINGERPRINT: int = ...

EVENT_KINDS: int = 24

def pinned_sin_cos(angles: Sequence[float]) -> list[tuple[float, float]]:
    """Sine and cosine of each angle, as the game computes them."""

def pinned_sin_cos_of(angles: Sequence[float]) -> list[tuple[float, float]]:
    """The same, several at a time."""

def pinned_angle(y: float, x: float) -> float: ...

def pinned_ln(x: float) -> float: ...

def pinned_power(base: float, exponent: int) -> float: ...

class Tables:
    """The constants of one patch, read-only; made by load_tables()."""

    @property
    def version(self) -> str: ...

    @property
    def fingerprint(self) -> int:
        """Of the six files it was made from."""

    @property
    def heroes(self) -> list[str]: ...

    @property
    def abilities(self) -> list[str]:
        """
        Abilities, then items that do something, then talents: the vocabulary of ability ids.
        """

    @property
    def items(self) -> list[str]: ...

    @property
    def units(self) -> list[str]: ...

    @property
    def modifiers(self) -> list[str]: ...

    @property
    def pool_finals(self) -> list[str]: ...

    @property
    def pool_ti8(self) -> list[str]: ...

    def missing_primitives(self, hero: str) -> list[str]:
        """
        Names of the primitives that the hero's programs need and the core lacks.
        """

    def unit(self, name: str) -> dict[str, Any]: ...

    def ability(self, name: str) -> dict[str, Any]: ...

    def item(self, name: str) -> dict[str, Any]: ...

    def hero(self, name: str) -> dict[str, Any]: ...

    @property
    def camp_sets(self) -> list[Any]: ...

def load_tables(heroes: object, abilities: object, items: object, units: object, rules: object, map: object) -> Tables:
    """
    Builds the tables from the six parsed JSON files. Raises ValueError naming the file and key that is wrong.
    """

def primitive_names() -> list[str]:
    """Names of the closed set of effect primitives."""

def built_primitives() -> list[str]:
    """Names of the primitives that the core implements."""

def compile_effects(ability: dict[str, Any], name: str) -> dict[str, Any]:
    """
    The compiled program of an ability given as parsed JSON: nodes, roots, missing. Raises RuntimeError.
    """

def ability_program(tables: Tables, name: str) -> dict[str, Any]:
    """
    The compiled program of a loaded ability, item (by item name), talent or rune.
    """

def ability_numbers(world: World, hero: int, ability: str, level: int) -> dict[str, Any]:
    """
    What an ability's numbers are at a rank for a hero of a world, with the talents and the scepter it has: of each node of the program whether it is there, its numbers by name and its stats in order, counters left out; and the numbers of the cast. Raises KeyError.
    """

def map_grid(tables: Tables, name: str) -> object:
    """
    A grid of the map, int16 [260, 260], row 0 at the lowest y: elevation, terrain_blocked, fow_blocker, no_ward, tree_count, building (index + 1), blocked_at_start, region.
    """

def map_buildings(tables: Tables) -> list[Any]: ...

def map_lane(tables: Tables, team: int, lane: int) -> list[tuple[float, float]]:
    """Spawn, then waypoints in walking order."""

def map_trees(tables: Tables) -> list[tuple[float, float, int]]: ...

def map_camps(tables: Tables) -> list[Any]: ...

def map_places(tables: Tables) -> dict[str, Any]: ...

class Ground:
    """
    The map with bodies on it that walk and see, without a game around them.
    """

    def __init__(self, tables: Tables) -> None: ...

    def add(self, unit: str, team: int, at: tuple[float, float]) -> int:
        """Puts a body down; returns its index."""

    def walk(self, goals: Sequence[tuple[int, float, float]], arrive: float = 1.0, frames: int = 30000) -> int:
        """
        Walks bodies to (index, x, y) goals; the frames it took, or -1 when not all arrived.
        """

    def place(self, index: int, at: tuple[float, float]) -> None: ...

    def face(self, index: int, radians: float) -> None: ...

    def facing(self, index: int) -> float: ...

    def position(self, index: int) -> tuple[float, float]: ...

    def turn_towards(self, index: int, point: tuple[float, float]) -> bool: ...

    def set_status(self, index: int, bits: int) -> None: ...

    def walkable(self, point: tuple[float, float]) -> bool: ...

    def elevation(self, point: tuple[float, float]) -> int: ...

    def free_place(self, point: tuple[float, float], radius: float) -> tuple[float, float]: ...

    def units_near(self, point: tuple[float, float], radius: float) -> list[int]: ...

    def tree_at(self, point: tuple[float, float], radius: float) -> int: ...

    def cut_tree(self, tree: int) -> None: ...

    def fell_building(self, building: int) -> None: ...

    def pass_time(self, seconds: float) -> None: ...

    def set_day(self, day: bool) -> None: ...

    def update_vision(self) -> None: ...

    def reveal(self, team: int, at: tuple[float, float], radius: float, flying: bool) -> None: ...

    def cell_visible(self, team: int, point: tuple[float, float]) -> bool: ...

    def unit_visible(self, team: int, index: int) -> bool: ...

    def fog(self, team: int) -> list[Any]:
        """Rows of 130 fog cells, lowest y first: '#' seen, '.' not."""

    def hash(self) -> int: ...

    def copy(self) -> Ground: ...

ANIMATIONS: list[str] = ...

PICKUPS: list[str] = ...

class Layout:
    """
    The observation layout as the core resolved it from dota.spaces.Layout.
    """

    def __init__(self, described: object) -> None: ...

    @property
    def unwritten_fields(self) -> list[str]: ...

    def trace(self, array: int) -> tuple[list[int], list[int]]:
        """
        Per cell of an array: index of the field written there plus one, and its row.
        """

def pack16(values: NDArray[numpy.uint16], way: int = 0) -> bytes:
    """Packs; `way` as PackWay counts them."""

def join16(rows: Sequence[bytes], values: int) -> bytes:
    """
    The packed form of rows one after another, each that of so many values.
    """

def split16(packed: NDArray[numpy.uint8], rows: int, values: int) -> list[bytes]:
    """
    The rows, each packed by itself, of the packed form of rows one after another.
    """

def pack_changes(values: NDArray[numpy.uint16], rows: int, period: int) -> bytes:
    """
    The packed form of rows, each but every `period`-th as its exclusive or with the row before.
    """

def join_changes(rows: Sequence[bytes], values: int, period: int) -> bytes:
    """
    The same of rows that are packed each by itself, each that of so many values.
    """

def unpack16(packed: NDArray[numpy.uint8], out: NDArray[numpy.uint16], way: int = 0) -> bool:
    """
    Whether the bytes were those of as many values, which are unpacked then; `way` as of pack16.
    """

def to_half(values: NDArray[numpy.float32], out: NDArray[numpy.uint16], portable: bool = False) -> None: ...

def take_half(values: NDArray[numpy.float32], out: NDArray[numpy.uint16]) -> None: ...

SEEN_TABLES: list[tuple[str, int, list[str]]] = ...

SEEN_BITS: list[tuple[str, int]] = ...

UNIT_KINDS: list[str] = ...

SIGNAL_COUNT: int = 21

STAT_COUNT: int = 10

class VecGame:
    """Many games on a pool of threads; wrapped by dota.VecGame."""

    def __init__(self, layout: object, variants: list[Any], games: int, seed: int, threads: int) -> None: ...

    def bind(self, arrays: dict[str, Any]) -> None: ...

    def reset(self, which: Sequence[int], lineups: NDArray[numpy.int16] | None, variants: Sequence[int] | None) -> None: ...

    def reset_as(self, game: int, variant: int, seed: int, lineup: NDArray[numpy.int16] | None) -> None: ...

    def add_variant(self, variant: object) -> int: ...

    def variant(self, game: int) -> int: ...

    def step(self, which: Sequence[int], actions: NDArray[numpy.int16], controllers: NDArray[numpy.uint8]) -> None: ...

    def packed(self, array: int, which: Sequence[int]) -> list[bytes]:
        """
        What games bound without 'shared' (0) and 'private' (1) hold of these, packed: Radiant's, then Dire's, game after game.
        """

    def commands(self, game: int) -> list[Any]:
        """Commands of the last step, int16 [10, 8] as bytes."""

    def step_commands(self, which: Sequence[int], commands: NDArray[numpy.int16]) -> None: ...

    def snapshot(self, game: int) -> bytes: ...

    def restore(self, game: int, bytes: bytes) -> None: ...

    def branch(self, game: int, seed: int, building_health: float) -> None: ...

    def time_parts(self, steps: int, bots: int) -> dict[str, float]: ...

    def hash(self, game: int) -> int: ...

    def derived_fault(self, game: int) -> str:
        """As World.derived_fault(): for tests."""

    def seed(self, game: int) -> int: ...

    def events(self, game: int) -> list[Any]:
        """
        What happened in the last timestep, in order: tuples of dota.events.Event.
        """

    def spectate(self, game: int) -> dict[str, Any]: ...

    def write_seen(self, game: int, out: dict[str, NDArray[Any]]) -> None:
        """Writes a game into the arrays that SEEN_TABLES and SEEN_BITS describe."""

    def slot_units(self, game: int, team: int) -> bytes:
        """
        Which unit stands in each unit slot of a team's observation, int16 as bytes; -1: none.
        """

    def building_slots(self) -> list[list[int]]:
        """
        Of each building its team, its place among its owner's buildings and among its enemy's enemy buildings.
        """

    def place(self, game: int, slot: int, x: float, y: float) -> None:
        """Moves a unit there at once: for tests."""

    def set_hp(self, game: int, slot: int, hp: float) -> None:
        """For tests."""

    def give_xp(self, game: int, hero: int, xp: float) -> None:
        """Experience for the hero team * 5 + place: for tests."""

    def give_gold(self, game: int, hero: int, gold: float) -> None:
        """For tests."""

    def observe(self, game: int) -> None:
        """Looks again after a test moved units."""

class World:
    """One world, for tests and inspection."""

    def __init__(self, tables: Tables, settings: dict[str, Any], radiant: Sequence[str], dire: Sequence[str], seed: int) -> None:
        """
        Starts a game. Raises ValueError for a lineup that cannot be played, KeyError for unknown names.
        """

    def step(self, steps: int = 1) -> None:
        """Timesteps of four frames without commands."""

    def run_frames(self, frames: int) -> None:
        """
        Single frames, without what is done once a timestep: commands, vision, the health history, signals.
        """

    @property
    def time(self) -> float: ...

    @property
    def frame(self) -> int: ...

    @property
    def waves(self) -> int: ...

    @property
    def is_day(self) -> bool: ...

    @property
    def winner(self) -> int:
        """0 none, 1 Radiant, 2 Dire, 3 draw"""

    def units(self, kind: str | None = None) -> list[Any]: ...

    def unit(self, index: int) -> dict[str, Any]: ...

    def hero(self, index: int) -> dict[str, Any]: ...

    def team(self, team: int) -> dict[str, Any]: ...

    def pickups(self) -> list[Any]: ...

    def hash(self) -> int: ...

    def derived_fault(self) -> str:
        """
        Where lists that are kept for speed do not follow from the rest of the state; '' when they do.
        """

    def snapshot(self) -> bytes: ...

    def restore(self, snapshot: bytes) -> None:
        """
        Raises ValueError for bytes that are no snapshot of this core, data and settings.
        """

    def events(self) -> list[Any]:
        """
        What happened in the last timestep, in order: tuples, dota.events.Event says of what.
        """

    def set_unit(self, index: int, **what: Any) -> None:
        """
        x, y, hp, mana, facing, attack_ready, extra_armor, extra_hp, extra_hp_regen, extra_mana_regen, extra_as
        """

    def set_time(self, time: float) -> None:
        """
        Moves the clock; nothing that the time between would have brought happens.
        """

    def order(self, unit: int, type: str, target: int = -1, x: float = 0.0, y: float = 0.0, slot: int = -1, tree: int = -1) -> None: ...

    def spawn(self, type: str, team: int, x: float, y: float, lane: int = -1) -> int:
        """
        A unit; with a lane it walks it and fights as a lane creep. Returns its index.
        """

    def kill(self, victim: int, killer: int = -1) -> None: ...

    def damage(self, source: int, target: int, amount: float, type: str = 'physical', attack: bool = False) -> float: ...

    def can_attack(self, attacker: int, target: int) -> bool: ...

    def protected(self, building: int) -> bool: ...

    def give_gold(self, hero: int, gold: float, reliable: bool = False) -> None: ...

    def set_gold(self, hero: int, gold: float, reliable: float = 0.0) -> None: ...

    def give_xp(self, hero: int, xp: float) -> None: ...

    def give_item(self, hero: int, item: str, charges: int = 0) -> bool: ...

    def clear_items(self, hero: int) -> None: ...

    def set_lanes(self, hero: int, bits: int, until: float) -> None: ...

    def clear_signals(self) -> None: ...

    def buyback(self, hero: int) -> bool: ...

    def glyph(self, team: int) -> bool: ...

    def shrine(self, hero: int) -> bool: ...

    def visible(self, team: int, unit: int) -> bool: ...

    def teach(self, hero: int, ability: str, level: int) -> None:
        """
        Sets the rank of an ability, or takes (1) or drops (0) a talent, whatever the hero's level.
        """

    def ability(self, hero: int, name: str) -> dict[str, Any]:
        """State of an ability, or of an item it holds."""

    def set_autocast(self, hero: int, name: str, on: bool) -> None: ...

    def modifiers(self, unit: int) -> list[Any]:
        """What sits on the unit, passives included."""

    def projectiles(self) -> int: ...

    def rune(self, unit: int, kind: int) -> None: ...

REFUSALS: list[str] = ...

PERSON_KINDS: int = 20

OFFERED: int = 8

class Play:
    """One of the games as people play in it; wrapped by dota.play."""

    def __init__(self, games: VecGame, game: int) -> None: ...

    def take(self, hero: int, held: bool, buys: bool, learns: bool) -> None: ...

    def forget_skills(self, hero: int) -> None: ...

    def order(self, hero: int, kind: int, target: tuple[int, int] | None, at: tuple[float, float] | None, slot: int, to: int, item: str, queue: bool, once: bool) -> str:
        """Why it is refused; '' when it will be carried out."""

    def begin(self, actions: NDArray[numpy.int16], controllers: NDArray[numpy.uint8]) -> None: ...

    def choose(self, actions: NDArray[numpy.int16], controllers: NDArray[numpy.uint8], age: int) -> None:
        """What policies chose from the observations that the timestep under way began with."""

    def begin_commands(self, commands: NDArray[numpy.int16]) -> None:
        """
        Begins a timestep by commands that are already resolved, int16 [10, 8].
        """

    def frame(self) -> bool: ...

    def commands(self) -> bytes:
        """Commands of the last timestep, int16 [10, 8] as bytes."""

    def world_state(self, team: int, absent: Sequence[int]) -> bytes:
        """
        What a team sees, as Dota 2's message CMsgBotWorldState. absent: Valve's numbers of the heroes of
        players without a hero in the game; 0: the player is not listed.
        """

    def unit_of_bot_handle(self, handle: int) -> tuple[int, int] | None:
        """Slot and generation of the unit with that handle in world states, or None."""

    def engine_frame(self) -> int: ...

    def winner(self) -> int: ...

    def events(self, team: int | None) -> list[Any]:
        """What happened in the last frame: tuples of dota.events.Event."""

    def write_seen(self, team: int | None, out: dict[str, Any]) -> None:
        """
        Writes what a team sees, or everything, into the arrays that SEEN_TABLES and SEEN_BITS describe.
        """

def items_not_bought(tables: Tables, heroes: Sequence[str]) -> list[str]:
    """Items of these heroes' builds that the scripted buyer skips."""

def items_without_use(tables: Tables, heroes: Sequence[str]) -> list[str]:
    """
    Items of these heroes' builds that are bought for their stats but cannot be used yet.
    """

def sealed(snapshot: bytes) -> bytes:
    """
    The same with the checksum its bytes should have: for tests of what a checksum cannot see.
    """

class ClientGame:
    """A game as a client tells it; wrapped by dota.client_state."""

    def __init__(self, layout: object, variant: object, ids: dict[Any, Any]) -> None: ...

    def update(self, frame: bytes) -> str:
        """Why the frame is refused; '' when the game is brought up to it."""

    def encode(self, arrays: dict[Any, Any]) -> None: ...

    def choose(self, actions: NDArray[numpy.int16]) -> list[Any]:
        """
        Action, delay, handles of target and teleport (0: none), dx, dy of each hero.
        """

    def remember(self, commands: list[Any]) -> None:
        """The same tuples, of choices that were made elsewhere."""

    def team(self) -> int: ...

    def time(self) -> float: ...

    def counts(self) -> dict[str, Any]: ...

    def slot_handles(self) -> list[int]: ...

    def hero_handles(self) -> list[int]: ...

def read_world_state(frame: bytes) -> dict[str, Any]:
    """Decodes a world state. Raises ValueError that says why the bytes are refused."""
