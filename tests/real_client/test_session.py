"""A session plays whole games of the fake client in lockstep; each order is executed once, whatever fails between."""

import errno
import json
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dota.config import GameConfig
from five.real_client.action_files import ActionFile
from five.real_client.client_process import ClientOptions
from five.real_client.errors import ClientFailed
from five.real_client.frames import Frame
from five.real_client.installation import find_installation
from five.real_client.session import Session, SessionOptions, play, play_games
from tests.real_client.fake_faults import FakeInstallation, FakeSettings

HEROES = tuple(f"npc_dota_hero_{name}" for name in ("sniper", "lion", "viper", "sven", "lich"))
ONE = GameConfig(mode="1v1_mid", heroes_per_team=1).model_dump_json()
FIVE = GameConfig().model_dump_json()


class Walker:
    """Player that sends each of its heroes to a place of its own with every frame, and now and then another order."""

    def __init__(self, team: int, heroes: int, slow: Sequence[int] = ()) -> None:
        self.players = range((team - 2) * 5, (team - 2) * 5 + heroes)
        self.sent: Counter[tuple[int, str]] = Counter()
        self.frames: list[Frame] = []
        self.calls = 0
        self._slow = slow

    def orders(self, frames: Sequence[Frame]) -> list[dict[str, Any]]:
        self.frames += frames
        self.calls += 1
        if self.calls in self._slow:
            time.sleep(0.3)
        orders: list[dict[str, Any]] = []
        for player in self.players:
            x, y = -3000.25 + self.calls * 1.5, 1000.0 * player  # not the same place twice, nor the middle
            orders.append({"actionType": "DOTA_UNIT_ORDER_MOVE_TO_POSITION", "player": player,
                           "actionDelay": self.calls % 3, "moveToLocation": {"location": {"x": x, "y": y}}})
            self.sent[player, f"{x:g} {y:g}"] += 1
        return orders


def executed(fake: FakeInstallation) -> Counter[tuple[int, str]]:
    """Return how often each hero was sent to each place."""
    calls = [json.loads(line) for line in fake.calls.read_text().splitlines()]
    return Counter((call["player"], f"{call['arguments'][0][0]:g} {call['arguments'][0][1]:g}")
                   for call in calls if call["method"] == "Action_MoveToLocation")


def options(client: ClientOptions, radiant: str = "agent", dire: str = "agent", **others: Any) -> SessionOptions:
    # A client that a busy machine stops for seconds has lost no world state.
    return SessionOptions({2: radiant, 3: dire}, {2: HEROES, 3: HEROES[::-1]}, client,
                          **{"stall_seconds": 20.0, **others})


def run(fake: FakeInstallation, wanted: SessionOptions, settings: FakeSettings, heroes: int = 1,
        slow: Sequence[int] = ()) -> tuple[Session, dict[int, Walker]]:
    """Play a game to its end; the fake client's errors are shown if it fails."""
    fake.write(settings)
    walkers = {team: Walker(team, heroes, slow) for team in wanted.teams}
    try:
        with Session(find_installation(fake.game, "linux"), wanted) as session:
            play(session, walkers)
            for team in wanted.teams:
                session.delivery_of(team)
    except ClientFailed as error:
        errors = (fake.game / "errors.txt").read_text()
        raise AssertionError(f"{error}\n{errors}") from error
    return session, walkers


def check_orders(fake: FakeInstallation, walkers: dict[int, Walker]) -> None:
    """Check that each order was executed once. Those of the last frames may be lost: the game was over."""
    sent = sum((walker.sent for walker in walkers.values()), Counter[tuple[int, str]]())
    found = executed(fake)
    found = Counter({key: count for key, count in found.items() if key[1] != "0 0"})  # moves of missing heroes
    assert found <= sent and max(found.values()) == 1
    lost = sent - found
    last = {(player, f"{-3000.25 + (walker.calls - back) * 1.5:g} {1000.0 * player:g}")
            for walker in walkers.values() for player in walker.players for back in range(2)}
    assert lost.keys() <= last, f"{len(lost)} of {len(sent)} orders were not executed: {sorted(lost)[:9]}"


