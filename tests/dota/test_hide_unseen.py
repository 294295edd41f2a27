"""Observation of an enemy's abilities and items: complete as in the paper, or limited to what a player can see."""

from dota.vec_game import Controller, VecGame
from tests.dota.watching import duel, field


def cooldowns(hide: bool) -> tuple[float, float, float]:
    """Return the largest cooldowns in Radiant's observations of its own hero, of the enemy's abilities and of its
    items, in 90 seconds of a close bot duel."""
    game = VecGame(duel(hero="nevermore", hide_unseen=hide, kills_to_win=9), 1, seed=3)
    game.controllers[:] = Controller.SCRIPTED
    own = theirs = items = 0.0
    for _ in range(int(150 * 7.5)):
        game.step()
        abilities = field(game, "abilities", "cooldown").reshape(2, 6)
        own, theirs = max(own, float(abilities[0].max())), max(theirs, float(abilities[1].max()))
        items = max(items, float(field(game, "items", "cooldown").reshape(2, 16)[1].max()))
    return own, theirs, items


def test_the_papers_way_shows_an_enemys_cooldowns() -> None:
    own, theirs, _ = cooldowns(hide=False)
    assert own > 0.02 and theirs > 0.02


def test_player_visibility_hides_them() -> None:
    own, theirs, items = cooldowns(hide=True)
    assert own > 0.02 and theirs == 0 and items == 0
