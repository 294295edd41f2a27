"""The run's status with its services and newest records, and the reasons of its changes."""

from typing import Any

import pytest

from five.agent.config import SchedulesConfig
from five.agent.schedules import hyperparameters_at
from five.services.controller.routes.run import stalled_seconds
from rapid.store.leases import Lease
from rapid.store.record import RunRecord
from rapid.store.series import Record
from rapid.store.state import RunStatus, Status
from tests.services.controller.routes.conftest import Api
from tests.services.live_controller import RUN, VIEWER, problem


def test_new_run_has_an_empty_status(api: Api) -> None:
    found = api.ask("GET", "/v1/status", VIEWER).json()
    since = found.pop("since")
    assert since > 1e9 and found == {
        "run": RUN, "status": "starting", "by": "test", "reason": "created", "version": None, "services": {},
        "hyperparameters": hyperparameters_at(SchedulesConfig(), 0, 0).as_dict(),
        "newest": {"versions": None, "ratings": None}, "autoscaler": {}, "epoch": 1, "record_revision": 1,
        "publisher": None, "drift": [], "stalled_seconds": 0.0, "waiting_for": [], "faults": {}}


def test_status_counts_services_and_has_newest_records(api: Api) -> None:
    context = api.context
    for kind, identity in (("rollout", "0"), ("rollout", "1"), ("optimizer", "0")):
        Lease(context.state.redis, RUN, kind, identity, 30).renew()
    for version in (3, 4):
        context.series.append("versions", {"version": version})
    context.series.append("ratings", {"mu": 2.5})
    context.state.table("autoscaler").set("rollout", {"replicas": 2})
    found = api.ask("GET", "/v1/status", VIEWER).json()
    assert found["services"] == {"rollout": 2, "optimizer": 1}
    assert found["newest"] == {"versions": {"version": 4}, "ratings": {"mu": 2.5}}
    assert found["autoscaler"] == {"rollout": {"replicas": 2}}
    rows = api.ask("GET", "/v1/services", VIEWER).json()
    assert sorted((row["kind"], row["id"]) for row in rows) == [("optimizer", "0"), ("rollout", "0"), ("rollout", "1")]


def test_status_has_the_records_revision(api: Api) -> None:
    api.context.state.redis.set(api.context.state.keys.record, RunRecord(5, 2).to_json())
    found = api.ask("GET", "/v1/status", VIEWER).json()
    assert (found["epoch"], found["record_revision"]) == (2, 5)


@pytest.mark.parametrize("body", [None, {}, {"reason": "a look"}])
def test_changes_of_the_status_have_an_author_and_a_reason(api: Api, body: Any) -> None:
    api.context.state.transition(Status.RUNNING, "test")
    reason = (body or {}).get("reason", "")
    for path, status in (("pause", "pausing"), ("resume", "running"), ("stop", "stopping"), ("resume", "starting")):
        dry = api.ask("POST", f"/v1/{path}?dry_run=true", json=body)
        assert dry.status_code == 200 and dry.json()["status"] == status
        assert (now := api.context.state.status()) is not None and now.status != status, "a dry run changed it"
        made = api.ask("POST", f"/v1/{path}", json=body).json()
        now = api.context.state.status()
        assert now is not None and made == {"status": status, "since": now.since, "who": "ada", "reason": reason}
        assert (now.status, now.who, now.reason) == (status, "ada", reason)
    refused = problem(api.ask("POST", "/v1/pause", json=body), 409, "illegal-transition")
    assert "starting" in refused["detail"]


@pytest.mark.parametrize(("status", "since", "seconds", "waited", "stalled"), [
    (Status.RUNNING, 0.0, None, 60.0, 0.0), (Status.RUNNING, 0.0, None, 60.1, 60.1),
    (Status.RUNNING, 0.0, 6.5, 65.0, 0.0), (Status.RUNNING, 0.0, 6.5, 65.25, 65.2),
    (Status.RUNNING, 0.0, 1.0, 60.0, 0.0), (Status.RUNNING, 30.0, 1.0, 95.0, 65.0),
    (Status.PAUSED, 0.0, 1.0, 900.0, 0.0)])
def test_run_is_stalled_after_a_minute_and_ten_versions(status: Status, since: float, seconds: float | None,
                                                        waited: float, stalled: float) -> None:
    """Times are seconds after the newest version, or after the run began to run."""
    newest = None if seconds is None else Record("1-0", 1000.0, {"seconds": seconds})
    assert stalled_seconds(RunStatus(status, 1000.0 + since, "test", ""), newest, 1000.0 + waited) == stalled
    without = Record("1-0", 1000.0, {})
    assert stalled_seconds(RunStatus(Status.RUNNING, 1000.0, "test", ""), without, 1061.0) == 61.0
