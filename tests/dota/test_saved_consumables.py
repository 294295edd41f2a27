"""``save_consumables``: what restores health or mana is offered to a policy only when it is needed."""

import pytest

from dota.spaces import MaskClass
from dota.vec_game import VecGame
from tests.dota.watching import choose, duel, enemy_slot, hero_unit, mask, offered, place

RESTORE_HEALTH = {"item_tango", "item_flask"}
RESTORE = RESTORE_HEALTH | {"item_clarity"}


def in_lane(save: bool) -> VecGame:
    """Crystal Maiden in the middle lane with a tango, a salve and a clarity."""
    game = VecGame(duel(hero="crystal_maiden", save_consumables=save, kills_to_win=5), 1, seed=1)
    for _ in range(60):  # a clarity comes with the first income
        game.step()
    place(game, hero_unit(game), -700, -600)
    for _ in range(30):  # the fountain restores for some seconds more
        game.step()
    return game


def restoring(game: VecGame, health: float) -> set[str]:
    """Return the offered items of ``RESTORE`` at a share of full health."""
    unit = hero_unit(game)
    game._core.set_hp(0, unit["slot"], unit["max_hp"] * health)
    game._core.observe(0)
    return RESTORE & set(offered(game))


def test_everything_is_offered_by_default() -> None:
    assert restoring(in_lane(save=False), 1.0) == RESTORE


@pytest.mark.parametrize(("health", "expected"), [(1.0, set()), (0.76, set()), (0.74, RESTORE_HEALTH)])
def test_health_is_restored_below_three_quarters(health: float, expected: set[str]) -> None:
    assert restoring(in_lane(save=True), health) == expected


def test_mana_is_restored_below_three_quarters() -> None:
    game = in_lane(save=True)
    place(game, hero_unit(game, 1), -500, -430)
    game._core.observe(0)
    game.step(choose(game, "crystal_maiden_frostbite", unit=enemy_slot(game)))
    for _ in range(6):
        game.step()
    assert hero_unit(game)["mana"] < 0.75 * hero_unit(game)["max_mana"]
    assert restoring(game, 1.0) == {"item_clarity"}


def test_a_second_item_does_not_restore_at_the_same_time() -> None:
    game = in_lane(save=True)
    assert restoring(game, 0.5) == RESTORE_HEALTH
    game.step(choose(game, "item_flask", unit=mask(game, MaskClass.ALLY)[0]))
    for _ in range(3):
        game.step()
    assert restoring(game, 0.5) == set()


@pytest.mark.parametrize(("health", "is_offered"), [(1.0, False), (0.74, True)])
def test_what_heals_at_once_is_saved_too(health: float, is_offered: bool) -> None:
    game = VecGame(duel(save_consumables=True), 1, seed=1)
    for _ in range(20):
        game.step()
    unit = hero_unit(game)
    assert "item_faerie_fire" in unit["items"]
    game._core.set_hp(0, unit["slot"], unit["max_hp"] * health)
    game._core.observe(0)
    assert ("item_faerie_fire" in offered(game)) == is_offered