@pytest.mark.runs
def test_a_whole_game_of_one_a_side(fake: FakeInstallation, client_options: ClientOptions) -> None:
    session, walkers = run(fake, options(client_options), FakeSettings(game=ONE, seconds=3))
    assert session.winner == 2
    for team, walker in walkers.items():
        times = [frame.dota_time for frame in walker.frames]
        assert times[0] < -80 and times[-1] > 2 and {frame.team for frame in walker.frames} == {team}
        assert max(b - a for a, b in pairwise(times)) < 0.14
    check_orders(fake, walkers)


def test_one_side_plays_against_the_clients_bots(fake: FakeInstallation, client_options: ClientOptions) -> None:
    session, walkers = run(fake, options(client_options, dire="builtin"), FakeSettings(game=ONE, seconds=-60))
    assert session.winner == 2 and walkers.keys() == {2} and session.delivery_of(2).ready == {0}
    check_orders(fake, walkers)


def test_reports_of_the_bots_agree_with_what_was_sent(fake: FakeInstallation, client_options: ClientOptions) -> None:
    session, walkers = run(fake, options(client_options), FakeSettings(game=ONE, seconds=-60))
    for team, walker in walkers.items():
        delivery = session.delivery_of(team)
        assert delivery.sent == sum(walker.sent.values())
        assert 0 <= delivery.sent - delivery.executed - delivery.refused <= 3  # of the last frame
        assert not delivery.reasons and not delivery.refused


def test_full_disk_does_not_keep_the_client(fake: FakeInstallation, client_options: ClientOptions,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: ActionFile) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    fake.write(FakeSettings(game=ONE))
    installation = find_installation(fake.game, "linux")
    session = Session(installation, options(client_options))
    monkeypatch.setattr(ActionFile, "release", full)
    session.close()
    assert session._process.exit_status() is not None and not (installation.vscripts / "bots").is_symlink()


FAULTS = {
    "cut frames": {"cut": [5, 6, 40]},
    "disconnects": {"disconnect": [3, 20]},
    "lost frames": {"lose": [7, 30]},
    "shortened log": {"shorten_log": [10, 50]},
    "renamed log": {"rename_log": [10, 50]},
    "all": {"cut": [5, 41], "disconnect": [12], "lose": [21], "shorten_log": [25], "rename_log": [33]},
}


@pytest.mark.runs
@pytest.mark.parametrize("fault", FAULTS)
def test_orders_are_executed_once_in_spite_of(fault: str, fake: FakeInstallation,
                                              client_options: ClientOptions) -> None:
    faults: dict[str, Any] = FAULTS[fault]
    lost = len(faults.get("lose", ())) + len(faults.get("disconnect", ()))
    session, walkers = run(fake, options(client_options, stall_seconds=2.0 if lost else 20.0),
                           FakeSettings(game=ONE, seconds=-75, **faults))
    assert session.winner == 2
    check_orders(fake, walkers)
    for walker in walkers.values():
        times = [frame.dota_time for frame in walker.frames]
        gaps = [b - a for a, b in pairwise(times)]
        assert sum(gap > 0.2 for gap in gaps) <= lost and max(gaps) < 0.5
        assert sum(frame.lost_bytes > 0 for frame in walker.frames) == len(faults.get("cut", ()))


def test_the_game_waits_for_late_orders(fake: FakeInstallation, client_options: ClientOptions) -> None:
    session, walkers = run(fake, options(client_options), FakeSettings(game=ONE, seconds=-80),
                           slow=range(5, 60, 9))
    assert session.stalls == 0
    for walker in walkers.values():
        times = [frame.dota_time for frame in walker.frames]
        assert max(b - a for a, b in pairwise(times)) < 0.14
    check_orders(fake, walkers)


def test_orders_survive_without_lockstep(fake: FakeInstallation, client_options: ClientOptions) -> None:
    _, walkers = run(fake, options(client_options, lockstep=False), FakeSettings(game=ONE, seconds=-45))
    found = executed(fake)
    sent = sum((walker.sent for walker in walkers.values()), Counter[tuple[int, str]]())
    assert found <= sent and max(found.values()) == 1


class Waiter(Walker):
    """Player that sends no orders."""

    def orders(self, frames: Sequence[Frame]) -> list[dict[str, Any]]:
        self.frames += frames
        return []


