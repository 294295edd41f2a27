"""Unique abilities of neutral creeps and Roshan, with the numbers of abilities.json: attack effects, projectiles,
modifiers."""

import math
from typing import Any

import pytest

from tests.dota import unit_model
from tests.dota.scenes.statuses import HEXED, ROOTED
from tests.dota.test_matrix_creatures import DATA, KOBOLD, STUNNED, Den, definition


def neutral(name: str) -> str:
    return "npc_dota_neutral_" + name


def strikes(den: Den, target: int, count: int, haste: float = 600) -> list[tuple[float, float]]:
    """Return (health lost, time) of each frame in which the creature's attack hurt the target."""
    den.world.set_unit(den.creature, attack_ready=0, extra_as=haste)
    den.world.order(den.creature, "attack", target=target)
    out: list[tuple[float, float]] = []
    hp = den.hp(target)
    for frame in range(40 * count + 200):
        den.world.run_frames(1)
        now = den.hp(target)
        if now < hp - 1e-3:
            out.append((hp - now, den.world.time))
        hp = now
        if len(out) >= count:
            break
        if frame % 100 == 0:
            den.world.step(1)
            hp = den.hp(target)
    den.world.set_unit(den.creature, attack_ready=1e9)
    den.world.order(den.creature, "hold")
    return out


def tough(den: Den, unit: int, hp: float = 200000) -> float:
    """Give the unit plenty of health; return the share of a creature's attack damage that passes its armor."""
    den.world.set_unit(unit, extra_hp=hp)
    den.world.set_unit(unit, hp=hp)
    attacker, target = (DATA["units"]["units"].get(den.world.unit(u)["type"]) for u in (den.creature, unit))
    table = DATA["rules"]["rules"]["attack_class_table"]
    column = table["cols"].index(target["defend_class"] if target else "hero")
    return float(table[attacker["attack_class"]][column] * den.through(unit, "physical"))


def test_alpha_wolf_crits_a_fifth_of_the_time(new_world: Any) -> None:
    """"alpha_wolf_critical_strike"."""
    den = Den(new_world, neutral("alpha_wolf"), 80)
    hero = den.unit(0)
    share = tough(den, hero)
    wolf = den.world.unit(den.creature)
    blows = [lost / share for lost, _ in strikes(den, hero, 300)]
    low, high = math.floor(wolf["dmg_min"]), math.floor(wolf["dmg_max"])
    times = den.special("alpha_wolf_critical_strike", "crit_mult")[0] / 100
    crits = [b for b in blows if b > high + 0.5]
    assert all(low - 0.1 <= b <= high + 0.1 for b in blows if b <= high + 0.5)
    assert all(low * times - 0.1 <= b <= high * times + 0.1 for b in crits)
    assert len(crits) / len(blows) == pytest.approx(den.special("alpha_wolf_critical_strike", "crit_chance")[0] / 100,
                                                    abs=0.05)


def test_the_black_dragon_strikes_all_around_its_target(new_world: Any) -> None:
    """"black_dragon_splash_attack": full damage after each unit's own armor within the radius, none beyond it."""
    r = definition("black_dragon_splash_attack")["specials"]["range"]["v"][0]
    den = Den(new_world, neutral("black_dragon"), 300)
    target, beside, beyond = den.unit(0), den.unit(1), den.spawn(KOBOLD, 300, 0, aside=-r - 15)
    den.place(beside, *den.down(300, r - 15))
    den.seconds(0.2)
    pct = den.special("black_dragon_splash_attack", "damage_percent")[0] / 100
    before = den.hp(beside), den.hp(beyond)
    (lost, _), = strikes(den, target, 1, haste=0)
    roll = lost / den.through(target, "physical")
    assert roll == pytest.approx(round(roll), abs=0.01)
    assert before[0] - den.hp(beside) == pytest.approx(roll * pct * den.through(beside, "physical"), abs=0.02)
    assert den.hp(beyond) == before[1]


