"""The chain of applied plans of a run, verified by checksums."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from rapid.store.record import RunRecord


class AppliedPlan(BaseModel):
    """An applied plan."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{
        "number": 1, "digest": "4c0e2f1a" * 8, "name": "wider", "holds": True, "why": "", "parent": "9f2d51c07ab3e684",
        "schema": "77ab3e684f2d51c0", "epoch": 2, "version": 813, "warm_up_until": 818, "who": "ada",
        "at": 1760000000.0, "operation": "surgery-20260101-120500-d4e5f6"}]})

    number: int = Field(description="Its position in the chain, from 1.")
    digest: str = Field(description="Its digest in the run's record.")
    name: str = Field(description="Its name.")
    holds: bool = Field(description="Whether the stored text matches the digest and follows the previous plan.")
    why: str = Field(description="What does not match; '' if it holds.")
    parent: str = Field(description="The model schema before it.")
    schema_: str = Field(alias="schema", description="The model schema after it.")
    epoch: int | None = Field(description="The epoch that began with it.")
    version: int | None = Field(description="The first version of the new schema.")
    warm_up_until: int | None = Field(description="The last version of its warm-up.")
    who: str = Field(description="Name of the requesting token.")
    at: float | None = Field(description="Time, seconds since the epoch.")
    operation: str = Field(description="The operation that applied it.")


def applied_plans(record: RunRecord, rows: Mapping[str, Mapping[str, Any]]) -> list[AppliedPlan]:
    """Return the record's chain. Each plan's text is compared with its digest, and its parent with the previous
    schema."""
    chain = []
    before = ""
    for number, digest in enumerate(record.chain, 1):
        row = rows.get(digest, {})
        why = _find_problem(digest, row, before)
        before = str(row.get("schema", ""))
        chain.append(AppliedPlan(
            number=number, digest=digest, name=row.get("name", ""), holds=not why, why=why,
            parent=row.get("parent", ""), schema=before, epoch=row.get("epoch"), version=row.get("version"),
            warm_up_until=row.get("warm_up_until"), who=row.get("who", ""), at=row.get("at"),
            operation=row.get("operation", "")))
    return chain


def _find_problem(digest: str, row: Mapping[str, Any], before: str) -> str:
    from five.agent.surgery import Plan  # imported on demand: only the log needs it

    if not row:
        return "its text is missing: earlier versions can no longer be loaded"
    try:
        plan = Plan.from_yaml(str(row["plan"]))
    except ValueError as error:
        return f"its text is invalid: {error}"
    if plan.digest != digest:
        return f"its text was edited: its digest is now {plan.digest}"
    if before and plan.parent != before:
        return f"its parent is {plan.parent}, but the previous plan led to {before}"
    return ""
