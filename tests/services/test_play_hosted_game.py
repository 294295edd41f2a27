"""A hosted game without connections: who counts as having left it, and what a pause of the run does."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dota.config import GameConfig
from dota.vec_game import Controller
from five.run.config.play import PlayConfig
from five.services.play import hosted_game
from five.services.play.hosted_game import PAUSE_SECONDS, HostedGame
from five.services.play.players import Filler, NewGame
from five.services.play.ratings import FinishedGame
from tests.waiting import eventually_async

GAME = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], start_seconds=0.0, neutrals=False)
BOT = Filler("random", int(Controller.RANDOM))


class Clock:
    """The machine's clock, ``ahead`` seconds fast."""

    ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def time(self) -> float:
        return time.time() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(hosted_game, "time", clock)
    return clock


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


async def test_spectator_who_hands_over_a_hero_is_refused_as_such() -> None:
    game = Hosted().game
    game.enter("ada", False, [0])
    spectator = game.enter("ada", True, [])
    game.hand(spectator, None, False)
    spectator.outbox.end()
    responses = [response async for response in spectator.outbox]
    assert responses[-1].refused.reason == "spectator" and game.seats.held() == {0}


@asynccontextmanager
async def long_pause(hosted: Hosted, clock: Clock) -> AsyncIterator[None]:
    """Pause the run for more than a quarter of an hour, at the end of which the block runs."""
    hosted.active = False
    await eventually_async(lambda: not hosted.game.running)
    clock.ahead += 1000.0
    await asyncio.sleep(3 * PAUSE_SECONDS)
    yield
    hosted.active = True
    await eventually_async(lambda: hosted.game.running)


async def timesteps(game: HostedGame, more: int) -> None:
    """Wait until the game has played that many more timesteps, or has ended."""
    end = game._timestep + more
    await eventually_async(lambda: game._timestep >= end or game.ended.is_set())


async def test_game_left_at_the_end_of_a_pause_goes_on(clock: Clock) -> None:
    hosted = Hosted()
    player = hosted.game.enter("ada", False, [0])
    playing = asyncio.create_task(hosted.play())
    async with long_pause(hosted, clock):
        hosted.game.leave(player)
    await timesteps(hosted.game, 3)
    assert not hosted.game.ended.is_set()
    hosted.game.end("closed")
    await playing


async def test_game_is_abandoned_during_a_pause(clock: Clock) -> None:
    hosted = Hosted()
    playing = asyncio.create_task(hosted.play())
    hosted.active = False
    await eventually_async(lambda: not hosted.game.running)
    clock.ahead += 1000.0
    await playing
    assert hosted.rated[0].winner == 0 and hosted.game.state().winner == 0


async def test_game_closed_during_a_pause_plays_no_timestep() -> None:
    hosted = Hosted()
    playing = asyncio.create_task(hosted.play())
    hosted.active = False
    await eventually_async(lambda: not hosted.game.running)
    frame = hosted.game.game.engine_frame
    hosted.game.end("closed")
    await playing
    assert hosted.game.game.engine_frame == frame


async def test_pause_does_not_bring_spectators_closer(clock: Clock) -> None:
    """They would see the present game, and could inform players."""
    hosted = Hosted(spectator_delay_seconds=100.0)
    spectator = hosted.game.enter("bob", True, [])
    playing = asyncio.create_task(hosted.play())
    await timesteps(hosted.game, 3)
    hosted.game.enter("ada", False, [0])
    async with long_pause(hosted, clock):
        pass
    await timesteps(hosted.game, 3)
    assert spectator.outbox.frames == 0 and hosted.game.broadcast.waits
    hosted.game.end("closed")
    await playing
