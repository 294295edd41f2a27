"""The context of requests: slots and caches by their limits, drift, and the schedules in force."""

from typing import Any

import pytest
import redis

from five.agent.config import ScheduleConfig, SchedulesConfig
from five.agent.schedules import dump_schedules
from five.run.config.controller import LimitsConfig
from five.run.effective import record_trees
from five.run.load import load
from five.services.controller.http.auth import Caller, Role
from five.services.controller.http.dependencies import Context
from five.services.controller.http.problems import Problem
from rapid.store.record import RunRecord
from rapid.store.state import RunState
from tests.services.live_controller import RUN, authenticator, context_at

ADA = Caller("ada", Role.OPERATOR)
LIMITS = LimitsConfig(streams=3, viewers=4, spectators=5, players=6, drafts=7)


def context_with(client: redis.Redis, **given: Any) -> Context:
    return Context(RUN, RunState(client, RUN), None, SchedulesConfig(), authenticator(),  # type: ignore[arg-type]
                   **given)


@pytest.mark.parametrize(("slots", "count", "key", "retry"), [
    ("stream_slots", 3, "streams", "10"), ("live_slots", 4, "viewers", "10"),
    ("spectator_slots", 5, "spectators", "10"), ("player_slots", 6, "players", "10"),
    ("draft_slots", 7, "drafts", "1")])
def test_slots_have_the_configured_number(redis_client: redis.Redis, slots: str, count: int, key: str, retry: str
                                          ) -> None:
    pool = getattr(context_with(redis_client, limits=LIMITS), slots)
    for _ in range(count):
        pool.take(ADA)
    with pytest.raises(Problem, match=rf"{count} .* \(services\.controller\.limits\.{key}\)") as caught:
        pool.take(ADA)
    assert caught.value.status == 429 and caught.value.headers["Retry-After"] == retry


def test_context_has_defaults(redis_client: redis.Redis) -> None:
    context = context_with(redis_client)
    assert context.limits == LimitsConfig() and context.evaluator and context.play is None and context.blobs is None
    assert not context.hosts.configured and context.path_prefix == ""


@pytest.mark.parametrize(("cache", "seconds"), [
    ("fast_parts_cache", 1.0), ("slow_parts_cache", 4.0), ("overview_cache", 0.0)])
def test_console_data_has_a_largest_age(redis_client: redis.Redis, cache: str, seconds: float) -> None:
    found, now = getattr(context_with(redis_client), cache), [100.0]
    found._clock = lambda: now[0]
    assert found.get(lambda: "a") == "a"
    now[0] += seconds
    assert found.get(lambda: "b") == "a"
    now[0] += 0.001
    assert found.get(lambda: "c") == "c"


def test_play_client_is_created_once(redis_client: redis.Redis) -> None:
    created: list[Any] = []

    def create() -> Any:
        created.append(object())
        return created[-1]

    play = context_with(redis_client, play=create).play
    assert play is not None and not created
    assert play() is play() is created[0] and len(created) == 1


def test_drift_compares_the_file_with_the_record(redis_client: redis.Redis) -> None:
    file = load("laptop-1v1", [f"name={RUN}"])
    game, model = record_trees(file)
    same, other = RunRecord(game=game, model=model), RunRecord(game=game, model={**model, "lstm": model["lstm"] * 2})
    context = context_with(redis_client, file_config=file)
    assert context.drift(same) == []
    assert [difference.key for difference in context.drift(other)] == ["model.lstm"]
    assert context_with(redis_client).drift(other) == [], "there is no file to compare"


def test_schedules_set_at_run_time_replace_the_configured(redis_client: redis.Redis, redis_url: str) -> None:
    context = context_at(redis_url, LimitsConfig())
    context.configured = SchedulesConfig(learning_rate=ScheduleConfig(initial=0.5))
    assert context.schedules().learning_rate.initial == 0.5
    context.state.create({"name": RUN}, "test")
    changed = dump_schedules(SchedulesConfig(learning_rate=ScheduleConfig(initial=0.25)))
    context.state.set_document("schedules", changed, "test")
    assert context.schedules().learning_rate.initial == 0.25
