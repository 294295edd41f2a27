"""Plans: ordered surgery steps from one schema to the next, stored as YAML."""

import difflib
import hashlib
import json
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from five import yaml_core
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps import STEPS, AnyStep, SurgeryStep
from five.agent.surgery.steps.actions import AddActions
from five.agent.surgery.steps.game import ChangeGame
from five.agent.surgery.steps.prior import InputPrior
from five.agent.surgery.strict_yaml import parse_yaml

MAX_PARAMETERS = 10**9
MAX_STEPS = 64
MAX_ERRORS = 5  # of a plan that are named


class Bounds(BaseModel):
    """Largest changes that a surgery may cause, measured on recorded observations. A plan that exceeds them is not
    applied.

    Steps that promise to be exact must also meet their tolerance.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    mean_kl: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        0.01, description="KL divergence of the primary action, old to new, in nats, mean over recorded steps.")
    mean_value_change: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        0.05, description="Mean absolute change of the value, in units of its deviation over recorded steps.")
    max_logit_change: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None, description="Largest change of a logit of an available action or target.")
    max_value_change: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None, description="Largest change of a value.")


class PlanStage(NamedTuple):
    """Step of a plan with the specifications before and after it."""

    number: int
    step: SurgeryStep
    before: AgentSpec
    after: AgentSpec


class DeferredAnneal(NamedTuple):
    """A game change that is annealed in after the plan: dotted keys, and the number of versions from none to all
    games."""

    values: dict[str, Any]
    versions: int


class Plan(BaseModel):
    """An ordered list of steps with its bounds. Equal plans have equal digests; approval and application refer to the
    digest."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="Letters a-z, digits and dashes.")]
    parent: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$", description="Schema id of the versions to migrate.")]
    steps: Annotated[tuple[AnyStep, ...], Field(min_length=1, max_length=MAX_STEPS, strict=False)]
    hold: bool = Field(False, description="Wait for an operator's approval before anything is published.")
    warm_up_versions: Annotated[int, Field(ge=0, le=10_000)] = Field(
        8, description="Versions at learning rate 0 after the surgery, while moments and statistics settle.")
    bounds: Bounds = Field(default_factory=Bounds, description="Largest allowed changes.")

    @classmethod
    def from_yaml(cls, text: str | bytes) -> "Plan":
        """Read a plan. Raise ValueError with the place of the error, and the nearest known name for an unknown one."""
        values = parse_yaml(text)
        if not isinstance(values, dict):
            raise ValueError("a plan must be a mapping of name, parent, steps, hold, warm_up_versions and bounds")
        return cls.from_values(values)

    @classmethod
    def from_values(cls, values: Any) -> "Plan":
        """Read a plan from JSON values. Raise ValueError as `from_yaml` does."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ValueError(_format_value_error(error)) from error

    def to_yaml(self) -> str:
        """Return YAML that `from_yaml` reads, without keys at their defaults."""
        values = self.model_dump(mode="json", exclude_defaults=True)
        for step, short in zip(self.steps, values["steps"], strict=True):
            short["kind"] = step.kind
        values["steps"] = [{"kind": s.pop("kind"), **s} for s in values["steps"]]
        return yaml_core.dump(values, sort_keys=False, width=100)

    def canonical(self) -> str:
        """Return the JSON text with all keys sorted, from which the digest is computed."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    @property
    def digest(self) -> str:
        """sha256 of the canonical JSON, 64 hex digits."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def stages(self, spec: AgentSpec, max_parameters: int = MAX_PARAMETERS) -> Iterator[PlanStage]:
        """Yield the steps applied to ``spec`` in order, without allocating tensors.

        Raise ValueError if ``spec`` is not the parent, if a step does not fit, or if a model would have more than
        ``max_parameters`` parameters.
        """
        if spec.schema != self.parent:
            raise ValueError(f"plan {self.name} applies to schema {self.parent}, but the versions have schema "
                             f"{spec.schema}: derive the plan again from the run's present configuration")
        for number, step in enumerate(self.steps, 1):
            try:
                after = step.apply(spec)
                parameters = after.parameters
            except ValueError as error:
                raise ValueError(f"step {number} of plan {self.name}: {_format_value_error(error)}") from error
            if parameters > max_parameters:
                raise ValueError(f"step {number} of plan {self.name} ({step.describe(spec)}) gives a model of "
                                 f"{parameters:,} parameters: at most {max_parameters:,} are allowed")
            yield PlanStage(number, step, spec, after)
            spec = after

    def target(self, spec: AgentSpec, max_parameters: int = MAX_PARAMETERS) -> AgentSpec:
        """Return the specification after the plan. Raise as `stages` does."""
        for stage in self.stages(spec, max_parameters):
            spec = stage.after
        return spec

    def deferred_anneals(self, spec: AgentSpec) -> list[DeferredAnneal]:
        """Return the game changes that are annealed in after the plan."""
        found = []
        for stage in self.stages(spec):
            step = stage.step
            if isinstance(step, AddActions | ChangeGame) and step.anneal_versions:
                values = step.switches(stage.before) if isinstance(step, AddActions) else step.values
                found.append(DeferredAnneal(dict(values), step.anneal_versions))
        return found


def read_step(values: Any) -> AnyStep:
    """Read one step from JSON values. Raise ValueError as `Plan.from_values` does."""
    try:
        step: AnyStep = TypeAdapter(AnyStep).validate_python(values)
    except ValidationError as error:
        raise ValueError(_format_value_error(error)) from error
    return step


def _format_value_error(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(_format_error(e) for e in error.errors()[:MAX_ERRORS])
    return str(error)


def _format_error(error: Any) -> str:
    path = list(error["loc"])
    kind = next((p for p in path if p in STEPS), None)
    if kind:  # pydantic's tag of the step, which precedes its fields
        path.remove(kind)
    where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")
    if error["type"] == "extra_forbidden":
        *parents, key = path
        return f"{where}: unknown key; {_hint(str(key), _known_keys(kind, parents))}"
    if error["type"] == "union_tag_invalid":
        given = str(error.get("ctx", {}).get("tag", ""))
        return f"{where}: unknown kind of step '{given[:40]}'; {_hint(given, list(STEPS))}"
    if error["type"] == "union_tag_not_found":
        return f"{where}: kind is required, one of {', '.join(STEPS)}"
    message = error["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def _hint(given: str, known: list[str]) -> str:
    """Return the known name that is most like the given one, otherwise all of them."""
    for near in difflib.get_close_matches(given, known):
        return f"did you mean '{near}'?"
    return f"allowed: {', '.join(known)}"


def _known_keys(kind: str | None, parents: list[Any]) -> list[str]:
    """Return the keys that are allowed below ``parents``, in a step of that kind or in a plan."""
    if "prior" in parents:
        return list(InputPrior.model_fields)
    if kind:
        return list(STEPS[kind].model_fields)
    return list(Bounds.model_fields if "bounds" in parents else Plan.model_fields)
