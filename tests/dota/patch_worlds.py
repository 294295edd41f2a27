"""Quiet worlds of either patch."""

from functools import cache
from typing import Any

from tests.dota.arena import Arena, line_up
from tests.dota.conftest import FILES, read_data


@cache
def loaded(core: Any, patch: str) -> tuple[dict[str, Any], Any]:
    """Return a patch's data and its compiled tables."""
    data = read_data(patch)
    return data, core.load_tables(*(data[f] for f in FILES))


def duel_of(core: Any, patch: str, radiant: tuple[str, ...], dire: tuple[str, ...], places: dict[int, float],
            **settings: Any) -> Arena:
    """Return an arena of that patch with heroes at x by hero, as `line_up` places them."""
    data, tables = loaded(core, patch)
    quiet = {"start_s": 0.0, "neutrals": False, "roshan": False, "runes": False, "lanes": [False] * 3,
             "keep_tango": 0, "keep_salve": 0, "keep_clarity": 0, "keep_teleport": 0}
    return line_up(core.World(tables, quiet | settings, list(radiant), list(dire), 1), data, places)