def test_a_missing_hero_is_made_to_move(fake: FakeInstallation, client_options: ClientOptions) -> None:
    fake.write(FakeSettings(game=ONE, seconds=-80, hide=10))
    waiters = {2: Waiter(2, 1), 3: Waiter(3, 1)}
    with Session(find_installation(fake.game, "linux"), options(client_options)) as session:
        play(session, waiters)
    moves = executed(fake)
    # On a busy machine a hero is still missing from the frames after its order, of 75 in all.
    assert moves.keys() == {(0, "0 0"), (5, "0 0")} and max(moves.values()) < 10


@pytest.mark.parametrize(("fault", "frame_seconds", "words"), [
    ({"die": 5}, 60.0, "the client ended with status 3: FATAL ERROR: injected"),
    ({"silent": 5}, 4.0, "no world state of team . for 4 s: team 2: 1 connections, last world state at -89"),
])
def test_a_client_that_fails_is_reported(fault: dict[str, Any], frame_seconds: float, words: str,
                                         fake: FakeInstallation, client_options: ClientOptions) -> None:
    fake.write(FakeSettings(game=ONE, seconds=0, **fault))
    wanted = options(client_options, frame_seconds=frame_seconds, stall_seconds=0.5)
    with (pytest.raises(ClientFailed, match=words),
          Session(find_installation(fake.game, "linux"), wanted) as session):
        play(session, {2: Walker(2, 1), 3: Walker(3, 1)})


def test_a_session_leaves_nothing_behind(fake: FakeInstallation, client_options: ClientOptions, tmp_path: Path) -> None:
    fake.write(FakeSettings(game=ONE, seconds=0))
    installation = find_installation(fake.game, "linux")
    with Session(installation, options(client_options), tmp_path / "session") as session:
        with pytest.raises(ValueError, match="team 3 has no world state yet"):
            session.act(3, [])
        assert session.observe() and (installation.vscripts / "bots").is_symlink()
    assert not (installation.vscripts / "bots").is_symlink()
    assert (tmp_path / "session/bots/console.log").is_file()
    with Session(installation, options(client_options)) as session:  # the ports are free again
        assert session.observe()


def test_players_must_be_those_of_the_session(fake: FakeInstallation, client_options: ClientOptions) -> None:
    fake.write(FakeSettings(game=ONE))
    with (Session(find_installation(fake.game, "linux"), options(client_options)) as session,
          pytest.raises(ValueError, match=r"players of teams \[2\]: the session needs \[2, 3\]")):
        play(session, {2: Walker(2, 1)})


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_whole_game_of_five_a_side_with_faults(fake: FakeInstallation, client_options: ClientOptions) -> None:
    every = range(500, 20_000, 500)
    settings = FakeSettings(game=FIVE, cut=[n + 1 for n in every], disconnect=[n + 2 for n in every[::5]],
                            lose=[n + 3 for n in every[::5]], shorten_log=[n + 4 for n in every[::5]],
                            rename_log=[n + 5 for n in every[::5]], hide=100)
    session, walkers = run(fake, options(client_options, dire="builtin", stall_seconds=0.6), settings, heroes=5,
                           slow=range(400, 20_000, 1000))
    assert session.winner == 3 and walkers[2].frames[-1].dota_time > 600
    assert session.delivery_of(2).ready == {0, 1, 2, 3, 4}
    check_orders(fake, walkers)


def test_a_game_begins_again_after_a_failure(fake: FakeInstallation, client_options: ClientOptions) -> None:
    faults: list[dict[str, Any]] = [{}, {"die": 5}, {}]
    lines: list[str] = []

    def start() -> Session:
        fake.write(FakeSettings(game=ONE, seconds=-85, **faults.pop(0)))
        return Session(find_installation(fake.game, "linux"), options(client_options, dire="builtin"))
    assert play_games(start, lambda: {2: Walker(2, 1)}, 2, 1, lines.append) == [2, 2] and not faults
    assert [line.split(":")[0] for line in lines] == ["game 1", "the game begins again in a new client", "game 2"]
    faults = [{"die": 3}, {"die": 3}]
    with pytest.raises(ClientFailed, match="FATAL ERROR: injected"):
        play_games(start, lambda: {2: Walker(2, 1)}, 1, 1, lines.append)
