"""Small games with a person, for the tests of dota.play."""

from typing import Any

from dota.play import InteractiveGame, Order, Verdict
from dota.spectator.schema import Frame, game_schema
from tests.dota.watching import duel

SCHEMA = game_schema(policy_debug=False)
MIDDLE = (-500.0, -400.0)  # flat ground in the river, out of every tower's reach


def played(hero: str = "nevermore", seed: int = 1, lineup: list[list[str]] | None = None,
           **changes: Any) -> InteractiveGame:
    """Return a duel in which hero 0 belongs to a person and is in the middle of the map, with nothing near."""
    game = InteractiveGame(duel(hero=hero, **changes), seed, lineup)
    game.take(0, True)
    frames(game, 4)
    place(game, 0, *MIDDLE)
    return game


def frames(game: InteractiveGame, count: int) -> None:
    """Play that many engine frames; timesteps begin without actions."""
    for _ in range(count):
        if game.frames_left == 0:
            game.begin()
        game.frame()


def unit(game: InteractiveGame, hero: int) -> dict[str, Any]:
    """Return a hero's body in the spectator's view."""
    return next(u for u in game.spectate()["units"] if u["hero"] == hero)


def handle(u: dict[str, Any]) -> tuple[int, int]:
    """Return the unit's name in orders: slot and generation."""
    return int(u["slot"]), int(u["generation"])


def place(game: InteractiveGame, hero: int, x: float, y: float) -> None:
    """Move a hero to a position and refresh the view."""
    game._vec._core.place(0, unit(game, hero)["slot"], x, y)
    game._vec._core.observe(0)


def order(game: InteractiveGame, kind: str, hero: int = 0, **fields: Any) -> Verdict:
    """Give the order and play the frame in which it takes effect."""
    verdict = game.order(hero, Order(kind, **fields))
    if verdict.ok:
        frames(game, 1)
    return verdict


def seen(game: InteractiveGame, team: int | None) -> Frame:
    """Return a new frame of the team's view."""
    out = SCHEMA.empty()
    game.write_seen(team, out)
    return out
