"""Opponents service: refused messages, assignments, results, and the pool as it is shown."""

import math
from typing import Any

import pytest
import redis

from five.agent.config import LeagueConfig
from five.protos.v1 import opponents_pb2
from five.services.opponents import metrics
from five.services.opponents.pool import OpponentPool
from five.services.opponents.service import MAX_ID, OpponentService
from rapid.rpc.fencing_epoch import EpochAhead, StaleEpoch
from rapid.store.state import RunState
from rapid.telemetry.metrics import REGISTRY
from tests.services.fresh_metrics import initial_samples

CONFIG = LeagueConfig(past_opponent_share=0.5, add_every_versions=10)
EPOCH = 2
WON, LOST, DRAWN = (opponents_pb2.GAME_OUTCOME_WON, opponents_pb2.GAME_OUTCOME_LOST, opponents_pb2.GAME_OUTCOME_DRAWN)


@pytest.fixture
def pool(redis_client: redis.Redis) -> OpponentPool:
    """Pool of versions 0 and 10."""
    pool = OpponentPool(RunState(redis_client, "trial"), CONFIG, seed=0)
    for version in (0, 10):
        pool.on_version(version)
    return pool


@pytest.fixture
def service(pool: OpponentPool) -> OpponentService:
    return OpponentService("trial", pool, epoch=EPOCH)


def assignment(**changes: Any) -> opponents_pb2.AssignOpponentRequest:
    return opponents_pb2.AssignOpponentRequest(**{"run": "trial", "game_id": "g", "epoch": EPOCH} | changes)


def result(**changes: Any) -> opponents_pb2.ReportResultRequest:
    return opponents_pb2.ReportResultRequest(
        **{"run": "trial", "game_id": "g", "opponent_version": 0, "outcome": WON, "epoch": EPOCH} | changes)


def metric(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"five_opponents_{name}", labels) or 0.0


async def test_opponent_gets_the_other_side(service: OpponentService, pool: OpponentPool) -> None:
    before = {kind: metric("assigned_games_total", opponent=kind) for kind in ("latest", "past")}
    past = 0
    for i in range(25):
        answer = await service.AssignOpponent(assignment(game_id=str(i)), None)
        match = pool.assign(str(i))
        past += match.past is not None
        assert (answer.version, answer.side, answer.epoch) == (
            -1 if match.past is None else match.past, 1 - match.side, EPOCH)
    assert 0 < past != 25 - past, "the two counts are equal, so this test cannot tell them apart"
    counted = {kind: metric("assigned_games_total", opponent=kind) - before[kind] for kind in before}
    assert counted == {"latest": 25 - past, "past": past}


@pytest.mark.parametrize(("changes", "words"), [
    ({"run": "other"}, "run 'other': this service serves run 'trial'"),
    ({"run": "zebra"}, "run 'zebra'"), ({"run": ""}, "run ''"),
    ({"game_id": ""}, "game_id has 0 characters"), ({"game_id": "x" * (MAX_ID + 1)}, "game_id has 129 characters"),
    ({"epoch": 0}, "epoch is missing")])
