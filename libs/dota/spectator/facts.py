"""Game data that a player's interface needs: costs, ranges and targets of abilities and items, recommended items,
shops, experience by level.

Everything is read from the patch's data files (libs/dota/data/SCHEMA.md); the page contains no constants of its own.
"""

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from dota.config import GameConfig
from dota.spaces import DATA
from dota.tables import HERO_PREFIX

_AIMS = {"unit_target": "unit", "point": "point", "no_target": "none"}
_SIGHT = {"vision", "true_sight"}  # areas that are seen into, not hit


@functools.cache
def _data(patch: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"dota-{patch}" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def play_facts(config: GameConfig) -> dict[str, Any]:
    """Return JSON values for the header of a game, with the names that its tables carry.

    ``heroes`` of the pool (``name``, attack ``range``, items to ``start`` with and the ``build``'s order, ``skills`` by
    level, ``talents`` as [level, id, description]); their ``abilities`` and all sold ``items``, each with ``aim``
    ("unit", "point", "none"; [] is passive), ``range``, ``area``, ``mana``, ``cooldown`` by rank (world units,
    seconds); items also have ``cost``, ``parts`` and ``shops``; ``xp`` in total by level, ``no_point`` the levels
    without a point, ``shops`` and ``buildings`` as [kind, team, x, y], ``buyback`` as [base, divisor of net worth],
    ``day_seconds`` the lengths of day and night.
    """
    rules, heroes = _data(config.patch, "rules")["rules"], _data(config.patch, "heroes")["heroes"]
    abilities, items = _data(config.patch, "abilities")["abilities"], _data(config.patch, "items")
    pool = {HERO_PREFIX + name: heroes[HERO_PREFIX + name] for name in config.hero_pool}
    return {
        "heroes": {name: _hero(hero) for name, hero in pool.items()},
        "abilities": {name: _ability(abilities[name]) for hero in pool.values() for name in hero["abilities"]},
        "items": {name: _describe_item(item, items["recipe_costs"]) for name, item in items["items"].items()
                  if _is_sold(item)},
        "xp": rules["experience"]["total_for_level"],
        "no_point": rules["ability_points"]["levels_without_point"],
        "shops": [[shop["kind"], shop.get("team", ""), shop["x"], shop["y"]]
                  for shop in _data(config.patch, "map")["shops"]],
        "buildings": [[building["kind"], building["team"], building["x"], building["y"]]
                      for building in _data(config.patch, "map")["buildings"]],
        "buyback": [float(rules["buyback"]["cost"][name]) for name in ("base", "networth_divisor")],
        "day_seconds": [rules["time"]["day_length_s"], rules["time"]["night_length_s"]],
    }


def _hero(hero: Mapping[str, Any]) -> dict[str, Any]:
    build = hero["item_build"]
    return {"name": hero["name"], "range": hero["attack_range"], "start": build["start"], "build": build["order"],
            "skills": hero["skill_build"],
            "talents": [[talent["level"], talent["id"], _describe_talent(talent)] for talent in hero["talents"]]}


def _describe_talent(talent: Mapping[str, Any]) -> str:
    """Describe a talent by its target and value in the data's words: "sniper shrapnel: max charges 6"."""
    values = talent.get("values", {})
    amount = " ".join(f"{value:g}" if isinstance(value, int | float) else str(value) for value in values.values())
    affected = [part for part in talent.get("affects", ()) if len(part) > 1]
    if affected:
        ability, what = affected[0][0], affected[0][1]
        changed = "" if what == "effects" else f": {what.replace('_', ' ')} {amount}"
        return f"{ability.replace('_', ' ')}{changed}".strip()
    name = str(talent["id"]).removeprefix("special_bonus_")
    words = [word for word in name.split("_") if not word.replace(".", "").isdigit()]
    return f"{' '.join(words)} {amount}".strip()


def _ability(ability: Mapping[str, Any]) -> dict[str, Any]:
    behavior = ability["behavior"]
    return {**_target_and_costs(ability), "passive": "passive" in behavior, "toggle": "toggle" in behavior,
            "autocast": "autocast" in behavior, "ultimate": ability["type"] == "ultimate",
            "learned": ability.get("learnable", 1) != 0, "ranks": ability["max_level"],
            "from_level": ability["required_level"], "levels_between": ability["levels_between"]}


def _is_sold(item: Mapping[str, Any]) -> bool:
    return bool(item.get("cost")) and item.get("purchasable", 1) != 0 and "excluded" not in item


def _describe_item(item: Mapping[str, Any], recipe_costs: Mapping[str, float]) -> dict[str, Any]:
    needs = item["recipe"]["needs"][0] if "recipe" in item else []
    recipe = item["recipe"]["cost"] if "recipe" in item else 0
    recipe += sum(recipe_costs.get(part, 0) for part in needs)  # a higher level of an item needs its recipe once more
    shops = [kind for kind, field in (("side", "side_shop"), ("secret", "secret_shop")) if item.get(field)]
    if not item.get("secret_shop") or item.get("global_shop"):
        shops.insert(0, "home")
    return {**_target_and_costs(item), "cost": item["cost"],
            "parts": [part for part in needs if part not in recipe_costs],
            "recipe": recipe, "shops": shops}


def _target_and_costs(thing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries common to abilities and items: target type and costs."""
    behavior = thing.get("behavior") or []
    aim = [] if "passive" in behavior else [_AIMS[flag] for flag in behavior if flag in _AIMS]
    return {"aim": aim, "range": _cast_range(thing), "area": _radius(thing), "mana": thing.get("mana_cost") or [],
            "cooldown": thing.get("cooldown") or [], "sides": thing.get("target_team") or []}


def _cast_range(thing: Mapping[str, Any]) -> list[float]:
    """Return the cast range by rank; for blinks, the blink distance."""
    given = thing.get("cast_range") or []
    if any(given):
        return list(given)
    blink = next((node for node in thing.get("effects") or () if node.get("p") == "blink"), None)
    return _resolve(thing, blink.get("max")) if blink else []


def _radius(thing: Mapping[str, Any]) -> list[float]:
    """Return the radius by rank of the first circle at the target, or around the caster."""
    enemies_only = thing.get("target_team") == ["enemy"]
    for node in _nodes(thing.get("effects") or ()):
        if node.get("p") in _SIGHT or node.get("at") == "front" or node.get("scepter") or "talent" in node:
            continue
        if enemies_only and str(node.get("to", "")).startswith("all"):
            continue  # effects on the caster's side are not at the target
        shape = node.get("shape")
        radius = shape.get("r") if shape and shape.get("t") == "circle" else node.get("r")
        if found := _resolve(thing, radius):
            return found
    return []


def _nodes(effects: Any) -> Iterator[Mapping[str, Any]]:
    for node in effects:
        if isinstance(node, Mapping) and node.get("on", "cast") == "cast":
            yield node
            yield from _nodes(node.get("then") or ())


def _resolve(thing: Mapping[str, Any], value: Any) -> list[float]:
    """Resolve a number, or "$name" of a special value by rank; [] for anything that is not a length."""
    if isinstance(value, int | float):
        return [value]
    if isinstance(value, str) and value.startswith("$"):
        return list(thing.get("specials", {}).get(value[1:], {}).get("v", ()))
    return []
