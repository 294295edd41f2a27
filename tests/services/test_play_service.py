"""The play service while games begin and end: its stats, and the end of the process."""

from typing import Any

import pytest

from dota.vec_game import Controller
from five.protos.v1 import play_pb2
from five.run.config.play import PlayConfig
from five.services.play.hosted_game import HostedGame
from five.services.play.players import Filler
from five.services.play.service import PlayService
from rapid.rpc.errors import Unavailable
from tests.services.counting import GAME
from tests.waiting import eventually_async

OPEN = play_pb2.OpenRequest(run="trial", who="ada", team=0, heroes=[0], mates="random", against="random")
BOT = Filler("random", int(Controller.RANDOM))


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


def bot_service() -> PlayService:
    inference: Any = None  # bots need none
    return PlayService("trial", 1, GAME, PlayConfig(), inference, list, lambda name: BOT, lambda played: {})


async def test_draining_ends_the_broadcast_of_an_ended_game() -> None:
    playing = bot_service()
    game = (await playing.Open(OPEN, None)).game
    match = playing.matches[game]
    spectator = match.enter("bob", True, [])
    await eventually_async(lambda: match.broadcast.waits)
    match.end("closed")
    await eventually_async(lambda: not playing.matches)
    assert not spectator.outbox.ended
    await playing.drain()
    assert spectator.outbox.ended and not playing._tasks


async def test_no_game_opens_after_draining_has_begun() -> None:
    playing, draining = bot_service(), list[str]()

    def find_slowly(name: str) -> Filler:
        draining.append(name)
        return BOT

    playing.filler, playing.draining = find_slowly, lambda: bool(draining)
    with pytest.raises(Unavailable, match="restarting"):
        await playing.Open(OPEN, None)
    assert not playing.matches and not playing._tasks
