"""The check finds nothing wrong with a sound client and names what a faulty one does."""

from typing import Any

import pytest

from dota.config import GameConfig
from five.real_client.check import HEROES, Check, run_check
from five.real_client.client_process import ClientOptions
from five.real_client.installation import find_installation
from five.real_client.session import Session, SessionOptions
from tests.real_client.fake_faults import FakeInstallation, FakeSettings

FIVE = GameConfig().model_dump_json()


def check(fake: FakeInstallation, client: ClientOptions, lines: list[str], **faults: Any) -> Check:
    """Check a fake client for four seconds, and again for longer if these were too short on a busy machine."""
    options = SessionOptions({2: "agent", 3: "agent"}, HEROES, client, stall_seconds=5.0)
    for limit in (4.0, 20.0):
        lines.clear()
        fake.write(FakeSettings(game=FIVE, **faults))
        with Session(find_installation(fake.game, "linux"), options) as session:
            found = run_check(session, limit, lines.append)
        if session.winner is not None or (found.stood_still and found.frames > 20 and found.game_seconds > 1):
            break
    return found


def test_a_sound_client_passes(fake: FakeInstallation, client_options: ClientOptions) -> None:
    lines: list[str] = []
    found = check(fake, client_options, lines)
    assert found.problems == [] and found.stood_still and found.cut == 0
    assert found.frames > 20 and found.game_seconds > 1 and 10_000 < found.largest < 65_536
    assert lines[0] == "waiting for the first world state"
    assert lines[1].startswith("first world state: game time -90.0 s")
    assert "the game stands while a bot waits for its file" in lines
    assert lines[-1].endswith("0 cut; bots ready: 5 and 5")


def test_cut_world_states_are_reported(fake: FakeInstallation, client_options: ClientOptions) -> None:
    found = check(fake, client_options, [], cut=[3, 5])
    assert found.problems == ["4 world states were cut: units and tree events are missing from them"]
    assert found.largest > 65_536


@pytest.mark.parametrize("seconds", [-88])
def test_a_game_that_ends_ends_the_check(fake: FakeInstallation, client_options: ClientOptions, seconds: int) -> None:
    assert check(fake, client_options, [], seconds=seconds).game_seconds < 2.5
