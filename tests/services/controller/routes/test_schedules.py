"""Schedules over REST: idempotent PUT, concurrent writers, past versions, history and reverts."""

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
import redis

from five.agent.schedules import load_schedules, value_at
from five.run.load import load
from tests.services.live_controller import VIEWER, LiveController, live, problem

PATH = "/v1/schedules/learning_rate"


@pytest.fixture
def rest(redis_client: redis.Redis, redis_url: str) -> Iterator[LiveController]:
    with live(redis_url) as found:
        publish(found, 4)
        yield found


def publish(rest: LiveController, version: int) -> None:
    rest.context.store.publish(version, {"w": np.full(3, version, np.float32)}, {})


def tag(rest: LiveController) -> str:
    return str(rest.ask("GET", PATH).headers["etag"])


def put(rest: LiveController, start: int, length: int, to: Any, match: str | None = "*", **more: Any) -> httpx.Response:
    headers = {} if match is None else {"If-Match": match}
    return rest.ask("PUT", PATH, json={"start": start, "length": length, "to": to, **more}, headers=headers)


def events(rest: LiveController) -> list[dict[str, Any]]:
    return [e.details for e in rest.state.events.read() if e.what == "schedules.set"]


def at(rest: LiveController, version: int) -> float:
    return value_at(load_schedules(rest.ask("GET", "/v1/schedules").json()).learning_rate, version)


@pytest.mark.parametrize("length", [0, 10])
def test_repeated_put_has_no_effect(rest: LiveController, length: int) -> None:
    first = put(rest, 6, length, 1e-6, tag(rest), reason="finer")
    assert first.status_code == 200 and first.json()["change"] and first.headers["etag"] == tag(rest)
    publish(rest, 50)  # the ramp has ended by now
    for match in (None, '"stale"', "*"):
        again = put(rest, 6, length, 1e-6, match)
        assert again.status_code == 200 and again.json()["change"] is None
        assert again.json()["schedule"] == first.json()["schedule"]
    assert len(events(rest)) == 1 and events(rest)[0]["reason"] == "finer"
    assert (at(rest, 5), at(rest, 6 + length)) == (5e-5, 1e-6)


def test_a_stale_or_missing_tag_is_refused(rest: LiveController) -> None:
    seen = tag(rest)
    assert put(rest, 10, 5, 1e-6, seen).status_code == 200
    document = problem(put(rest, 12, 5, 2e-6, seen), 412, "stale")
    assert "read it again" in document["detail"]
    problem(put(rest, 12, 5, 2e-6, None), 428, "precondition-required")
    problem(put(rest, 12, 5, 2e-6, "no-quotes"), 422, "invalid")
    problem(put(rest, 12, 5, 2e-6, f"W/{tag(rest)}"), 412, "stale")  # a weak tag proves nothing
    assert put(rest, 12, 5, 2e-6, f'"other", {tag(rest)}').status_code == 200
    assert len(events(rest)) == 2


