"""Games that begin in the middle: when snapshots are taken, and what a game from one of them counts for."""

from typing import Any

import numpy as np
import pytest

from dota.vec_game import Controller, VecGame
from five.clients.opponents import Opponent
from five.run.load import ConfigError, load
from five.services.rollout.environment import LocalEnvironment, RemoteEnvironment
from five.services.rollout.middle_games import GameSnapshot, SnapshotRing
from tests.agent.plain_samples import steps_of
from tests.services.counting import CountingGames, Versions
from tests.services.inference_server import InferenceServer
from tests.services.test_dota_env import GAME
from tests.services.test_rollout import UNROLL, Opponents, of_games, play


def ring(interval: float = 6.0, capacity: int = 4) -> SnapshotRing:
    return SnapshotRing(capacity, interval, np.random.default_rng(0))


def times(*seconds: float) -> np.ndarray:
    return np.array(seconds, np.float32)


def test_snapshot_is_due_at_each_multiple_of_the_interval() -> None:
    before, after = times(-7, -1, 5.9, 6.0, 11.9, 11.0), times(-5.9, 0.1, 6.1, 6.2, 12.0, 11.9)
    assert ring().due(before, after).tolist() == [False, False, True, False, True, False]


def test_ring_keeps_the_newest() -> None:
    kept = ring(capacity=2)
    assert kept.choose(1.0) is None
    for seconds in (1.0, 2.0, 3.0):
        kept.add(GameSnapshot(b"", seconds))
    assert len(kept) == 2
    chosen = [kept.choose(0.5) for _ in range(400)]
    found = [s.game_seconds for s in chosen if s is not None]
    assert set(found) == {2.0, 3.0} and 150 < len(found) < 250
    assert kept.choose(0.0) is None and kept.seed() != kept.seed()


async def test_game_continues_a_snapshot_without_its_recurrent_state() -> None:
    """Slots' games last 11 steps; a snapshot is taken after 6. Later games begin there and are not reported."""
    opponents = Opponents(*[Opponent(0, 1)] * 20)
    snapshots = ring()
    async with InferenceServer(Versions(0, 7)) as server:
        done = await play(CountingGames([[11]]), 30, [server], opponents=opponents, middle=1.0, snapshots=snapshots)
    whole, *middle = done.records
    assert "start_seconds" not in whole and whole["statistics"] and len(opponents.reports) == 1
    assert [r["start_seconds"] for r in middle] == [6.0] * 3 and not any(r["statistics"] for r in middle)
    assert [r["outcome"] for r in middle] == ["lost", "drawn", "won"]
    assert "win_probability" in whole and not any("win_probability" in r for r in middle)
    assert len(snapshots) == 1, "a game that began in the middle was snapshotted"
    first, *later = of_games(done.segments)[0, 1]
    assert first.arrays["resets"][0] and first.arrays["shared"][0, 0] == 6
    assert not first.arrays["state/count"][0].any() and sum(map(steps_of, [first, *later])) == 5
    assert [*later, first][0].arrays["win_label"][0] == 0.0


async def test_no_snapshot_is_taken_while_no_game_begins_with_one() -> None:
    snapshots = ring()
    async with InferenceServer(Versions(0)) as server:
        done = await play(CountingGames([[11]]), 30, [server], snapshots=snapshots)
    assert len(snapshots) == 0 and all("start_seconds" not in r for r in done.records)


async def test_game_from_the_middle_is_cut_after_its_own_time() -> None:
    async with InferenceServer(Versions(0)) as server:
        done = await play(CountingGames([[100]]), 40, [server], game_seconds=8.0, middle=1.0, snapshots=ring())
    first, second = done.records[:2]
    assert (first["outcome"], first["game_seconds"]) == ("cut", 2 * UNROLL + 1)
    assert (second["outcome"], second["game_seconds"]) == ("cut", 6 + 2 * UNROLL + 1)


async def test_local_game_is_branched_in_its_slot() -> None:
    games = VecGame(GAME, 2, 1)
    environment = LocalEnvironment(games)
    out = {name: array.copy() for name, array in games.obs.items()}
    which = np.arange(2, dtype=np.int32)
    await environment.reset(which, np.full((2, 2), Controller.SCRIPTED, np.uint8), out)
    for _ in range(5):
        await environment.step(np.zeros((2, 2, games.layout.heroes, 6), np.int16), out)
    state, seconds = await environment.snapshot(0), float(games.game_time[0])
    lineup = games.lineups[0].copy()
    await environment.reset(which, np.zeros((2, 2), np.uint8), out)
    other = {name: array[0].copy() for name, array in out.items()}
    found = await environment.branch(1, state, 7, 1.0, out)
    assert games.game_time.tolist() == [pytest.approx(GAME.start_seconds), pytest.approx(seconds)]
    assert np.array_equal(found, lineup) and games.seed(1) == 7 and games.controllers[1].tolist() == [0, 0]
    for name, array in out.items():
        assert np.array_equal(array[1], games.obs[name][1]) and np.array_equal(array[0], other[name]), name
    await environment.close()


async def test_games_whose_snapshot_is_refused_are_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    games, snapshots = CountingGames([[11], [40]]), ring()
    snapshots.of_bots = True
    snapshots.add(GameSnapshot(bytes([6]), 6.0))
    branch, refused = games.branch, list[int]()

    async def failing(*arguments: Any) -> Any:
        if games.steps in (0, 5) and len(refused) <= games.steps // 5:
            refused.append(games.steps)
            raise ConnectionError("another build")
        return await branch(*arguments)

    monkeypatch.setattr(games, "branch", failing)
    async with InferenceServer(Versions(0)) as server:
        done = await play(games, 20, [server], middle=1.0, snapshots=snapshots)
    # At the start, and when the game of slot 0 ended 5 steps later. The game of slot 1 went with it.
    assert refused == [0, 5] and done.group.progress.abandoned_games == 4
    assert [r["start_seconds"] for r in done.records] == [6.0] * 4 and games.age[1] == 6 + 15


async def test_remote_games_have_no_snapshots() -> None:
    environment = RemoteEnvironment(lambda: None, 1, 1, "", 1)  # type: ignore[arg-type, return-value]
    with pytest.raises(NotImplementedError, match=r"services\.rollout\.environment"):
        await environment.snapshot(0)


def test_remote_games_begin_only_in_the_middle_of_games_of_bots() -> None:
    ramp = "schedules.middle_fraction={initial: 0, ramps: [{start: 1, length: 1, from: 0, to: 0.5}]}"
    remote = [ramp, "services.rollout.environment=remote"]
    with pytest.raises(ConfigError, match=r"schedules\.middle_fraction.*services\.rollout\.snapshot_bots"):
        load("laptop-1v1", remote)
    assert load("laptop-1v1", [*remote, "services.rollout.snapshot_bots=[scripted]"]).services.rollout.snapshot_bots
    assert load("laptop-1v1", [ramp]).schedules.middle_fraction.ramps[0].to == 0.5
