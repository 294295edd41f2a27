"""Every hero ability against its data in abilities.json, in a small scene: costs, cast time, range, and its modifiers
and their durations at the first and last rank. Other test_matrix files cover dispels, resistance, immunity, break and
stacking. Abilities that this scene cannot show are listed with the test that shows them."""

import math
from typing import Any

import pytest

from tests.dota import effect_nodes
from tests.dota.fight import DATA, definition
from tests.dota.scenes.arena import CENTRE, STEP, Arena
from tests.dota.scenes.duels import line_up
from tests.dota.scenes.patches import load

ALL = list(effect_nodes.hero_abilities(DATA))
ACTIVE = [(h, a) for h, a in ALL if effect_nodes.is_active(DATA["abilities"]["abilities"][a])]
IDS = [a for _, a in ACTIVE]


class Scene(Arena):
    """The hero at the centre with an ally behind it; an enemy hero in front; nobody regenerates or attacks."""

    def __init__(self, new_world: Any, hero: str, away: float = 250) -> None:
        super().__init__(new_world((hero, "lion" if hero != "lion" else "sven"),
                                   ("axe" if hero != "axe" else "sven",)), DATA)
        self.mana = 0.0
        self.place(self.unit(0), 0, 0, -math.pi / 4)
        self.place(self.unit(1), -120, 120)
        self.enemy_at(away)
        for i in (0, 1, 5):
            self.world.set_unit(self.unit(i), extra_hp=6000)
            self.world.set_unit(self.unit(i), hp=6000)
        self.seconds(0.2)

    def enemy_at(self, away: float) -> None:
        """Place the enemy down the river, where the ground is level and visible."""
        self.place(self.unit(5), away * math.sqrt(0.5), -away * math.sqrt(0.5), 3 * math.pi / 4)

    def target_of(self, ability: str) -> int:
        d = definition(ability)
        friendly = "friendly" in d.get("target_team", []) and "enemy" not in d.get("target_team", [])
        return self.unit(1) if friendly else self.unit(5)

    def prepare(self, ability: str, rank: int) -> int:
        """Teach the ability, including souls and charges; return its slot."""
        slot = self.teach(0, ability, rank)
        if self.target_of(ability) == self.unit(1):
            self.place(self.unit(0), 0, 0, 3 * math.pi / 4)  # turning first would delay the cast
        if "nevermore" in ability:
            self.teach(0, "nevermore_necromastery", 4)
            self.world.kill(self.dummy(-1500, 0), self.unit(0))
            self.world.kill(self.dummy(-1500, 0), self.unit(0))
        if charged(ability):
            for _ in range(70):
                if self.world.ability(0, ability)["castable"]:
                    break
                self.seconds(1)
        return slot

    def order(self, ability: str, rank: int) -> int:
        """Teach the ability and order it; return its slot."""
        slot = self.prepare(ability, rank)
        # Mana above the maximum would be lost to a drain over time.
        self.mana = self.world.unit(self.unit(0))["max_mana"] if drawn_on(ability) else 5000.0
        self.world.set_unit(self.unit(0), mana=self.mana)
        self.send(ability, slot)
        return slot

    def send(self, ability: str, slot: int) -> None:
        behavior = definition(ability)["behavior"]
        unit = self.unit(0)
        target = self.target_of(ability)
        if "unit_target" in behavior:
            self.world.order(unit, "cast_unit", target=target, slot=slot)
        elif "point" in behavior:
            u = self.world.unit(target)
            self.world.order(unit, "cast_point", x=u["x"], y=u["y"], slot=slot)
        else:
            self.world.order(unit, "cast", slot=slot)


def drawn_on(ability: str) -> bool:
    """Return whether the ability takes mana while it is on."""
    return any({"mana_per_sec", "mana_per_pulse"} & set(n) for n in definition(ability)["effects"])


def charged(ability: str) -> bool:
    return any(n["p"] == "charges" for n in definition(ability)["effects"]) and "homing" not in ability


# Switched on and off, or used up by the next attack: no cooldown to be seen in a cast.
NO_COOLDOWN = {"witch_doctor_voodoo_restoration": "switched on and off, it has none",
               "viper_poison_attack": "an orb, of the attack it arms: tests/dota/test_abilities_viper.py"}