@pytest.mark.parametrize("against", ["hero", "creep"])
def test_the_gnoll_poisons(new_world: Any, against: str) -> None:
    """"gnoll_assassin_envenomed_weapon": 2 magical damage a second, for twice as long on creeps."""
    den = Den(new_world, neutral("gnoll_assassin"), 200)
    target = den.unit(0) if against == "hero" else den.spawn(KOBOLD, 200, 0)
    lasts = den.special("gnoll_assassin_envenomed_weapon", f"{'' if against == 'hero' else 'non_'}hero_duration")[0]
    strikes(den, target, 1, haste=0)
    (m,) = den.modifiers(target, "gnoll_assassin_envenomed_weapon#1")
    assert m["left"] == pytest.approx(lasts, abs=0.04)
    hp = den.hp(target)
    each = den.special("gnoll_assassin_envenomed_weapon", "damage_per_second")[0] * den.magic(target)
    den.seconds(3.2)
    assert hp - den.hp(target) == pytest.approx(3 * each, abs=0.02)
    den.seconds(lasts)
    assert hp - den.hp(target) == pytest.approx(lasts * each, abs=0.05)


def test_the_ghost_slows(new_world: Any) -> None:
    """"ghost_frost_attack"."""
    ability = "ghost_frost_attack"
    den = Den(new_world, neutral("ghost"), 200)
    before = den.world.unit(den.unit(0))
    strikes(den, den.unit(0), 1, haste=0)
    (m,) = den.modifiers(den.unit(0), ability + "#1")
    assert m["left"] == pytest.approx(den.special(ability, "duration")[0], abs=0.04)
    den.world.run_frames(1)
    d = definition(ability)
    stats = unit_model.read(d, d["effects"][0]["then"][0]["stats"], 1)
    assert not unit_model.differing(den.world.unit(den.unit(0)), unit_model.after(DATA, before, stats))
    den.seconds(1.7)
    assert not unit_model.differing(den.world.unit(den.unit(0)), unit_model.after(DATA, before, {}))


def test_the_prowler_shaman_roots_with_a_blow(new_world: Any) -> None:
    """"spawnlord_master_freeze": roots and damages with one attack every fifteen seconds, without an order."""
    ability = "spawnlord_master_freeze"
    d = definition(ability)
    den = Den(new_world, neutral("prowler_shaman"), 100)
    hero = den.unit(0)
    share = tough(den, hero, 60000)
    shaman = den.world.unit(den.creature)
    blows = strikes(den, hero, 12, haste=0)
    extra = [i for i, (lost, _) in enumerate(blows) if lost / share > shaman["dmg_max"] + 1]
    assert extra[0] == 0 and len(extra) == 2
    assert blows[extra[1]][1] - blows[0][1] == pytest.approx(d["cooldown"][0], abs=1.6)
    damage = den.special(ability, "damage")[0] * den.magic(hero)
    assert shaman["dmg_min"] * share - 1 <= blows[0][0] - damage <= shaman["dmg_max"] * share + 1
    den = Den(new_world, neutral("prowler_shaman"), 100)
    strikes(den, den.unit(0), 1, haste=0)
    roots = [m for m in den.modifiers(den.unit(0), ability) if m["status"] & ROOTED]
    assert [m["left"] for m in roots] == pytest.approx([den.special(ability, "duration")[0]], abs=0.04)


def test_the_shamans_apprentices_give_lifesteal(new_world: Any) -> None:
    """"spawnlord_aura": an attacker heals by a tenth of its damage."""
    den = Den(new_world, neutral("alpha_wolf"), 80)
    den.spawn(neutral("prowler_acolyte"), 300, aside=300)
    den.seconds(0.3)
    den.still(den.creature)
    den.world.set_unit(den.creature, hp=1000)
    (lost, _), = strikes(den, den.unit(0), 1, haste=0)
    assert den.hp(den.creature) - 1000 == pytest.approx(
        lost * den.special("spawnlord_aura", "lifesteal")[0] / 100, abs=0.05)


@pytest.mark.parametrize(("creature", "ability", "speed"), [
    ("mud_golem", "mud_golem_hurl_boulder", "speed"), ("mud_golem_split", "mud_golem_hurl_boulder", "speed"),
    ("dark_troll_warlord", "dark_troll_warlord_ensnare", "net_speed")])
