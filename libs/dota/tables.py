"""Inputs of the compiled core: the constants of a patch, the layout and the settings."""

import difflib
import functools
import json
from typing import Any

from dota import _core, registry
from dota.config import GameConfig
from dota.registry import Registry
from dota.rule_changes import REVISION
from dota.spaces import DATA, Layout, action_entries, actions_of, vocabulary

INTERFACE = 6  # of the bindings; bindings/module.cpp has the same number


def require_current(core: Any) -> None:
    """Raise ImportError for a compiled core whose bindings or rules are not those of this source code."""
    found = getattr(core, "INTERFACE", None), getattr(core, "RULES_REVISION", None)
    if found != (INTERFACE, REVISION):
        raise ImportError(f"the compiled core ({core.__file__}) has interface {found[0]} and rules revision "
                          f"{found[1]}, this code {INTERFACE} and {REVISION}: run `make build`")


require_current(_core)

_FILES = ("heroes", "abilities", "items", "units", "rules", "map")
HERO_PREFIX = registry.HERO_PREFIX


@functools.cache
def load_tables(patch: str) -> _core.Tables:
    """Return the tables of a patch, cached for the process.

    Raises ValueError that names the invalid file and key, FileNotFoundError for a patch without data.
    """
    folder = DATA / f"dota-{patch}"
    if not folder.is_dir():
        raise FileNotFoundError(f"patch {patch} has no data: {folder} does not exist")
    return _core.load_tables(*(json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in _FILES))


def made_by(patch: str) -> tuple[int, int]:
    """Return the fingerprints of the running core and of its data of a patch, as stored in replays."""
    return _core.FINGERPRINT, load_tables(patch).fingerprint


def hero_ids(config: GameConfig) -> list[int]:
    """Return the table indices of the pool's heroes.

    Raises ValueError for a hero that the patch lacks (with the nearest name), or whose abilities need unsupported
    effects.
    """
    tables = load_tables(config.patch)
    names = {name.removeprefix(HERO_PREFIX): i for i, name in enumerate(tables.heroes)}
    for i, hero in enumerate(config.hero_pool):
        if hero not in names:
            near = difflib.get_close_matches(hero, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it has: {', '.join(sorted(names))}"
            raise ValueError(f"hero_pool[{i}]: {hero!r} is not in patch {config.patch}{hint}")
        if missing := tables.missing_primitives(HERO_PREFIX + hero):
            raise ValueError(f"hero_pool[{i}]: {hero!r} is not supported: its abilities need unsupported effects "
                             f"({', '.join(missing)})")
    return [names[hero] for hero in config.hero_pool]


def core_layout(layout: Layout) -> dict[str, Any]:
    """Return the layout with all offsets, as ``_core.Layout`` and ``_core.VecGame`` take it."""
    o = layout.observation
    return {
        "heroes": layout.heroes, "units": layout.units, "mirror_dire": o.mirror_dire,
        "hero_modifiers": o.hero_modifiers, "unit_modifiers": o.unit_modifiers, "minimap": o.minimap,
        "nearby_map": o.nearby_map, "passability": o.passability,
        "widths": {"shared": layout.shared, "private": layout.private, "shared_ids": layout.shared_ids,
                   "private_ids": layout.private_ids},
        "blocks": [{"name": b.name, "instances": b.instances, "offset": b.offset, "stride": b.stride,
                    "fields": [f._asdict() for f in b.fields]} for b in layout.blocks.values()],
        "groups": [g._asdict() for g in layout.groups.values()],
        "actions": [{"name": a.name, "target": int(a.target), "mask": int(a.mask)} for a in layout.actions],
        "omitted": list(layout.omitted),
    }


def names_of(patch: str, known: Registry) -> dict[str, list[str]]:
    """Return all names that games of a patch can show, by id space in the order of the core's tables; actions have the
    names that ``known`` gives them."""
    tables = load_tables(patch)
    return {"unit": tables.units, "ability": tables.abilities, "item": tables.items, "modifier": tables.modifiers,
            "build": tables.heroes, "animation": _core.ANIMATIONS, "pickup": _core.PICKUPS,
            "action": action_entries(patch, known.names["action"])}


@functools.cache
def core_ids(patch: str) -> dict[str, Any]:
    """Return the registry ids of a patch's table entries, by space in table order, and for each action the ability or
    item of this patch that it casts, '' when the patch has none.

    Raises ValueError when the registry lacks a name of the patch.
    """
    known = registry.load()
    names = names_of(patch, known)
    offered = {action.id: action.casts for action in actions_of(patch)}
    return {**{space: known.ids(space, names[space]) for space in registry.SPACES if space != "action"},
            "casts": [offered.get(action.id, "") for action in vocabulary()]}


def core_variant(config: GameConfig) -> dict[str, Any]:
    """Return a configuration as ``_core.VecGame`` takes it: tables, ids and settings. Raises ValueError for an invalid
    one."""
    return {"tables": load_tables(config.patch), "ids": core_ids(config.patch), "settings": core_settings(config),
            "rules": config.model_dump_json(exclude={"observation", "hero_pool", "mirror_match"})}


def core_settings(config: GameConfig) -> dict[str, Any]:
    """Return the game settings as ``_core.VecGame`` takes them."""
    return {
        "hero_pool": config.hero_pool, "mirror_match": config.mirror_match,
        "scripted_actions": config.scripted_actions,
        "heroes_per_team": config.heroes_per_team, "mode_1v1_mid": config.mode == "1v1_mid",
        "kills_to_win": config.kills_to_win, "neutrals": config.neutrals, "roshan": config.roshan,
        "runes": config.runes, "courier_scripted": config.courier == "scripted", "buyback": config.buyback,
        "timesteps_per_action": config.frameskip // 4, "commit_windups": config.commit_windups,
        "commit_moves": config.commit_moves, "save_consumables": config.save_consumables,
        "hide_unseen": config.hide_unseen, "aggro_orders": config.aggro_orders,
        "max_game_seconds": config.max_game_seconds, "start_seconds": config.start_seconds,
        "offset_cell": config.offset_cell, "consumables": config.consumables.model_dump(),
        "randomisation": config.randomisation.magnitudes(),
    }
