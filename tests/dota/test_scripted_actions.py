"""Actions of `game.scripted_actions` are taken by nobody."""

import pytest

from dota.config import GameConfig
from dota.events import EventKind
from dota.vec_game import BOTS, VecGame, Winner


@pytest.mark.parametrize("withheld", [(), ("glyph", "shrine")])
def test_bots_leave_withheld_actions(withheld: tuple[str, ...]) -> None:
    config = GameConfig.model_validate({"max_game_seconds": 1500, "frameskip": 16, "scripted_actions": list(withheld)})
    games = VecGame(config, 1, 1, observations=False)
    games.controllers[0] = BOTS["scripted-hard"]
    games.reset_as(0, 3)
    seen = set()
    while games.winner[0] == Winner.RUNNING:
        games.step(which=[0])
        seen |= {event.kind for event in games.events(0)}
    taken = {EventKind.GLYPH, EventKind.SHRINE} & seen
    assert taken == (set() if withheld else {EventKind.GLYPH, EventKind.SHRINE})
