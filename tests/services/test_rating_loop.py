"""The rating loop with real Redis: each write is atomic, idempotent and minimal."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import redis

from dota.vec_game import STATS
from five.agent.config import RatingConfig
from five.services.evaluator.matches import Pairing, PairingResult
from five.services.evaluator.rating_loop import TABLE, TRIES, RatingLoop
from five.services.evaluator.service import PLAYERS
from rapid.store.errors import VersionMissing
from rapid.store.series import Series
from rapid.store.state import RunState

CONFIG = RatingConfig(games_per_rating=12, games_per_round=12, first_rating_games=6, games_per_anchor_pair=2,
                      anchors=("random", "scripted"), required_references=("scripted",))
PINNED: list[int] = []


def loop(client: redis.Redis, newest: int = 3, in_lineage: Callable[[int], bool] = lambda version: True,
         config: RatingConfig = CONFIG) -> RatingLoop:
    return RatingLoop(config, RunState(client, "trial"), Series(client, "trial"),
                      {n: PLAYERS[n] for n in config.anchors}, STATS, lambda: newest, PINNED.append, in_lineage)


def ended(pairing: Pairing, score: float = 1.0) -> PairingResult:
    statistics = np.arange(len(STATS), dtype=np.float32)
    return PairingResult(pairing, score, 120.0, statistics, statistics, 0)


def play(rating: RatingLoop, games: int = 1000, score: Callable[[Pairing], float] = lambda p: 1.0) -> list[Pairing]:
    """Play all assigned games."""
    played = []
    while len(played) < games and (pairing := rating.next_pairing()) is not None:
        rating.on_result(ended(pairing, score(pairing)))
        played.append(pairing)
    return played


def stored(client: redis.Redis) -> dict[bytes, Any]:
    """Return all stored data of the run's ratings."""
    state = RunState(client, "trial")
    return {**client.hgetall(state.keys.table(TABLE)),  # type: ignore[dict-item]
            b"series": client.xrange(state.keys.series("ratings"))}


def test_first_version_is_rated_before_the_anchors(redis_client: redis.Redis) -> None:
    PINNED.clear()
    rating = loop(redis_client)
    assert {p.opponent.name for p in play(rating)} == {"random"}
    record = rating.series.last("ratings")
    assert record is not None and record.values["version"] == 3 and record.values["games"] == 6
    assert record.values["win_rates"] == {"random": 1.0} and record.values["win_intervals"]["random"][1] == 1.0
    assert record.values["statistics"]["denies"] == 1.0 and record.values["game_seconds"] == 120.0
    assert rating.next_pairing() is None  # nothing newer to rate
    rating = loop(redis_client, newest=9)
    played = play(rating, score=lambda p: float(p.opponent.name == "random" or p.seed is None))
    assert [(p.agent.name, p.opponent.name) for p in played[:2]] == [("random", "scripted")] * 2
    assert {p.opponent.name for p in played[2:]} >= {"scripted"} and played[-1].agent.version == 9
    newest = rating.series.last("ratings")
    assert newest is not None and newest.values["version"] == 9
    # Its own games alone: version 3 won all of its, and is not in it.
    assert newest.values["win_rates"]["scripted"] == 0.0
    assert [r.values["version"] for r in rating.series.read("ratings")] == [3, 9]


def test_a_report_sent_twice_counts_once(redis_client: redis.Redis) -> None:
    rating = loop(redis_client)
    pairing = rating.next_pairing()
    assert pairing is not None and rating.on_result(ended(pairing))
    kept = stored(redis_client)
    assert not rating.on_result(ended(pairing, 0.0)) and stored(redis_client) == kept
    # A report by another process does not count either.
    assert not loop(redis_client).on_result(ended(pairing, 0.0)) and stored(redis_client) == kept
    assert rating.games == 1


def test_size_of_a_write_is_independent_of_run_length(redis_client: redis.Redis) -> None:
    rating = loop(redis_client)
    play(rating)
    state = RunState(redis_client, "trial")
    row = state.table(TABLE).get("rated:version-3")
    redis_client.hset(state.keys.table(TABLE), mapping={  # a run that goes on for months
        f"rated:version-{n + 100}": json.dumps(row | {"player": f"version-{n + 100}"}) for n in range(2000)})
    rating = loop(redis_client, newest=9)
    pairing = rating.next_pairing()
    assert pairing is not None
    before: Any = redis_client.info("stats")
    rating.on_result(ended(pairing))
    after: Any = redis_client.info("stats")
    for direction in ("total_net_input_bytes", "total_net_output_bytes"):
        assert after[direction] - before[direction] < 20_000


class Killed(BaseException):
    """Simulated death of the process."""


