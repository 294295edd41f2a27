"""Numbers that occur twice in the data are equal: rules.json documents them, another file is used by the game."""

from typing import Any

import pytest

from tests.dota.scenes.patches import read_data

ROSHAN, COURIER, FLYING = "npc_dota_roshan", "npc_dota_courier", "npc_dota_flying_courier"
OBSERVER, SENTRY = "npc_dota_observer_wards", "npc_dota_sentry_wards"

# Place in rules.json -> place in the file that is played: the first word names it.
COPIES = {
    "roshan.slam_dmg": "abilities.roshan_slam.specials.damage.v.0",
    "roshan.slam_dmg_per_min": "abilities.roshan_slam.specials.damage_growth.v.0",
    "roshan.last_hit_gold.0": f"units.{ROSHAN}.gold_min",
    "roshan.last_hit_gold.1": f"units.{ROSHAN}.gold_max",
    "roshan.hp": f"units.{ROSHAN}.hp",
    "roshan.hp_regen": f"units.{ROSHAN}.hp_regen",
    "roshan.armor": f"units.{ROSHAN}.armor",
    "roshan.dmg": f"units.{ROSHAN}.dmg_min",
    "roshan.xp": f"units.{ROSHAN}.xp",
    "roshan.magic_resist_pct": f"units.{ROSHAN}.magic_resist",
    "roshan.aegis_expires_s": "items.item_aegis.specials.disappear_time.v.0",
    "respawn.aegis_delay_s": "items.item_aegis.specials.reincarnate_time.v.0",
    "courier.cost": "items.item_courier.cost",
    "courier.hp": f"units.{COURIER}.hp",
    "courier.ms_ground": f"units.{COURIER}.move_speed",
    "courier.ms_flying": f"units.{FLYING}.move_speed",
    "courier.shield_cd_s": "abilities.courier_shield.cooldown.0",
    "courier.shield_dur_s": "abilities.courier_shield.specials.duration.v.0",
    "courier.bounty_gold_each": f"units.{COURIER}.gold_min",
    "courier.bounty_gold_each_flying": f"units.{FLYING}.gold_min",
    "wards.observer.life_s": "items.item_ward_observer.specials.lifetime.v.0",
    "wards.observer.vision": "items.item_ward_observer.specials.vision_range.v.0",
    "wards.observer.cost": "items.item_ward_observer.cost",
    "wards.observer.stock_max": "items.item_ward_observer.stock_max",
    "wards.observer.stock_initial": "items.item_ward_observer.stock_initial",
    "wards.observer.restock_s": "items.item_ward_observer.stock_time",
    "wards.sentry.life_s": "items.item_ward_sentry.specials.lifetime.v.0",
    "wards.sentry.true_sight": "items.item_ward_sentry.specials.true_sight_range.v.0",
    "wards.sentry.cost": "items.item_ward_sentry.cost",
    "wards.sentry.bounty_gold": f"units.{SENTRY}.gold_min",
    "wards.hits_to_kill": f"units.{OBSERVER}.hits_to_kill",
    "teleport.scroll_channel_s": "items.item_tpscroll.channel_time.0",
    "teleport.repeat_channel_s.0": "items.item_tpscroll.channel_time.0",
    "teleport.scroll_cooldown_s": "items.item_tpscroll.cooldown.0",
    "teleport.boots_cooldown_s": "items.item_travel_boots.cooldown.0",
    "teleport.arrival_max_dist": "items.item_tpscroll.specials.maximum_distance.v.0",
    "tower_ai.true_sight": "units.npc_dota_goodguys_tower1_mid.true_sight",
}


def found(node: Any, path: str) -> Any:
    for key in path.split("."):
        node = node[int(key)] if isinstance(node, list) else node[key]
    return node


@pytest.mark.parametrize("patch", ["7.21d", "7.19"])
@pytest.mark.parametrize(("said", "played"), COPIES.items())
def test_both_say_the_same(patch: str, said: str, played: str) -> None:
    data = read_data(patch)
    file, _, path = played.partition(".")
    assert found(data["rules"]["rules"], said) == found(data[file][file], path)


@pytest.mark.parametrize("patch", ["7.21d", "7.19"])
def test_lane_creeps_and_the_slots_of_a_hero(core: Any, patch: str) -> None:
    """These are the core's own constants, which no file sets."""
    rules = read_data(patch)["rules"]["rules"]
    inventory = rules["inventory"]
    assert (inventory["slots"], inventory["backpack"], inventory["stash"]) == (6, 3, 6)
    assert rules["time"]["tick_rate_hz"] == 30
