"""The chain of plans that a run has been through, and how any of its versions is brought to the newest schema."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from five.agent.surgery.migrate import migrate_policy
from five.agent.surgery.plan import MAX_PARAMETERS, Plan
from five.agent.surgery.remap import Array
from five.agent.surgery.spec import AgentSpec


@dataclass(frozen=True)
class AppliedMigration:
    """An applied plan with the agent that it was applied to."""

    plan: Plan
    old: AgentSpec

    @property
    def new(self) -> AgentSpec:
        """What it led to."""
        return self.plan.target(self.old, MAX_PARAMETERS * 1000)

    def to_json(self) -> str:
        """JSON text that ``from_json`` reads: what a run keeps of an applied plan."""
        return json.dumps({"digest": self.plan.digest, "plan": self.plan.model_dump(mode="json"),
                           "old": self.old.trees()}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "AppliedMigration":
        """Reads ``to_json``. Raises ValueError when the plan is not the one whose digest stands beside it."""
        try:
            values = json.loads(text)
            link = cls(Plan.from_values(values["plan"]), AgentSpec.of(values["old"]["game"], values["old"]["model"]))
            digest = values["digest"]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not an applied plan: {error}") from error
        if link.plan.digest != digest:
            raise ValueError(f"plan {link.plan.name} was edited after it was applied: its checksum is "
                             f"{link.plan.digest[:16]}, applied was {digest[:16]}")
        return link


class MigrationChain:
    """The plans in the order in which they were applied, each on what the one before led to.

    Args:
        links: the applied plans.
        digests: what the run's record says was applied, if that is known.

    Raises ValueError for an edited plan, a plan that is missing, and a second plan on one parent.
    """

    def __init__(self, links: Sequence[AppliedMigration], digests: Sequence[str] | None = None) -> None:
        self.links = tuple(links)
        applied = tuple(link.plan.digest for link in self.links)
        for i, digest in enumerate(digests or ()):
            if i >= len(applied):
                raise ValueError(f"plan {i + 1} of the chain, {digest[:16]}, is missing")
            if applied[i] != digest:
                raise ValueError(f"plan {i + 1} of the chain is {self.links[i].plan.name} with checksum "
                                 f"{applied[i][:16]}; applied was {digest[:16]}: it was edited or exchanged")
        if digests is not None and len(applied) > len(digests):
            raise ValueError(f"{self.links[len(digests)].plan.name} was never applied to this run")
        self.schemas: tuple[str, ...] = tuple(link.plan.parent for link in self.links[:1])
        for i, link in enumerate(self.links):
            if link.old.schema != link.plan.parent:
                raise ValueError(f"plan {link.plan.name} was applied to schema {link.plan.parent}; this build makes "
                                 f"{link.old.schema} of the same configuration: it is of another version of five")
            if link.plan.parent != self.newest:
                raise self._branch(link.plan, i)
            self.schemas = (*self.schemas, link.new.schema)

    @property
    def newest(self) -> str:
        """Schema id of the newest versions; '' for a chain without plans."""
        return self.schemas[-1] if self.schemas else ""

    @property
    def digest(self) -> str:
        """sha256 over the plans' digests, 64 hex digits: equal for equal chains."""
        return self._digest(0)

    def follow(self, plan: Plan, old: AgentSpec) -> "MigrationChain":
        """The chain with one more plan. Raises ValueError as the constructor does."""
        return MigrationChain((*self.links, AppliedMigration(plan, old)))

    def plans_from(self, schema: str) -> tuple[AppliedMigration, ...]:
        """The plans that versions of a schema still have to go through.

        A schema that came back, as when an input is removed and added again, fits where it was last: such a version
        needs nothing. Raises ValueError for a schema that the run never had.
        """
        if schema not in self.schemas:
            if not self.links:
                return ()
            known = " -> ".join(self.schemas)
            raise ValueError(f"schema {schema} is not of this run's chain ({known}): the version cannot be migrated")
        return self.links[len(self.schemas) - 1 - self.schemas[::-1].index(schema):]

    def digest_from(self, schema: str) -> str:
        """Digest of what ``to_newest`` does to versions of a schema: with the version's own, the key of a cache."""
        return self._digest(len(self.links) - len(self.plans_from(schema)))

    def to_newest(self, tensors: Mapping[str, Array], schema: str) -> dict[str, Array]:
        """A version of any schema that the run had, in the newest one. Raises ValueError as `plans_from` does, or when
        the tensors are not of that schema."""
        found = dict(tensors)
        for link in self.plans_from(schema):
            found = migrate_policy(link.plan, link.old, found, MAX_PARAMETERS * 1000)
        return found

    def _branch(self, plan: Plan, at: int) -> ValueError:
        if plan.parent in self.schemas[:-1]:
            first = self.links[self.schemas.index(plan.parent)].plan
            return ValueError(f"plan {plan.name} is a second plan on schema {plan.parent}: {first.name} was applied to "
                              f"it, and the run is at {self.schemas[-1]}; make the plan again from there")
        return ValueError(f"plan {plan.name} is for schema {plan.parent}, but plan {at} led to {self.schemas[-1]}")

    def _digest(self, start: int) -> str:
        text = "\n".join(link.plan.digest for link in self.links[start:])
        return hashlib.sha256(text.encode()).hexdigest()
