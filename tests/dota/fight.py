"""Small fight in which a hero uses all effects of an ability or item, and every resulting modifier is recorded when it
first appears: for tests over all abilities and items of the data."""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.dota import effect_nodes
from tests.dota.scenes.arena import FRAME, Arena
from tests.dota.scenes.patches import QUIET, load_tables, read_data
from tests.dota.scenes.program import without_talents_on

DATA = read_data("7.21d")
ABILITIES: dict[str, Any] = DATA["abilities"]["abilities"]
ITEMS = {n: i for n, i in DATA["items"]["items"].items() if not i.get("excluded")}
HEROES = {h.removeprefix("npc_dota_hero_"): body for h, body in DATA["heroes"]["heroes"].items()}
OWNERS = dict((ability, hero) for hero, ability in effect_nodes.hero_abilities(DATA))
SEEN_HERO, MATE, ENEMY, SECOND = 0, 1, 5, 6
HASTE = 300  # attack speed that those who strike are given

# Two abilities of a hero that is there beside those who fight, which do what a test wants of them instead.
HELPERS = {"lion": ("lion_voodoo", "lion_mana_drain"),
           "crystal_maiden": ("crystal_maiden_crystal_nova", "crystal_maiden_frostbite")}


def helper_of(hero: str) -> str:
    return "crystal_maiden" if hero == "lion" else "lion"


def helpers(core: Any, first: list[dict[str, Any]], second: list[dict[str, Any]]) -> dict[str, Any]:
    """Return, for each helper, tables in which its two abilities are instant and have these effects."""
    tables = {}
    for helper, names in HELPERS.items():
        data = dict(DATA)
        data["abilities"] = copy.deepcopy(DATA["abilities"])
        for name, effects in zip(names, (first, second), strict=True):
            old = data["abilities"]["abilities"][name]
            data["abilities"]["abilities"][name] = {
                k: old[k] for k in ("id", "type", "max_level", "required_level", "levels_between", "owner", "slot")} | {
                "behavior": ["no_target", "immediate"], "effects": effects, "specials": {}, "mana_cost": [0],
                "cooldown": [0.03], "cast_point": [0], "dispellable": "no"}
            data["heroes"] = without_talents_on(data["heroes"], name)
        tables[helper] = load_tables(core, data)
    return tables


def name_of(subject: str) -> str:
    return subject.removeprefix("item_")


def definition(subject: str) -> dict[str, Any]:
    found: dict[str, Any] = ITEMS[subject] if subject in ITEMS else ABILITIES[subject]
    return found


def rank_of(subject: str) -> int:
    """Return the tested rank: an ability's last, an item's own."""
    d = definition(subject)
    rank: int = d.get("base_level", 1) if subject in ITEMS else d["max_level"]
    return rank


def ways() -> Iterator[tuple[str, str]]:
    """Return (ability or item, test setup) pairs: on an enemy or on an ally; items by a ranged hero as well."""
    for ability in OWNERS:
        d = ABILITIES[ability]
        friendly = "friendly" in d.get("target_team", []) and "enemy" not in d.get("target_team", [])
        yield ability, "mate" if friendly else "enemy"
    for item, d in ITEMS.items():
        team = set(d.get("target_team", []))
        if not d.get("effects"):
            continue
        if not team or team & {"enemy", "both", "custom"}:
            yield item, "enemy"
            yield item, "ranged"
        if team & {"friendly", "both"}:
            yield item, "mate"


@dataclass
class Sight:
    """A node's modifier when it first appeared on a unit."""

    index: int
    bearer: int  # hero
    left: float  # seconds
    flags: int
    snapshot: Any  # of the world then, if it was to be kept
    struck: bool = False  # whether the two were attacking each other by then


