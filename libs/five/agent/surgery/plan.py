"""A plan: the ordered steps from one schema to the next, as a YAML file that can be read, checked and kept."""

import difflib
import hashlib
import json
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps import STEPS, AnyStep, SurgeryStep
from five.agent.surgery.steps.actions import AddActions
from five.agent.surgery.steps.game import ChangeGame
from five.agent.surgery.strict_yaml import parse_yaml

MAX_PARAMETERS = 10**9
MAX_STEPS = 64


class Bounds(BaseModel):
    """What a surgery may change, measured on recorded observations; one that changes more is not applied.

    Steps that promise to be exact are held to their tolerance besides.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mean_kl: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        0.01, description="KL divergence of the primary action, old to new, in nats, mean over recorded steps.")
    mean_value_change: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        0.05, description="Mean absolute change of the value, in units of its deviation over recorded steps.")
    max_logit_change: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None, description="Largest change of a logit of an available action or target.")
    max_value_change: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None, description="Largest change of a value.")


class PlanStage(NamedTuple):
    """One step of a plan with what it is applied to and what it gives."""

    number: int
    step: SurgeryStep
    before: AgentSpec
    after: AgentSpec


class DeferredAnneal(NamedTuple):
    """A change of the game that a plan leaves to an anneal behind it: dotted keys, and versions from none to all."""

    values: dict[str, Any]
    versions: int


class Plan(BaseModel):
    """See the fields. Equal plans have equal digests; the digest is what is approved, applied and remembered."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="Letters a-z, digits and dashes.")]
    parent: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$", description="Schema id of the versions that it changes.")]
    steps: Annotated[tuple[AnyStep, ...], Field(min_length=1, max_length=MAX_STEPS)]
    hold: bool = Field(False, description="Stop before anything is published, until someone says to go on.")
    warm_up_versions: Annotated[int, Field(ge=0, le=10_000)] = Field(
        8, description="Versions at learning rate 0 behind the surgery, while moments and statistics settle.")
    bounds: Bounds = Field(default_factory=Bounds, description="What it may change.")

    @classmethod
    def from_yaml(cls, text: str | bytes) -> "Plan":
        """Reads a plan. Raises ValueError saying what is wrong and where, with the nearest name for an unknown one."""
        values = parse_yaml(text)
        if not isinstance(values, dict):
            raise ValueError("a plan is a mapping of name, parent, steps, hold, warm_up_versions and bounds")
        return cls.from_values(values)

    @classmethod
    def from_values(cls, values: Any) -> "Plan":
        """A plan from JSON values. Raises ValueError as `from_yaml` does."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ValueError("; ".join(_words(e, values) for e in error.errors()[:5])) from error

    def to_yaml(self) -> str:
        """YAML that `from_yaml` reads: the keys that are not at their defaults."""
        import yaml

        values = self.model_dump(mode="json", exclude_defaults=True)
        for step, short in zip(self.steps, values["steps"], strict=True):
            short["kind"] = step.kind
        values["steps"] = [{"kind": s.pop("kind"), **s} for s in values["steps"]]
        text: str = yaml.safe_dump(values, sort_keys=False, width=100)
        return text

    def canonical(self) -> str:
        """The JSON text that the digest is taken of: every key, sorted."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @property
    def digest(self) -> str:
        """sha256 of the canonical JSON, 64 hex digits."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def stages(self, spec: AgentSpec, max_parameters: int = MAX_PARAMETERS) -> Iterator[PlanStage]:
        """Its steps on ``spec``, one after another; nothing of a tensor's size is allocated.

        Raises ValueError when ``spec`` is not the parent, naming the step that does not fit, or when a step would give
        a model more than ``max_parameters`` parameters.
        """
        if spec.schema != self.parent:
            raise ValueError(f"plan {self.name} is for versions of schema {self.parent}, these are of {spec.schema}: "
                             "make the plan again from the run's present configuration")
        for number, step in enumerate(self.steps, 1):
            try:
                after = step.apply(spec)
                parameters = after.parameters
            except ValueError as error:
                raise ValueError(f"step {number} of plan {self.name}: {_plain(error)}") from error
            if parameters > max_parameters:
                raise ValueError(f"step {number} of plan {self.name} ({step.describe(spec)}) would make a model of "
                                 f"{parameters:,} parameters; at most {max_parameters:,} are allowed here")
            yield PlanStage(number, step, spec, after)
            spec = after

    def target(self, spec: AgentSpec, max_parameters: int = MAX_PARAMETERS) -> AgentSpec:
        """What it makes of ``spec``. Raises as `stages` does."""
        for stage in self.stages(spec, max_parameters):
            spec = stage.after
        return spec

    def anneals(self, spec: AgentSpec) -> list[DeferredAnneal]:
        """The changes of the game that are not made by the plan but annealed in behind it."""
        found = []
        for stage in self.stages(spec):
            step = stage.step
            if isinstance(step, AddActions | ChangeGame) and step.anneal_versions:
                values = step.switches(stage.before) if isinstance(step, AddActions) else step.values
                found.append(DeferredAnneal(dict(values), step.anneal_versions))
        return found


def read_step(values: Any) -> SurgeryStep:
    """One step from JSON values. Raises ValueError as `Plan.from_values` does."""
    try:
        step: SurgeryStep = TypeAdapter(AnyStep).validate_python(values)
    except ValidationError as error:
        raise ValueError("; ".join(_words(e, values) for e in error.errors()[:5])) from error
    return step


def _plain(error: ValueError) -> str:
    """A validation error's own words."""
    if isinstance(error, ValidationError):
        return "; ".join(_words(e, {}) for e in error.errors()[:3])
    return str(error)


def _words(error: Any, values: Any) -> str:
    path = [p for p in error["loc"] if not (isinstance(p, str) and p in STEPS)]
    where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")
    if error["type"] == "extra_forbidden":
        known = _known_keys(error["loc"])
        near = difflib.get_close_matches(str(error["loc"][-1]), known, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else f"; known are {', '.join(known)}"
        return f"{where}: unknown key{hint}"
    if error["type"] == "union_tag_invalid":
        given = str(error.get("ctx", {}).get("tag", ""))
        near = difflib.get_close_matches(given, list(STEPS), n=1)
        hint = f"; did you mean '{near[0]}'?" if near else f"; there are {', '.join(STEPS)}"
        return f"{where}: no kind of step is called '{given[:40]}'{hint}"
    if error["type"] == "union_tag_not_found":
        return f"{where}: a step needs its kind, one of {', '.join(STEPS)}"
    message = error["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def _known_keys(loc: tuple[Any, ...]) -> list[str]:
    kinds = [p for p in loc if isinstance(p, str) and p in STEPS]
    if kinds:
        return list(STEPS[kinds[0]].model_fields)
    return list(Bounds.model_fields if "bounds" in loc else Plan.model_fields)
