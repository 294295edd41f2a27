"""Test arena for effects: heroes stand still, do not regenerate and do not attack by themselves."""

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

    def field(self, ability: str, name: str) -> list[Any]:
        values: list[Any] = self.data["abilities"]["abilities"][ability][name]
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