class Fight(Arena):
    """Hero 0 at the centre, an enemy in front of it, a helper next to each; all have full health and no abilities."""

    def __init__(self, core: Any, tables: dict[str, Any], subject: str, way: str = "enemy", away: float = 140,
                 far: bool = False) -> None:
        self.subject, self.way, self.struck = subject, way, False
        hero = OWNERS.get(subject) or ("sniper" if way == "ranged" else "sven")
        self.hero = hero
        enemy = "axe" if hero != "axe" else "tidehunter"
        helper = helper_of(hero)
        self.helper = helper
        super().__init__(core.World(tables[helper], QUIET, [hero, helper], [enemy, helper], 1), DATA)
        self.names = {SEEN_HERO: hero, MATE: helper, ENEMY: enemy, SECOND: helper}
        for index, name in self.names.items():
            for ability in HEROES[name]["abilities"]:
                self.world.teach(index, ability, 0)
        self.stand(SEEN_HERO, 0, 0, -math.pi / 4)
        self.stand(ENEMY, away, 0, 3 * math.pi / 4)
        self.stand(MATE, -60, 150)
        self.stand(SECOND, 2600 if far else away + 30, 150)
        for index in self.names:
            self.healthy(index)
        self.seconds(0.2)

    def stand(self, hero: int, along: float, across: float, facing: float = 0) -> None:
        """Return a position along and across the river, where the ground is level and visible."""
        root = math.sqrt(0.5)
        self.place(self.unit(hero), (along + across) * root, (across - along) * root, facing)

    def healthy(self, hero: int) -> None:
        unit = self.unit(hero)
        self.world.set_unit(unit, extra_hp=20000)
        self.world.set_unit(unit, hp=18000)

    def help(self, hero: int, which: int) -> bool:
        """Let a helper use its first or second ability. Return False when it could not."""
        name = HELPERS[self.helper][which]
        self.world.teach(hero, name, 1)
        state = self.world.ability(hero, name)
        self.world.order(self.unit(hero), "cast", slot=state["slot"])
        return bool(self.world.ability(hero, name)["ready"] > state["ready"])

    def prepare(self) -> int:
        """Learn the ability, including souls and charges, or take the item; return its slot, -1 for a passive one."""
        d = definition(self.subject)
        if self.subject in ITEMS:
            assert self.world.give_item(SEEN_HERO, self.subject, max(d.get("initial_charges", 0), 3))
            self.seconds(0.2)
        else:
            self.teach(SEEN_HERO, self.subject, rank_of(self.subject))
        if "nevermore" in self.subject:
            self.teach(SEEN_HERO, "nevermore_necromastery", 4)
            for _ in range(4):
                self.world.kill(self.dummy(-1500, 0), self.unit(SEEN_HERO))
        state = self.world.ability(SEEN_HERO, self.subject)
        for _ in range(70):
            if not any(n["p"] == "charges" for n in d.get("effects", [])) or state["castable"]:
                break
            self.seconds(1)
            state = self.world.ability(SEEN_HERO, self.subject)
        for hero in self.names:
            self.healthy(hero)
        self.still(self.unit(SEEN_HERO))
        self.world.set_unit(self.unit(SEEN_HERO), mana=9000)
        slot: int = state["slot"]
        return slot if set(d.get("behavior", ["passive"])) & {"no_target", "unit_target", "point"} else -1

    def cast(self, slot: int) -> None:
        """Cast or use it by its own target type, on the tested target."""
        d = definition(self.subject)
        unit = self.unit(SEEN_HERO)
        target = self.unit(MATE if self.way == "mate" else ENEMY)
        if "unit_target" in d["behavior"]:
            self.world.order(unit, "cast_unit", target=target, slot=slot)
        elif "point" in d["behavior"]:
            at = self.world.unit(target)
            self.world.order(unit, "cast_point", x=at["x"], y=at["y"], slot=slot)
        else:
            self.world.order(unit, "cast", slot=slot)

    def strike(self) -> None:
        """Let hero and enemy attack each other fast from now on."""
        self.struck = True
        for attacker, target in ((SEEN_HERO, ENEMY), (ENEMY, SEEN_HERO)):
            self.world.set_unit(self.unit(attacker), attack_ready=0, extra_as=HASTE)
            self.world.order(self.unit(attacker), "attack", self.unit(target))

    def seen(self, frames: int, out: dict[tuple[int, int], Sight], keep: bool = False) -> None:
        """Run some frames and record the subject's modifiers on each of the four units, by node and bearer."""
        for _ in range(frames):
            self.world.run_frames(1)
            for hero in self.names:
                for m in self.modifiers(self.unit(hero), self.subject + "#"):
                    index = int(m["name"].split("#")[1])
                    if (index, hero) not in out and m["left"] < 1e6:
                        snapshot = self.world.snapshot() if keep else None
                        out[index, hero] = Sight(index, hero, m["left"], m["flags"], snapshot, self.struck)

    def everything(self, keep: bool = False) -> dict[tuple[int, int], Sight]:
        """Cast or use it, then fight; return the modifiers by bearer."""
        out: dict[tuple[int, int], Sight] = {}
        slot = self.prepare()
        if slot >= 0:
            self.cast(slot)
            self.seen(round((3.6 if self.subject in ITEMS else 7.5) / FRAME), out, keep)
        if "earthshaker" in self.subject:
            totem = self.teach(SEEN_HERO, "earthshaker_enchant_totem", 1)
            self.world.order(self.unit(SEEN_HERO), "cast", slot=totem)
            self.seen(round(1 / FRAME), out, keep)
        self.strike()
        if slot >= 0 and "attack" in definition(self.subject).get("behavior", []):
            self.cast(slot)
        self.seen(round(6 / FRAME), out, keep)
        return out

    def bears(self, sight: Sight) -> bool:
        """Return whether that modifier is present."""
        return bool([m for m in self.modifiers(self.unit(sight.bearer), f"{self.subject}#{sight.index}")
                     if m["name"] == f"{self.subject}#{sight.index}" and m["left"] < 1e6])


def ranged(hero: str) -> bool:
    return bool(HEROES[hero]["projectile_speed"] > 0)


def case(subject: str, way: str) -> Any:
    return pytest.param(subject, way, id=f"{name_of(subject)}-{way}")