async def test_invalid_message_is_refused(service: OpponentService, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        await service.AssignOpponent(assignment(**changes), None)
    with pytest.raises(ValueError, match=words):
        await service.ReportResult(result(**changes), None)
    if "run" in changes:
        with pytest.raises(ValueError, match=words):
            await service.GetPool(opponents_pb2.GetPoolRequest(**changes), None)


@pytest.mark.parametrize("length", [1, MAX_ID])
async def test_game_ids_of_any_allowed_length(service: OpponentService, length: int) -> None:
    name = "x" * length
    assert (await service.AssignOpponent(assignment(game_id=name), None)).version in (-1, 0, 10)
    assert (await service.ReportResult(result(game_id=name), None)).counted


@pytest.mark.parametrize(("epoch", "error"), [(EPOCH - 1, StaleEpoch), (EPOCH + 1, EpochAhead)])
async def test_other_epochs_change_nothing(service: OpponentService, pool: OpponentPool, epoch: int,
                                           error: type[Exception]) -> None:
    with pytest.raises(error):
        await service.AssignOpponent(assignment(epoch=epoch), None)
    with pytest.raises(error):
        await service.ReportResult(result(epoch=epoch), None)
    assert [o.games for o in pool.league().opponents] == [0, 0]


async def test_result_needs_an_outcome(service: OpponentService, pool: OpponentPool) -> None:
    with pytest.raises(ValueError, match="outcome is missing"):
        await service.ReportResult(result(outcome=opponents_pb2.GAME_OUTCOME_UNSPECIFIED), None)
    assert [o.games for o in pool.league().opponents] == [0, 0]


@pytest.mark.parametrize("version", [0, 10])
@pytest.mark.parametrize(("outcome", "name", "wins"), [(WON, "won", 1), (LOST, "lost", 0), (DRAWN, "drawn", 0)])
async def test_result_is_counted_once_by_its_outcome(service: OpponentService, pool: OpponentPool, outcome: Any,
                                                     name: str, wins: int, version: int) -> None:
    before = {each: metric("reported_games_total", outcome=each) for each in ("won", "lost", "drawn")}
    answer = await service.ReportResult(result(outcome=outcome, opponent_version=version), None)
    assert (answer.counted, answer.epoch) == (True, EPOCH)
    after = {each: metric("reported_games_total", outcome=each) - before[each] for each in before}
    assert after == {each: float(each == name) for each in before}
    again = await service.ReportResult(result(outcome=outcome, opponent_version=version), None)
    assert (again.counted, again.epoch) == (False, EPOCH)
    assert {o.version: (o.games, o.wins) for o in pool.league().opponents} == {
        version: (1, wins), 10 - version: (0, 0)}


@pytest.mark.parametrize("version", [-1, -5])
async def test_self_play_has_no_result(service: OpponentService, pool: OpponentPool, version: int) -> None:
    before = metric("reported_games_total", outcome="won")
    answer = await service.ReportResult(result(opponent_version=version), None)
    assert (answer.counted, answer.epoch) == (False, EPOCH)
    assert [o.games for o in pool.league().opponents] == [0, 0]
    assert metric("reported_games_total", outcome="won") == before


async def test_pool_is_shown_with_its_probabilities(service: OpponentService, pool: OpponentPool) -> None:
    """Wins have lowered the quality of version 0 by ln 3."""
    pool._table.update(lambda: {"version:0": [-math.log(3), 40, 30]})
    answer = await service.GetPool(opponents_pb2.GetPoolRequest(run="trial"), None)
    first, second = answer.entries
    assert (first.version, first.games, first.wins_against) == (0, 40, 30)
    assert (second.version, second.games, second.wins_against, second.quality) == (10, 0, 0, 0.0)
    assert (first.quality, first.probability, second.probability) == pytest.approx((-math.log(3), 0.25, 0.75))
    assert metric("pool_versions") == 2 and metric("pool_newest_versions") == 10


@pytest.mark.parametrize(("chances", "effective"), [
    ({4: 0.25, 7: 0.25, 9: 0.25, 2: 0.25}, 4.0), ({9: 1.0}, 1.0), ({3: 0.0, 9: 1.0}, 1.0), ({3: 0.5, 9: 1.5}, 1.7548)])
def test_effective_number_of_opponents(chances: dict[int, float], effective: float) -> None:
    """For 1/4 and 3/4 it is 4 / 3^(3/4). Probabilities that do not sum to 1 are scaled."""
    metrics.show_pool(chances)
    assert metric("pool_versions") == len(chances) and metric("pool_newest_versions") == 9
    assert metric("pool_effective_versions") == pytest.approx(effective, abs=1e-4)


def test_empty_pool_has_no_newest_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the size falls; a page without a pool shows no newest version."""
    metrics.show_pool({9: 1.0})
    metrics.show_pool({})
    assert metric("pool_versions") == 0
    found = initial_samples("five.services.opponents.metrics", monkeypatch)
    assert math.isnan(found["five_opponents_pool_newest_versions"][""])
    assert found["five_opponents_assigned_games_total"] == {"latest": 0.0, "past": 0.0}
    assert found["five_opponents_reported_games_total"] == {"won": 0.0, "lost": 0.0, "drawn": 0.0}
