"""A hosted game without connections: who counts as having left it, and what a pause of the run does."""

import asyncio
from typing import Any

from dota.config import GameConfig
from dota.vec_game import Controller
from five.run.config.play import PlayConfig
from five.services.play.hosted_game import HostedGame
from five.services.play.players import Filler, NewGame
from five.services.play.ratings import FinishedGame

GAME = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], start_seconds=0.0, neutrals=False)
BOT = Filler("random", int(Controller.RANDOM))


class Hosted:
    """Game of two bots, played in a task of its own. ``rated`` holds the games that were rated."""

    def __init__(self, max_game_seconds: float = 60.0, **settings: Any) -> None:
        config = GAME.model_copy(update={"max_game_seconds": max_game_seconds})
        inference: Any = None  # bots need none
        self.active = True
        self.rated: list[FinishedGame] = []
        self.game = HostedGame(NewGame("0" * 32, "ada", config, 3, None, (BOT, BOT), "trial"), PlayConfig(**settings),
                               inference, lambda: self.active, self._rate)

    def _rate(self, played: FinishedGame) -> dict[str, Any]:
        self.rated.append(played)
        return {}

    async def play(self) -> None:
        """Play the game to its end."""
        await asyncio.wait_for(self.game.run(), 30)


async def test_player_whose_seat_was_taken_has_left() -> None:
    hosted = Hosted(0.3, seat_reservation_seconds=0)
    game = hosted.game
    game.leave(game.enter("ada", False, [0]))
    game.enter("bob", False, [0])
    await hosted.play()
    (played,) = hosted.rated
    assert (played.winner, played.people, played.away) == (3, ({"bob": 1}, {}), ["ada"])
