"""Attacks without a swing (Stifling Dagger, Anchor Smash, Tricks of the Trade, Assassinate with the scepter)."""

from typing import Any

import pytest

from tests.dota.scenes.arena import Arena
from tests.dota.scenes.program import cast_hex, circle, programmed

CRIT = {"p": "crit", "chance_pct": 100, "mult_pct": 300}
STRIKE = {"p": "attack_modifier", "what": "instant_attack"}


def cast_and_measure(core: Any, *effects: dict[str, Any]) -> tuple[float, float, float, Arena]:
    """Cast the program on the enemy, who has no armor; return the health lost and Lion's least and most damage."""
    arena = programmed(core, *effects)
    enemy, lion = arena.unit(5), arena.world.unit(arena.unit(0))
    arena.world.set_unit(enemy, extra_hp=5000, extra_armor=-arena.world.unit(enemy)["armor"])
    arena.world.set_unit(enemy, hp=5000)
    cast_hex(arena, enemy)
    return 5000 - arena.hp(enemy), lion["dmg_min"] + lion["dmg_bonus"], lion["dmg_max"] + lion["dmg_bonus"], arena


def test_a_share_and_more_before_crits(core: Any) -> None:
    """Half of the damage and 10, times 3."""
    lost, low, high, _ = cast_and_measure(core, CRIT, STRIKE | {"share_pct": 50, "bonus_damage": 10})
    assert 3 * (0.5 * int(low) + 10) - 0.1 <= lost <= 3 * (0.5 * high + 10) + 0.1


@pytest.mark.parametrize(("own", "counts"), [(280, 300), (350, 350)])
def test_the_greatest_crit_counts(core: Any, own: float, counts: float) -> None:
    """Its own of 280 or 350 % and one of 300 %: they do not multiply."""
    lost, low, high, _ = cast_and_measure(core, CRIT, STRIKE | {"mult_pct": own})
    assert counts / 100 * int(low) - 0.1 <= lost <= counts / 100 * high + 0.1


def test_attacks_around_crit_too(core: Any) -> None:
    around = {"p": "attack_all_in_radius", "to": "enemies", "at": "self", "shape": circle(500), "bonus_damage": 40}
    lost, low, high, _ = cast_and_measure(core, CRIT, around)
    assert 3 * (int(low) + 40) - 0.1 <= lost <= 3 * (high + 40) + 0.1


def test_true_strike_procs_add_their_damage(core: Any) -> None:
    """70 magical damage."""
    proc = {"p": "true_strike_proc", "chance_pct": 100, "damage": 70, "type": "magical"}
    lost, low, high, arena = cast_and_measure(core, proc, STRIKE)
    more = 70 * arena.magic(arena.unit(5)) * arena.amp(arena.unit(0))
    assert int(low) + more - 0.1 <= lost <= high + more + 0.1


def test_counted_attacks_and_invisibility_stay(core: Any) -> None:
    """They use up nothing that waits for a swing."""
    mod = {"p": "mod", "to": "self", "dur": 9, "attacks": 1, "stats": {"as": 50}}
    hidden = {"p": "invis", "to": "self", "dur": 9, "fade": 0}
    lost, *_, arena = cast_and_measure(core, mod, hidden, STRIKE)
    assert lost > 0
    assert len(arena.modifiers(arena.unit(0), "lion_voodoo")) == 2