def test_one_of_two_concurrent_writers_wins(rest: LiveController) -> None:
    seen = tag(rest)
    answers: list[int] = []
    threads = [threading.Thread(target=lambda to=to: answers.append(put(rest, 20, 0, to, seen).status_code))
               for to in (1e-6, 2e-6, 3e-6, 4e-6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200, 412, 412, 412] and len(events(rest)) == 1


@pytest.mark.parametrize(("start", "length", "to", "says"), [(3, 5, 1e-6, "at least the newest"),
                                                             (10, 5, 2.0, "0 to 1 is allowed"),
                                                             (10, 5, -1e-9, "0 to 1 is allowed"),
                                                             (-1, 5, 1e-6, "start"), (10, -1, 1e-6, "length"),
                                                             (10, 5, "NaN", "to"), (10, 5, None, "to"),
                                                             (1.5, 5, 1e-6, "start"), (10**400, 5, 1e-6, "start"),
                                                             ("10", 5, 1e-6, "start")])
def test_invalid_ramps_are_refused(rest: LiveController, start: Any, length: int, to: Any, says: str) -> None:
    document = problem(put(rest, start, length, to), 422, "invalid")
    assert says in document["detail"] and document["errors"]
    assert not events(rest) and rest.state.schedules() is None


@pytest.mark.parametrize("name", ["gamma", "..", "learning_rate%00", "..%2f..%2fetc%2fpasswd", "LEARNING_RATE", "é"])
def test_unknown_names_are_refused(rest: LiveController, name: str) -> None:
    answer = rest.ask("PUT", f"/v1/schedules/{name}", json={"start": 9, "length": 0, "to": 0.1},
                      headers={"If-Match": "*"})
    assert answer.status_code in (404, 405, 422) and answer.headers["content-type"] == "application/problem+json"
    assert rest.state.schedules() is None


def test_change_is_recorded_and_reverted(rest: LiveController) -> None:
    change = put(rest, 10, 10, 1e-6, reason="finer").json()["change"]
    publish(rest, 15)
    line = rest.ask("GET", "/v1/schedules/history", VIEWER).json()["items"][0]
    assert (line["id"], line["who"], line["name"], line["reason"]) == (change, "ada", "learning_rate", "finer")
    assert line["before"] == {"initial": 5e-5, "ramps": [], "unit": "versions"}
    assert line["after"]["ramps"][0]["to"] == 1e-6
    event = events(rest)[-1]
    assert event["before"] == line["before"] and event["after"] == line["after"]

    back = f"/v1/schedules/history/{change}/revert"
    problem(rest.ask("POST", back, VIEWER, json={"start": 20}), 403, "forbidden")
    problem(rest.ask("POST", back, json={"start": 14}), 422, "invalid")
    answer = rest.ask("POST", back, json={"start": 16, "reason": "no better"})
    assert answer.status_code == 200, answer.text
    # Earlier values stay, and the value before the change is restored.
    assert at(rest, 15) == pytest.approx((5e-5 + 1e-6) / 2) and at(rest, 16) == at(rest, 1000) == 5e-5
    lines = rest.ask("GET", "/v1/schedules/history").json()["items"]
    assert [entry["reverts"] for entry in lines] == [change, None]
    problem(rest.ask("POST", back, json={"start": 20}), 409, "conflict")
    # The way back can be taken back as well.
    assert rest.ask("POST", f"/v1/schedules/history/{lines[0]['id']}/revert", json={"start": 18}).status_code == 200
    assert at(rest, 1000) == 1e-6
    problem(rest.ask("POST", "/v1/schedules/history/1-1/revert", json={"start": 20}), 404, "not-found")


def test_change_that_the_configuration_would_refuse(redis_client: redis.Redis, redis_url: str) -> None:
    path, ramp = "/v1/schedules/middle_fraction", {"start": 6, "length": 0, "to": 0.5}
    with live(redis_url, file_config=load("laptop-1v1", ["services.rollout.environment=remote"])) as remote:
        refused = remote.ask("PUT", path, json=ramp, headers={"If-Match": "*"})
        assert "services.rollout.snapshot_bots" in problem(refused, 422, "invalid")["detail"]
        assert remote.ask("PUT", path, json={**ramp, "to": 0.0}, headers={"If-Match": "*"}).status_code == 200
    for overrides in ([], ["services.rollout.environment=remote", "services.rollout.snapshot_bots=[scripted]"]):
        with live(redis_url, file_config=load("laptop-1v1", overrides)) as able:
            assert able.ask("PUT", path, json=ramp, headers={"If-Match": "*"}).status_code == 200


def test_change_for_another_epoch_is_refused(rest: LiveController) -> None:
    record = rest.state.record()
    assert record is not None
    assert put(rest, 10, 0, 1e-6, epoch=record.epoch).status_code == 200
    problem(put(rest, 12, 0, 2e-6, epoch=record.epoch + 1), 409, "stale-epoch")
    problem(put(rest, 12, 0, 2e-6, epoch=record.epoch - 1), 409, "stale-epoch")
    assert [e["epoch"] for e in events(rest)] == [record.epoch]


def test_unchanged_schedule_is_not_sent_again(rest: LiveController) -> None:
    for path in (PATH, "/v1/schedules", "/v1/config"):
        first = rest.ask("GET", path)
        again = rest.ask("GET", path, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"") and again.headers["etag"] == first.headers["etag"]
        assert rest.ask("GET", path, headers={"If-None-Match": "garbage"}).status_code == 200


def test_schedule_in_hero_steps(rest: LiveController) -> None:
    ramp = {"start": 1000, "length": 1000, "from": 1e-4, "to": 3e-4}
    rest.state.set_document("schedules", {"learning_rate": {
        "initial": 1e-4, "ramps": [ramp], "unit": "hero_steps"}}, "ada")
    rest.context.series.append("versions", {"version": 4, "hero_steps": 1500})
    now = rest.ask("GET", PATH).json()
    assert (now["version"], now["hero_steps"], now["next_start"]) == (4, 1500, 2250)
    assert now["value"] == pytest.approx(2e-4)
    assert rest.ask("GET", "/v1/status").json()["hyperparameters"]["learning_rate"] == pytest.approx(2e-4)
    assert "hero-steps, 1500" in problem(put(rest, 1499, 5, 1e-6), 422, "invalid")["detail"]
    changed = put(rest, 1600, 400, 1e-4).json()
    assert changed["schedule"]["ramps"][-1] == {"start": 1600, "length": 400, "from": pytest.approx(2.2e-4), "to": 1e-4}
    back = rest.ask("POST", f"/v1/schedules/history/{changed['change']}/revert", json={})
    assert back.status_code == 200 and at(rest, 2250) == pytest.approx(3e-4)
