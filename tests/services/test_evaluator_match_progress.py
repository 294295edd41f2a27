"""Matches interrupted by the loss of evaluator, store or caller: a repeated request does not replay finished games."""

from pathlib import Path
from typing import Any

import pytest
import redis

from dota.playback import play
from dota.replay import Replay
from dota.spectator.recording import SUFFIX, Recording
from five.protos.v1 import evaluator_pb2
from five.services.evaluator import match_progress
from five.services.evaluator.recording import StoredRecordings
from five.services.evaluator.service import EvaluatorService
from rapid.blobs import BlobStore
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.store.state import RunState
from rapid.store.tables import Table
from rapid.telemetry.metrics import snapshot
from tests.services.test_evaluator import GAME, Noop

GAMES = 24


class Dying(Noop):
    """Client that fails from a given call on."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self._last = last

    async def act(self, *arguments: Any) -> Any:
        if self.calls >= self._last:
            raise CallFailed(StatusCode.UNAVAILABLE, "127.0.0.1:1", "Act", "connection refused")
        return await super().act(*arguments)


def evaluator(folder: Path, inference: Noop, table: match_progress.ProgressTable | None, newest: int = 3, epoch: int = 1
              ) -> EvaluatorService:
    ratings: Any = None
    return EvaluatorService("trial", GAME, 1, lambda: newest, lambda: inference, ratings, folder, epoch,
                            match_games=table)


def request(match: str, epoch: int = 1, games: int = GAMES, replay: bool = False) -> evaluator_pb2.PlayMatchRequest:
    return evaluator_pb2.PlayMatchRequest(run="trial", version=-1, against="random", games=games, seed=7, replay=replay,
                                          epoch=epoch, match=match)


@pytest.fixture
def table(redis_client: redis.Redis) -> Table:
    return RunState(redis_client, "trial").table(match_progress.TABLE)


async def test_repeated_match_resumes_after_ended_games(table: Table, tmp_path: Path) -> None:
    with pytest.raises(CallFailed):  # 16 are played at a time: it ends in the second batch
        await evaluator(tmp_path, Dying(45), table).PlayMatch(request("m-1", replay=True), None)
    played = table.all()
    assert len(played) == 16 and {row["version"] for row in played.values()} == {3}
    again = Noop()
    # By then another version is the newest: the match is still the first one's.
    answer = await evaluator(tmp_path, again, table, newest=9).PlayMatch(request("m-1", replay=True), None)
    assert answer.version == 3 and again.policies == {3} and len(again.known) == GAMES - 16
    assert answer.won + answer.lost + answer.drawn == GAMES == len(table.all())
    assert answer.replay_path and Path(answer.replay_path).exists()
    # The answer was lost on its way: nothing is played.
    third = Noop()
    same = await evaluator(tmp_path, third, table).PlayMatch(request("m-1", replay=True), None)
    assert same == answer and third.calls == 0
    # Another match plays all of its own, and so does one without an id.
    for match in ("m-2", ""):
        other = Noop()
        await evaluator(tmp_path, other, table).PlayMatch(request(match), None)
        assert len(other.known) == GAMES
    assert len(table.all()) == 2 * GAMES


async def test_restarted_game_is_recorded_again(tmp_path: Path) -> None:
    """Inference loses its sessions, so the games restart with other seeds."""
    service = evaluator(tmp_path / "replays", Noop(forget_at=10), None)
    blobs = BlobStore(str(tmp_path / "blobs"))
    service.stored = StoredRecordings(blobs, service.run)
    answer = await service.PlayMatch(request("m-1", games=2, replay=True), None)
    path = Path(answer.replay_path)
    steps = sum(1 for _ in play(Replay.load(path)))
    (view := tmp_path / "game.view").write_bytes(blobs.get(f"{service.run}/replays/{path.stem}{SUFFIX}"))
    assert sum(1 for _ in Recording.load(view).steps()) == steps > 20


async def test_match_closes_its_inference_client(tmp_path: Path) -> None:
    ended, failing = Noop(), Dying(1)
    await evaluator(tmp_path, ended, None).PlayMatch(request("m-1", games=2), None)
    with pytest.raises(CallFailed):
        await evaluator(tmp_path, failing, None).PlayMatch(request("m-1", games=2), None)
    assert ended.is_closed and failing.is_closed


async def test_lost_match_counts_its_unfinished_games(tmp_path: Path) -> None:
    before = snapshot()["five_evaluator_dropped_games_total"]
    with pytest.raises(CallFailed):
        await evaluator(tmp_path, Dying(1), None).PlayMatch(request("m-1", games=2), None)
    assert snapshot()["five_evaluator_dropped_games_total"] == before + 2


async def test_games_of_another_epoch_do_not_count(table: Table, tmp_path: Path) -> None:
    with pytest.raises(CallFailed):
        await evaluator(tmp_path, Dying(45), table).PlayMatch(request("m-1"), None)
    later = Noop()
    await evaluator(tmp_path, later, table, epoch=2).PlayMatch(request("m-1", epoch=2), None)
    assert len(later.known) == GAMES


async def test_unavailable_store_does_not_fail_a_match(tmp_path: Path) -> None:
    class Away:
        def all(self) -> dict[str, Any]:
            raise redis.ConnectionError("away")

        def set(self, field: str, value: Any) -> None:
            raise redis.ConnectionError("away")

    answer = await evaluator(tmp_path, Noop(), Away()).PlayMatch(request("m-1", games=2), None)
    assert answer.drawn == 2


async def test_only_newest_matches_are_stored(table: Table, tmp_path: Path) -> None:
    for number in range(match_progress.MATCHES + 3):
        await evaluator(tmp_path, Noop(), table).PlayMatch(request(f"m-{number}", games=2), None)
    assert {field.partition("@")[0] for field in table.all()} == {
        f"m-{number}" for number in range(3, match_progress.MATCHES + 3)}


async def test_unavailable_blob_store_costs_the_recording_only(tmp_path: Path) -> None:
    service = evaluator(tmp_path / "replays", Noop(), None)
    (away := tmp_path / "blobs").write_text("a file is in the way")
    service.stored = StoredRecordings(BlobStore(str(away)), service.run)
    answer = await service.PlayMatch(request("m-1", games=2, replay=True), None)
    assert answer.drawn == 2 and Path(answer.replay_path).exists()
    assert [path.suffix for path in (tmp_path / "replays").iterdir()] == [".replay"], "a temporary file is left"


async def test_unwritable_folder_costs_the_replay_only(tmp_path: Path) -> None:
    (folder := tmp_path / "replays").write_text("a file is in the way")
    answer = await evaluator(folder, Noop(), None).PlayMatch(request("m-1", games=2, replay=True), None)
    assert answer.drawn == 2 and answer.replay_path == ""


async def test_damaged_games_are_played_again(table: Table, tmp_path: Path) -> None:
    await evaluator(tmp_path, Noop(), table).PlayMatch(request("m-1", games=2), None)
    row = table.get("m-1@1:0")
    table.set("m-1@1:0", {**row, "agent": [1.0]})
    table.set("m-0@1:first", row)
    again = Noop()
    answer = await evaluator(tmp_path, again, table).PlayMatch(request("m-1", games=2), None)
    assert answer.drawn == 2 and len(again.known) == 1
