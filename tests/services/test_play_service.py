"""Stats that the play service reports while games begin and end."""

from typing import Any

from five.run.config.play import PlayConfig
from five.services.play.hosted_game import HostedGame
from five.services.play.players import Filler
from five.services.play.service import PlayService
from tests.services.counting import GAME


class Agents:
    """Agents of a game. Another game begins while the heartbeat's thread reads them."""

    def __init__(self, matches: dict[str, HostedGame]) -> None:
        self._matches = matches

    @property
    def late(self) -> int:
        game: Any = Game(self._matches)
        self._matches[f"{len(self._matches):032x}"] = game
        return 3


class Game:
    """Game that is paused."""

    def __init__(self, matches: dict[str, HostedGame]) -> None:
        self.agents = Agents(matches)

    @property
    def running(self) -> bool:
        return self.agents.late == 0  # another game begins


def service(games: int) -> PlayService:
    inference: Any = None
    found = PlayService("trial", 1, GAME, PlayConfig(), inference, list, lambda name: Filler(name, 1),
                        lambda played: {})
    for number in range(games):
        game: Any = Game(found.matches)
        found.matches[f"{number:032x}"] = game
    return found


def test_games_that_begin_do_not_disturb_the_heartbeat() -> None:
    playing = service(2)
    assert playing.stats() == {"games": 2, "late answers": 6}
    assert playing.is_idle and len(playing.matches) == 2 + 2 + 4