@pytest.mark.parametrize(("hero", "ability"), ACTIVE, ids=IDS)
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_mana_cast_point_and_cooldown(new_world: Any, hero: str, ability: str, last: bool) -> None:
    d = definition(ability)
    rank = d["max_level"] if last else 1
    scene = Scene(new_world, hero, away=140)
    before = None
    slot = scene.order(ability, rank)
    state = scene.world.ability(0, ability)
    begun, mana = scene.world.time, scene.world.unit(scene.unit(0))["mana"]
    # An instant cast is over before the first step, and may cost nothing.
    instant = mana < scene.mana or state["ready"] > begun
    for _ in range(40):
        if instant or scene.world.unit(scene.unit(0))["mana"] < mana:
            break
        before = scene.world.unit(scene.unit(0))
        scene.world.step(1)
    unit = scene.world.unit(scene.unit(0))
    cost = effect_nodes.at(d.get("mana_cost"), rank)
    # The first pulse is at once.
    cost += sum(effect_nodes.number(d, n.get("mana_per_pulse", 0), rank) for n in d["effects"])
    if cost:
        drained = ability in ("witch_doctor_voodoo_restoration", "lion_mana_drain")
        assert scene.mana - unit["mana"] == pytest.approx(cost, abs=4 if drained else 0.6)
        took = scene.world.time - begun
        assert took == pytest.approx(0 if instant else effect_nodes.at(d.get("cast_point"), rank), abs=1.6 * STEP)
    assert before is None or before["act"] in ("cast_windup", "idle")
    if ability in NO_COOLDOWN:
        return
    after = scene.world.ability(0, ability)
    if charged(ability):
        assert after["charges"] == state["charges"] - (0 if instant else 1) or after["charges"] == 0
    else:
        whole = effect_nodes.at(d.get("cooldown"), rank)
        left = after["ready"] - scene.world.time
        assert whole - 2 * STEP <= left <= whole + 1e-3
        assert not after["castable"] or whole == 0
    assert slot >= 0


RANGED = [(h, a) for h, a in ACTIVE
          if effect_nodes.at(definition(a).get("cast_range"), 1) > 0
          and {"unit_target", "point"} & set(definition(a)["behavior"])]


@pytest.mark.parametrize(("hero", "ability"), RANGED, ids=[a for _, a in RANGED])
def test_cast_range(new_world: Any, hero: str, ability: str) -> None:
    """Slightly within the range the hero casts without walking; slightly beyond it walks first. A range longer than the
    level ground is tried towards a point."""
    d = definition(ability)
    scene = Scene(new_world, hero)
    reach = effect_nodes.at(d["cast_range"], 1)
    to_unit = "unit_target" in d["behavior"]
    if to_unit:
        reach += 2 * 24  # between hulls
    for beyond in (False, True):
        away = reach + (40 if beyond else -40)
        scene = Scene(new_world, hero)
        slot = scene.teach(0, ability, 1)
        if charged(ability):
            scene.seconds(effect_nodes.at(d["specials"]["charge_restore_time"]["v"], 1) + 1)
        scene.world.set_unit(scene.unit(0), mana=5000)
        x, y = CENTRE[0] + away * math.sqrt(0.5), CENTRE[1] - away * math.sqrt(0.5)
        if to_unit:
            target = scene.target_of(ability)
            scene.world.set_unit(target, x=x, y=y)
            scene.seconds(0.2)
            if target == scene.unit(5) and not scene.world.visible(0, target):
                watcher = scene.world.spawn("npc_dota_observer_wards", 0, x + 60, y - 60)
                scene.seconds(0.3)
                assert watcher >= 0 and scene.world.visible(0, target)
            scene.world.order(scene.unit(0), "cast_unit", target=target, slot=slot)
        else:
            scene.world.order(scene.unit(0), "cast_point", x=x, y=y, slot=slot)
        before = scene.world.unit(scene.unit(0))
        scene.world.step(1)
        scene.world.step(1)
        after = scene.world.unit(scene.unit(0))
        moved = math.hypot(after["x"] - before["x"], after["y"] - before["y"])
        blinked = moved > 100
        assert (1 < moved <= 100) == beyond or (blinked and not beyond), (ability, away, moved)