def test_thrown_projectiles_hit(new_world: Any, creature: str, ability: str, speed: str) -> None:
    """Checks projectile speed, effect on impact, and duration. A golem's shard throws like the golem."""
    d = definition(ability)
    away = 480
    den = Den(new_world, neutral(creature), away)
    hero = den.unit(0)
    hp = den.hp(hero)
    den.cast(ability, hero)
    thrown = den.world.time
    status = ROOTED if "ensnare" in ability else STUNNED
    for _ in range(60):
        if den.world.unit(hero)["status"] & status:
            break
        den.world.run_frames(1)
    assert den.world.time - thrown == pytest.approx((away - 24) / den.special(ability, speed)[0], abs=0.08)
    (m,) = den.modifiers(hero, ability)
    assert m["left"] == pytest.approx(den.special(ability, "duration")[0], abs=0.04)
    damage = d["specials"].get("damage", {"v": [0]})["v"][0]
    assert hp - den.hp(hero) == pytest.approx(damage * den.magic(hero), abs=0.05)


def test_the_soulstealer_burns_mana(new_world: Any) -> None:
    """"satyr_soulstealer_mana_burn": the damage is the burned mana, at most the mana that the target has."""
    ability = "satyr_soulstealer_mana_burn"
    for mana in (250.0, 40.0):
        den = Den(new_world, neutral("satyr_soulstealer"))
        hero = den.unit(0)
        den.world.set_unit(hero, mana=mana)
        hp = den.hp(hero)
        den.cast(ability, hero)
        burned = min(mana, den.special(ability, "burn_amount")[0])
        assert mana - den.world.unit(hero)["mana"] == pytest.approx(burned, abs=0.01)
        assert hp - den.hp(hero) == pytest.approx(burned * den.magic(hero), abs=0.05)


def test_the_hellcaller_sends_a_wave(new_world: Any) -> None:
    """"satyr_hellcaller_shockwave": a growing disc damages every enemy that it passes."""
    ability = "satyr_hellcaller_shockwave"
    r0, r1, far = (den_value(ability, k) for k in ("radius_start", "radius_end", "distance"))
    den = Den(new_world, neutral("satyr_hellcaller"), 300)
    places = {(100, r0 - 25): True, (100, r0 + 25): False, (far - 60, r1 - 20): True, (far - 60, r1 + 25): False,
              (far + r1 - 15, 0): True, (far + r1 + 25, 0): False}
    kobolds = [den.spawn(KOBOLD, x, 0, aside=y) for x, y in places]
    hp = den.hp(den.unit(0))
    den.cast(ability, den.unit(0))
    den.seconds(far / den_value(ability, "speed") + 0.2)
    amount = definition(ability)["damage"][0]
    assert hp - den.hp(den.unit(0)) == pytest.approx(amount * den.magic(den.unit(0)), abs=0.05)
    for unit, struck in zip(kobolds, places.values(), strict=True):
        assert 4000 - den.hp(unit) == pytest.approx(amount * den.magic(unit) if struck else 0, abs=0.05)


def den_value(ability: str, name: str) -> float:
    value: float = definition(ability)["specials"][name]["v"][0]
    return value


