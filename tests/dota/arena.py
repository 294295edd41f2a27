"""Test arena for effects: heroes stand still, do not regenerate and do not attack by themselves."""

import copy
import math
from typing import Any

CENTRE = (-500.0, -400.0)  # flat ground in the middle of the river, out of every tower's reach
FRAME = 1 / 30
STEP = 4 * FRAME


class Arena:
    """World of one or more heroes a side; positions are offsets from the arena's centre."""

    def __init__(self, world: Any, data: dict[str, Any]) -> None:
        self.world = world
        self.data = data
        for hero in range(10):
            try:
                unit = world.hero(hero)["unit"]
            except IndexError:
                continue
            world.clear_items(hero)
            world.set_gold(hero, -1e6)  # nothing is bought
            self.place(unit, -600 + 1200 * (hero // 5), 200 * (hero % 5))
            self.still(unit)
            world.order(unit, "hold")
        self.seconds(3.5)  # the fountain heals for a while after it is left

    def still(self, unit: int) -> None:
        """Stop the unit's regeneration and attacks."""
        self.world.set_unit(unit, extra_hp_regen=0, extra_mana_regen=0)
        u = self.world.unit(unit)
        self.world.set_unit(unit, extra_hp_regen=1, extra_mana_regen=1)
        more = self.world.unit(unit)  # attributes multiply what is added (7.19)
        stopped = {f"extra_{of}": -u[of] / (more[of] - u[of]) for of in ("hp_regen", "mana_regen") if more[of] > u[of]}
        self.world.set_unit(unit, **({"extra_hp_regen": 0, "extra_mana_regen": 0} | stopped), attack_ready=1e9)

    def unit(self, hero: int) -> int:
        index: int = self.world.hero(hero)["unit"]
        return index

    def place(self, unit: int, x: float, y: float, facing: float = 0.0) -> None:
        self.world.set_unit(unit, x=CENTRE[0] + x, y=CENTRE[1] + y, facing=facing)

    def dummy(self, x: float, y: float, hp: float = 5000, kind: str = "npc_dota_neutral_centaur_khan") -> int:
        """Spawn a neutral creep without AI and without regeneration."""
        unit: int = self.world.spawn(kind, 2, CENTRE[0] + x, CENTRE[1] + y)
        self.world.set_unit(unit, extra_hp=hp - self.world.unit(unit)["max_hp"])
        self.still(unit)
        return unit

    def hp(self, unit: int) -> float:
        value: float = self.world.unit(unit)["hp"]
        return value

    def seconds(self, s: float) -> None:
        self.world.step(max(1, math.ceil(s / STEP - 1e-6)))

    def special(self, ability: str, name: str) -> list[float]:
        values: list[float] = self.data["abilities"]["abilities"][ability]["specials"][name]["v"]
        return values

    def field(self, ability: str, name: str) -> list[float]:
        values: list[float] = self.data["abilities"]["abilities"][ability][name]
        return values

    def teach(self, hero: int, ability: str, level: int) -> int:
        """Set an ability's rank, fill mana, and return the ability's slot."""
        self.world.teach(hero, ability, level)
        unit = self.unit(hero)
        self.still(unit)
        self.world.set_unit(unit, mana=5000)
        slot: int = self.world.ability(hero, ability)["slot"]
        return slot

    def base_speed(self, hero: str) -> float:
        """Return the base speed of additive percentages."""
        speed: float = self.data["heroes"]["heroes"]["npc_dota_hero_" + hero]["move_speed"]
        return speed

    def modifiers(self, unit: int, prefix: str) -> list[dict[str, Any]]:
        return [m for m in self.world.modifiers(unit) if m["name"].startswith(prefix)]

    def magic(self, unit: int) -> float:
        """Return the share of magical damage that passes the unit's resistance."""
        share: float = 1 - self.world.unit(unit)["magic_resist"]
        return share

    def amp(self, unit: int) -> float:
        share: float = 1 + self.world.unit(unit)["spell_amp"]
        return share


HEX = "lion_voodoo"
FILES = ("heroes", "abilities", "items", "units", "rules", "map")


def without_talents_on(heroes: dict[str, Any], ability: str) -> dict[str, Any]:
    """Return heroes.json with plain talents in place of those that change this ability: talents without effect are
    refused."""
    heroes = copy.deepcopy(heroes)
    for hero in heroes["heroes"].values():
        for talent in hero["talents"]:
            if any(name == ability for name, _ in talent.get("affects", [])):
                del talent["affects"]
                talent["effects"] = [{"p": "passive_stats", "stats": {"hp": 1}}]
    return heroes


def line_up(world: Any, data: dict[str, Any], places: dict[int, float]) -> Arena:
    """Return an arena with heroes on a line through the centre, at x by hero; the teams face each other."""
    arena = Arena(world, data)
    for hero, x in places.items():
        arena.place(arena.unit(hero), x, 0, math.pi if hero >= 5 else 0.0)
    arena.seconds(0.2)
    return arena


def programmed(core: Any, data: dict[str, Any], *effects: dict[str, Any], behavior: tuple[str, ...] = ("unit_target",),
               enemy: str = "nevermore", **more: Any) -> Arena:
    """Return an arena in which Lion's Hex (rank 1, no cast point) runs the given effects; Sniper is Lion's ally."""
    changed = dict(data)
    changed["abilities"] = copy.deepcopy(data["abilities"])
    changed["abilities"]["abilities"][HEX] |= {
        "behavior": list(behavior), "effects": list(effects), "target_team": ["both"], "cast_range": [2000],
        "specials": {}, "mana_cost": [0], "cooldown": [0.1]} | more
    changed["heroes"] = without_talents_on(data["heroes"], HEX)
    tables = core.load_tables(*(changed[f] for f in FILES))
    quiet = {"start_s": 0.0, "max_game_s": 1e5, "neutrals": False, "roshan": False, "runes": False,
             "lanes": [False, False, False], "keep_tango": 0, "keep_salve": 0, "keep_clarity": 0}
    arena = Arena(core.World(tables, quiet, ["lion", "sniper"], [enemy, "viper"], 1), changed)
    arena.place(arena.unit(0), 0, 0, 0.0)
    arena.place(arena.unit(1), -300, 0, 0.0)
    arena.place(arena.unit(5), 400, 0, math.pi)
    arena.place(arena.unit(6), 2500, 0, math.pi)
    arena.teach(0, HEX, 1)
    arena.seconds(0.2)
    return arena


def cast(arena: Arena, target: int | None = None, wait: float = 0.2) -> None:
    """Let Lion cast Hex, on a unit or without a target."""
    slot = arena.world.ability(0, HEX)["slot"]
    a = arena.unit(0)
    if target is None:
        arena.world.order(a, "cast", slot=slot)
    else:
        arena.world.order(a, "cast_unit", target=target, slot=slot)
    arena.seconds(wait)


def cast_at(arena: Arena, x: float, y: float, wait: float = 0.2) -> None:
    """Let Lion cast Hex at a position."""
    slot = arena.world.ability(0, HEX)["slot"]
    arena.world.order(arena.unit(0), "cast_point", x=CENTRE[0] + x, y=CENTRE[1] + y, slot=slot)
    arena.seconds(wait)


def circle(r: float) -> dict[str, Any]:
    return {"t": "circle", "r": r}


def give(arena: Arena, item: str, hero: int = 0, charges: int = 0) -> int:
    """Put an item into the hero's inventory, fill its mana, and return the item's slot."""
    assert arena.world.give_item(hero, "item_" + item, charges)
    arena.seconds(0.2)
    unit = arena.unit(hero)
    arena.still(unit)
    arena.world.set_unit(unit, mana=arena.world.unit(unit)["max_mana"])
    slot: int = arena.world.ability(hero, "item_" + item)["slot"]
    return slot


def use(arena: Arena, slot: int, target: int | None = None, hero: int = 0) -> None:
    """Use an item, on a unit or without a target."""
    unit = arena.unit(hero)
    if target is None:
        arena.world.order(unit, "cast", slot=slot)
    else:
        arena.world.order(unit, "cast_unit", target=target, slot=slot)
    arena.seconds(0.25)


def wounded(arena: Arena, hp: float, hero: int = 0) -> int:
    """Set a hero's health and return its unit."""
    unit = arena.unit(hero)
    arena.world.set_unit(unit, hp=hp)
    return unit


def cast_by(arena: Arena, hero: int, slot: int, target: int, ability: str) -> float:
    """Cast an ability by its own target type and return its cooldown in seconds, at most a timestep too long."""
    unit, behavior = arena.unit(hero), arena.field(ability, "behavior")
    if "unit_target" in behavior:
        arena.world.order(unit, "cast_unit", target=target, slot=slot)
    elif "point" in behavior:
        at = arena.world.unit(target)
        arena.world.order(unit, "cast_point", x=at["x"], y=at["y"], slot=slot)
    else:
        arena.world.order(unit, "cast", slot=slot)
    before = arena.world.ability(hero, ability)["ready"]
    for _ in range(60):
        begun = arena.world.time
        arena.world.step(1)
        ready: float = arena.world.ability(hero, ability)["ready"]
        if ready != before:
            return ready - begun
    raise AssertionError(f"{ability} was not cast")