# Abilities that a cast on one enemy cannot show, and their tests.
UNSEEN = {
    "aura": "on its carrier as long as it is; its bearers are in tests/dota/test_effects_modifiers.py",
    "stack_gain": "tests/dota/test_abilities_nevermore.py, test_tooltips_lion.py",
    "charges": "tests/dota/test_abilities_sniper.py",
    "ground_area": "renewed while a unit is inside; tests/dota/test_matrix_damage.py",
    "next_attack_mod": "its time is the test of test_effects_attack.py",
    "attack_modifier": "an orb", "attack_all_in_radius": "acts at once", "summon": "a unit",
    "projectile": "flies", "random_target_hits": "strikes", "periodic_strike": "strikes",
    "mana_drain": "a link", "drain": "a link", "stat_drain": "a link", "knockback": "forced motion",
    "missile_unit": "a unit", "charge_on_nearby_cast": "", "leap": "forced motion", "multi_attack": "for its attacks",
    "proc": "an attack's", "passive_stats": "lasts", "execute": "acts at once",
    "on_hit_stat_steal": "an attack's: tests/dota/test_tooltips_heroes.py",
    "bash": "an attack's: tests/dota/test_abilities_slardar.py",
    "attack_stacks": "an attack's: tests/dota/test_abilities_ursa.py",
}


def timed(ability: str) -> list[effect_nodes.EffectNode]:
    """Return the nodes of a cast that put a modifier with a stated duration on a unit."""
    return [n for n in effect_nodes.nodes(definition(ability))
            if "dur" in n.node and n.primitive not in UNSEEN and not n.upgrade()
            and n.node["dur"] != 0.01  # Assassinate's: it interrupts, and is gone before the next step
            and n.trigger in ("cast", "channel") and not {"proc", "attack_modifier", "aura"} & set(n.way)
            and n.node.get("if") not in ("killed_hero", "ally", "killed")
            and n.primitive not in ("random_explosions", "spirits", "vision", "terrain_block")]


TIMED = [(h, a) for h, a in ALL if timed(a)]
# Nodes that the plain scene does not reach.
ELSEWHERE = {
    ("phantom_assassin_blur", "evade_vision"): "an enemy is near: tests/dota/test_abilities_phantom_assassin.py",
    ("lich_sinister_gaze", "pull_to_caster"): "its channel lasts as long: tests/dota/test_tooltips_lich.py",
    ("razor_plasma_field", "mod"): "one for each way: tests/dota/test_tooltips_heroes.py",
    ("slark_pounce", "leash"): "he leaps past: tests/dota/test_abilities_queenofpain_to_witch_doctor.py",
}


@pytest.mark.parametrize(("hero", "ability"), TIMED, ids=[a for _, a in TIMED])
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_durations_and_dispels(new_world: Any, hero: str, ability: str, last: bool) -> None:
    """Each modifier appears once, for its stated duration, with its stated dispel class."""
    d = definition(ability)
    rank = d["max_level"] if last else 1
    scene = Scene(new_world, hero)
    scene.order(ability, rank)
    first: dict[int, tuple[float, int, int]] = {}
    most: dict[int, int] = {}
    short = min(effect_nodes.number(d, n.node["dur"], rank) for n in timed(ability)) < STEP
    for _ in range(36 * (4 if short else 1)):
        if short:  # it may be gone before the timestep is over
            scene.world.run_frames(1)
        else:
            scene.world.step(1)
        for unit in (scene.unit(0), scene.unit(1), scene.unit(5)):
            seen: dict[int, int] = {}
            for m in scene.modifiers(unit, ability + "#"):
                index = int(m["name"].split("#")[1])
                seen[index] = seen.get(index, 0) + 1
                first.setdefault(index, (m["left"], m["flags"], unit))
            for index, count in seen.items():
                most[index] = max(most.get(index, 0), count)
    dispels = {"yes": 1, "yes_strong": 2, "no": 0}[d.get("dispellable", "yes")]
    for n in timed(ability):
        if (ability, n.primitive) in ELSEWHERE or n.node.get("from_rank", 1) > rank:
            continue
        assert n.index in first, f"{n.primitive} of {ability} was never seen"
        left, flags, bearer = first[n.index]
        whole = effect_nodes.number(d, n.node["dur"], rank)
        assert whole - 1.7 * STEP <= left <= whole + 1e-3, (n.primitive, left, whole)
        if n.primitive != "spell_immune":
            assert flags & 3 == dispels, n.primitive
        assert bool(flags & 4) == (bearer == scene.unit(5)), n.primitive
        if n.node.get("stack") != "per_affected_target":
            assert most[n.index] == 1


