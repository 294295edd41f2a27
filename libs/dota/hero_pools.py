"""Pools of heroes with a name, to be written in ``game.hero_pool`` in place of the heroes themselves."""

from collections.abc import Iterable

FINALS_2019 = (
    "axe", "crystal_maiden", "death_prophet", "earthshaker", "gyrocopter", "lion", "necrolyte", "nevermore",
    "queenofpain", "razor", "riki", "slark", "sniper", "sven", "tidehunter", "viper", "witch_doctor")
"""The 17 heroes of the finals of April 2019 (Berner et al. 2019, appendix O)."""

POOLS = {
    "finals_2019": FINALS_2019,
    # Those of August 2018: OpenAI dropped Lich afterwards.
    "ti8_2018": (*FINALS_2019, "lich"),
    # The paper also trained on 25 heroes and does not name them: these are all that this game has.
    "heroes_25": (*FINALS_2019, "leshrac", "lich", "lina", "omniknight", "phantom_assassin", "slardar", "ursa", "zuus"),
}


def expanded(names: Iterable[str]) -> list[str]:
    """Return the heroes, with each pool's name replaced by its heroes."""
    return [hero for name in names for hero in POOLS.get(name, (name,))]
