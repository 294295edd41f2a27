"""Data and compiled tables of both patches, with some numbers changed where a test needs it."""

import json
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[3] / "libs" / "dota" / "data"
FILES = ("heroes", "abilities", "items", "units", "rules", "map")
PATCHES = ("7.21d", "7.19")
# Settings of a world without creeps, runes and items.
QUIET = {"start_s": 0.0, "neutrals": False, "roshan": False, "runes": False, "lanes": [False] * 3, "keep_tango": 0,
         "keep_salve": 0, "keep_clarity": 0}
Changes = tuple[tuple[str, str, float], ...]  # (ability, item or hero; special value, stat or field; number)


def read_data(patch: str) -> dict[str, Any]:
    """Return the six parsed files of a patch by name."""
    return {f: json.loads((DATA / f"dota-{patch}" / f"{f}.json").read_text("ascii")) for f in FILES}


def change(data: dict[str, Any], name: str, key: str, number: float) -> None:
    """Set a hero's field, or the special value, stat or `@field` of an ability or item at all ranks."""
    file = "heroes" if name.startswith("npc_dota_hero_") else "items" if name.startswith("item_") else "abilities"
    entry = data[file][file][name]
    if file == "heroes":
        entry[key] = number
    elif key.startswith("@"):
        entry[key[1:]] = [number]
    elif key in entry["specials"]:
        entry["specials"][key]["v"] = [number]
    else:
        entry["stats"][key] = number


def load_tables(core: Any, data: dict[str, Any]) -> Any:
    """Compile a patch's files."""
    return core.load_tables(*(data[f] for f in FILES))


@cache
def load(core: Any, patch: str, changes: Changes = ()) -> tuple[dict[str, Any], Any]:
    """Return a patch's data, with these changes, and its compiled tables."""
    data = read_data(patch)
    for each in changes:
        change(data, *each)
    return data, load_tables(core, data)


def quiet_world(core: Any, patch: str, radiant: Any, dire: Any, changes: Changes = (), **settings: Any) -> Any:
    """Create a quiet world of a patch."""
    return core.World(load(core, patch, changes)[1], QUIET | settings, list(radiant), list(dire), 1)
