"""What is known of a change on its way into games: the anneal's document."""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from five.agent.anneal.guard import GuardConfig

Json = Any
ID = r"^[a-z0-9][a-z0-9._-]{0,62}$"
MAX_OVERRIDES = 16_384  # characters of JSON


class AnnealState(StrEnum):
    """Where an anneal stands."""

    RAMPING = "ramping"  # the share grows with the versions
    HOLDING = "holding"  # the share stays: somebody said so, or a gate waits for the guard
    PROMOTED = "promoted"  # the change is the game now
    ABORTED = "aborted"  # no game has the change any more; the weights are what they have become
    FAILED = "failed"  # the guard found harm: no game has the change, and the run is to be reverted
    REVERTED = "reverted"  # no game has the change, and the run is where it was before


ACTIVE = frozenset({AnnealState.RAMPING, AnnealState.HOLDING})  # games have the change
FINISHED = frozenset({AnnealState.PROMOTED, AnnealState.ABORTED, AnnealState.REVERTED})


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class AnnealPolicy(_Section):
    """What follows the guard's verdicts."""

    on_fail: Literal["retry", "stop"] = Field(
        "retry", description="After a failure the run is reverted to the last version before the change. retry: then "
        "the change is annealed in again, slower; stop: it is not.")
    slower: float = Field(2.0, ge=1, le=100, description="Factor on the ramp's length from one try to the next.")
    tries: int = Field(3, ge=1, le=20, description="Tries in all; after the last failed one nothing follows.")
    gates: tuple[float, ...] = Field(
        (0.5, 1.0), min_length=1, max_length=16, description="Shares at which the ramp waits for the guard to pass the "
        "change, the last of them 1. There it is promoted.")

    @field_validator("gates")
    @classmethod
    def _rising(cls, gates: tuple[float, ...]) -> tuple[float, ...]:
        if list(gates) != sorted(set(gates)) or gates[0] <= 0 or gates[-1] != 1:
            raise ValueError("gates are shares in rising order, above 0, and the last of them is 1")
        return gates


class AnnealRamp(_Section):
    """The share's way up: ``share`` at version ``start``, growing by one over ``length`` versions."""

    start: int = Field(ge=0)
    share: float = Field(0.0, ge=0, le=1)
    length: int = Field(ge=1, le=10_000_000)

    def at(self, version: int) -> float:
        """The share at a version, without any gate."""
        return min(1.0, self.share + max(version - self.start, 0) / self.length)


class Anneal(_Section):
    """A change on its way into games. ``overrides`` is laid over the run's game configuration, a tree like it.

    ``base`` is the last version before the change: it is kept, compared with, and gone back to. ``attempt`` counts
    tries from 1; each has pairs of its own, of versions after ``began``. ``passed`` is how many gates the guard has
    passed in this one. ``held_by`` says who holds it: '' nobody, "gate", or the name of whoever asked. ``revision``
    counts the document's changes.
    """

    id: str = Field(pattern=ID)
    overrides: dict[str, Json]
    base: int = Field(ge=0)
    began: int = Field(ge=0)
    ramp: AnnealRamp
    guard: GuardConfig = GuardConfig()
    policy: AnnealPolicy = AnnealPolicy()
    state: AnnealState = AnnealState.RAMPING
    attempt: int = Field(1, ge=1)
    passed: int = Field(0, ge=0)
    held_by: str = Field("", max_length=128)
    said: str = Field("", max_length=2000, description="Why it stands where it does, in words.")
    revision: int = Field(1, ge=1)

    @field_validator("overrides")
    @classmethod
    def _some(cls, overrides: dict[str, Json]) -> dict[str, Json]:
        if not overrides:
            raise ValueError("the change is empty: name what is to be different in the game's configuration")
        if len(json.dumps(overrides)) > MAX_OVERRIDES:
            raise ValueError(f"the change is longer than {MAX_OVERRIDES} characters")
        return overrides

    @property
    def trial(self) -> str:
        """What arms and pairs of this attempt are drawn by: ids of another attempt say nothing here."""
        return f"{self.id}/{self.attempt}"

    @property
    def gate(self) -> float:
        """The share at which the ramp waits for the guard; 1 when all gates are passed."""
        return self.policy.gates[min(self.passed, len(self.policy.gates) - 1)]

    def share(self, version: int) -> float:
        """The share of games that have the change when ``version`` is the newest."""
        if self.state is AnnealState.RAMPING:
            return min(self.ramp.at(version), self.gate)
        return self.ramp.share if self.state is AnnealState.HOLDING else 0.0

    def shown_at(self, version: int) -> float:
        """The share that a version is known to have learned under; 0 for one from before the ramp's last turn."""
        return self.share(version) if version >= self.ramp.start else 0.0

    def to_json(self) -> dict[str, Json]:
        """JSON values that ``model_validate`` reads."""
        return self.model_dump(mode="json")


def merge_overrides(game: Mapping[str, Json], overrides: Mapping[str, Json]) -> dict[str, Json]:
    """A configuration tree with another laid over it: sections are merged, values and lists replaced."""
    out = dict(game)
    for key, value in overrides.items():
        below = out.get(key)
        out[key] = merge_overrides(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return out