def test_the_storm_harpy_strikes_one_after_another(new_world: Any) -> None:
    """"harpy_storm_chain_lightning": four targets in a row, a quarter weaker each time, no target twice, none out of
    range."""
    ability = "harpy_storm_chain_lightning"
    jump, wait, loss = (den_value(ability, k) for k in ("jump_range", "jump_delay", "damage_percent_loss"))
    den = Den(new_world, neutral("harpy_storm"), 300)
    row = [den.unit(0), *(den.spawn(KOBOLD, 300 + k * 200, 0) for k in range(1, 6))]
    hp = [den.hp(u) for u in row]
    den.cast(ability, row[0])
    begun, struck = den.world.time, [0.0] * len(row)
    for _ in range(60):
        for i, unit in enumerate(row):
            if den.hp(unit) < hp[i] and not struck[i]:
                struck[i] = den.world.time - begun
        den.world.run_frames(1)
    count = int(den_value(ability, "max_targets"))
    for i, unit in enumerate(row):
        amount = den_value(ability, "initial_damage") * (1 - loss / 100) ** i if i < count else 0
        assert hp[i] - den.hp(unit) == pytest.approx(amount * den.magic(unit), abs=0.05)
    assert struck[1:count] == pytest.approx([wait * i for i in range(1, count)], abs=0.07)
    den = Den(new_world, neutral("harpy_storm"), 300)
    near, alone = den.spawn(KOBOLD, 300, 0, aside=jump - 15), den.spawn(KOBOLD, 300, 0, aside=-jump - 15)
    den.cast(ability, den.unit(0))
    den.seconds(1)
    assert den.hp(near) < 4000 and den.hp(alone) == 4000


def test_the_black_dragon_sets_the_ground_on_fire(new_world: Any) -> None:
    """"black_dragon_fireball": damage every half second to units in the area, for ten seconds."""
    ability = "black_dragon_fireball"
    r, dps, lasts, every = (den_value(ability, k) for k in ("radius", "damage", "duration", "burn_interval"))
    den = Den(new_world, neutral("black_dragon"), 400)
    inside, outside = (den.spawn(KOBOLD, 400, 0, 8000, aside=r + d) for d in (-15, 15))
    hero, hp = den.unit(0), den.hp(den.unit(0))
    den.cast(ability, hero)
    den.seconds(every + 0.2)
    assert hp - den.hp(hero) == pytest.approx(dps * every * den.magic(hero), abs=0.05)
    den.place(hero, *den.down(1500))
    den.seconds(lasts + 0.5)
    assert hp - den.hp(hero) == pytest.approx(dps * every * den.magic(hero), abs=0.05)
    assert 8000 - den.hp(inside) == pytest.approx(dps * lasts * den.magic(inside), abs=0.1)
    assert den.hp(outside) == 8000


def test_the_trickster_purges(new_world: Any) -> None:
    """"satyr_trickster_purge": removes buffs, and slows by 100 %, a fifth less each second."""
    ability = "satyr_trickster_purge"
    den = Den(new_world, neutral("satyr_trickster"))
    hero = den.unit(0)
    slot = den.teach(0, "sven_gods_strength", 1)
    den.teach(0, "sven_warcry", 4)
    before = den.world.unit(hero)
    den.world.order(hero, "cast", slot=den.world.ability(0, "sven_warcry")["slot"])
    den.seconds(0.3)
    assert den.modifiers(hero, "sven_warcry") and slot >= 0
    den.cast(ability, hero)
    assert not den.modifiers(hero, "sven_warcry")
    lasts, steps = den_value(ability, "duration"), den_value(ability, "purge_rate")
    (m,) = den.modifiers(hero, ability)
    assert m["left"] == pytest.approx(lasts, abs=0.04)
    for k in range(int(steps)):
        den.seconds(0.4 * lasts / steps)
        stats = {"ms_pct": -100 * (1 - k / steps)}
        assert not unit_model.differing(den.world.unit(hero), unit_model.after(DATA, before, stats)), k
        den.seconds(0.6 * lasts / steps)
    den.seconds(0.3)
    assert not unit_model.differing(den.world.unit(hero), unit_model.after(DATA, before, {}))


def test_frost_armor_slows_attackers(new_world: Any) -> None:
    """"ogre_magi_frost_armor": slows units that attack the bearer while it lasts."""
    ability = "ogre_magi_frost_armor"
    d = definition(ability)
    for worn in (True, False):
        den = Den(new_world, neutral("ogre_magi"), 200)
        ally, hero = den.spawn(KOBOLD, 100), den.unit(0)
        before = den.world.unit(hero)
        if worn:
            den.cast(ability, ally)
        den.world.set_unit(hero, attack_ready=0)
        den.world.order(hero, "attack", target=ally)
        for _ in range(60):
            den.world.run_frames(1)
            if den.hp(ally) < 4000:
                break
        den.world.order(hero, "hold")
        den.world.set_unit(hero, attack_ready=1e9)
        marks = den.modifiers(hero, ability)
        assert bool(marks) == worn
        if not worn:
            continue
        assert marks[0]["left"] == pytest.approx(den_value(ability, "slow_duration"), abs=0.04)
        den.world.run_frames(1)
        stats = unit_model.read(d, d["effects"][1]["then"][0]["stats"], 1)
        assert not unit_model.differing(den.world.unit(hero), unit_model.after(DATA, before, stats))


