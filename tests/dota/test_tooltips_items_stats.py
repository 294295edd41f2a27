"""Stats of held items: items.json agrees with the game's files, and the core applies them."""

from typing import Any

import pytest

from tests.dota.scenes.patches import FILES, PATCHES, read_data

DATA = {patch: read_data(patch) for patch in PATCHES}
# The stat that a number of the game's files gives, by the words of its name, the first that fits.
MEANINGS = (
    ("night_vision", {"night_vision"}), ("multiplier", {"mana_regen_amp_pct"}), ("regen_amp", {"hp_regen_amp_pct"}),
    ("mana_regen", {"mana_regen"}), ("health_regen", {"hp_regen"}), ("hp_regen", {"hp_regen"}),
    ("bonus_regen", {"hp_regen"}), ("manacost_reduction", {"mana_cost_red_pct"}), ("spell_amp", {"spell_amp_pct"}),
    ("status_resistance", {"status_res_pct"}), ("evasion", {"evasion_pct"}), ("magic", {"mr_pct"}),
    ("spell_resist", {"mr_pct"}), ("all_stats", {"all"}), ("cast_range", {"cast_range"}),
    ("cooldown", {"cooldown_red_pct"}), ("attack_range", {"range_ranged_only"}), ("attack_speed", {"as"}),
    ("damage_melee", {"dmg_melee"}), ("damage_range", {"dmg_ranged"}), ("damage", {"dmg"}), ("armor", {"armor"}),
    ("move", {"ms_pct", "ms_flat"}), ("str", {"str"}), ("agi", {"agi"}), ("int", {"int"}), ("speed", {"as"}),
    ("health", {"hp"}), ("mana", {"mana"}),
)
# 200 % of the regeneration, "doubles" in the patch notes of 7.20: 100 % more.
OTHERWISE = {("item_bloodstone", "mana_regen_multiplier"): 100.0}
HELD = [(patch, name) for patch, data in DATA.items() for name, item in data["items"]["items"].items()
        if item.get("stats") and not item.get("excluded")]


def meaning(number: str) -> set[str]:
    return next(stats for word, stats in MEANINGS if word in number)


@pytest.mark.parametrize(("patch", "name"), HELD)
def test_stats_are_the_numbers_of_the_files(patch: str, name: str) -> None:
    """Each stat is one special value marked `stat`, of that meaning and size, and no such value is left out."""
    item = DATA[patch]["items"]["items"][name]
    left = {number: special["v"] for number, special in item["specials"].items() if special.get("stat")}
    for stat, value in item["stats"].items():
        values = value if isinstance(value, list) else [value]
        found = [number for number, v in left.items()
                 if stat in meaning(number) and [OTHERWISE.get((name, number), x) for x in v] == values]
        assert len(found) == 1, f"{stat} {value}: {found} of {left}"
        del left[found[0]]
    assert not left


@pytest.mark.parametrize("patch", DATA)
def test_the_core_gives_the_stats_of_the_data(core: Any, patch: str) -> None:
    """At the rank at which the item is sold."""
    tables = core.load_tables(*(DATA[patch][f] for f in FILES))
    for name in (n for p, n in HELD if p == patch):
        item = DATA[patch]["items"]["items"][name]
        rank = item.get("base_level", 1)
        expected = [v[min(rank, len(v)) - 1] if isinstance(v, list) else v for v in item["stats"].values()]
        assert sorted(value for _, value in tables.item(name)["stats"]) == pytest.approx(sorted(expected)), name
