"""Requests of anneals that store nothing, and the error rates of their guard."""

from typing import Any

import pytest

from dota.config import GameConfig
from five.agent.anneal import guard
from five.agent.anneal.guard import GuardConfig
from five.services.controller.operations.store import OperationStore
from five.services.controller.routes import anneal
from five.services.controller.routes.anneal import guard_power
from rapid.store.record import RunRecord
from tests.services.controller.routes.conftest import Api
from tests.services.live_controller import RUN, problem

GAME = GameConfig(patch="7.19", mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"])
WISH = {"name": "patch", "overrides": {"patch": "7.21d"}, "versions": 100, "guard": {"loss": 0.3, "pairs": 400},
        "policy": {"on_fail": "retry"}, "reason": "the finals are played on it"}


@pytest.fixture
def run(api: Api) -> Api:
    state = api.context.state
    state.redis.flushall()
    state.create({"name": RUN}, "test", RunRecord(game=GAME.model_dump(mode="json"), schema="s"))
    return api


def test_anneal_stores_its_request_unless_it_is_a_dry_run(run: Api) -> None:
    dry = run.ask("POST", "/v1/anneal?dry_run=true", json=WISH)
    assert dry.status_code == 200 and OperationStore(run.context.state).all() == []
    answer = run.ask("POST", "/v1/anneal", json=WISH)
    assert answer.status_code == 202, answer.text
    (operation,) = OperationStore(run.context.state).all()
    assert answer.headers["location"] == f"/v1/operations/{operation.id}"
    assert (operation.kind, operation.reason) == ("anneal", "the finals are played on it")
    request, stored = operation.request, operation.request.anneal
    assert stored is not None and stored["id"] == request.name and stored["id"].startswith("patch-")
    assert (request.parent, request.epoch, stored["overrides"], stored["length"]) == ("s", 1, {"patch": "7.21d"}, 100)
    assert (stored["guard"]["loss"], stored["guard"]["pairs"], stored["policy"]["on_fail"]) == (0.3, 400, "retry")


@pytest.mark.parametrize("overrides", [
    {"patch": "1.0"}, {"heroes_per_team": 5}, {"speed": 2}, {"hero_pool": ["nevermor"]}, {"frameskip": 8}])
def test_change_that_cannot_be_annealed_is_refused(run: Api, overrides: dict[str, object]) -> None:
    for query in ("", "?dry_run=true"):
        refused = problem(run.ask("POST", f"/v1/anneal{query}", json={**WISH, "overrides": overrides}), 422, "invalid")
        assert refused["errors"] == [{"where": "body.overrides", "what": "cannot be annealed"}]
        assert "\n" not in refused["detail"]
    assert OperationStore(run.context.state).all() == []


def test_guard_catches_the_loss_that_it_is_configured_for() -> None:
    found = guard_power(GuardConfig(loss=0.3, pairs=400))
    assert (found.loss, found.false_alarm, found.miss) == (0.3, GuardConfig().false_alarm, GuardConfig().miss)
    assert found.caught.keys() == found.pairs_to_catch.keys() == {"even", "decided"}
    assert all(share > 0.9 for share in found.caught.values()), found
    assert 0 < found.pairs_to_catch["even"] < found.pairs_to_catch["decided"] <= 400, "decided pairs spread more"
    assert guard_power(GuardConfig(loss=0.01, pairs=400)).caught["decided"] < 0.2, "a small loss takes more pairs"


def test_simulations_have_at_most_two_thousand_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """More would take seconds."""
    pairs: list[int] = []

    def estimate(config: GuardConfig, *others: Any) -> guard.PowerEstimate:
        pairs.append(config.pairs)
        return guard.PowerEstimate(0.5, 0.5, 1)

    monkeypatch.setattr(anneal, "estimate_power", estimate)
    for given in (1999, 2000, 2001, 10_000):
        guard_power(GuardConfig(loss=0.123, pairs=given))
    assert pairs == [1999] * 2 + [2000] * 6