@pytest.mark.parametrize("when", ["before", "after"])
def test_crash_leaves_a_rating_with_its_record_or_neither(redis_client: redis.Redis, when: str,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies at each command that finishes a rating, one after the other."""
    state = RunState(redis_client, "trial")
    seen = set()
    for victim in range(40):
        redis_client.flushall()
        rating = loop(redis_client)
        play(rating, games=5)
        last = rating.next_pairing()
        assert last is not None and rating.next_pairing() is None
        with monkeypatch.context() as patched:
            left = victim
            send = redis.connection.AbstractConnection.send_packed_command

            def sending(self: Any, *arguments: Any, send: Any = send, **options: Any) -> None:
                nonlocal left
                left -= 1
                if left == -1 and when == "before":
                    raise Killed
                send(self, *arguments, **options)
                if left == -1:
                    raise Killed

            patched.setattr(redis.connection.AbstractConnection, "send_packed_command", sending)
            try:
                rating.on_result(ended(last))
                finished = True
            except Killed:
                finished = False
        redis_client.connection_pool.disconnect()
        rows = state.table(TABLE).all()
        rated = "rated:version-3" in rows
        series = [r.values["version"] for r in rating.series.read("ratings")]
        games = sum(name.startswith("game:") for name in rows)
        assert (rated, "open" in rows, series, games) in (
            (True, False, [3], 0), (False, True, [], 5), (False, True, [], 6))
        seen.add((rated, games))
        again = loop(redis_client)  # the successor plays the missing games and gets the same rating
        play(again)
        standing = again.ladder.standings["version-3"]
        assert standing.games == 6 and [r.values["version"] for r in again.series.read("ratings")] == [3]
        if finished:
            break
    assert finished and seen >= {(False, 5), (False, 6), (True, 0)}


def test_lost_games_are_replayed_and_finally_aborted(redis_client: redis.Redis) -> None:
    rating = loop(redis_client)
    first = [rating.next_pairing() for _ in range(2)]
    assert rating.drop() == 0
    again = [rating.next_pairing() for _ in range(2)]
    assert again == first
    for _ in range(TRIES - 2):
        assert rating.drop() == 0
        assert [rating.next_pairing() for _ in range(2)] == first
    assert rating.drop() == 2
    assert len(play(rating)) == 4
    standing = rating.ladder.standings["version-3"]
    assert (standing.games, standing.aborted) == (4, 2)
    record = rating.series.last("ratings")
    assert record is not None and record.values["aborted"] == 2


def test_a_restart_keeps_ratings_and_the_games_played(redis_client: redis.Redis) -> None:
    first = loop(redis_client)
    play(first, games=4)
    again = loop(redis_client, newest=9)
    assert again.version == 3 and again.games == 4
    assert [p.agent.version for p in play(again, games=2)] == [3, 3]
    later = loop(redis_client, newest=9)
    assert set(later.ladder.standings) == {"random", "version-3"}
    assert play(later, games=100)[-1].agent.version == 9


def test_version_is_pinned_before_it_is_named_as_a_reference(redis_client: redis.Redis) -> None:
    """A pin that fails leaves no reference whose parameters may be deleted; the next attempt completes both."""
    play(loop(redis_client))
    rows = RunState(redis_client, "trial").table(TABLE)
    pinned: list[int] = []
    failures = [ConnectionError("the blob store is down")]

    def pin(version: int) -> None:
        standing = rows.get(f"rated:version-{version}")
        assert standing is None or not standing["reference"], "version named before it was pinned"
        if failures:
            raise failures.pop()
        pinned.append(version)

    rating = loop(redis_client, newest=9)
    rating.pin = pin

    def won(pairing: Pairing) -> float:
        return float(pairing.agent.version == 9)

    with pytest.raises(ConnectionError):
        play(rating, score=won)
    assert pinned == [] and rows.get("rated:version-9") is None
    assert "version-9" not in loop(redis_client).ladder.references
    again = loop(redis_client, newest=9)  # the process restarts
    again.pin = pin
    play(again, score=won)
    assert pinned == [9] and "version-9" in loop(redis_client).ladder.references
    standing = rows.get("rated:version-9")
    assert standing is not None and standing["reference"]


def test_version_that_cannot_be_pinned_is_rated_without_becoming_a_reference(redis_client: redis.Redis) -> None:
    """The archive was thinned before a slow rating ended."""
    play(loop(redis_client))

    def pin(version: int) -> None:
        raise VersionMissing(f"version {version} is not archived")

    rating = loop(redis_client, newest=9)
    rating.pin = pin
    play(rating, score=lambda pairing: float(pairing.agent.version == 9))
    standing = RunState(redis_client, "trial").table(TABLE).get("rated:version-9")
    assert standing is not None and not standing["reference"] and rating.ladder.trial is None


def test_reverted_versions_keep_ratings_but_are_not_references(redis_client: redis.Redis) -> None:
    PINNED.clear()
    play(loop(redis_client))
    play(loop(redis_client, newest=9), score=lambda p: float(p.agent.version == 9))
    rating = loop(redis_client, newest=12)
    assert "version-9" in rating.ladder.references and PINNED == [9]
    assert len(play(rating, games=2)) == 2 and loop(redis_client, newest=20).version == 12  # it would go on being rated
    # The run went back to version 5, which goes on as 20.
    rating = loop(redis_client, newest=20, in_lineage=lambda version: version <= 5 or version >= 20)
    assert rating.ladder.trial is None and "version-9" not in rating.ladder.references
    assert rating.ladder.standings["version-9"].games == 12
    play(rating)
    assert "version-9" not in rating.ladder.standings["version-20"].results
    assert not any(name.startswith("game:") for name in RunState(redis_client, "trial").table(TABLE).all())


def test_anchor_that_the_configuration_drops_is_not_played(redis_client: redis.Redis) -> None:
    play(loop(redis_client))
    play(loop(redis_client, newest=9))
    assert loop(redis_client, newest=12).next_pairing() is not None  # its round has games against the bot
    fewer = CONFIG.model_copy(update={"anchors": ("random",), "required_references": ()})
    rating = loop(redis_client, newest=12, config=fewer)
    assert rating.version == 9 and rating.ladder.trial is None and "scripted" not in rating.ladder.references
    assert rating.ladder.standings["scripted"].games > 0
    assert "scripted" not in {p.opponent.name for p in play(rating)} and rating.version == 12


def test_game_count_can_be_read_while_a_rating_ends(redis_client: redis.Redis) -> None:
    """The heartbeat's thread reads it."""
    class EndingLadder:
        def __init__(self) -> None:
            self.trials = [SimpleNamespace(ended={"1.1": {}}), None]

        @property
        def trial(self) -> Any:
            return self.trials.pop(0)

    rating: Any = loop(redis_client)
    rating.ladder = EndingLadder()
    assert rating.games == 1
