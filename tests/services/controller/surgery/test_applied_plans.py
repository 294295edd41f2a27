"""The chain of applied plans: texts compared with digests, and each plan with the schema before it."""

from typing import Any

import pytest

from five.agent.surgery import AgentSpec, Plan
from five.services.controller.surgery.applied_plans import AppliedPlan, applied_plans
from rapid.store.record import RunRecord
from tests.services.optimizer_cases import GAME, MODEL

OLD = AgentSpec(GAME, MODEL)
WIDER = Plan.from_values({"name": "wider", "parent": OLD.schema, "steps": [{"kind": "grow_lstm", "to": 16}]})
AFTER = WIDER.target(OLD).schema
WIDEST = Plan.from_values({"name": "widest", "parent": AFTER, "steps": [{"kind": "grow_lstm", "to": 24}]})
ROWS: dict[str, dict[str, Any]] = {
    WIDER.digest: {"plan": WIDER.to_yaml(), "name": "wider", "parent": OLD.schema, "schema": AFTER, "epoch": 2,
                   "version": 4, "warm_up_until": 12, "who": "ada", "at": 1.5, "operation": "surgery-1"},
    WIDEST.digest: {"plan": WIDEST.to_yaml(), "name": "widest", "parent": AFTER, "schema": "9" * 16}}


def chain(changes: dict[str, dict[str, Any]] | None = None, *digests: str) -> list[AppliedPlan]:
    """Return the applied plans of a record, by default both, with rows replaced by ``changes``."""
    record = RunRecord(chain=digests or (WIDER.digest, WIDEST.digest))
    return applied_plans(record, {**ROWS, **(changes or {})})


def test_plans_that_follow_each_other_hold() -> None:
    first, second = chain()
    assert first.model_dump(by_alias=True) == {
        "number": 1, "digest": WIDER.digest, "name": "wider", "holds": True, "why": "", "parent": OLD.schema,
        "schema": AFTER, "epoch": 2, "version": 4, "warm_up_until": 12, "who": "ada", "at": 1.5,
        "operation": "surgery-1"}
    assert (second.number, second.name, second.holds, second.why) == (2, "widest", True, "")
    assert (second.epoch, second.version, second.warm_up_until, second.who, second.at) == (None, None, None, "", None)


@pytest.mark.parametrize("first", [True, False])
def test_an_edited_text_is_reported_with_its_new_digest(first: bool) -> None:
    """The new digest sorts after the old one, and before it."""
    edited = WIDER.model_copy(update={"warm_up_versions": 3})
    old, new = sorted((WIDER, edited), key=lambda plan: plan.digest, reverse=not first)
    (found,) = chain({old.digest: {**ROWS[WIDER.digest], "plan": new.to_yaml()}}, old.digest)
    assert not found.holds and new.digest in found.why and "edited" in found.why


def test_plan_after_an_edited_one_is_compared_with_its_schema() -> None:
    first, second = chain({WIDER.digest: {**ROWS[WIDER.digest], "plan": WIDER.to_yaml().replace("16", "17")}})
    assert not first.holds and second.holds


@pytest.mark.parametrize("schema", ["0" * 16, "f" * 16])
def test_a_plan_that_does_not_follow_is_reported(schema: str) -> None:
    first, second = chain({WIDER.digest: {**ROWS[WIDER.digest], "schema": schema}})
    assert first.holds and not second.holds
    assert second.why == f"its parent is {AFTER}, but the previous plan led to {schema}"


def test_a_missing_plan_hides_no_later_one() -> None:
    first, second, third = chain({WIDER.digest: {}}, "0" * 64, WIDER.digest, WIDEST.digest)
    assert [(plan.number, plan.holds, "missing" in plan.why) for plan in (first, second)] == [
        (1, False, True), (2, False, True)]
    assert (first.name, first.parent, first.schema_, first.operation) == ("", "", "", "")
    assert third.number == 3 and third.holds, "without a known schema before it, only the text is compared"


def test_an_unreadable_text_is_reported() -> None:
    first, second = chain({WIDER.digest: {**ROWS[WIDER.digest], "plan": "name: wider"}})
    assert not first.holds and first.why.startswith("its text is invalid: ") and "steps" in first.why
    assert second.holds
