"""Model of a unit's fields under given stats, computed from the data without the core: stacking rules and limits of
rules.json."""

from typing import Any

from tests.dota import effect_nodes

# Fields of World.unit() that stats change; what a test names no change of is to stay as it was.
FIELDS = ("move_speed", "attack_speed", "attack_interval", "attack_range", "armor", "magic_resist", "dmg_min",
          "dmg_max", "dmg_bonus", "miss", "evasion", "hp_regen", "mana_regen", "lifesteal", "heal_amp", "attack_taken",
          "dmg_dealt", "dmg_taken", "status_resist", "max_hp")


def signed(stats: dict[str, float]) -> dict[str, float]:
    """Convert `x_minus` to a negative x."""
    return {k.removesuffix("_minus"): -v if k.endswith("_minus") else v for k, v in stats.items()}


def read(ability: dict[str, Any], stats: dict[str, Any], rank: int, share: float = 0) -> dict[str, float]:
    """Return a node's stats at a rank. A pair is [near, far], interpolated by the distance `share` of the radius."""
    def one(v: Any) -> float:
        if isinstance(v, list):
            near, far = (effect_nodes.number(ability, x, rank) for x in v)
            return near + (far - near) * share
        return effect_nodes.number(ability, v, rank)
    return signed({k: one(v) for k, v in stats.items()})


def base(data: dict[str, Any], unit: str) -> dict[str, float]:
    """Return the base movement speed and attack time of percentages."""
    hero = data["heroes"]["heroes"].get(unit)
    body = hero or data["units"]["units"][unit]
    return {"move_speed": body["move_speed"], "attack_time": body["base_attack_time" if hero else "attack_time"],
            "primary": float(bool(hero) and body["primary"] == "str")}


def add(*sums: dict[str, float]) -> dict[str, float]:
    """Combine the stats of several modifiers.

    They add up, except resistance and blindness, which multiply what passes, and a set or base speed, of which the
    maximum counts.
    """
    out: dict[str, float] = {}
    for stats in sums:
        for k, v in stats.items():
            if k in ("mr_pct", "miss_pct"):
                out[k] = 100 * (1 - (1 - out.get(k, 0) / 100) * (1 - v / 100))
            elif k in ("ms_set", "ms_base"):
                out[k] = max(out.get(k, 0), v)
            else:
                out[k] = out.get(k, 0) + v
    return out


def after(data: dict[str, Any], before: dict[str, Any], stats: dict[str, float]) -> dict[str, float]:
    """Return the fields of a unit with fields `before` and no modifier of these stats, under `stats`."""
    rules = data["rules"]["rules"]
    combat, attributes = rules["combat"], rules["attributes"]
    own = base(data, before["type"])
    left = dict(stats)
    get = left.pop
    strength = get("str", 0.0)
    out = {f: before[f] for f in FIELDS}

    pct = get("ms_pct", 0.0)
    if pct:
        out["move_speed"] = min(max(before["move_speed"] + own["move_speed"] * pct / 100, combat["move_speed_min"]),
                                combat["move_speed_max"])
    factor = out["move_speed"] / own["move_speed"] if own["move_speed"] else 0.0
    out["move_speed"] = get("ms_set", get("ms_base", own["move_speed"]) * factor)
    out["attack_speed"] = min(max(before["attack_speed"] + get("as", 0.0), combat["attack_speed_min"]),
                              combat["attack_speed_max"])
    out["attack_interval"] = own["attack_time"] / (out["attack_speed"] / 100)
    out["attack_range"] += get("range", 0.0)
    out["armor"] = (before["armor"] + get("armor", 0.0)) * (1 + get("armor_pct", 0.0) / 100)
    through = (1 - before["magic_resist"]) * (1 - get("mr_pct", 0.0) / 100)
    hold = attributes["magic_resist_pct_per_str"] / 100
    through *= (1 - hold * (before["str"] + strength)) / (1 - hold * before["str"])
    out["magic_resist"] = 1 - through
    factor = 1 + get("base_dmg_pct", 0.0) / 100
    for end in ("dmg_min", "dmg_max"):
        out[end] = (before[end] + own["primary"] * strength * attributes["primary_damage_per_point"]) * factor
    out["dmg_bonus"] += get("dmg", 0.0)
    out["miss"] = 1 - (1 - before["miss"]) * (1 - get("miss_pct", 0.0) / 100)
    out["max_hp"] = (before["max_hp"] + strength * attributes["hp_per_str"]) * (1 + get("max_hp_pct", 0.0) / 100)
    out["hp_regen"] += get("hp_regen", 0.0) + out["max_hp"] * get("hp_regen_pct_max", 0.0) / 100
    out["hp_regen"] += strength * attributes["hp_regen_per_str"]
    out["status_resist"] = 1 - (1 - before["status_resist"]) * (1 - get("status_res_pct", 0.0) / 100)
    out["hp_regen"] *= 1 + get("hp_regen_amp_pct", 0.0) / 100
    out["mana_regen"] = (out["mana_regen"] + get("mana_regen", 0.0)) * (1 + get("mana_regen_amp_pct", 0.0) / 100)
    out["lifesteal"] += get("lifesteal_pct", 0.0) / 100
    for field in ("heal_amp", "attack_taken", "dmg_dealt", "dmg_taken"):
        out[field] += get(field + "_pct", 0.0) / 100
    get("mana_cost_red_pct", 0.0)  # affects spent mana, not a field
    assert not left, f"no field is known for {sorted(left)}"
    return out


def differing(unit: dict[str, Any], expected: dict[str, float], rel: float = 1e-4) -> dict[str, tuple[float, float]]:
    """Return the fields that differ from the expectation: (actual, expected)."""
    return {f: (unit[f], v) for f, v in expected.items() if abs(unit[f] - v) > rel * max(1.0, abs(v))}