PASSIVE = [(h, a) for h, a in ALL if not effect_nodes.is_active(definition(a))]


@pytest.mark.parametrize(("hero", "ability"), PASSIVE, ids=[a for _, a in PASSIVE])
def test_learned_passive_has_permanent_modifiers(new_world: Any, core: Any, tables: Any, hero: str,
                                                 ability: str) -> None:
    """A learned passive's modifiers are permanent; they disappear when it is unlearned. Break: test_matrix_break.py."""
    scene = Scene(new_world, hero)
    unit = scene.unit(0)
    if not definition(ability)["effects"]:
        pytest.skip("a part of another ability")
    scene.world.teach(0, ability, 0)  # it may be the ability that a hero starts with
    assert not scene.modifiers(unit, ability) and not stacks_of(scene, unit, ability)
    scene.teach(0, ability, 1)
    there = scene.modifiers(unit, ability) + stacks_of(scene, unit, ability)
    assert there and all(m["left"] > 1e6 for m in there)
    program = core.ability_program(tables, ability)
    assert [n for n in program["nodes"] if n["passive"]]
    scene.world.teach(0, ability, 0)
    assert not scene.modifiers(unit, ability)


def stacks_of(scene: Scene, unit: int, ability: str) -> list[dict[str, Any]]:
    names = [n.node["stack"] for n in effect_nodes.nodes(definition(ability))
             if n.primitive == "stack_gain" and "stack" in n.node]
    return [m for name in names for m in scene.modifiers(unit, "stack_" + name)]


@pytest.mark.slow
@pytest.mark.parametrize("hero", sorted({h for h, _ in ALL}))
def test_costs_of_7_19(core: Any, hero: str) -> None:
    """7.19: mana and cooldown of every cast at the first rank."""
    data = load(core, "7.19")[0]
    for name in data["heroes"]["heroes"]["npc_dota_hero_" + hero]["abilities"]:
        d = data["abilities"]["abilities"][name]
        if not effect_nodes.is_active(d) or any(n["p"] == "charges" for n in d["effects"]) or name in NO_COOLDOWN:
            continue
        sides = (hero, "lion" if hero != "lion" else "sven"), ("axe" if hero != "axe" else "sven",)
        arena = line_up(core, "7.19", *sides, {0: 0, 5: 140})
        arena.place(arena.unit(1), -150, 100)
        slot = arena.teach(0, name, 1)
        friendly = "friendly" in d.get("target_team", []) and "enemy" not in d.get("target_team", [])
        target = arena.unit(1) if friendly else arena.unit(5)
        creep = arena.world.spawn("npc_dota_creep_goodguys_melee", 0, CENTRE[0] - 60, CENTRE[1])
        if "dark_ritual" in name:
            target = creep
        if "unit_target" in d["behavior"]:
            arena.world.order(arena.unit(0), "cast_unit", target=target, slot=slot)
        elif "point" in d["behavior"]:
            arena.world.order(arena.unit(0), "cast_point", x=CENTRE[0] + 140, y=CENTRE[1], slot=slot)
        else:
            arena.world.order(arena.unit(0), "cast", slot=slot)
        for _ in range(30):
            if arena.world.ability(0, name)["ready"] > 0:
                break
            arena.world.step(1)
        left = arena.world.ability(0, name)["ready"] - arena.world.time
        whole = effect_nodes.at(d.get("cooldown"), 1)
        assert whole - 2 * STEP <= left <= whole + 1e-3, name
