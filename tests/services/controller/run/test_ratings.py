"""The rated players in the order of a page, followed through the table's log."""

from dataclasses import asdict
from typing import Any

import pytest
import redis

from five.agent.standings import Standing
from five.services.controller.run.ratings import RatingTable
from rapid.store.replicated_table import ReplicatedTable
from rapid.store.state import RunState


@pytest.fixture
def state(redis_client: redis.Redis) -> RunState:
    return RunState(redis_client, "trial")


@pytest.fixture
def evaluator(state: RunState) -> ReplicatedTable:
    """The writer of the table."""
    table = ReplicatedTable(state, "ratings", lambda rows, replace: None)
    rate(table, format=2)
    return table


def rate(table: ReplicatedTable, format: int | None = None, **mu: float | None) -> None:
    """Write the ratings of players; None removes one."""
    rows: dict[str, Any] = {} if format is None else {"format": format}
    for name, rating in mu.items():
        player = name.replace("_", "-")
        rows[f"rated:{player}"] = None if rating is None else asdict(Standing(player, rating, 1.0, 1, 0.1))
    assert table.update(lambda: rows)


def listed(table: RatingTable) -> list[tuple[int, str, float]]:
    return [(position, standing.player, standing.mu) for position, standing in table.ordered()]


def test_versions_come_from_the_newest_and_then_bots_by_name(state: RunState, evaluator: ReplicatedTable) -> None:
    rate(evaluator, version_2=30.0, version_10=20.0, scripted=50.0, version_0=10.0, random=40.0, teamwork=0.0)
    assert listed(RatingTable(state)) == [
        (10, "version-10", 20.0), (2, "version-2", 30.0), (0, "version-0", 10.0),
        (-1, "random", 40.0), (-2, "scripted", 50.0), (-3, "teamwork", 0.0)]


def test_later_ratings_are_followed(state: RunState, evaluator: ReplicatedTable) -> None:
    found = RatingTable(state)
    assert listed(found) == []
    rate(evaluator, version_1=10.0, random=0.0)
    assert listed(found) == [(1, "version-1", 10.0), (-1, "random", 0.0)]
    rate(evaluator, version_2=20.0, random=5.0)
    expected = [(2, "version-2", 20.0), (1, "version-1", 10.0), (-1, "random", 5.0)]
    assert listed(found) == expected == listed(found)
    rate(evaluator, version_1=None)
    assert listed(found) == [(2, "version-2", 20.0), (-1, "random", 5.0)]
    rate(evaluator, version_1=None)  # a removed player that this reader does not know
    assert listed(found) == [(2, "version-2", 20.0), (-1, "random", 5.0)]


def test_order_is_computed_once_for_the_same_ratings(state: RunState, evaluator: ReplicatedTable) -> None:
    rate(evaluator, version_1=10.0)
    found = RatingTable(state)
    assert found.ordered() is found.ordered()


def test_lost_log_leaves_no_removed_player(state: RunState, evaluator: ReplicatedTable) -> None:
    """Redis has lost its last writes, so the reader loads the table again."""
    rate(evaluator, version_1=10.0, version_2=20.0)
    found = RatingTable(state)
    assert [position for position, _, _ in listed(found)] == [2, 1]
    state.redis.hdel(state.keys.table("ratings"), "rated:version-2")
    state.redis.delete(state.keys.table_log("ratings"))
    assert [position for position, _, _ in listed(found)] == [1]


def test_ratings_of_an_earlier_release_are_not_listed(state: RunState, evaluator: ReplicatedTable) -> None:
    rate(evaluator, format=1, version_1=10.0)
    assert listed(RatingTable(state)) == []


def test_damaged_row_is_left_out_and_logged_once(state: RunState, evaluator: ReplicatedTable,
                                                 caplog: pytest.LogCaptureFixture) -> None:
    rate(evaluator, version_1=10.0, random=0.0)
    assert evaluator.update(lambda: {"rated:version-2": {"player": "version-2", "of_a_later_release": 1}})
    found = RatingTable(state)
    expected = [(1, "version-1", 10.0), (-1, "random", 0.0)]
    assert listed(found) == expected == listed(found)
    assert [record.getMessage()[:40] for record in caplog.records] == ["the rating 'rated:version-2' is damaged:"]
