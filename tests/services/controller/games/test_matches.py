"""The queue of requested matches, and the runner that has the evaluator play them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis
from pydantic import ValidationError

from five.clients.evaluator import MatchResult
from five.services.controller.games.matches import (
    MatchQueue,
    MatchRequest,
    MatchRunner,
    MatchState,
    QueueFull,
    RequestedMatch,
)
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.store.state import RunState
from tests.services.live_controller import RUN

RESULT = MatchResult(7, 12, 6, 2, {"last_hits": 30.0}, {"last_hits": 20.0}, 600.0, "")
Play = Callable[[RequestedMatch], Awaitable[MatchResult]]


@pytest.fixture
def state(redis_client: redis.Redis) -> RunState:
    return RunState(redis_client, RUN)


@pytest.fixture
def queue(state: RunState) -> MatchQueue:
    return MatchQueue(state)


def failure(code: StatusCode) -> CallFailed:
    return CallFailed(code, "127.0.0.1:1", "PlayMatch", "refused by the test")


async def run_until(queue: MatchQueue, play: Play, done: Callable[[], bool]) -> None:
    """Run the matches until a condition holds."""
    await asyncio.wait_for(MatchRunner(queue, play, retry_seconds=0, poll_seconds=0.001).run(done), 10)


def ended(queue: MatchQueue) -> bool:
    return all(match.state in (MatchState.DONE, MatchState.FAILED, MatchState.CANCELLED) for match in queue.all())


@pytest.mark.parametrize(("name", "least", "most"), [
    ("version", -1, 9007199254740991), ("games", 1, 1000), ("seed", 0, 9007199254740991)])
def test_numbers_of_a_request_are_whole_and_limited(name: str, least: int, most: int) -> None:
    for allowed in (least, most):
        assert getattr(MatchRequest.model_validate({name: allowed}), name) == allowed
    for refused in (least - 1, most + 1, "7", 7.0, True):
        with pytest.raises(ValidationError):
            MatchRequest.model_validate({name: refused})


def test_request_without_values_is_twenty_games_of_the_newest() -> None:
    assert MatchRequest().model_dump() == {
        "version": -1, "against": "scripted", "games": 20, "seed": 0, "replay": False}
    for refused in ({"replay": 1}, {"against": "scripted-best"}, {"against": ""}, {"speed": 2}):
        with pytest.raises(ValidationError):
            MatchRequest.model_validate(refused)


def test_matches_are_listed_newest_first_and_then_by_id(queue: MatchQueue, state: RunState) -> None:
    for identity, at in (("m-b", 2.0), ("m-c", 1.0), ("m-a", 2.0)):
        match = RequestedMatch(id=identity, state=MatchState.WAITING, who="ada", asked_at=at, request=MatchRequest())
        state.table("matches").set(identity, match.model_dump(mode="json"))
    assert [match.id for match in queue.all()] == ["m-b", "m-a", "m-c"]
    assert queue.get("m-none") is None
    assert (found := queue.get("m-c")) is not None and found.asked_at == 1.0


def test_added_match_is_recorded_unless_it_is_a_dry_run(queue: MatchQueue, state: RunState) -> None:
    dry = queue.add(MatchRequest(seed=3), "ada", dry_run=True)
    assert dry.id == "m-000000000000" and queue.all() == [] and state.events.read() == []
    match = queue.add(MatchRequest(seed=3), "ada")
    assert queue.all() == [match] and match.state is MatchState.WAITING and match.tries == 0
    (event,) = state.events.read()
    assert (event.who, event.what) == ("ada", "match.asked")
    assert event.details == {"id": match.id, **MatchRequest(seed=3).model_dump()}


def test_sixteen_matches_may_be_open(queue: MatchQueue) -> None:
    matches = [queue.add(MatchRequest(seed=n), "ada") for n in range(16)]
    queue.transition(matches[0].id, MatchState.PLAYING)
    for dry_run in (True, False):
        with pytest.raises(QueueFull, match="16 matches are open"):
            queue.add(MatchRequest(), "ada", dry_run)
    queue.transition(matches[0].id, MatchState.DONE)
    queue.add(MatchRequest(), "ada")


def test_lost_reply_does_not_refuse_the_last_match(queue: MatchQueue, state: RunState,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """The client repeats a write whose reply was lost."""
    for n in range(15):
        queue.add(MatchRequest(seed=n), "ada")
    update = queue._table.update

    def repeated(change: Any, **options: Any) -> bool:
        assert update(change, **options)
        return update(change, **options)

    monkeypatch.setattr(queue._table, "update", repeated)
    match = queue.add(MatchRequest(), "ada")
    assert queue.get(match.id) == match and len(queue.all()) == len(state.events.read()) == 16


def test_oldest_ended_matches_are_dropped_above_the_limit(queue: MatchQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("five.services.controller.games.matches.MAX_RECORDS", 3)
    waiting, *over = (queue.add(MatchRequest(seed=n), "ada") for n in range(3))
    for match in over:
        queue.transition(match.id, MatchState.DONE)
    newest = queue.add(MatchRequest(seed=3), "ada")
    assert [match.id for match in queue.all()] == [newest.id, over[1].id, waiting.id]
    more = [queue.add(MatchRequest(seed=n), "ada") for n in (4, 5)]
    assert {match.id for match in queue.all()} == {waiting.id, newest.id, *(match.id for match in more)}, \
        "open matches are not dropped"


def test_transition_sets_the_end_of_open_matches_only(queue: MatchQueue) -> None:
    match = queue.add(MatchRequest(), "ada")
    playing = queue.transition(match.id, MatchState.PLAYING, began_at=5.0, tries=1)
    assert playing is not None and (playing.state, playing.began_at, playing.tries) == (MatchState.PLAYING, 5.0, 1)
    assert playing.ended_at is None and queue.get(match.id) == playing
    failed = queue.transition(match.id, MatchState.FAILED, error="no")
    assert failed is not None and failed.error == "no" and failed.ended_at is not None
    assert failed.ended_at >= match.asked_at
    assert queue.transition(match.id, MatchState.PLAYING, error=None) == failed == queue.get(match.id)
    assert queue.transition("m-none", MatchState.DONE) is None


async def test_matches_are_played_in_the_order_of_requests(queue: MatchQueue) -> None:
    matches = [queue.add(MatchRequest(seed=n), "ada") for n in range(4)]
    queue.transition(matches[1].id, MatchState.CANCELLED)
    played: list[RequestedMatch] = []

    async def play(match: RequestedMatch) -> MatchResult:
        played.append(match)
        return RESULT

    await run_until(queue, play, lambda: ended(queue))
    assert [match.request.seed for match in played] == [0, 2, 3]
    done = queue.get(matches[3].id)
    assert done is not None and done.outcome is not None and done.began_at is not None
    assert (done.state, done.tries, done.error, done.outcome.won) == (MatchState.DONE, 1, None, 12)


@pytest.mark.parametrize(("tries", "code", "attempts"), [
    (58, StatusCode.UNAVAILABLE, 2), (59, StatusCode.UNAVAILABLE, 1), (64, StatusCode.UNAVAILABLE, 1),
    (58, StatusCode.DEADLINE_EXCEEDED, 2), (58, StatusCode.CANCELLED, 2), (0, StatusCode.NOT_FOUND, 1),
    (0, StatusCode.INVALID_ARGUMENT, 1)])
async def test_attempts_end_after_sixty_or_another_error(queue: MatchQueue, tries: int, code: StatusCode, attempts: int
                                                         ) -> None:
    """Another controller has made ``tries`` attempts."""
    match = queue.add(MatchRequest(), "ada")
    queue.transition(match.id, MatchState.WAITING, tries=tries)
    played = []

    async def play(match: RequestedMatch) -> MatchResult:
        played.append(match)
        raise failure(code)

    await run_until(queue, play, lambda: ended(queue))
    found = queue.get(match.id)
    assert found is not None and found.state is MatchState.FAILED and "refused by the test" in str(found.error)
    assert (len(played), found.tries) == (attempts, tries + attempts)


@pytest.mark.parametrize("row", ["{", '{"id": "m-b", "state": "postponed"}'])
async def test_an_invalid_row_does_not_end_the_runner(queue: MatchQueue, state: RunState, row: str) -> None:
    state.redis.hset(state.keys.table("matches"), "m-b", row)
    looks = 0

    def done() -> bool:
        nonlocal looks
        looks += 1
        if looks == 3:
            state.table("matches").set("m-b", None)
            queue.add(MatchRequest(), "ada")
        return looks > 3 and ended(queue)

    async def play(match: RequestedMatch) -> MatchResult:
        return RESULT

    await run_until(queue, play, done)
    assert [match.state for match in queue.all()] == [MatchState.DONE]


async def test_an_invalid_result_fails_the_match(queue: MatchQueue) -> None:
    match = queue.add(MatchRequest(), "ada")

    async def play(match: RequestedMatch) -> MatchResult:
        return MatchResult(7, 1, 1, 0, {"last_hits" + "x" * 600: "many"}, {}, 1.0, "")  # type: ignore[dict-item]

    await run_until(queue, play, lambda: ended(queue))
    found = queue.get(match.id)
    assert found is not None and found.state is MatchState.FAILED and found.outcome is None
    assert found.error is not None and len(found.error) == 500


@pytest.mark.parametrize("gone", [True, False])
async def test_a_match_that_ends_elsewhere_is_interrupted(queue: MatchQueue, state: RunState, gone: bool) -> None:
    first, second = queue.add(MatchRequest(seed=1), "ada"), queue.add(MatchRequest(seed=2), "ada")
    ends: list[Any] = []

    async def play(match: RequestedMatch) -> MatchResult:
        if match.id == second.id:
            return RESULT
        try:
            if gone:
                state.table("matches").update(lambda rows: {first.id: None})
            else:
                queue.transition(first.id, MatchState.CANCELLED)
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            ends.append(error)
            raise
        return RESULT

    await run_until(queue, play, lambda: (found := queue.get(second.id)) is not None
                    and found.state is MatchState.DONE)
    await asyncio.sleep(0)
    assert len(ends) == 1, "the match was not interrupted"
    left = queue.get(first.id)
    assert left is None if gone else left is not None and left.state is MatchState.CANCELLED


async def test_runner_outlives_an_unavailable_store(queue: MatchQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    queue.add(MatchRequest(), "ada")
    errors = [redis.ConnectionError("the store is restarting"), redis.TimeoutError("and slow")]
    read = queue.all

    def fail_first() -> list[RequestedMatch]:
        if errors:
            raise errors.pop(0)
        return read()

    async def play(match: RequestedMatch) -> MatchResult:
        return RESULT

    monkeypatch.setattr(queue, "all", fail_first)
    await run_until(queue, play, lambda: not errors and ended(queue))
    assert [match.state for match in queue.all()] == [MatchState.DONE]


async def test_a_draining_runner_begins_no_match(queue: MatchQueue) -> None:
    match = queue.add(MatchRequest(), "ada")

    async def play(match: RequestedMatch) -> MatchResult:
        raise AssertionError("a match was begun")

    await run_until(queue, play, lambda: True)
    assert queue.get(match.id) == match


async def test_failover_does_not_interrupt_a_match(queue: MatchQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    queue.add(MatchRequest(), "ada")
    errors = [redis.ConnectionError("a replica takes over")]
    played: list[RequestedMatch] = []
    read = queue.get

    def fail_first(identity: str) -> RequestedMatch | None:
        if errors:
            raise errors.pop()
        return read(identity)

    async def play(match: RequestedMatch) -> MatchResult:
        played.append(match)
        while errors:
            await asyncio.sleep(0.001)
        return RESULT

    monkeypatch.setattr(queue, "get", fail_first)
    await run_until(queue, play, lambda: ended(queue))
    assert len(played) == 1 and [match.state for match in queue.all()] == [MatchState.DONE]
