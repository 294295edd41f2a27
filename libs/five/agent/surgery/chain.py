"""The sequence of plans applied to a run, and migration of any of its versions to the newest schema."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from five.agent.surgery.migrate import migrate_policy
from five.agent.surgery.plan import Plan
from five.agent.surgery.remap import Array
from five.agent.surgery.spec import AgentSpec
from rapid.malformed import MALFORMED


@dataclass(frozen=True)
class AppliedMigration:
    """An applied plan with the agent specification that it was applied to."""

    plan: Plan
    old: AgentSpec

    @property
    def new(self) -> AgentSpec:
        """Specification after the plan."""
        return self.plan.target(self.old)

    def to_json(self) -> str:
        """Return JSON text that ``from_json`` reads, which a run stores for each applied plan."""
        return json.dumps({"digest": self.plan.digest, "plan": self.plan.model_dump(mode="json"),
                           "old": self.old.trees()}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "AppliedMigration":
        """Read the result of ``to_json``. Raise ValueError if the plan does not match the stored digest."""
        try:
            values = json.loads(text)
            old = AgentSpec.from_trees(values["old"]["game"], values["old"]["model"])
            link = cls(Plan.from_values(values["plan"]), old)
            digest = str(values["digest"])
        except MALFORMED as error:
            raise ValueError(f"not an applied plan: {error}") from error
        if link.plan.digest != digest:
            raise ValueError(f"plan {link.plan.name} was edited after it was applied: its digest is "
                             f"{link.plan.digest[:16]}, the applied digest is {digest[:16]}")
        return link


class MigrationChain:
    """Applied plans in order, each on the result of the previous one.

    Args:
        links: the applied plans.
        digests: digests of applied plans in the run's record, if known.

    Raise ValueError for an edited plan, a missing plan, or a second plan on one parent.
    """

    def __init__(self, links: Sequence[AppliedMigration], digests: Sequence[str] | None = None) -> None:
        self.links = tuple(links)
        applied = tuple(link.plan.digest for link in self.links)
        for i, digest in enumerate(digests or ()):
            if i >= len(applied):
                raise ValueError(f"plan {i + 1} of the chain, {digest[:16]}, is missing")
            if applied[i] != digest:
                raise ValueError(f"plan {i + 1} of the chain, {self.links[i].plan.name}, has digest {applied[i][:16]}, "
                                 f"but the applied digest is {digest[:16]}: it was edited or replaced")
        if digests is not None and len(applied) > len(digests):
            raise ValueError(f"{self.links[len(digests)].plan.name} was never applied to this run")
        self.schemas: tuple[str, ...] = tuple(link.plan.parent for link in self.links[:1])
        for i, link in enumerate(self.links):
            if link.old.schema != link.plan.parent:
                raise ValueError(f"plan {link.plan.name} was applied to schema {link.plan.parent}, but this release "
                                 f"derives {link.old.schema} from the same configuration: use the release of the run")
            if link.plan.parent != self.newest:
                raise self._branch_error(link.plan, i)
            self.schemas = (*self.schemas, link.new.schema)

    @property
    def newest(self) -> str:
        """Schema id of the newest versions; '' for a chain without plans."""
        return self.schemas[-1] if self.schemas else ""

    def append(self, plan: Plan, old: AgentSpec) -> "MigrationChain":
        """Return the chain with one more plan. Raise ValueError as the constructor does."""
        return MigrationChain((*self.links, AppliedMigration(plan, old)))

    def migrations_from(self, schema: str) -> tuple[AppliedMigration, ...]:
        """Return the migrations that versions of a schema still need.

        If a schema occurs twice, as after removing and adding an input, its last position counts. Raise ValueError for
        a schema that the run never had.
        """
        if schema not in self.schemas:
            if not self.links:
                return ()
            known = " -> ".join(self.schemas)
            raise ValueError(f"schema {schema} is not in this run's chain ({known}), so the version cannot be migrated")
        return self.links[len(self.schemas) - 1 - self.schemas[::-1].index(schema):]

    def migrate_to_newest(self, tensors: Mapping[str, Array], schema: str) -> dict[str, Array]:
        """Return a version of any of the run's schemas migrated to the newest one.

        Raise ValueError as `migrations_from` does, or if the tensors do not match the schema.
        """
        found = dict(tensors)
        for link in self.migrations_from(schema):
            found = migrate_policy(link.plan, link.old, found)
        return found

    def _branch_error(self, plan: Plan, at: int) -> ValueError:
        if plan.parent in self.schemas[:-1]:
            first = self.links[self.schemas.index(plan.parent)].plan
            return ValueError(f"plan {plan.name} is a second plan on schema {plan.parent}: {first.name} was applied to "
                              f"it, and the run is at {self.schemas[-1]}; derive the plan again from there")
        return ValueError(f"plan {plan.name} is for schema {plan.parent}, but plan {at} led to {self.schemas[-1]}")