def test_priest_heal_amount(new_world: Any) -> None:
    """"forest_troll_high_priest_heal"."""
    den = Den(new_world, neutral("forest_troll_high_priest"))
    ally = den.spawn(KOBOLD, 120)
    den.world.set_unit(ally, hp=100)
    den.cast("forest_troll_high_priest_heal", ally)
    assert den.hp(ally) == pytest.approx(100 + den_value("forest_troll_high_priest_heal", "health"))


def test_roshan_bash_damage_and_stun(new_world: Any) -> None:
    """"roshan_bash": 50 more before armor and 1.65 s of stun, 15 % of the time."""
    den = Den(new_world, "npc_dota_roshan", 100)
    hero = den.unit(0)
    share = tough(den, hero)
    roshan = den.world.unit(den.creature)
    blows = [lost / share for lost, _ in strikes(den, hero, 300)]
    extra = den_value("roshan_bash", "bonus_damage")
    plain = roshan["dmg_min"]
    assert all(b == pytest.approx(plain, abs=0.1) or b == pytest.approx(plain + extra, abs=0.1) for b in blows)
    bashes = sum(b > plain + 1 for b in blows)
    assert bashes / len(blows) == pytest.approx(den_value("roshan_bash", "bash_chance") / 100, abs=0.05)
    for _ in range(60):
        den.seconds(2)
        ((lost, _),) = strikes(den, hero, 1)
        if lost / share > plain + 1:
            break
    (m,) = den.modifiers(hero, "roshan_bash")
    assert m["left"] == pytest.approx(den_value("roshan_bash", "stun_duration"), abs=0.08) and m["status"] & STUNNED


@pytest.mark.parametrize("minutes", [0, 12])
def test_roshan_slam_grows_by_the_minute(new_world: Any, minutes: int) -> None:
    """"roshan_slam": 70 damage, 10 more for every whole minute of the game."""
    den = Den(new_world, "npc_dota_roshan", 200)
    den.world.set_time(60.0 * minutes + 5)
    hero = den.unit(0)
    hp = den.hp(hero)
    den.cast("roshan_slam", hero)
    amount = den_value("roshan_slam", "damage") + minutes * den_value("roshan_slam", "damage_growth")
    assert hp - den.hp(hero) == pytest.approx(amount * den.magic(hero), abs=0.05)


def test_roshan_blocks_a_spell(new_world: Any) -> None:
    """"roshan_spell_block": blocks the first spell aimed at him, and another one fifteen seconds later."""
    den = Den(new_world, "npc_dota_roshan", 200)
    lion, roshan = den.unit(1), den.creature
    den.place(lion, *den.down(250, 60), 3 * math.pi / 4)
    hex_slot, finger = den.teach(1, "lion_voodoo", 1), den.teach(1, "lion_finger_of_death", 1)
    storm = den.teach(0, "sven_storm_bolt", 1)

    def lands(caster: int, slot: int) -> bool:
        den.world.set_unit(caster, mana=5000)
        hp = den.hp(roshan)
        den.world.order(caster, "cast_unit", target=roshan, slot=slot)
        den.seconds(1.2)
        return den.hp(roshan) < hp or bool(den.world.unit(roshan)["status"] & (HEXED | STUNNED))

    assert not lands(lion, hex_slot)
    blocked = den.world.time - 1.2
    assert lands(den.unit(0), storm)
    den.seconds(blocked + definition("roshan_spell_block")["cooldown"][0] + 0.3 - den.world.time)
    assert not lands(lion, finger)
