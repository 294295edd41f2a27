"""The opponent pool with a real Redis."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from five.agent.config import LeagueConfig
from five.services.opponents import pool as pool_module
from five.services.opponents.__main__ import is_eligible
from five.services.opponents.pool import OpponentPool
from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.store.lineage import Lineage, current_line_filter, new_segment
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.state import RunState

CONFIG = LeagueConfig(past_opponent_share=0.5, add_every_versions=10)


@pytest.fixture
def state(redis_client: redis.Redis) -> RunState:
    return RunState(redis_client, "trial")


def test_versions_join_every_ten_and_survive_a_restart(state: RunState) -> None:
    pool = OpponentPool(state, CONFIG, seed=0)
    assert [v for v in range(25) if pool.on_version(v)] == [0, 10, 20]
    again = OpponentPool(state, CONFIG, seed=0)
    assert [o.version for o in again.league().opponents] == [0, 10, 20]
    assert not again.on_version(25)
    assert again.on_version(30)


def test_repeated_assignment_returns_the_same_opponent(state: RunState) -> None:
    pool = OpponentPool(state, CONFIG, seed=0)
    for v in (0, 10, 20):
        pool.on_version(v)
    first = [pool.assign(str(i)) for i in range(200)]
    assert [pool.assign(str(i)) for i in range(200)] == first
    past = sum(m.past is not None for m in first)
    assert 70 <= past <= 130  # half of 200; five standard deviations are 35
    assert {m.past for m in first} == {None, 0, 10, 20} and {m.side for m in first} == {0, 1}


def test_few_versions_are_in_play_at_their_probabilities(state: RunState) -> None:
    now = [0.0]
    config = CONFIG.model_copy(update={"past_opponent_share": 1.0, "active_past_versions": 4, "active_minutes": 10.0})
    pool, other = OpponentPool(state, config, 0, lambda: now[0]), OpponentPool(state, config, 0, lambda: now[0])
    for v in range(0, 80, 10):
        pool.on_version(v)
    for game in range(200):  # different qualities
        pool.report(f"r{game}", 0 if game % 2 else 10, won=True)
    met: dict[int, float] = dict.fromkeys(range(0, 80, 10), 0)
    changes = 0
    for turn in range(250):
        now[0] = 600.0 * turn + 1
        places = [pool._active.at(place, now[0], pool._league).version for place in range(4)]
        found = [pool.assign(f"{turn}/{i}") for i in range(4)]
        assert {m.past for m in found} <= set(places) and {m.side for m in found} <= {0, 1}
        if turn < 5:
            assert [other.assign(f"{turn}/{i}") for i in range(4)] == found
        for version in places:
            met[version] += 1 / (4 * 250)
        now[0] += 160.0  # one slot's turn has passed
        changes += sum(pool._active.at(place, now[0], pool._league).version != version
                       for place, version in enumerate(places))
    assert 100 < changes <= 250
    assert pool.probabilities() == pool.league().probabilities()
    for version, chance in pool.probabilities().items():
        assert met[version] == pytest.approx(chance, abs=0.06), version


def test_removed_version_is_no_longer_in_play(state: RunState) -> None:
    config = CONFIG.model_copy(update={"past_opponent_share": 1.0, "active_past_versions": 3})
    pool = OpponentPool(state, config, 0, lambda: 0.0)
    for v in (0, 10, 20):
        pool.on_version(v)
    assert len({pool.assign(str(i)).past for i in range(50)}) > 1
    pool.keep(lambda version: version == 10)
    assert {pool.assign(f"again {i}").past for i in range(50)} == {10}


def test_result_counts_once_across_instances(state: RunState) -> None:
    pool = OpponentPool(state, CONFIG, seed=0)
    for v in (0, 10):
        pool.on_version(v)
    assert pool.report("g", 0, won=True)
    quality = {o.version: o.quality for o in pool.league().opponents}
    # Two opponents of equal quality: η / (N p) = 0.01 / (2 * 0.5).
    assert quality[10] - quality[0] == pytest.approx(0.01)
    assert not pool.report("g", 0, won=True)
    assert not OpponentPool(state, CONFIG, seed=0).report("g", 0, won=True)
    assert {o.version: o.quality for o in pool.league().opponents} == quality


def test_win_counts_with_the_probability_of_the_draw(state: RunState) -> None:
    config = CONFIG.model_copy(update={"past_opponent_share": 1.0, "active_past_versions": 1, "active_minutes": 10.0})
    pool, other = OpponentPool(state, config, 0, lambda: 0.0), OpponentPool(state, config, 0, lambda: 0.0)
    for v in range(0, 40, 10):
        pool.on_version(v)
    met = [pool.assign(str(i)).past for i in range(150)]
    (version,) = set(met)
    assert version is not None
    for i in range(20):
        pool.report(str(i), version, won=True)
    # p is 1/4 at the draw: 0.01 / (4 * 1/4) for each, however improbable the version has become.
    lost = [-o.quality for o in pool.league().opponents if o.version == version]
    assert lost == [pytest.approx(0.2)]
    other.assign("elsewhere")
    other.report("20", version, won=True)  # assigned by the first process
    (quality,) = [o.quality for o in other.league().opponents if o.version == version]
    assert 0.2 < -quality < 0.22
    for i in range(21, 150):
        pool.report(str(i), version, won=True)
    (quality,) = [o.quality for o in pool.league().opponents if o.version == version]
    assert 1.0 <= -quality < 1.02  # one turn takes 1 at most, of each process


def test_wins_of_a_groups_games_count_with_the_probability_of_their_draw(state: RunState) -> None:
    """A group plays a version in 52 games, of which each was assigned another one."""
    config = CONFIG.model_copy(update={"past_opponent_share": 1.0})
    pool = OpponentPool(state, config, seed=0)
    for v in range(0, 100, 10):
        pool.on_version(v)
    version = pool.assign("draw").past
    assert version is not None

    def lost() -> float:
        return next(-o.quality for o in pool.league().opponents if o.version == version)

    others = [name for name in map(str, range(200)) if pool.assign(name).past != version]
    for name in others[:52]:
        assert pool.report(name, version, won=True, drawn_game_id="draw")
    assert lost() == pytest.approx(52 * 0.01)  # 0.01 / (10 * 1/10) each
    for name in others[52:]:
        pool.report(name, version, won=True, drawn_game_id="draw")
    assert lost() == pytest.approx(min(0.01 * len(others), 1.0))
    improbable = pool.league().probability(version)
    again = next(name for name in (f"again {i}" for i in range(1000)) if pool.assign(name).past == version)
    before = lost()
    for i in range(200):
        pool.report(f"more {i}", version, won=True, drawn_game_id=again)
    assert improbable < 0.06 and lost() - before == pytest.approx(1.0)  # one draw takes 1 at most


def test_losing_changes_no_quality(state: RunState) -> None:
    pool = OpponentPool(state, CONFIG, seed=0)
    for v in (0, 10):
        pool.on_version(v)
    assert pool.report("g", 10, won=False)
    assert [(o.quality, o.games, o.wins) for o in pool.league().opponents] == [(0.0, 0, 0), (0.0, 1, 0)]


def test_replicas_share_one_pool(state: RunState) -> None:
    pools = [OpponentPool(state, CONFIG, seed=0) for _ in range(3)]
    assert [pools[v % 3].on_version(v) for v in (0, 0, 5, 10, 20)] == [True, False, False, True, True]
    rounds = [(i, v) for i in range(20) for v in (0, 10, 20)]

    def play(pool: OpponentPool, shift: int) -> None:
        for i, version in rounds:
            pool.report(f"own-{shift}-{i}-{version}", version, won=True)
            pool.report(f"shared-{i}-{version}", version, won=False)

    threads = [threading.Thread(target=play, args=(pool, i)) for i, pool in enumerate(pools)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = [pool.league() for pool in (*pools, OpponentPool(state, CONFIG, seed=0))]
    assert [(o.games, o.wins) for o in seen[0].opponents] == [(80, 60)] * 3
    assert all(league.dump() == seen[0].dump() for league in seen)
    # Equal pools give equal samples.
    matches = [[pool.assign(str(i)) for i in range(50)] for pool in pools]
    assert [[(m.past, m.side) for m in row] for row in matches] == [[(m.past, m.side) for m in matches[0]]] * 3


def whole_reads(client: redis.Redis) -> int:
    statistics: Any = client.info("commandstats")
    return int(statistics["cmdstat_hgetall"]["calls"])


def test_calls_do_not_read_the_whole_pool(state: RunState, redis_client: redis.Redis) -> None:
    pool, other = OpponentPool(state, CONFIG, seed=0), OpponentPool(state, CONFIG, seed=0)
    for v in range(0, 1000, 10):
        pool.on_version(v)
    other.league()
    whole = whole_reads(redis_client)
    for i in range(100):
        other.assign(str(i))
        assert pool.report(f"g{i}", 10 * (i % 100), won=True)
    assert whole_reads(redis_client) == whole
    assert [o.games for o in other.league().opponents] == [1] * 100


def test_result_against_a_removed_version_does_not_count(state: RunState) -> None:
    pool = OpponentPool(state, CONFIG, seed=0)
    for v in (0, 10):
        pool.on_version(v)
    assert pool.report("a", 0, won=False)
    state.table("league").set("version:0", None)
    assert not pool.report("b", 0, won=False)
    assert [o.version for o in pool.league().opponents] == [10]


@pytest.mark.parametrize("row", ["version:x", "version:0", "last_added"])
def test_damaged_pool_is_reported(state: RunState, row: str) -> None:
    OpponentPool(state, CONFIG, seed=0).on_version(0)
    state.table("league").set(row, ["nonsense"])
    with pytest.raises(ValueError, match="the table league is damaged: "):
        OpponentPool(state, CONFIG, seed=0).assign("g")


def test_oldest_assignments_are_forgotten(state: RunState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "ASSIGNMENTS", 3)
    pool = OpponentPool(state, CONFIG, seed=0)
    for i in (0, 1, 2, 0, 3, 4):
        pool.assign(str(i))
    assert list(pool._assigned) == ["2", "3", "4"]


def test_warm_up_version_does_not_join_the_pool(redis_client: redis.Redis, tmp_path: Path) -> None:
    store = ParameterStore(redis_client, redis_client, "trial", StoreConfig(archive_every=10), BlobStore(str(tmp_path)))
    for version in range(0, 50, 5):
        store.publish(version, {"x": np.array([version])}, {"warming": version in (10, 20)})
    assert [record.version for record in store.records() if is_eligible(record, 10)] == [0, 30, 40]


def test_reverted_versions_leave_the_pool(state: RunState) -> None:
    pool = OpponentPool(state, CONFIG, seed=0)
    for v in (0, 10, 20, 30):
        pool.on_version(v)
    record = RunRecord(game={}, layout="l", schema="s")
    # A revert from version 30 to 12, which continues as 31.
    lineage = Lineage([new_segment(0, record, "run.created", "test"),
                       new_segment(31, record, "run.reverted", "ada", 12)])
    ours = current_line_filter(lineage, 31)
    assert pool.keep(ours) == [20, 30] and pool.keep(ours) == []
    other = OpponentPool(state, CONFIG, seed=0)
    for found in (pool, other):
        assert [o.version for o in found.league().opponents] == [0, 10]
    assert {other.assign(str(i)).past for i in range(50)} <= {None, 0, 10}
    assert [e.details for e in state.events.last(9) if e.what == "league.left"] == [{"versions": [20, 30]}]
    assert not pool.on_version(20) and pool.on_version(40)
